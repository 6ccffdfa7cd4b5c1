"""Functions that accept more in NumPy than in CuPy: several keys, and bfloat16."""

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


# -- bfloat16 ----------------------------------------------------------------------------------------------------------
#
# CuPy's ufuncs have loops of bfloat16, its other functions do not: they raise, or compute and return float32.


def is_bfloat16(x: Any) -> bool:
    """Return whether ``x`` is an array or a scalar of bfloat16; its dtype is a class of the package ml_dtypes."""
    return hasattr(x, "dtype") and x.dtype.itemsize == 2 and x.dtype.name == "bfloat16"


def _bits(x: Any, dtype: Any) -> Any:
    """Return ``x``, an array or a number, in bfloat16, seen as integers of 16 bits."""
    if isinstance(x, cupy.ndarray):
        return x.view(numpy.uint16)
    return numpy.asarray(x, dtype).view(numpy.uint16)[()]


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return elements of ``x`` where ``condition`` is true, and of ``y`` elsewhere; bfloat16 beside numbers stays so."""
    if not (is_bfloat16(x) or is_bfloat16(y)):
        return cupy.where(condition, x, y)
    dtype = (x if is_bfloat16(x) else y).dtype
    if any(hasattr(each, "dtype") and each.dtype != dtype for each in (x, y)):
        return cupy.where(condition, x, y)
    return cupy.where(condition, _bits(x, dtype), _bits(y, dtype)).view(dtype)


def tril(m: Any, k: int = 0) -> Any:
    """Return ``m`` with zeros above the ``k``-th diagonal."""
    return cupy.tril(m.view(numpy.uint16), k).view(m.dtype) if is_bfloat16(m) else cupy.tril(m, k)


def triu(m: Any, k: int = 0) -> Any:
    """Return ``m`` with zeros below the ``k``-th diagonal."""
    return cupy.triu(m.view(numpy.uint16), k).view(m.dtype) if is_bfloat16(m) else cupy.triu(m, k)


def clip(a: Any, a_min: Any = None, a_max: Any = None, out: Any = None) -> Any:
    """Return ``a`` limited to the range from ``a_min`` to ``a_max``."""
    if not is_bfloat16(a) or out is not None:
        return cupy.clip(a, a_min, a_max, out)
    return cupy.clip(a, a_min, a_max).astype(a.dtype, copy=False)


def _running(name: str) -> Any:
    def call(a: Any, axis: Any = None, dtype: Any = None) -> Any:
        function = getattr(cupy, name)
        if dtype is None and is_bfloat16(a):
            return function(a.astype(numpy.float32), axis).astype(a.dtype)
        return function(a, axis, dtype)

    call.__doc__ = f"Return what ``{name}`` of CuPy returns, also for bfloat16: computed in float32."
    return call


def einsum(text: str, *operands: Any, **named: Any) -> Any:
    """Return the sums of products that ``text`` describes: a view if it only selects a diagonal or moves axes."""
    if not any(map(is_bfloat16, operands)):
        return cupy.einsum(text, *operands, **named)
    inputs, _, output = text.partition("->")
    dtype = operands[0].dtype
    if len(operands) == 1 and set(inputs) == set(output):
        return cupy.einsum(text, operands[0].view(numpy.uint16)).view(dtype)
    return cupy.einsum(text, *[each.astype(numpy.float32) for each in operands], **named).astype(dtype)


def _sortable(x: Any) -> Any:
    """Return ``x`` in a dtype that Thrust sorts, in the same order: bfloat16 as float32."""
    return x.astype(numpy.float32) if is_bfloat16(x) else x


def argsort(a: Any, axis: Any = -1, kind: Any = None, **named: Any) -> Any:
    """Return the indices that sort ``a`` along ``axis``; CuPy's sorting is always stable."""
    return cupy.argsort(_sortable(a), axis)


def sort(a: Any, axis: Any = -1, kind: Any = None, **named: Any) -> Any:
    """Return a sorted copy of ``a``."""
    return cupy.sort(_sortable(a), axis).astype(a.dtype, copy=False)


# -- On the CPU --------------------------------------------------------------------------------------------------------

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
    "where": where, "tril": tril, "triu": triu, "clip": clip, "einsum": einsum,
    "cumsum": _running("cumsum"), "cumprod": _running("cumprod"),
}  # fmt: skip
