"""Casts from half precision to float32: kernels compute in float32 for float16 and bfloat16."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.dtypes import HALF_PRECISION

F32 = numpy.dtype(numpy.float32)
#: One as an array: NumPy takes 0.3 µs to make an array of a number.
ONE = {numpy.dtype(kind): numpy.asarray(1, kind) for kind in (numpy.float32, numpy.float64)}


def upcast_half(x: Any) -> Any:
    """Return ``x``, cast to float32 if its dtype is float16 or bfloat16, for which BLAS has no routines."""
    return x.astype(F32) if x.dtype.itemsize == 2 and x.dtype.kind in "fV" else x


def upcast_all_half(*arrays: Any) -> tuple[Any, ...]:
    """Return ``arrays``, of which those of float16 or bfloat16 are cast to float32; None is passed through."""
    return tuple(each.astype(F32) if each is not None and each.dtype in HALF_PRECISION else each for each in arrays)
