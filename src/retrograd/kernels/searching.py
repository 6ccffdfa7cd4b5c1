"""Kernels of bincount, unique, searchsorted and bucketize: counts of values, and positions among sorted values."""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_operands
from .select import NUMBA, at_least, kernel
from .sorting import stable_argsort
from .thresholds import LARGE, SPARSE_COUNTS


@at_least(LARGE, NUMBA)
def _min_max_by_loop(np: Any, x: Any) -> Any:
    loops = numba_operands.movers("gather_scatter", x.size, x) if x.dtype is numba_operands.INT else None
    if loops is None:
        return None
    least, most = numpy.empty((2, blas_threads.max_threads()), numpy.int64)
    loops.limits(numpy.ascontiguousarray(x).reshape(-1), least, most)
    return int(least.min()), int(most.max())


@kernel(_min_max_by_loop)
def min_max(np: Any, x: Any) -> Any:
    """Return the minimum and the maximum of ``x``, a non-empty array of integers, as Python ints."""
    return int(x.min()), int(x.max())


@at_least(LARGE, NUMBA)
def _bincount_by_loop(np: Any, x: Any, low: int, high: int) -> Any:
    parts = blas_threads.max_threads()
    few = x.dtype is numba_operands.INT and (high - low) * parts < x.size
    loops = numba_operands.movers("gather_scatter", x.size, x) if few else None
    if loops is None:
        return None
    counts = numpy.empty((parts, high - low + 1), numpy.int64)
    loops.counts(numpy.ascontiguousarray(x).reshape(-1), low, counts)
    return counts.sum(0)


@kernel(_bincount_by_loop)
def bincount_range(np: Any, x: Any, low: int, high: int) -> Any:
    """Return the number of occurrences in ``x`` of each integer from ``low`` to ``high``.

    All elements of ``x`` must be in this range.
    """
    flat = x.reshape(-1)
    return np.bincount(flat - low if low else flat, minlength=high - low + 1)


def unique_values(np: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return (values, indices, counts) of the distinct values of ``x``.

    The values are sorted. The indices have the shape of ``x``: for each element the position of its value among the
    values. The counts are the numbers of occurrences of the values. Each nan is a distinct value.
    """
    flat = x.reshape(-1)
    if np is not numpy or not flat.size:
        values, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True, equal_nan=False)
        return values, inverse.reshape(x.shape).astype(np.int64), counts.astype(np.int64)
    if x.dtype.kind in "iu":
        low, high = min_max(np, flat)
        if high - low < SPARSE_COUNTS * flat.size and high < 1 << 62:
            integers = flat.astype(numpy.int64, copy=False)
            counts = bincount_range(np, integers, low, high)
            present = counts.nonzero()[0]
            rank = numpy.empty(counts.size, numpy.int64)
            rank[present] = numpy.arange(present.size)
            return (present + low).astype(x.dtype), rank[integers - low].reshape(x.shape), counts[present]
    order = stable_argsort(np, flat, 0, False)
    run = flat[order]
    new = numpy.ones(run.size, bool)
    numpy.not_equal(run[1:], run[:-1], out=new[1:])
    starts = new.nonzero()[0]
    inverse = numpy.empty(run.size, numpy.int64)
    inverse[order] = new.cumsum() - 1
    return run[starts], inverse.reshape(x.shape), numpy.diff(starts, append=run.size)


@at_least(LARGE, NUMBA)
def _searchsorted_by_loop(np: Any, x: Any, edges: Any, right: bool) -> Any:
    kind = edges.dtype
    if kind is not x.dtype or (kind is not numba_operands.INT and kind not in (numba_operands.F32, numba_operands.F64)):
        return None
    loops = numba_operands.movers("gather_scatter", x.size, x, edges) if edges.ndim == 1 else None
    if loops is None:
        return None
    out = numpy.empty(x.shape, numpy.int64)
    loops.bisect(numpy.ascontiguousarray(x).reshape(-1), numpy.ascontiguousarray(edges), right, out.reshape(-1))
    return out


@kernel(_searchsorted_by_loop)
def searchsorted(np: Any, x: Any, edges: Any, right: bool) -> Any:
    """Return for each element of ``x`` the number of smaller elements in ``edges``, a sorted array.

    If ``right`` is true, elements of ``edges`` equal to the element of ``x`` are counted too. The result is None unless
    a Numba loop supports the arrays.
    """
    return None
