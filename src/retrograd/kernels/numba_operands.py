"""Operands of the Numba loops that copy, sort and pool: availability of a loop, array layouts, and scratch buffers.

Where a function returns None, NumPy does the work.
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


def loops(topic: str, size: int, *arrays: Any) -> Any:
    """The loops of a topic, if there are so many elements to work on and all ``arrays`` are of one dtype, float32 or 64."""
    return numba_dispatch.loops(topic) if numba_dispatch.suits(size, *arrays) else None


def movers(topic: str, size: int, *arrays: Any) -> Any:
    """The same for loops that move elements of any dtype."""
    return _of(topic, arrays) if size >= numba_dispatch.LARGE and arrays[0].dtype.itemsize in BITS else None


def _of(topic: str, arrays: tuple[Any, ...]) -> Any:
    if any(each.__class__ is not numpy.ndarray for each in arrays) or not numba_dispatch.available():
        return None
    return numba_dispatch.loops(topic)


def bits(x: Any) -> Any:
    """Contiguous elements as integers of their size."""
    return numpy.ascontiguousarray(x).view(BITS[x.dtype.itemsize])


def around(x: Any, axis: int) -> Any:
    """An array in C order as (before, axis, after)."""
    axis %= x.ndim
    shape = x.shape
    return numpy.ascontiguousarray(x).reshape(math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))


def said(bad: Any) -> None:
    """Raise what NumPy would, if a loop met an index that lies outside."""
    if bad[0]:
        raise IndexError("index out of range in self")


class _Memory(threading.local):
    """Memory for the threads' work that is kept: fresh pages take as long as what is done in them."""

    def __init__(self) -> None:
        self.kept = numpy.empty(0, numpy.uint8)


_MEMORY = _Memory()


def room(size: int, dtype: Any) -> Any:
    """Memory of so many elements for each thread: (threads, elements)."""
    row = -(-size * dtype.itemsize // 64) * 64 + 64
    if _MEMORY.kept.size < row * blas_threads.limit():
        _MEMORY.kept = numpy.empty(row * blas_threads.limit(), numpy.uint8)
    return _MEMORY.kept[: row * blas_threads.limit()].reshape(blas_threads.limit(), row).view(dtype)
