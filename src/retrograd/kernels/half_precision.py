"""Arithmetic of short floats: float16 and bfloat16 are calculated in float32."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.dtypes import SHORT

F32 = numpy.dtype(numpy.float32)
#: One as an array: NumPy takes 0.3 µs to make an array of a number.
ONE = {numpy.dtype(kind): numpy.asarray(1, kind) for kind in (numpy.float32, numpy.float64)}


def upcast_half(x: Any) -> Any:
    """``x``, or in float32 if it is a shorter float: float16 and bfloat16 (kind V) have no BLAS."""
    return x.astype(F32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def upcast_all_half(*arrays: Any) -> tuple[Any, ...]:
    """The arrays, float16 and bfloat16 ones in float32; None stays None."""
    return tuple(each.astype(F32) if each is not None and each.dtype in SHORT else each for each in arrays)
