"""``torch._foreach_add`` and others: functions that apply an operation to each tensor of a list.

PyTorch's optimizers call them, and so do those of other packages. ``_foreach_add(tensors, other)`` returns a tuple of new
tensors; ``_foreach_add_(tensors, other)`` changes the tensors and returns the list. ``other`` is a number for all tensors, a
tensor with one element, or a list with a number or a tensor for each. ``torch`` loads the functions on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from numbers import Number
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.op import FUNCTIONS
from .reductions.sums import vector_norm

Tensors = Sequence[Tensor]

UNARY = (
    "abs", "acos", "asin", "atan", "ceil", "cos", "cosh", "erf", "erfc", "exp", "expm1", "floor", "frac", "lgamma", "log",
    "log10", "log1p", "log2", "neg", "reciprocal", "round", "rsqrt", "sigmoid", "sign", "sin", "sinh", "sqrt", "tan", "tanh",
    "trunc",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "clamp_max", "clamp_min", "maximum", "minimum", "pow")
TERNARY = ("addcdiv", "addcmul")
#: Operations with several signatures.
OVERLOADED = (*BINARY, *TERNARY, "lerp")


class _Mismatch(Exception):
    """The arguments do not fit any signature of the function."""


def _tensors(*lists: Any) -> None:
    """Raise PyTorch's error unless ``lists`` are lists of as many tensors, at least one."""
    for each in lists:
        if not isinstance(each, (list, tuple)) or not all(isinstance(x, Tensor) for x in each):
            raise _Mismatch
    if not lists[0]:
        raise RuntimeError("Tensor list must have at least one tensor.")
    for each in lists[1:]:
        if len(each) != len(lists[0]):
            raise RuntimeError(
                f"Tensor lists must have the same number of tensors, got {len(lists[0])} and {len(each)}"
            )


def _is_number(x: Any) -> bool:
    return isinstance(x, Number) or (isinstance(x, Tensor) and not x.dim())


def _numbers(tensors: Tensors, given: Any) -> Sequence[Any]:
    """Return a number, or a tensor with one element, for each tensor."""
    if _is_number(given):
        return [given] * len(tensors)
    if not isinstance(given, (list, tuple)) or not all(isinstance(each, Number) for each in given):
        raise _Mismatch
    if len(given) != len(tensors):
        raise RuntimeError("Tensor list must have same number of elements as scalar list.")
    return given


def _others(name: str, tensors: Tensors, other: Any) -> Sequence[Any]:
    """Return the other operand of each tensor."""
    if isinstance(other, Tensor) and name in ("add", "mul", "div"):
        if other.dim() or other.numel() != 1:
            raise RuntimeError(
                f"scalar tensor expected to be 0 dim but it has {other.dim()} dimensions and {other.numel()} elements."
            )
        return [other] * len(tensors)
    if isinstance(other, (list, tuple)) and any(isinstance(each, Tensor) for each in other):
        _tensors(tensors, other)
        return other
    return _numbers(tensors, other)


def _operation(name: str, inplace: bool) -> Callable[..., Tensor]:
    method = name + "_" if inplace else name
    return getattr(Tensor, method) if hasattr(Tensor, method) else FUNCTIONS[method]


def _apply(name: str, inplace: bool, tensors: Tensors, *rows: Sequence[Any], **options: Any) -> Any:
    call = _operation(name, inplace)
    found = tuple(call(*each, **options) for each in zip(tensors, *rows, strict=True))
    return tensors if inplace else found


def _unary(name: str, inplace: bool) -> Callable[..., Any]:
    def function(self: Tensors) -> Any:
        _tensors(self)
        return _apply(name, inplace, self)

    return function


def _binary(name: str, inplace: bool) -> Callable[..., Any]:
    bound = {"maximum": "clamp_min", "minimum": "clamp_max"}.get(name, name)

    def function(self: Any, other: Any, *, alpha: Any = None) -> Any:
        if name == "pow" and isinstance(self, Number) and not inplace:
            _tensors(other)
            return tuple(self**each for each in other)
        _tensors(self)
        others = _others(name, self, other)
        if alpha is not None and name not in ("add", "sub"):
            raise _Mismatch
        options = {} if alpha is None else {"alpha": alpha}
        if name in ("maximum", "minimum") and inplace:
            return _apply(bound, True, self, others)
        return _apply(name if isinstance(others[0], Tensor) else bound, inplace, self, others, **options)

    return function


def _ternary(name: str, inplace: bool) -> Callable[..., Any]:
    def function(self: Tensors, tensor1: Tensors, tensor2: Tensors, scalars: Any = 1, *, value: Any = 1) -> Any:
        _tensors(self, tensor1, tensor2)
        given = scalars if value == 1 else value
        if isinstance(given, Tensor):
            if given.dim() == 1 and given.numel() != len(self):
                raise RuntimeError(
                    f"Expected length of scalars to match input of length {len(self)} but got {given.numel()} instead."
                )
            given = given.tolist()
        values = _numbers(self, given)
        call = _operation(name, inplace)
        found = [call(x, a, b, value=v) for x, a, b, v in zip(self, tensor1, tensor2, values, strict=True)]
        return self if inplace else tuple(found)

    return function


def _lerp(name: str, inplace: bool) -> Callable[..., Any]:
    def function(self: Tensors, tensors1: Tensors, weight: Any) -> Any:
        _tensors(self, tensors1)
        return _apply(name, inplace, self, tensors1, _others(name, self, weight))

    return function


def _norm(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    _tensors(self)
    return tuple(vector_norm(each, ord, dtype=dtype) for each in self)


def _powsum(self: Tensors, ord: Any = 2, dtype: Any = None) -> tuple[Tensor, ...]:
    _tensors(self)
    return tuple((each if dtype is None else each.to(dtype)).abs().pow(ord).sum() for each in self)


def _max(self: Tensors) -> tuple[Tensor, ...]:
    _tensors(self)
    return tuple(each.max() for each in self)


def _mm(self: Tensors, mat2: Tensors) -> tuple[Tensor, ...]:
    _tensors(self, mat2)
    return tuple(a.mm(b) for a, b in zip(self, mat2, strict=True))


def _clone(self: Tensors, *, memory_format: Any = None) -> tuple[Tensor, ...]:
    _tensors(self)
    options = {} if memory_format is None else {"memory_format": memory_format}
    return tuple(each.clone(**options) for each in self)


def _copy_(self: Tensors, src: Tensors, non_blocking: bool = False) -> Tensors:
    _tensors(self, src)
    for each, other in zip(self, src, strict=True):
        each.copy_(other, non_blocking)
    return self


def _zero_(self: Tensors) -> Tensors:
    _tensors(self)
    for each in self:
        each.zero_()
    return self


def _invalid(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    if name.removeprefix("_foreach_").rstrip("_") not in OVERLOADED:
        kind = type((*args, *kwargs.values())[0]).__name__
        return TypeError(f"{name}(): argument 'self' (position 1) must be tuple of Tensors, not {kind}")
    types = [type(each).__name__ for each in args]
    types += [f"{key}={type(each).__name__}" for key, each in kwargs.items()]
    return TypeError(f"{name}() received an invalid combination of arguments - got ({', '.join(types)})")


def _declare(name: str, function: Callable[..., Any]) -> None:
    """Make ``function`` the function ``name``, with PyTorch's error for arguments that do not fit."""
    expected = signature(function)
    overloaded = name.removeprefix("_foreach_").rstrip("_") in OVERLOADED
    function.__name__ = function.__qualname__ = name

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            expected.bind(*args, **kwargs)
        except TypeError:
            if overloaded:
                raise _invalid(name, args, kwargs) from None
        try:
            return function(*args, **kwargs)
        except _Mismatch:
            raise _invalid(name, args, kwargs) from None

    short = name.removeprefix("_foreach_")
    call.__module__ = "torch"
    call.__doc__ = (
        f"Apply ``{short}`` to each tensor of a list, and return the list."
        if short.endswith("_")
        else f"Return a tuple of the results of ``{short}`` for each tensor of a list."
    )
    globals()[name] = call


for _make, _operations in ((_unary, UNARY), (_binary, BINARY), (_ternary, TERNARY), (_lerp, ("lerp",))):
    for _each in _operations:
        _declare(f"_foreach_{_each}", _make(_each, False))
        _declare(f"_foreach_{_each}_", _make(_each, True))
for _function in (_norm, _powsum, _max, _mm, _clone, _copy_, _zero_):
    _declare("_foreach" + _function.__name__, _function)

#: Names of the functions.
NAMES = tuple(sorted(name for name in globals() if name.startswith("_foreach_")))
