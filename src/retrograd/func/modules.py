"""``functional_call`` and other functions for using ``grad`` and ``vmap`` with modules.

This file does not import from ``nn``. A module is any object that stores parameters, buffers and submodules in the same
attributes as ``nn.Module``.
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
    """Return the result of calling ``module`` with other parameters and buffers, which are replaced only for this call.

    Args:
        module: the module.
        parameter_and_buffer_dicts: a dictionary, or a sequence of dictionaries, from names in the module to tensors. If
            it is a single dictionary, buffers that the call updates are stored in it.
        args: the positional arguments as a tuple, or a single argument.
        kwargs: the keyword arguments.
        tie_weights: if true and a tensor has several names in the module, a new tensor for one of the names replaces it
            under all names.
        strict: if true, raise RuntimeError for names that the module does not have and for missing names.

    Raises ValueError if a value is not a dictionary, or if a name occurs in two dictionaries.

    See https://docs.pytorch.org/docs/stable/generated/torch.func.functional_call.html.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.Linear(2, 1)
    >>> parameters = {"weight": torch.tensor([[1.0, 2.0]]), "bias": torch.zeros(1)}
    >>> torch.func.functional_call(layer, parameters, torch.tensor([3.0, 4.0]))
    tensor([11.])
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
    """Return the parameters and buffers of ``module`` as a dictionary by their dotted names.

    A tensor that is shared by several submodules is listed under each of its names.
    """
    return {
        **dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False)),
    }  # fmt: skip


def _tie_names(every: dict[str, Any], given: Any) -> dict[str, Any]:
    """Extend the dictionary ``given`` so that a tensor shared by several submodules is replaced under all its names.

    ``given`` maps names to new tensors, and ``every`` maps all names in the module to the current tensors. The extended
    dictionary is returned. Raises ValueError if ``given`` has different replacements for one tensor.
    """
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
    """Return the dictionary that stores the tensor ``name`` of ``module``, and the key of the tensor there.

    ``name`` is a dotted path such as ``"0.weight"``, whose first items are names of submodules. The dictionary is
    ``_parameters`` or ``_buffers`` of the submodule, or its ``__dict__`` if neither contains the key.
    """
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
    """Context manager that replaces tensors of ``module`` by ``values``, a dictionary by name, and restores them.

    ``given`` is the dictionary that the user passed to :func:`functional_call`. If ``module`` assigns a new tensor to a
    name in ``given`` inside the context, such as an updated buffer, the new tensor is stored in ``given``.
    """
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
    """Return the parameters and the buffers of ``models`` as two dictionaries by name.

    Each tensor in the dictionaries is the stack of the tensors of all models along a new first dimension. With them,
    :func:`vmap` of :func:`functional_call` runs all models in one call. Raises RuntimeError if the models are of
    different classes, or if only some of them are in training mode.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> parameters, buffers = torch.func.stack_module_state([nn.Linear(2, 3) for _ in range(5)])
    >>> {name: each.shape for name, each in parameters.items()}
    {'weight': torch.Size([5, 3, 2]), 'bias': torch.Size([5, 3])}
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
    """Remove the running statistics of all batch normalisation modules in ``root`` in place, and return ``root``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = torch.func.replace_all_batch_norm_modules_(nn.BatchNorm1d(2))
    >>> layer.running_mean is None
    True
    """
    for each in root.modules():
        if type(each).__name__.startswith("BatchNorm"):
            each.track_running_stats = False
            each.running_mean = each.running_var = each.num_batches_tracked = None
    return root


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """Return the ordinary tensor that is wrapped by ``tensor``, a tensor inside a transform such as vmap.

    With ``recurse=False`` only the outermost wrapper is removed.

    >>> import retrograd as torch
    >>> wrapped = []
    >>> _ = torch.func.vmap(lambda x: wrapped.append(torch.func.debug_unwrap(x)) or x)(torch.ones(2, 3))
    >>> wrapped[0].shape
    torch.Size([2, 3])
    """
    while isinstance(tensor, TransformTensor):
        tensor = tensor._inner
        if not recurse:
            break
    return tensor


for _function in (functional_call, stack_module_state, replace_all_batch_norm_modules_, debug_unwrap):
    _function.__module__ = "retrograd.func"
