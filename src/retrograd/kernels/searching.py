"""How often which value occurs, and where values stand among ordered ones. Knows arrays only."""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_operands
from .sorting import ordered

#: Values are counted in a table if it has no more places than this for each element.
SPARSE = 4


def limits(x: Any) -> tuple[int, int]:
    """The least and the largest of some integers, of which there is at least one."""
    loops = numba_operands.movers("gather_scatter", x.size, x) if x.dtype is numba_operands.INT else None
    if loops is None:
        return int(x.min()), int(x.max())
    least, most = numpy.empty((2, blas_threads.limit()), numpy.int64)
    loops.limits(numpy.ascontiguousarray(x).reshape(-1), least, most)
    return int(least.min()), int(most.max())


def counted(x: Any, low: int, high: int) -> Any:
    """How often each integer from ``low`` to ``high`` is in ``x``, none of which lies outside."""
    parts = blas_threads.limit()
    few = x.dtype is numba_operands.INT and (high - low) * parts < x.size
    loops = numba_operands.movers("gather_scatter", x.size, x) if few else None
    if loops is None:
        flat = x.reshape(-1)
        return numpy.bincount(flat - low if low else flat, minlength=high - low + 1)
    found = numpy.empty((parts, high - low + 1), numpy.int64)
    loops.counts(numpy.ascontiguousarray(x).reshape(-1), low, found)
    return found.sum(0)


def distinct(np: Any, x: Any) -> tuple[Any, Any, Any]:
    """The values that occur in order, which of them each element is, and how often each occurs; no nan equals another."""
    flat = x.reshape(-1)
    if np is not numpy or not flat.size:
        values, inverse, counts = np.unique(flat, return_inverse=True, return_counts=True, equal_nan=False)
        return values, inverse.reshape(x.shape).astype(np.int64), counts.astype(np.int64)
    if x.dtype.kind in "iu":
        low, high = limits(flat)
        if high - low < SPARSE * flat.size and high < 1 << 62:
            given = flat.astype(numpy.int64, copy=False)
            counts = counted(given, low, high)
            there = counts.nonzero()[0]
            place = numpy.empty(counts.size, numpy.int64)
            place[there] = numpy.arange(there.size)
            return (there + low).astype(x.dtype), place[given - low].reshape(x.shape), counts[there]
    order = ordered(np, flat, 0, False)
    run = flat[order]
    new = numpy.ones(run.size, bool)
    numpy.not_equal(run[1:], run[:-1], out=new[1:])
    starts = new.nonzero()[0]
    inverse = numpy.empty(run.size, numpy.int64)
    inverse[order] = new.cumsum() - 1
    return run[starts], inverse.reshape(x.shape), numpy.diff(starts, append=run.size)


def among(edges: Any, x: Any, right: bool) -> Any:
    """How many of the ordered ``edges`` are less than (``right``: or equal to) each element; None if that is for NumPy."""
    if edges.dtype is not x.dtype or (
        edges.dtype is not numba_operands.INT and edges.dtype not in (numba_operands.F32, numba_operands.F64)
    ):
        return None
    loops = numba_operands.movers("gather_scatter", x.size, x, edges)
    if loops is None:
        return None
    out = numpy.empty(x.shape, numpy.int64)
    loops.bisect(numpy.ascontiguousarray(x).reshape(-1), numpy.ascontiguousarray(edges), right, out.reshape(-1))
    return out
