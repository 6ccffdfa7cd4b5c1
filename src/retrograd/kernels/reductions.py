"""Sums: of many short floats without losing digits (NumPy adds in pairs only along a contiguous last axis), of few fast."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy

from . import reductions_numba
from .numba_dispatch import LARGE

BLOCK = 128  # how many numbers are added one after the other, as in NumPy's own pairwise sum
FEW = 64  # up to so many numbers are added by a product with ones: 0.3 µs where NumPy's sum takes 0.9
SHORT = "eE"  # float16 and bfloat16, which are added in float32: of many numbers nothing would be left otherwise
MOST = 65504  # the largest float16: the mean of more numbers is not theirs divided by one
ROWS = 4096  # elements of all rows up to which that is done
#: Ones to multiply with, by how many they are; and how many they are, as arrays: dividing by these takes half the time.
ONES = {numpy.dtype(kind): [numpy.ones(n, kind) for n in range(FEW + 1)] for kind in (numpy.float32, numpy.float64)}
COUNTS = {kind: [numpy.asarray(n, kind) for n in range(FEW + 1)] for kind in ONES}


def total(np: Any, x: Any) -> Any:
    """The sum of all elements."""
    if x.size <= FEW and x.__class__ is numpy.ndarray and x.dtype in ONES:
        return x.ravel().dot(ONES[x.dtype][x.size])
    if x.size >= LARGE and (found := reductions_numba.total(x)) is not None:
        return found
    if x.dtype.char in SHORT:
        return np.add.reduce(x.astype(np.float32), None).astype(x.dtype)
    return np.add.reduce(x, None)


def summed(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of ``x`` over ``axes``, one axis after the other, each in blocks whose sums are added in turn."""
    if len(axes) == 1:
        return sum_along(np, x, axes[0], keepdims)
    if x.size >= LARGE and (found := reductions_numba.summed(x, axes, keepdims)) is not None:
        return found
    char = x.dtype.char
    if char in SHORT:
        return summed(np, x.astype(np.float32), axes, keepdims).astype(x.dtype)
    if char not in "fF" or not any(x.shape[axis] > BLOCK and x.strides[axis] != x.itemsize for axis in axes):
        return np.add.reduce(x, axis=axes, keepdims=keepdims)
    for axis in sorted(axes, reverse=True):
        x = _along(np, x, axis)
    return x if keepdims else x.squeeze(axes)


def sum_along(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """The sum over one axis."""
    if axis < 0:
        axis += x.ndim
    size = x.shape[axis]
    if size <= FEW and x.ndim == 2 and x.size <= ROWS and x.__class__ is numpy.ndarray and x.dtype in ONES:
        ones = ONES[x.dtype][size]
        found = x.dot(ones) if axis else ones.dot(x)
        if keepdims is False:
            return found
        if keepdims is True:
            return found.reshape(-1, 1) if axis else found.reshape(1, -1)
    if x.size >= LARGE and (found := reductions_numba.summed(x, (axis,), keepdims)) is not None:
        return found
    char = x.dtype.char
    if char in SHORT:
        return sum_along(np, x.astype(np.float32), axis, keepdims).astype(x.dtype)
    if size > BLOCK and char in "fF" and x.strides[axis] != x.itemsize:
        found = _along(np, x, axis)
        return found if keepdims else found.squeeze(axis)
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


def spread_sum(np: Any, x: Any, axis: int) -> Any:
    """The sum over one axis, broadcast along it or ready to be: NumPy takes 1 µs for an operand that is not as large."""
    size = x.shape[axis]
    if size <= 16 and x.ndim == 2 and x.size <= ROWS and x.__class__ is numpy.ndarray and x.dtype in ONES:
        return x.dot(_square(np, size, x.dtype)) if axis in (1, -1) else _square(np, size, x.dtype).dot(x)
    return sum_along(np, x, axis, True)


@lru_cache(maxsize=64)
def _square(np: Any, size: int, dtype: Any) -> Any:
    return np.ones((size, size), dtype)


def spread_mean(np: Any, x: Any, axis: int) -> Any:
    """The mean over one axis, broadcast along it or ready to be."""
    size = x.shape[axis]
    return spread_sum(np, x, axis) / (COUNTS[x.dtype][size] if size <= FEW and x.dtype in COUNTS else size)


def mean_along(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """The mean over one axis."""
    found, size = sum_along(np, x, axis, keepdims), x.shape[axis]
    return found / (COUNTS[x.dtype][size] if size <= FEW and x.dtype in COUNTS else x.dtype.type(size))


def _along(np: Any, x: Any, axis: int) -> Any:
    size = x.shape[axis]
    if size <= BLOCK or x.strides[axis] == x.itemsize:
        return np.add.reduce(x, axis=axis, keepdims=True)
    whole, before = size // BLOCK, (slice(None),) * axis
    # Splitting an axis never copies.
    blocks = x[(*before, slice(whole * BLOCK))].reshape(*x.shape[:axis], whole, BLOCK, *x.shape[axis + 1 :])
    found = _along(np, np.add.reduce(blocks, axis=axis + 1), axis)
    rest = x[(*before, slice(whole * BLOCK, None))]
    return found + np.add.reduce(rest, axis=axis, keepdims=True) if rest.size else found
