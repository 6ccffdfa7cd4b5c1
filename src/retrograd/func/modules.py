"""Modules as functions of their parameters, so that ``grad`` and ``vmap`` apply to them.

Nothing of ``nn`` is imported: a module is any object with parameters, buffers and submodules in the form of
``nn.Module``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.op import TENSORS as F
from ..dispatch.transform_tensor import TransformTensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers, and restore its own afterwards.

    Args:
        module: the module.
        parameter_and_buffer_dicts: tensors by their names in the module, in one dictionary or several. A single
            dictionary receives the buffers that the call has updated.
        args: the arguments as a tuple, or a single argument.
        kwargs: the keyword arguments.
        tie_weights: replace a tensor that has several names in the module under all of them.
        strict: raise RuntimeError for names that the module does not have, and for missing names.

    Raises ValueError for values that are no dictionaries and for names in two dictionaries.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html.
    """
    given = _one_dictionary(parameter_and_buffer_dicts)
    every = _names(module)
    values = _tie_names(every, given) if tie_weights else dict(given)
    if strict:
        _check_names(module, every, values)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _swap_tensors(module, values, given):
        return module(*args, **(kwargs or {}))


def _one_dictionary(dicts: Any) -> Any:
    if isinstance(dicts, Mapping):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(each, Mapping) for each in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for each in dicts for name in each]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice:
        raise ValueError(f"{twice} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for each in dicts for name, value in each.items()}


def _names(module: Any) -> dict[str, Any]:
    """Return the module's tensors by name; a tensor with several names appears under each."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False)),
    }  # fmt: skip


def _tie_names(every: dict[str, Any], given: Any) -> dict[str, Any]:
    """Return the new tensors under all names of the tensors that they replace."""
    groups: dict[int, list[str]] = {}
    for name, tensor in every.items():
        groups.setdefault(id(tensor), []).append(name)
    values = dict(given)
    for names in groups.values():
        here = [name for name in names if name in given]
        if len(here) > 1 and any(given[name] is not given[here[0]] for name in here):
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(here)}, which are tied. Consider using "
                "tie_weights=False"
            )
        if here:
            values.update(dict.fromkeys(names, given[here[0]]))
    return values


def _check_names(module: Any, every: dict[str, Any], values: dict[str, Any]) -> None:
    messages = [
        f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
        for what, names in (("Unexpected", set(values) - set(every)), ("Missing", set(every) - set(values)))
        if names
    ]
    if messages:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(messages))


def _find_dictionary(module: Any, name: str) -> tuple[dict[str, Any], str]:
    """Return the dictionary of the module or submodule that holds the tensor ``name``, and its key there."""
    *path, leaf = name.split(".")
    if not leaf:
        raise KeyError('tensor name can\'t be empty string ""')
    for part in path:
        if not hasattr(module, part):
            raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
        module = getattr(module, part)
    for holder in (module._parameters, module._buffers):
        if leaf in holder:
            return holder, leaf
    return module.__dict__, leaf


@contextlib.contextmanager
def _swap_tensors(module: Any, values: dict[str, Any], given: Any) -> Iterator[None]:
    """Replace tensors of the module by ``values`` within the block, and store changed ones in ``given`` at its end."""
    for value in values.values():
        if not isinstance(value, Tensor) and value is not None:
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    holders = {name: _find_dictionary(module, name) for name in values}
    before = {name: holder.get(leaf, _ABSENT) for name, (holder, leaf) in holders.items()}
    try:
        for name, (holder, leaf) in holders.items():
            holder[leaf] = values[name]
        yield
    finally:
        for name, (holder, leaf) in holders.items():
            if name in given and holder.get(leaf) is not given[name]:
                given[name] = holder.get(leaf)
            if before[name] is _ABSENT:
                holder.pop(leaf, None)
            else:
                holder[leaf] = before[name]


_ABSENT: Any = object()


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of several modules, each stacked along a new first dimension.

    With :func:`functional_call` and :func:`vmap` one call then computes all modules. Raises RuntimeError for modules of
    different classes, or if only some are in training mode.
    """
    every = list(models)
    if not every:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(each.training) for each in every}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(each) is not type(every[0]) for each in every):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        {name: _stack(name, [dict(each.named_parameters())[name] for each in every])
         for name, _ in every[0].named_parameters()},
        {name: _stack(name, [dict(each.named_buffers())[name] for each in every])
         for name, _ in every[0].named_buffers()},
    )  # fmt: skip


def _stack(name: str, tensors: list[Any]) -> Any:
    flags = {each.requires_grad for each in tensors}
    if len(flags) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = F.stack(tensors, 0).detach()
    return result.requires_grad_() if flags.pop() else result


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Remove the running statistics of every batch normalisation in a module, in place, and return the module."""
    for each in root.modules():
        if type(each).__name__.startswith("BatchNorm"):
            each.track_running_stats = False
            each.running_mean = each.running_var = each.num_batches_tracked = None
    return root


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the plain tensor wrapped by a transform's tensor, or with ``recurse=False`` remove only one wrapper."""
    while isinstance(tensor, TransformTensor):
        tensor = tensor._inner
        if not recurse:
            break
    return tensor


for _function in (functional_call, stack_module_state, replace_all_batch_norm_modules_, debug_unwrap):
    _function.__module__ = "torch.func"
