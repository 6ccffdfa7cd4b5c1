"""Kernels of amax, amin, max, min, argmax, argmin, all and any, and of the gradient of amax and amin."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy
from numpy import ndarray

from .gather_scatter import flat_positions
from .numba_dispatch import loops, plain, suits
from .reductions import STRETCH, axes_of, line_of, reduced_shape, seen, small_matrix
from .select import NUMBA, at_least, at_most, kernel
from .thresholds import (
    ARGMAX_COLUMNS,
    FEW_ROWS,
    FLAT_POSITIONS,
    LARGE,
    LARGE_MAXIMUM,
    MAXIMUM_COLUMNS,
    ONES_PRODUCT,
    SMALL,
)  # fmt: skip

# -- Over axes -------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=64)
def _starts(np: Any, rows: int, size: int) -> Any:
    return np.arange(0, rows * size, size)


@at_most(SMALL)
def _extreme_of_rows(np: Any, x: Any, dim: Any, keepdims: bool, largest: bool) -> Any:
    """Return the result of :func:`extreme` for a small contiguous ``x``, or None for other arguments.

    The extremes are read at the positions that argmax or argmin returns.
    """
    if dim.__class__ is not int:
        return None
    rows, along, size = small_matrix(x, dim)
    if not (size and along) or not x.flags.c_contiguous:
        return None
    found = x.take(_starts(np, len(rows), size) + (rows.argmax(1) if largest else rows.argmin(1)))
    return found if x.ndim == 2 and not keepdims else reduced_shape(found, x, dim, keepdims)


@at_least(LARGE, NUMBA)
def _extreme_by_loop(np: Any, x: Any, dim: Any, keepdims: bool, largest: bool) -> Any:
    axes = axes_of(dim, x.ndim)
    view = seen(x, axes)
    if view is None:
        return None
    outer, many, inner = view.array.shape
    if inner > 1:
        found, index = numpy.empty((outer, inner), x.dtype), numpy.empty((outer, inner), numpy.int32)
        if outer * inner < MAXIMUM_COLUMNS:
            return None
        loops("reductions").largest_of_columns(view.array, x.dtype.type(1 if largest else -1), found, index)
    elif outer < FEW_ROWS:
        return None
    else:
        found = numpy.empty(outer, x.dtype)
        loops("reductions").largest_of_rows(view.array.reshape(outer, many), x.dtype.type(1 if largest else -1), found)
    return view.put_back(found, axes, keepdims)


@kernel(_extreme_of_rows, _extreme_by_loop)
def extreme(np: Any, x: Any, dim: Any, keepdims: bool, largest: bool) -> Any:
    """Return the maximum of ``x`` over ``dim`` if ``largest`` is true, else the minimum.

    ``dim`` is an int, a tuple of ints, or None for all dimensions. The result is nan where an element is nan. If
    ``keepdims`` is true, the reduced dimensions have size 1.
    """
    return (np.maximum if largest else np.minimum).reduce(x, axis=axes_of(dim, x.ndim), keepdims=keepdims)


@at_most(FLAT_POSITIONS)
def _max_at_every_place(np: Any, x: Any, axis: int) -> Any:
    """Return an array of the shape of the matrix ``x`` in which every element is the maximum of its row of ``x``.

    This is the implementation of :func:`max_along` for small arrays. The result is None unless ``x`` is a non-empty
    matrix of floating-point numbers and ``axis`` is its last axis.
    """
    if x.ndim != 2 or axis not in (1, -1) or x.__class__ is not ndarray or x.dtype.kind != "f" or not x.size:
        return None
    index = x.argmax(1).repeat(x.shape[1]).reshape(x.shape)
    return x.ravel().take(flat_positions(np, index, x.shape, 1))


@at_least(LARGE, NUMBA)
def _max_along_by_loop(np: Any, x: Any, axis: int) -> Any:
    return _extreme_by_loop.function(np, x, axis, True, True)


@kernel(_max_at_every_place, _max_along_by_loop)
def max_along(np: Any, x: Any, axis: int) -> Any:
    """Return the maximum of ``x`` along ``axis``, in a shape that broadcasts with ``x``; nan if an element is nan.

    Along ``axis`` the result has size 1. For small matrices it has the size of ``x``, with each maximum repeated,
    because NumPy's ufuncs are faster on arrays of equal shape than on arrays that they broadcast.
    """
    return np.maximum.reduce(x, axis=axis, keepdims=True)


# -- Of all elements -------------------------------------------------------------------------------------------------


@at_most(ONES_PRODUCT)
def _extreme_of_few(np: Any, x: Any, largest: bool) -> Any:
    return x.ravel()[x.argmax() if largest else x.argmin()]


@at_least(LARGE_MAXIMUM, NUMBA)
def _extreme_of_all_by_loop(np: Any, x: Any, largest: bool) -> Any:
    line = line_of(x)
    if line is None:
        return None
    sign = x.dtype.type(1 if largest else -1)
    return x.dtype.type(loops("reductions").largest_of_all(line, sign, numpy.empty(-(-line.size // STRETCH), x.dtype)))


@kernel(_extreme_of_few, _extreme_of_all_by_loop)
def extreme_of_all(np: Any, x: Any, largest: bool) -> Any:
    """Return the maximum of all elements of ``x`` if ``largest`` is true, else the minimum; nan if an element is nan."""
    return (np.maximum if largest else np.minimum).reduce(x, axis=None)


# -- Positions -------------------------------------------------------------------------------------------------------


@at_least(LARGE, NUMBA)
def _position_by_loop(np: Any, x: Any, axis: int, largest: bool) -> Any:
    """Return the result of :func:`position_of_extreme`, computed by a Numba loop, or None if no loop is used.

    No loop is used if it does not support ``x``, or if there are few elements along the axes after ``axis``, because
    NumPy is then faster.
    """
    view = seen(x, (axis,))
    if view is None or view.array.shape[2] < ARGMAX_COLUMNS:
        return None
    outer, _, inner = view.array.shape
    found, index = numpy.empty((outer, inner), x.dtype), numpy.empty((outer, inner), numpy.int32)
    loops("reductions").largest_of_columns(view.array, x.dtype.type(1 if largest else -1), found, index)
    return view.put_back(index.astype(numpy.int64), (axis,), False)


@kernel(_position_by_loop)
def position_of_extreme(np: Any, x: Any, axis: int, largest: bool) -> Any:
    """Return the index of the first maximum of ``x`` along ``axis`` if ``largest`` is true, else of the first minimum.

    The result does not have ``axis``. If elements are nan, the index is that of the first nan.
    """
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    return x.argmax(axis) if largest else x.argmin(axis)


# -- Logical reductions ----------------------------------------------------------------------------------------------


@at_most(ONES_PRODUCT)
def _truth_of_few(np: Any, x: Any, every: bool) -> Any:
    """Return the result of :func:`truth_of_all` for a non-empty array of bools, or None for other arguments.

    The result is the minimum of ``x`` if ``every`` is true, else the maximum. This takes a quarter of the ufunc's time.
    """
    return x.ravel()[x.argmin() if every else x.argmax()] if x.dtype.kind == "b" and x.size else None


@kernel(_truth_of_few)
def truth_of_all(np: Any, x: Any, every: bool) -> Any:
    """Return whether all elements of ``x`` are nonzero if ``every`` is true, and otherwise whether any element is."""
    return (np.logical_and if every else np.logical_or).reduce(x, axis=None)


# -- The gradient ----------------------------------------------------------------------------------------------------


@at_least(LARGE, NUMBA)
def _share_by_loop(np: Any, x: Any, top: Any, axes: tuple[int, ...]) -> Any:
    x, top = plain(x), plain(top)
    if not suits(x.size, x) or not x.flags.carray or top.dtype != x.dtype:
        return None
    out, loop = numpy.empty(x.shape, x.dtype), loops("reductions")
    if len(axes) == x.ndim:
        counts = numpy.empty(-(-x.size // STRETCH), numpy.int64)
        loop.share_of_all(x.reshape(-1), x.dtype.type(top.item()), counts, out.reshape(-1))
    elif axes in ((-1,), (x.ndim - 1,)) and top.size * x.shape[-1] == x.size >= FEW_ROWS * x.shape[-1]:
        form = (-1, x.shape[-1])
        loop.share_of_rows(x.reshape(form), numpy.ascontiguousarray(top).reshape(-1), out.reshape(form))
    else:
        return None
    return out


@kernel(_share_by_loop)
def share_of_extreme(np: Any, x: Any, top: Any, axes: tuple[int, ...]) -> Any:
    """Return the gradient of amax or amin with respect to ``x``, given ``top``, the result of amax or amin.

    ``top`` has size 1 along ``axes``. Elements of ``x`` that equal ``top`` get 1 / (number of these elements), all
    other elements get 0.
    """
    mask = (x == top) | ((x != x) & (top != top))
    return (mask / np.add.reduce(mask, axis=axes, keepdims=True)).astype(x.dtype)
