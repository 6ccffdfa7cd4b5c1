"""Kernels of sort, argsort, topk and msort: the indices of a stable sort, and the first few elements of sorted rows.

:func:`stable_argsort` is the kernel of argsort, :func:`topk` is the kernel of topk.

Note [Keys]. NumPy's stable sort of indices is slow; its sort of integers is fast, because it uses vector instructions.
A float32 maps to an integer of 32 bits with the same order. A key of 64 bits holds this integer in its high half and
the index of the element in its low half, so that no two keys are equal. One fast sort of the keys gives the indices,
and equal elements keep their order.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy

from . import numba_operands
from .gather_scatter import flip_view, slice_along, take_along
from .select import at_least, at_most, kernel
from .thresholds import ARGMAX_PASSES, KEY_SORT, SELECTED, SMALL

F16, F32, SIGN = numpy.dtype(numpy.float16), numba_operands.F32, numpy.uint32(1 << 31)


@at_least(KEY_SORT)
def _argsort_of_keys(np: Any, x: Any, dim: int, descending: bool) -> Any:
    if x.__class__ is not numpy.ndarray or x.shape[dim] >= 1 << 32:
        return None
    if x.dtype.kind in "bV":
        x = x.astype(np.uint8 if x.dtype.kind == "b" else np.float32)
    keys = _keys(x, descending)
    return None if keys is None else _sorted_keys(keys, dim)


@kernel(_argsort_of_keys)
def stable_argsort(np: Any, x: Any, dim: int, descending: bool) -> Any:
    """Return the int64 indices of a stable sort of ``x`` along ``dim``, in descending order if ``descending`` is true.

    nan counts as greater than any number.
    """
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    if not descending:
        return x.argsort(dim, kind="stable")
    # Sorting the reversed row and reversing the result keeps equal elements in their order.
    return x.shape[dim] - 1 - flip_view(flip_view(x, dim).argsort(dim, kind="stable"), dim)


def _keys(x: Any, descending: bool) -> Any:
    """Return uint32 keys with the same order as the elements of ``x``, or the reverse order if ``descending`` is true.

    The result is None if the dtype of ``x`` has more than 32 bits (Note [Keys]).
    """
    kind = x.dtype
    if kind in (F16, F32):
        x = x + F32.type(0)  # no negative zero
        words = x.view(numpy.uint32)
        keys = numpy.where(words < SIGN, words | SIGN, ~words)
        if numpy.isnan(numpy.max(x)):
            keys[numpy.isnan(x)] = numpy.uint32(0xFFFFFFFF)
    elif kind.kind in "iu" and kind.itemsize <= 4:
        keys = x.astype(numpy.uint32) if kind.kind == "u" else x.astype(numpy.int32).view(numpy.uint32) ^ SIGN
    else:
        return None
    return numpy.invert(keys, out=keys) if descending else keys


def _sorted_keys(keys: Any, dim: int) -> Any:
    """Return the int64 indices of a stable sort of the uint32 array ``keys`` along ``dim`` (Note [Keys])."""
    rows = keys.swapaxes(dim, -1)
    joined = rows.astype(numpy.uint64, order="C")
    joined <<= numpy.uint64(32)
    joined |= numpy.arange(rows.shape[-1], dtype=numpy.uint64)
    joined.sort(-1)
    joined &= numpy.uint64(0xFFFFFFFF)
    return numpy.ascontiguousarray(joined.view(numpy.int64).swapaxes(dim, -1))


@lru_cache(maxsize=64)
def _offsets(np: Any, rows: int, size: int, each: int) -> Any:
    return np.arange(0, rows * size, size)[:, None].repeat(each, 1)


@at_most(SMALL)
def _topk_small(np: Any, x: Any, count: int, dim: int, largest: bool) -> Any:
    """Return the result of :func:`topk` along the last axis of a small vector or matrix, by one stable argsort.

    The result is None for other arguments. It is also None if the sum of the squares of ``x`` is not finite, because
    ``x`` may then contain nan.
    """
    if x.__class__ is not numpy.ndarray or not x.size or x.dtype.kind != "f" or dim not in (-1, x.ndim - 1):
        return None
    flat = x.ravel()
    if x.ndim > 2 or not flat.dot(flat) < math.inf:
        return None
    order = (np.negative(x) if largest else x).argsort(-1, "stable")
    if x.ndim == 1:
        found = order[:count].copy()
        return flat.take(found), found
    found = order[:, :count].copy()
    return flat.take(_offsets(np, len(x), x.shape[1], count) + found), found


@at_least(KEY_SORT)
def _topk_by_selection(np: Any, x: Any, count: int, dim: int, largest: bool) -> Any:
    """Return the result of :func:`topk` without sorting, or None if sorting ``x`` is faster."""
    if not 0 < count <= SELECTED or count > x.shape[dim] // 4:
        return None
    rows = x.swapaxes(dim, -1)
    loops = numba_operands.loops("gather_scatter", x.size, x)
    if loops is None:
        result = _passes(np, rows, count, largest)
        if result is None:
            return None
        values, indices = result
    else:
        flat = np.ascontiguousarray(rows).reshape(-1, rows.shape[-1])
        values, indices = numpy.empty((len(flat), count), x.dtype), numpy.empty((len(flat), count), numpy.int64)
        getattr(loops, "largest" if largest else "smallest")(flat, values, indices)
        values, indices = (each.reshape(*rows.shape[:-1], count) for each in (values, indices))
    return tuple([np.ascontiguousarray(each.swapaxes(dim, -1)) for each in (values, indices)])


@kernel(_topk_small, _topk_by_selection)
def topk(np: Any, x: Any, count: int, dim: int, largest: bool) -> Any:
    """Return the ``count`` largest elements of ``x`` along ``dim`` in descending order, and their indices.

    If ``largest`` is false, the smallest elements are returned in ascending order. Equal elements keep their order.
    """
    order = stable_argsort(np, x, dim, largest)[slice_along(dim, x.ndim, slice(count))].copy()
    return take_along(np, x, order, dim), order


def _passes(np: Any, rows: Any, count: int, largest: bool) -> Any:
    """Return the ``count`` largest elements of each row of ``rows`` and their indices, by repeated ``argmax``.

    If ``largest`` is false, the smallest elements are returned. The result is None if ``count`` is large, if the dtype
    is not float32 or float64, and for some rows that contain nan or infinity.
    """
    if count > ARGMAX_PASSES or rows.dtype.kind != "f" or rows.dtype.itemsize < 4:
        return None
    left = rows.copy() if largest else np.where(np.isnan(rows), rows.dtype.type(-np.inf), -rows)
    left = left.reshape(-1, rows.shape[-1])
    indices, every = np.empty((len(left), count), np.int64), np.arange(len(left))
    for k in range(count):
        indices[:, k] = left.argmax(1)
        if np.isneginf(left[every, indices[:, k]]).any():
            return None
        left[every, indices[:, k]] = -np.inf
    indices = indices.reshape(*rows.shape[:-1], count)
    return take_along(np, rows, indices, -1), indices
