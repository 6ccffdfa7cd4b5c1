"""Kernels of clone, contiguous, full and the expansion of a number: new arrays with copied or equal elements."""

from __future__ import annotations

import math
from typing import Any

import numpy

from .numba_dispatch import F32, F64, fill_by_loop, in_order, looped
from .select import NUMBA, at_least, kernel
from .thresholds import LARGE


@at_least(LARGE, NUMBA)
def _fill_by_loop(np: Any, out: Any, value: Any) -> Any:
    if out.dtype not in (F32, F64) or out.__class__ is not numpy.ndarray:
        return None
    fill_by_loop(out, value)
    return out


@kernel(_fill_by_loop)
def fill(np: Any, out: Any, value: Any) -> Any:
    """Set all elements of the contiguous array ``out`` to ``value``, and return ``out``."""
    out.fill(value)
    return out


def filled_if_small(x: Any, shape: tuple[int, ...]) -> Any:
    """Return an array of ``shape`` filled with the float32 scalar ``x``, or None if the array would be large.

    The gradient of a sum is such an array. If the result is None, the caller expands the number to ``shape`` with
    strides of 0 instead, and Numba loops read the number once. The size is compared here, because a call of the
    dispatcher of ``kernels/select.py``, which selects an implementation by size, would take longer.
    """
    if math.prod(shape) >= LARGE:
        return None
    out = numpy.empty(shape, F32)
    out.fill(x)
    return out


@at_least(LARGE, NUMBA)
def _c_copy_by_loop(np: Any, x: Any) -> Any:
    if x.__class__ is not numpy.ndarray:
        return None
    return looped("copy", x) if x.flags.c_contiguous else in_order(x)


@kernel(_c_copy_by_loop)
def c_copy(np: Any, x: Any) -> Any:
    """Return a copy of ``x`` in C order. ``x`` may be a NumPy scalar."""
    return np.array(x, order="C")


@at_least(LARGE, NUMBA)
def _same_order_copy_by_loop(np: Any, x: Any) -> Any:
    return looped("copy", x) if x.__class__ is numpy.ndarray and x.flags.c_contiguous else None


@kernel(_same_order_copy_by_loop)
def same_order_copy(np: Any, x: Any) -> Any:
    """Return a copy of ``x`` in its memory order, or in C order if elements of ``x`` share memory (stride 0)."""
    return np.array(x, order="C" if 0 in x.strides else "K")
