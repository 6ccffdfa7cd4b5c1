"""Casts of half-precision arrays (float16 and bfloat16) to float32, in which the kernels compute."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.dtypes import HALF_PRECISION

F32 = numpy.dtype(numpy.float32)
#: One as an array: NumPy takes 0.3 µs to make an array of a number.
ONE = {numpy.dtype(kind): numpy.asarray(1, kind) for kind in (numpy.float32, numpy.float64)}


def upcast_half(x: Any) -> Any:
    """Return ``x`` cast to float32 if its dtype is float16 or bfloat16, else unchanged.

    BLAS has no routines for half precision.
    """
    return x.astype(F32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def upcast_all_half(*arrays: Any) -> tuple[Any, ...]:
    """Return ``arrays`` with those of dtype float16 or bfloat16 cast to float32; None is returned unchanged."""
    return tuple(each.astype(F32) if each is not None and each.dtype in HALF_PRECISION else each for each in arrays)
