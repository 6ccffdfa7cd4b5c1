"""Modules as functions of their parameters: what makes ``grad`` and ``vmap`` apply to them.

Knows no layer: a module is whatever has parameters, buffers and submodules as PyTorch's have.
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
    """Call a module with other parameters and buffers than its own, which come back afterwards.

    Args:
        module: the module.
        parameter_and_buffer_dicts: tensors by their names in the module, in one dictionary or several; what the call
            makes of buffers is put into it.
        args: its arguments as a tuple, or its one argument.
        kwargs: its keyword arguments.
        tie_weights: what is one tensor in the module under several names is so in the call.
        strict: refuse names that the module has not, and dictionaries that leave some out.

    Raises ValueError for what is no dictionary and for names given twice, RuntimeError by ``strict``.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html.
    """
    given = _one_dictionary(parameter_and_buffer_dicts)
    every = _names(module)
    values = _tied(every, given) if tie_weights else dict(given)
    if strict:
        _check_names(module, every, values)
    if args is None:
        args = ()
    elif not isinstance(args, tuple):
        args = (args,)
    with _replaced(module, values, given):
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
    """The module's own tensors by name, one that has several names under each."""
    return {
        **dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False)),
    }  # fmt: skip


def _tied(every: dict[str, Any], given: Any) -> dict[str, Any]:
    """What is given, under all names that the tensor which it replaces has."""
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
    told = [
        f"{what} key(s): {', '.join(map(repr, sorted(names)))}."
        for what, names in (("Unexpected", set(values) - set(every)), ("Missing", set(every) - set(values)))
        if names
    ]
    if told:
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(told))


def _home(module: Any, name: str) -> tuple[dict[str, Any], str]:
    """The dictionary of a module (or of one within it) that holds the tensor of this name, and its name there."""
    *path, leaf = name.split(".")
    if not leaf:
        raise KeyError('tensor name can\'t be empty string ""')
    for part in path:
        if not hasattr(module, part):
            raise AttributeError(f"{type(module).__name__} has no attribute `{part}`")
        module = getattr(module, part)
    for place in (module._parameters, module._buffers):
        if leaf in place:
            return place, leaf
    return module.__dict__, leaf


@contextlib.contextmanager
def _replaced(module: Any, values: dict[str, Any], given: Any) -> Iterator[None]:
    """The module with ``values`` for its tensors; what they are in the end is put into ``given``."""
    for value in values.values():
        if not isinstance(value, Tensor) and value is not None:
            raise TypeError(f"{value} is not an instance of torch.Tensor")
    homes = {name: _home(module, name) for name in values}
    before = {name: place.get(leaf, _ABSENT) for name, (place, leaf) in homes.items()}
    try:
        for name, (place, leaf) in homes.items():
            place[leaf] = values[name]
        yield
    finally:
        for name, (place, leaf) in homes.items():
            if name in given and place.get(leaf) is not given[name]:
                given[name] = place.get(leaf)
            if before[name] is _ABSENT:
                place.pop(leaf, None)
            else:
                place[leaf] = before[name]


_ABSENT: Any = object()


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one kind, each stacked along a new first dimension.

    With :func:`functional_call` and :func:`vmap` all the modules are then one calculation. Raises RuntimeError for modules
    of different classes, and for some in training mode and some not.
    """
    every = list(models)
    if not every:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({bool(each.training) for each in every}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(each) is not type(every[0]) for each in every):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return (
        {name: _stacked(name, [dict(each.named_parameters())[name] for each in every])
         for name, _ in every[0].named_parameters()},
        {name: _stacked(name, [dict(each.named_buffers())[name] for each in every])
         for name, _ in every[0].named_buffers()},
    )  # fmt: skip


def _stacked(name: str, tensors: list[Any]) -> Any:
    found = {each.requires_grad for each in tensors}
    if len(found) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = F.stack(tensors, 0).detach()
    return result.requires_grad_() if found.pop() else result


def replace_all_batch_norm_modules_(root: Any) -> Any:
    """Let every batch normalisation in a module use the statistics of its batch only, in place; returns the module."""
    for each in root.modules():
        if type(each).__name__.startswith("BatchNorm"):
            each.track_running_stats = False
            each.running_mean = each.running_var = each.num_batches_tracked = None
    return root


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor of a transformation stands for: the plain tensor, or without ``recurse`` that of the next one out."""
    while isinstance(tensor, TransformTensor):
        tensor = tensor._inner
        if not recurse:
            break
    return tensor


for _function in (functional_call, stack_module_state, replace_all_batch_norm_modules_, debug_unwrap):
    _function.__module__ = "torch.func"
