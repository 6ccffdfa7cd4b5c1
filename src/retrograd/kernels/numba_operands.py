"""Helpers of the kernels that call Numba loops to copy, sort and pool: layouts of operands, scratch memory.

If a function returns None, the caller computes with NumPy.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_dispatch
from .numba_dispatch import F32 as F32
from .numba_dispatch import F64 as F64

#: The integers as which elements that are only moved are looked at.
BITS = {1: numpy.uint8, 2: numpy.uint16, 4: numpy.uint32, 8: numpy.uint64}
INT = numpy.dtype(numpy.int64)


def loops(topic: str, size: int, *arrays: Any, least: int | None = None) -> Any:
    """Return the module of Numba loops named ``topic``, or None if the loops cannot be used.

    They are used if ``arrays`` are all float32 or all float64, and ``size``, the number of elements to compute, is at
    least ``least``, by default ``LARGE``.
    """
    return numba_dispatch.loops(topic) if numba_dispatch.suits(size, *arrays, least=least) else None


def movers(topic: str, size: int, *arrays: Any) -> Any:
    """Return the module ``topic`` of Numba loops that copy elements of any dtype, or None if the loops cannot be used.

    They are used if ``size``, the number of elements to copy, is large and all ``arrays`` are NumPy arrays.
    """
    return _of(topic, arrays) if size >= numba_dispatch.LARGE and arrays[0].dtype.itemsize in BITS else None


def _of(topic: str, arrays: tuple[Any, ...]) -> Any:
    if any(each.__class__ is not numpy.ndarray for each in arrays) or not numba_dispatch.available(arrays[0].size):
        return None
    return numba_dispatch.loops(topic)


def bits(x: Any) -> Any:
    """Return a contiguous view or copy of ``x`` whose elements are read as unsigned integers of the same size."""
    return numpy.ascontiguousarray(x).view(BITS[x.dtype.itemsize])


def around(x: Any, axis: int) -> Any:
    """Return ``x`` in C order, reshaped to three axes: (axes before ``axis``, ``axis``, axes after ``axis``)."""
    axis %= x.ndim
    shape = x.shape
    return numpy.ascontiguousarray(x).reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


def said(bad: Any) -> None:
    """Check ``bad[0]``, the error flag of a Numba loop, and raise IndexError if it is set.

    The loop sets the flag if an index is out of range.
    """
    if bad[0]:
        raise IndexError("index out of range in self")


class _Memory(threading.local):
    """Scratch memory of Numba loops, one buffer for each Python thread.

    The buffer is kept for later calls, because mapping new memory pages is slow.
    """

    def __init__(self) -> None:
        self.kept = numpy.empty(0, numpy.uint8)


_MEMORY = _Memory()


def room(size: int, dtype: Any) -> Any:
    """Return scratch memory of shape (threads, elements), with at least ``size`` elements of ``dtype`` for each thread.

    The next call on the same Python thread may return the same memory.
    """
    row = -(-size * dtype.itemsize // 64) * 64 + 64
    if _MEMORY.kept.size < row * blas_threads.max_threads():
        _MEMORY.kept = numpy.empty(row * blas_threads.max_threads(), numpy.uint8)
    return _MEMORY.kept[: row * blas_threads.max_threads()].reshape(blas_threads.max_threads(), row).view(dtype)
