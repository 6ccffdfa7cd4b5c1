"""Page-locked (pinned) memory of the host, which a GPU reads and writes while the host goes on.

The memory is allocated by CuPy. An array in it is an ordinary ``numpy.ndarray``.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy

from ..core import devices


def is_pinned(array: Any) -> bool:
    """Whether the NumPy array ``array`` is in pinned memory. Without CuPy in use, no array is."""
    gpu = sys.modules.get("cupy")
    if gpu is None or array.__class__ is not numpy.ndarray or not array.size or not devices.gpu_count():
        return False
    return bool(gpu.cuda.pinned_memory.is_memory_pinned(array.ctypes.data))


def empty(shape: tuple[int, ...], dtype: Any) -> Any:
    """Return an uninitialised NumPy array in pinned memory. Raise PyTorch's error if there is no GPU."""
    kind = numpy.dtype(dtype)
    size = int(numpy.prod(shape, dtype=numpy.int64))
    if not size:
        return numpy.empty(shape, kind)
    memory = devices.cupy().cuda.alloc_pinned_memory(size * kind.itemsize)
    return numpy.frombuffer(memory, numpy.uint8, size * kind.itemsize).view(kind).reshape(shape)


def pinned(array: Any) -> Any:
    """Return a copy of the NumPy array ``array`` in pinned memory, or ``array`` itself if it is there."""
    if is_pinned(array):
        return array
    copy = empty(array.shape, array.dtype)
    copy[...] = array
    return copy


def fetch(array: Any) -> Any:
    """Return a NumPy array in pinned memory to which a GPU copies ``array``, an array of CuPy.

    The copy may be incomplete when the function returns: it is complete after the current stream is synchronised.
    """
    target = empty(array.shape, array.dtype)
    if not array.size:
        return target
    array.get(out=target, blocking=False)
    return target
