"""``standard_operators``: a context in which the operators of tensors follow the array API standard."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import retrograd as torch
from retrograd import Tensor
from retrograd.runtime import user_frame

from ._dtypes import Scalar
from ._elementwise import FUNCTIONS
from .linalg import matmul

_ARITHMETIC = {
    "add": FUNCTIONS["add"], "sub": FUNCTIONS["subtract"], "mul": FUNCTIONS["multiply"], "pow": FUNCTIONS["pow"],
    "truediv": FUNCTIONS["divide"], "floordiv": FUNCTIONS["floor_divide"], "mod": FUNCTIONS["remainder"],
    "and": FUNCTIONS["bitwise_and"], "or": FUNCTIONS["bitwise_or"], "xor": FUNCTIONS["bitwise_xor"],
    "lshift": FUNCTIONS["bitwise_left_shift"], "rshift": FUNCTIONS["bitwise_right_shift"], "matmul": matmul,
}  # fmt: skip
_COMPARISONS = {
    "lt": FUNCTIONS["less"], "le": FUNCTIONS["less_equal"], "gt": FUNCTIONS["greater"],
    "ge": FUNCTIONS["greater_equal"], "eq": FUNCTIONS["equal"], "ne": FUNCTIONS["not_equal"],
}  # fmt: skip


def _in_place(function: Callable[[Any, Any], Tensor]) -> Callable[[Any, Any], Tensor]:
    def operator(x1: Tensor, x2: Any) -> Tensor:
        result = function(x1, x2)
        if result.dtype is not x1.dtype or result.shape != x1.shape:
            raise TypeError(
                f"an in-place operator cannot change {x1.dtype} of shape {tuple(x1.shape)} to {result.dtype} of shape "
                f"{tuple(result.shape)}"
            )
        return x1.copy_(result)

    return operator


def _is_empty_mask(x: Tensor, mask: Tensor) -> bool:
    """Whether ``mask`` has sizes of ``x`` or 0, and no elements; PyTorch refuses other sizes than those of ``x``."""
    sizes = zip(x.shape, mask.shape, strict=False)
    return mask.numel() == 0 and mask.ndim <= x.ndim and all(given in (size, 0) for size, given in sizes)


def _ascending(x: Tensor, key: Any) -> tuple[tuple[int, ...], Any]:
    """Return the axes of ``x`` to flip, and the key of the flipped tensor, so that it has no negative steps."""
    if isinstance(key, Tensor) and key.dtype is torch.bool and _is_empty_mask(x, key):
        key = torch.zeros(x.shape[: key.ndim], dtype=torch.bool, device=x.device)
    items = list(key) if isinstance(key, tuple) else [key]
    used = [
        0 if each is None or each is ... else each.ndim if isinstance(each, Tensor) and each.dtype is torch.bool else 1
        for each in items
    ]
    axis, flipped = 0, []
    for place, each in enumerate(items):
        if each is ...:
            axis = x.ndim - sum(used[place:])
        elif isinstance(each, slice) and each.step is not None and each.step < 0:
            last = x.shape[axis] - 1
            start, stop, step = each.indices(last + 1)
            items[place] = slice(last - start, max(last - stop, last - start), -step)
            flipped.append(axis)
        axis += used[place]
    return tuple(flipped), tuple(items) if isinstance(key, tuple) else items[0]


def _getitem(x: Tensor, key: Any) -> Tensor:
    axes, key = _ascending(x, key)
    return (x.flip(axes) if axes else x)[key]


def _setitem(x: Tensor, key: Any, value: Any) -> None:
    axes, key = _ascending(x, key)
    if axes:
        flipped = x.flip(axes)
        flipped[key] = value
        x.copy_(flipped.flip(axes))
    else:
        x[key] = value


def _standard_operators() -> dict[str, Callable[..., Any]]:
    """Return the operators by the names of their methods."""
    operators: dict[str, Callable[..., Any]] = {"__getitem__": _getitem, "__setitem__": _setitem}
    for name, function in _ARITHMETIC.items():
        operators[f"__{name}__"] = function
        operators[f"__r{name}__"] = lambda x, other, function=function: function(other, x)
        operators[f"__i{name}__"] = _in_place(function)
    for name, function in _COMPARISONS.items():
        operators[f"__{name}__"] = function
    return {name: operator for name, operator in operators.items() if hasattr(Tensor, name)}


def _for_users(standard: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that calls ``own`` for retrograd's code and for operands that are no tensors or scalars."""

    def operator(self: Tensor, other: Any, *value: Any) -> Any:
        internal = user_frame.MARK in sys._getframe(1).f_globals
        if internal or not (value or own.__name__ == "__getitem__" or isinstance(other, Tensor | Scalar)):
            return own(self, other, *value)
        return standard(self, other, *value)

    return operator


_lock = threading.Lock()
#: The number of contexts of :func:`standard_operators` that are active.
_active = 0
#: The methods that the first of these contexts has replaced, which the last one restores.
_own: dict[str, Callable[..., Any]] = {}


@contextmanager
def standard_operators() -> Iterator[None]:
    """Return a context in which the operators of all tensors follow the array API standard instead of PyTorch.

    Dtypes are promoted as in the functions of this module, also for tensors without dimensions and unsigned integers;
    slices may have negative steps; ``//`` and ``%`` have the standard's results for infinities and zeros. The context
    applies to the whole process, except for retrograd's own code. It is meant for tests of code that is written for the
    standard; docs/array-api.md has an example.
    """
    global _active
    with _lock:
        if not _active:
            operators = _standard_operators()
            _own.update({name: getattr(Tensor, name) for name in operators})
            for name, function in operators.items():
                setattr(Tensor, name, _for_users(function, _own[name]))
        _active += 1
    try:
        yield
    finally:
        with _lock:
            _active -= 1
            if not _active:
                for name, function in _own.items():
                    setattr(Tensor, name, function)
