"""Methods of ufuncs that CuPy lacks: CuPy reduces and accumulates sums and products only.

Scans double the distance in each step, so that n elements take ``log2(n)`` steps of a few kernels each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cupy
import numpy

from .functions import is_bfloat16, where

BOOL = numpy.dtype(bool)
Binary = Callable[[Any, Any], Any]


def scan(combine: Binary, x: Any, axis: int) -> Any:
    """Return the array of ``combine`` over the first k elements of ``x`` along ``axis``, for each k."""
    result = cupy.moveaxis(x, axis, -1).copy()
    step = 1
    while step < result.shape[-1]:
        longer = result.copy()
        longer[..., step:] = combine(result[..., :-step], result[..., step:])
        result, step = longer, 2 * step
    return cupy.moveaxis(result, -1, axis)


def segment_scan(combine: Binary, x: Any, starts: Any) -> Any:
    """Return what :func:`scan` returns for axis 0, begun again at each row where the bool array ``starts`` is true."""
    result, closed = x.copy(), starts
    step, wide = 1, (slice(None), *(None,) * (x.ndim - 1))
    while step < len(result):
        longer, open_ = result.copy(), closed.copy()
        longer[step:] = where(closed[step:][wide], result[step:], combine(result[:-step], result[step:]))
        open_[step:] |= closed[:-step]
        result, closed, step = longer, open_, 2 * step
    return result


def fold(combine: Binary, x: Any, axis: Any, keepdims: bool, empty: Any) -> Any:
    """Return ``combine`` over all elements of ``x`` along ``axis``, an int, a tuple or None; ``empty`` for no element."""
    axes = (
        tuple(range(x.ndim))
        if axis is None
        else tuple(a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,)))
    )
    rest = tuple(a for a in range(x.ndim) if a not in axes)
    shape = tuple(x.shape[a] for a in rest)
    flat = x.transpose(*rest, *axes).reshape(*shape, -1) if axes else x[..., None]
    if not flat.shape[-1]:
        result = cupy.full(shape, empty, x.dtype)
    else:
        while (size := flat.shape[-1]) > 1:
            half = (size + 1) // 2
            longer = flat[..., :half].copy()
            longer[..., : size - half] = combine(longer[..., : size - half], flat[..., half:])
            flat = longer
        result = flat[..., 0]
    return result.reshape([1 if a in axes else n for a, n in enumerate(x.shape)]) if keepdims else result


class Ufunc:
    """A ufunc of CuPy with further methods, which have the names and parameters of NumPy's."""

    def __init__(self, name: str, reduce: Callable[..., Any] | None = None, empty: Any = None) -> None:
        self.function: Any = getattr(cupy, name)
        self.__name__ = name
        self._reduce, self._empty = reduce, empty

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(*args, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.function, name)

    def reduce(
        self, x: Any, axis: Any = 0, dtype: Any = None, out: Any = None, keepdims: bool = False, **named: Any
    ) -> Any:
        x = x if dtype is None else x.astype(dtype)
        if self._reduce is not None:
            return self._reduce(x, axis=axis, keepdims=keepdims, **named)
        return fold(self.function, x, axis, keepdims, self._empty)

    def accumulate(self, x: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        return scan(self.function, x if dtype is None else x.astype(dtype), axis)

    def reduceat(self, x: Any, indices: Any, axis: int = 0, dtype: Any = None, out: Any = None) -> Any:
        """Return the reductions of the segments of ``x`` that begin at ``indices``, which are in ascending order."""
        x = cupy.moveaxis(x, axis, 0)
        starts = cupy.zeros(len(x), bool)
        starts[indices] = True
        ends = cupy.concatenate([indices[1:] - 1, cupy.full(1, len(x) - 1, indices.dtype)])
        return cupy.moveaxis(segment_scan(self.function, x, starts)[ends], 0, axis)

    def at(self, x: Any, indices: Any, values: Any) -> None:
        """Combine each of ``values`` with the element of ``x`` at its index, in place, also for equal indices."""
        places = cupy.arange(x.size).reshape(x.shape)[indices]
        values = cupy.broadcast_to(cupy.asarray(values, x.dtype), places.shape).reshape(-1)
        places = places.reshape(-1)
        if not places.size:
            return
        order = cupy.argsort(places)
        places, values = places[order], values[order]
        starts = cupy.ones(places.shape, bool)
        cupy.not_equal(places[1:], places[:-1], out=starts[1:])
        found = segment_scan(self.function, values, starts)
        last = cupy.ones(places.shape, bool)
        last[:-1] = starts[1:]
        flat = x.reshape(-1)
        whole = cupy.empty(flat.size + 1, x.dtype)
        whole[:-1] = flat
        picked = self.function(flat[places], found)
        whole[cupy.where(last, places, flat.size)] = picked  # what is not the last of its place goes behind the end
        x[...] = whole[:-1].reshape(x.shape)


def _extremum(name: str) -> Callable[..., Any]:
    def reduce(x: Any, *, axis: Any, keepdims: bool, initial: Any = None) -> Any:
        if axis == ():
            return x.copy()
        if initial is not None and not x.size:
            sizes = (
                range(x.ndim) if axis is None else [a % x.ndim for a in (axis if isinstance(axis, tuple) else (axis,))]
            )
            shape = [1 if a in sizes else n for a, n in enumerate(x.shape) if keepdims or a not in sizes]
            if all(x.shape[a] for a in sizes):
                return cupy.empty(shape, x.dtype)
            return cupy.full(shape, initial, x.dtype)
        result = getattr(cupy, name)(x, axis=axis, keepdims=keepdims)
        return result if initial is None else getattr(cupy, f"{name}imum")(result, initial)

    return reduce


def _logical(name: str) -> Callable[..., Any]:
    def reduce(x: Any, *, axis: Any, keepdims: bool, initial: Any = None) -> Any:
        return x != 0 if axis == () else getattr(cupy, name)(x, axis=axis, keepdims=keepdims)

    return reduce


class _Logical(Ufunc):
    """A logical ufunc, also of complex numbers, for which CuPy has no loop."""

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.function(
            *(each != 0 if getattr(each, "dtype", cupy.dtype(bool)).kind == "c" else each for each in args), **named
        )

    def at(self, x: Any, indices: Any, values: Any) -> None:
        wide = x.astype(cupy.int32)
        function = cupy.maximum if self.__name__ == "logical_or" else cupy.minimum
        function.at(wide, indices, cupy.asarray(values).astype(cupy.int32))
        x[...] = wide != 0


def _pairs(x: Any) -> Any:
    """Return the complex array ``x`` with a last axis of real and imaginary part: a view if ``x`` is in C order."""
    return cupy.ascontiguousarray(x).reshape(-1).view(x.real.dtype).reshape(*x.shape, 2)


class _Add(Ufunc):
    """Sum, whose ``at`` also accepts dtypes for which CUDA has no atomic addition.

    Integers of 8 and 16 bits are added as int32, bfloat16 as float32, and complex numbers as pairs of real ones.
    """

    def at(self, x: Any, indices: Any, values: Any) -> None:
        if x.dtype.kind == "b":
            UFUNCS["logical_or"].at(x, indices, values)
        elif x.dtype.char in "bBhH" or is_bfloat16(x):
            wide = x.astype(cupy.float32 if is_bfloat16(x) else cupy.int32)
            self.function.at(wide, indices, values.astype(wide.dtype) if hasattr(values, "dtype") else values)
            x[...] = wide.astype(x.dtype)
        elif x.dtype.kind == "c":
            whole = cupy.ascontiguousarray(x)
            parts = indices if isinstance(indices, tuple) else (indices,)
            if any(each is Ellipsis for each in parts):
                parts = (*parts, slice(None))
            self.function.at(_pairs(whole), parts, _pairs(cupy.asarray(values, x.dtype)))
            if whole is not x:
                x[...] = whole.reshape(x.shape)
        else:
            self.function.at(x, indices, values)

    reduce = property(lambda self: self.function.reduce)
    accumulate = property(lambda self: self.function.accumulate)
    reduceat = property(lambda self: self.function.reduceat)


class _Multiply(Ufunc):
    """Product, with ``at``."""

    reduce = property(lambda self: self.function.reduce)
    accumulate = property(lambda self: self.function.accumulate)


#: The ufuncs that kernels call a method of, by name.
UFUNCS: dict[str, Any] = {
    "add": _Add("add"),
    "multiply": _Multiply("multiply"),
    "maximum": Ufunc("maximum", _extremum("max")),
    "minimum": Ufunc("minimum", _extremum("min")),
    "logical_and": _Logical("logical_and", _logical("all")),
    "logical_or": _Logical("logical_or", _logical("any")),
    "logical_xor": _Logical("logical_xor"),
    "logaddexp": Ufunc("logaddexp", None, float("-inf")),
    "bitwise_xor": Ufunc("bitwise_xor", None, 0),
}
