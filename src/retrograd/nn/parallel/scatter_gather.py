"""``scatter`` and ``gather``: tensors in nested containers, split over devices and joined again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.pytree import is_namedtuple_instance as is_namedtuple
from ...core.tensor import Tensor
from ...operations.shape.join import cat, stack
from ...runtime.user_frame import warn


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """Return a list of parts of ``inputs``, one for each of the devices ``target_gpus``.

    A tensor is split along ``dim``. Tuples, lists and dicts are split into containers of the parts of their items.
    Other objects are repeated.

    >>> import retrograd as torch
    >>> torch.nn.parallel.scatter({"x": torch.arange(4)}, ["cpu", "cpu"])
    [{'x': tensor([0, 1])}, {'x': tensor([2, 3])}]
    """
    if isinstance(inputs, Tensor):
        parts = inputs.chunk(len(target_gpus), dim)
        places = [f"cuda:{each}" if isinstance(each, int) else each for each in target_gpus]
        return [part.to(place) for part, place in zip(parts, places, strict=False)]
    if is_namedtuple(inputs):
        return [type(inputs)(*items) for items in zip(*_scatter_all(inputs, target_gpus, dim), strict=False)]
    if isinstance(inputs, tuple) and inputs:
        return list(zip(*_scatter_all(inputs, target_gpus, dim), strict=False))
    if isinstance(inputs, list) and inputs:
        return [list(items) for items in zip(*_scatter_all(inputs, target_gpus, dim), strict=False)]
    if isinstance(inputs, dict) and inputs:
        columns = _scatter_all(inputs.values(), target_gpus, dim)
        return [type(inputs)(zip(inputs, items, strict=True)) for items in zip(*columns, strict=False)]
    return [inputs for _ in target_gpus]


def _scatter_all(items: Any, target_gpus: Sequence[Any], dim: int) -> list[Any]:
    return [scatter(each, target_gpus, dim) for each in items]


def scatter_kwargs(
    inputs: tuple[Any, ...], kwargs: dict[str, Any] | None, target_gpus: Sequence[Any], dim: int = 0
) -> tuple[Any, Any]:  # fmt: skip
    """Return a tuple of the parts of the arguments ``inputs`` and a tuple of those of ``kwargs``, of equal length."""
    positional = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    count = max(len(positional), len(named))
    positional += [() for _ in range(count - len(positional))]
    named += [{} for _ in range(count - len(named))]
    return tuple(positional), tuple(named)


def gather(outputs: Sequence[Any], target_device: Any, dim: int = 0) -> Any:
    """Return the results ``outputs`` of several devices, joined along ``dim`` on ``target_device``.

    Numbers (0-d tensors) become a vector. Tuples, lists and dicts are joined item by item.

    >>> import retrograd as torch
    >>> torch.nn.parallel.gather([torch.arange(2), torch.arange(3)], "cpu")
    tensor([0, 1, 0, 1, 2])
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        place = f"cuda:{target_device}" if isinstance(target_device, int) else target_device
        moved = [each.to(place) for each in outputs]
        if first.dim() == 0:
            warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead unsqueeze and "
                "return a vector."
            )
            return stack(moved)
        return cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(each) == len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([each[key] for each in outputs], target_device, dim)) for key in first)
    items = [gather(each, target_device, dim) for each in zip(*outputs, strict=True)]
    return type(first)(*items) if is_namedtuple(first) else type(first)(items)


__all__ = ["gather", "is_namedtuple", "scatter", "scatter_kwargs"]
