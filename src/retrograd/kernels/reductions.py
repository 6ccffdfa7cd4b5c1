"""Kernels of sum and mean, accurate for float32 and half precision and fast for small arrays.

NumPy uses pairwise summation only along a contiguous last axis, so that sums along other axes lose digits. Sums of
large arrays are computed by the Numba loops of ``kernels/reductions_numba.py``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

from . import reductions_numba
from .numba_dispatch import LARGE

BLOCK = 128  # elements added one after the other, as in NumPy's pairwise sum
FEW = 64  # at most so many elements are added by a product with ones: 0.3 µs where NumPy's sum takes 0.9
SHORT = "eE"  # float16 and bfloat16, which are added in float32, because long sums would lose all digits
MOST = 65504  # the largest float16: a larger number of elements is not representable as a divisor
ROWS = 4096  # elements of a matrix up to which the product with ones is used
#: Vectors of ones by length, and the lengths as arrays: dividing by an array takes half the time of a Python number.
ONES = {numpy.dtype(kind): [numpy.ones(n, kind) for n in range(FEW + 1)] for kind in (numpy.float32, numpy.float64)}
COUNTS = {kind: [numpy.asarray(n, kind) for n in range(FEW + 1)] for kind in ONES}


def sum_elements(np: Any, x: Any) -> Any:
    """Return the sum of all elements of ``x``."""
    if x.size <= FEW and x.__class__ is numpy.ndarray and x.dtype in ONES:
        return x.ravel().dot(ONES[x.dtype][x.size])
    if x.size >= LARGE and (result := reductions_numba.total(x)) is not None:
        return result
    if x.dtype.char in SHORT:
        return np.add.reduce(x.astype(np.float32), None).astype(x.dtype)
    return np.add.reduce(x, None)


def sum_axes(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axes``. If ``keepdims`` is true, the summed axes have size 1 in the result."""
    if len(axes) == 1:
        return sum_along(np, x, axes[0], keepdims)
    if x.size >= LARGE and (result := reductions_numba.summed(x, axes, keepdims)) is not None:
        return result
    char = x.dtype.char
    if char in SHORT:
        return sum_axes(np, x.astype(np.float32), axes, keepdims).astype(x.dtype)
    if char not in "fF" or not any(x.shape[axis] > BLOCK and x.strides[axis] != x.itemsize for axis in axes):
        return np.add.reduce(x, axis=axes, keepdims=keepdims)
    for axis in sorted(axes, reverse=True):
        x = _along(np, x, axis)
    return x if keepdims else x.squeeze(axes)


def sum_along(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axis``. If ``keepdims`` is true, the summed axis has size 1 in the result."""
    if axis < 0:
        axis += x.ndim
    size = x.shape[axis]
    if size <= FEW and x.ndim == 2 and x.size <= ROWS and x.__class__ is numpy.ndarray and x.dtype in ONES:
        ones = ONES[x.dtype][size]
        result = x.dot(ones) if axis else ones.dot(x)
        if keepdims is False:
            return result
        if keepdims is True:
            return result.reshape(-1, 1) if axis else result.reshape(1, -1)
    if x.size >= LARGE and (result := reductions_numba.summed(x, (axis,), keepdims)) is not None:
        return result
    char = x.dtype.char
    if char in SHORT:
        return sum_along(np, x.astype(np.float32), axis, keepdims).astype(x.dtype)
    if size > BLOCK and char in "fF" and x.strides[axis] != x.itemsize:
        result = _along(np, x, axis)
        return result if keepdims else result.squeeze(axis)
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def sum_broadcast(np: Any, x: Any, axis: int) -> Any:
    """Return the sum of ``x`` over ``axis``, in a shape that broadcasts with ``x``.

    Along ``axis`` the result has size 1 or, for small matrices, the same size as ``x``, because broadcasting an operand
    takes NumPy 1 µs.
    """
    size = x.shape[axis]
    if size <= 16 and x.ndim == 2 and x.size <= ROWS and x.__class__ is numpy.ndarray and x.dtype in ONES:
        return x.dot(_square(np, size, x.dtype)) if axis in (1, -1) else _square(np, size, x.dtype).dot(x)
    return sum_along(np, x, axis, True)


@lru_cache(maxsize=64)
def _square(np: Any, size: int, dtype: Any) -> Any:
    return np.ones((size, size), dtype)


def mean_broadcast(np: Any, x: Any, axis: int) -> Any:
    """Return the mean of ``x`` over ``axis``, in a shape that broadcasts with ``x``.

    Along ``axis`` the result has size 1 or, for small matrices, the same size as ``x``.
    """
    size = x.shape[axis]
    return sum_broadcast(np, x, axis) / (COUNTS[x.dtype][size] if size <= FEW and x.dtype in COUNTS else size)


def mean_along(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return the mean of ``x`` over ``axis``. If ``keepdims`` is true, this axis has size 1 in the result."""
    result, size = sum_along(np, x, axis, keepdims), x.shape[axis]
    return result / (COUNTS[x.dtype][size] if size <= FEW and x.dtype in COUNTS else x.dtype.type(size))


def _along(np: Any, x: Any, axis: int) -> Any:
    """Return the sum of ``x`` over ``axis``, which has size 1 in the result, with reduced rounding errors.

    The axis is divided into blocks of ``BLOCK`` elements. Each block is summed first; the sums of the blocks are then
    summed in the same way.
    """
    size = x.shape[axis]
    if size <= BLOCK or x.strides[axis] == x.itemsize:
        return np.add.reduce(x, axis=axis, keepdims=True)
    count, before = size // BLOCK, (slice(None),) * axis
    # Splitting an axis is always a view.
    blocks = x[(*before, slice(count * BLOCK))].reshape(*x.shape[:axis], count, BLOCK, *x.shape[axis + 1 :])
    result = _along(np, np.add.reduce(blocks, axis=axis + 1), axis)
    rest = x[(*before, slice(count * BLOCK, None))]
    return result + np.add.reduce(rest, axis=axis, keepdims=True) if rest.size else result
