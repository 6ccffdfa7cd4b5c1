"""Functions that accept more in NumPy than in CuPy."""

from __future__ import annotations

from typing import Any

import cupy
import numpy

from ...runtime.user_frame import warn


def lexsort(keys: Any, axis: int = -1) -> Any:
    """Return the indices that sort by several keys, the last of which is the primary one; CuPy sorts rows only."""
    order = None
    for key in keys:
        found = argsort(key if order is None else cupy.take_along_axis(key, order, axis), axis)
        order = found if order is None else cupy.take_along_axis(order, found, axis)
    return order


def _sortable(x: Any) -> Any:
    """Return ``x`` in a dtype that Thrust sorts, in the same order: bfloat16 as float32."""
    return x.astype(numpy.float32) if x.dtype.kind == "V" or x.dtype.name == "bfloat16" else x


def argsort(a: Any, axis: Any = -1, kind: Any = None, **named: Any) -> Any:
    """Return the indices that sort ``a`` along ``axis``; CuPy's sorting is always stable."""
    return cupy.argsort(_sortable(a), axis)


def sort(a: Any, axis: Any = -1, kind: Any = None, **named: Any) -> Any:
    """Return a sorted copy of ``a``."""
    return cupy.sort(_sortable(a), axis).astype(a.dtype, copy=False)


#: The functions that were computed on the CPU for an array on a GPU.
warned: set[str] = set()


def warn_on_cpu(name: str) -> None:
    """Warn, the first time for each ``name``, that a function is computed on the CPU for an array on a GPU."""
    if name not in warned:
        warned.add(name)
        warn(f"{name} is computed on the CPU, because CuPy has no such function; the array is copied there and back.")


#: The functions by name.
FUNCTIONS: dict[str, Any] = {
    "lexsort": lexsort, "argsort": argsort, "sort": sort, "errstate": numpy.errstate, "warn_on_cpu": warn_on_cpu,
}  # fmt: skip
