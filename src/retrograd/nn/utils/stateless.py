"""A module called with other parameters and buffers than its own: ``functional_call``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ...core.absent import absent, listed
from ...core.tensor import Tensor
from ...core.where import warn
from ...ops.operation import MISSING
from ..modules.module import Module


def _names(module: Module) -> dict[str, Any]:
    """All parameters and buffers by every name that they have."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }


def _with_tied(module: Module, given: Mapping[str, Any]) -> dict[str, Any]:
    """``given``, also under the other names of what the module has under several."""
    names: dict[int, set[str]] = {}
    for name, tensor in _names(module).items():
        names.setdefault(id(tensor), set()).add(name)
    full = dict(given)
    for group in names.values():
        found = sorted(group & given.keys())
        if len({id(given[name]) for name in found}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {found}, which are tied. Consider using tie_weights=False"
            )
        full.update(dict.fromkeys(group, given[found[0]]) if found else {})
    return full


def _check_names(module: Module, given: dict[str, Any]) -> None:
    own = _names(module).keys()
    problems = []
    for what, keys in (("Unexpected", given.keys() - own), ("Missing", own - given.keys())):
        if keys:
            problems.append(f"{what} key(s): {', '.join(map(repr, sorted(keys)))}.")
    if problems:
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t" + "\n\t".join(problems))


def _place(module: Module, name: str) -> tuple[dict[str, Any], str]:
    """The dictionary of the module's in which a tensor of this full name lies or is to lie, and its own name."""
    path, _, own = name.rpartition(".")
    owner = module.get_submodule(path)
    for place in (owner._parameters, owner._buffers):
        if own in place:
            return place, own
    return owner.__dict__, own


@contextmanager
def _reparametrize(module: Module, given: Mapping[str, Any], tie_weights: bool, strict: bool) -> Iterator[None]:
    """Within the block the module has these tensors; afterwards ``given`` has what they have become."""
    full = _with_tied(module, given) if tie_weights else dict(given)
    if strict:
        _check_names(module, full)
    before = []
    try:
        for name, tensor in full.items():
            if not isinstance(tensor, Tensor):
                raise TypeError(f"{tensor} is not an instance of torch.Tensor")
            place, own = _place(module, name)
            before.append((place, own, place.get(own, MISSING), name))
            place[own] = tensor
        yield
    finally:
        for place, own, old, name in reversed(before):
            if isinstance(given, dict) and name in given and own in place:
                given[name] = place[own]
            if old is MISSING:
                del place[own]
            else:
                place[own] = old


def call(
    module: Any, parameters_and_buffers: Mapping[str, Any], args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """What :func:`functional_call` does, without its warning."""
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize(module, parameters_and_buffers, tie_weights, strict):
        return module(*arguments, **({} if kwargs is None else kwargs))


def functional_call(
    module: Any, parameters_and_buffers: Mapping[str, Any], args: Any = None, kwargs: Any = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """Call ``module`` with other tensors in the places of its parameters and buffers, given by their full names.

    ``tie_weights``: a tensor that the module has under several names is replaced under all. ``strict``: the names must be
    exactly the module's.
    """
    warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future version "
        "of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement.",
        FutureWarning,
    )
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)


__all__ = ["functional_call"]
__getattr__, __dir__ = absent(__name__), listed(globals())
