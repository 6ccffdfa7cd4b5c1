"""Reductions and cumulative functions of the array API standard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import retrograd as torch
from retrograd import Tensor

from ._dtypes import (
    ANY,
    BOOL,
    FLOATING,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    SIGNED,
    UNSIGNED,
    Axes,
    Dtype,
    check,
    kind_of,
    promoted,
)
from ._manipulation import axes_of


def reduced(function: Callable[..., Tensor], x: Tensor, axis: Axes, keepdims: bool, **options: Any) -> Tensor:
    """Return ``function(x, axes, keepdims, **options)`` for the axes ``axis``; None means all of them.

    PyTorch reads an empty tuple of axes as all axes. In the standard it means a reduction of single elements, which is
    computed along a new axis of size 1.
    """
    axes = tuple(range(x.ndim)) if axis is None else axes_of(axis, x.ndim)
    return function(x, axes, keepdims, **options) if axes else function(x.unsqueeze(-1), (-1,), False, **options)


def sum_dtype(dtype: Dtype) -> Dtype:
    """Return the dtype of sums and products of ``dtype``: small integers and bool give the default integer.

    The standard leaves bool open. Other libraries count the true elements, and callers rely on it.
    """
    return {BOOL: torch.int64, SIGNED: torch.int64, UNSIGNED: torch.uint64}.get(kind_of(dtype), dtype)


def _product(x: Tensor, axes: tuple[int, ...], keepdims: bool, dtype: Dtype) -> Tensor:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, axis, keepdims, dtype=dtype)
    return x


def sum(x: Tensor, /, *, axis: Axes = None, dtype: Dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the sum of elements. Small integers are added as int64, unsigned ones as uint64."""
    check("sum", ANY, x)
    return reduced(torch.sum, x, axis, keepdims, dtype=dtype or sum_dtype(x.dtype))


def prod(x: Tensor, /, *, axis: Axes = None, dtype: Dtype | None = None, keepdims: bool = False) -> Tensor:
    """Return the product of elements. Small integers are multiplied as int64, unsigned ones as uint64."""
    check("prod", ANY, x)
    return reduced(_product, x, axis, keepdims, dtype=dtype or sum_dtype(x.dtype))


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the mean of elements."""
    check("mean", FLOATING, x)
    return reduced(torch.mean, x, axis, keepdims)


def var(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the variance of elements: the sum of squares is divided by their number minus ``correction``."""
    check("var", (REAL_FLOATING,), x)
    return reduced(_variance, x, axis, keepdims, correction=correction)


def std(x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """Return the standard deviation of elements, the square root of ``var``."""
    check("std", (REAL_FLOATING,), x)
    return torch.sqrt(var(x, axis=axis, correction=correction, keepdims=keepdims))


def _variance(x: Tensor, axes: tuple[int, ...], keepdims: bool, correction: float) -> Tensor:
    return torch.var(x, axes, correction=correction, keepdim=keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the largest element."""
    check("max", REAL, x)
    return reduced(torch.amax, x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the smallest element."""
    check("min", REAL, x)
    return reduced(torch.amin, x, axis, keepdims)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Test whether all elements are true."""
    check("all", ANY, x)
    return reduced(torch.all, x.to(torch.bool), axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Test whether an element is true."""
    check("any", ANY, x)
    return reduced(torch.any, x.to(torch.bool), axis, keepdims)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Return the number of elements that are not zero."""
    check("count_nonzero", ANY, x)
    return reduced(torch.sum, torch.ne(x, 0), axis, keepdims, dtype=torch.int64)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first of the largest elements; with ``axis=None``, in the flattened array."""
    check("argmax", REAL, x)
    return torch.argmax(x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Return the index of the first of the smallest elements; with ``axis=None``, in the flattened array."""
    check("argmin", REAL, x)
    return torch.argmin(x, axis, keepdims)


def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return the sums of the elements up to each position; with ``include_initial``, a zero comes first."""
    return _cumulative(torch.cumsum, "cumulative_sum", x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Dtype | None = None, include_initial: bool = False
) -> Tensor:
    """Return the products of the elements up to each position; with ``include_initial``, a one comes first."""
    return _cumulative(torch.cumprod, "cumulative_prod", x, axis, dtype, 1 if include_initial else None)


def _cumulative(
    function: Callable[..., Tensor], name: str, x: Tensor, axis: int | None, dtype: Dtype | None, initial: int | None
) -> Tensor:
    check(name, ANY, x)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"{name}() needs an axis for an array of {x.ndim} dimensions")
        axis = 0
    (axis,) = axes_of(axis, x.ndim)
    result = function(x, axis, dtype=dtype or sum_dtype(x.dtype))
    if initial is None:
        return result
    first = torch.full((*x.shape[:axis], 1, *x.shape[axis + 1 :]), initial, dtype=result.dtype, device=x.device)
    return torch.cat([first, result], axis)


def diff(
    x: Tensor, /, *, axis: int = -1, n: int = 1, prepend: Tensor | None = None, append: Tensor | None = None
) -> Tensor:
    """Return the ``n``-th discrete difference along ``axis``, after concatenating ``prepend``, ``x`` and ``append``."""
    parts = promoted("diff", NUMERIC, *(each for each in (prepend, x, append) if each is not None))
    return torch.diff(torch.cat(parts, axis), n, axis)
