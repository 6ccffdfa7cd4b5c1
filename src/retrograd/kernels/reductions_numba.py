"""Kernels of sum, prod, amax, amin, argmax, var, cumsum, softmax and logsumexp for large arrays, by Numba loops.

The loops are in ``kernels/numba/reductions.py`` and ``kernels/numba/normalization.py``. A function returns None if no
loop supports its arrays; the caller then computes with NumPy. The loops reduce the middle axis of arrays (outer, many,
inner): ``many`` is the number of elements along the reduced axes, ``outer`` and ``inner`` are those along the axes
before and after the reduced axes in memory.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy

from ..runtime import blas_threads
from .numba_dispatch import LARGE, loops, plain, suits

STRETCH = 4096  # elements whose sum is one number of what `total` adds up (see kernels/numba/reductions.py)
#: Rows from this length on are added up by all threads, if they are few.
LONG = 1 << 16


class Seen(NamedTuple):
    """Operand of a reduction such as torch.sum, reshaped to (outer, many, inner) with the reduced axes in the middle.

    ``kept`` is the shape of the result in memory order, with size 1 along the reduced axes. ``back`` is the permutation
    that transposes the result to the order of the operand's axes, or None if the orders are equal.
    """

    array: Any
    kept: tuple[int, ...]
    back: tuple[int, ...] | None

    def put_back(self, found: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Return ``found`` (outer, inner), the result of a loop, in the shape of the result of the reduction.

        ``axes`` are the reduced axes. If ``keepdims`` is true, these axes have size 1, else they are removed.
        """
        found = found.reshape(self.kept)
        if self.back is not None:
            found = found.transpose(self.back)
        return found if keepdims else found.squeeze(axes)


def seen(x: Any, axes: tuple[int, ...]) -> Seen | None:
    """Return ``x`` reshaped for a reduction over ``axes``, or None if no Numba loop supports ``x``.

    Loops support large NumPy arrays of float32 or float64 whose reduced axes are adjacent in memory.
    """
    if x.__class__ is not numpy.ndarray:
        x = plain(x)
    if not suits(x.size, x):
        return None
    if len(axes) == 1 and axes[0] >= 0 and x.flags.carray:
        axis, shape = axes[0], x.shape
        before, after = shape[:axis], shape[axis + 1 :]
        return Seen(x.reshape(math.prod(before), shape[axis], math.prod(after)), (*before, 1, *after), None)
    back: tuple[int, ...] | None = None
    places = sorted(axis % x.ndim for axis in axes)
    if not x.flags.c_contiguous:
        order = sorted(range(x.ndim), key=x.strides.__getitem__, reverse=True)
        x = x.transpose(order)
        places = sorted(order.index(axis) for axis in places)
        back = tuple(order.index(axis) for axis in range(x.ndim))
    if not x.flags.carray or not places or places[-1] - places[0] + 1 != len(places):
        return None
    before, after = x.shape[: places[0]], x.shape[places[-1] + 1 :]
    form = math.prod(before), math.prod(x.shape[places[0] : places[-1] + 1]), math.prod(after)
    return Seen(x.reshape(form), (*before, *(1,) * len(places), *after), back)


def _parts(outer: int, many: int, inner: int) -> int:
    """Return the number of parts into which ``many`` elements are divided for a sum, so that all threads have work.

    ``outer``, ``many`` and ``inner`` are the sizes of the operand's three axes; the middle axis is summed.
    """
    across = outer * -(-inner // 1024)
    return max(1, min(many // 64, -(-blas_threads.max_threads() // across)))


def summed(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axes``, or None if no Numba loop supports ``x``.

    If ``keepdims`` is true, the summed axes have size 1 in the result.
    """
    if x.__class__ is not numpy.ndarray:
        x = plain(x)
    if not any(x.strides) and x.__class__ is numpy.ndarray and x.dtype.kind == "f":
        return _sum_of_equal(x, axes, keepdims)
    if len(axes) == x.ndim and (whole := total(x)) is not None:
        return numpy.full((1,) * x.ndim, whole, x.dtype) if keepdims else whole
    view = seen(x, axes)
    if view is None:
        return _one_after_the_other(x, axes, keepdims)
    array, loop = view.array, loops("reductions")
    outer, many, inner = array.shape
    if inner > 1:
        parts = numpy.empty((outer, _parts(outer, many, inner), inner))
        loop.sum_columns(array, parts)
        found = _joined(parts, x.dtype)
    elif outer < 8 and many >= LONG:
        found = numpy.array([total(row) for row in array.reshape(outer, many)], x.dtype)
    else:
        found = numpy.empty(outer, x.dtype)
        loop.sum_rows(array.reshape(outer, many), found)
    return view.put_back(found, axes, keepdims)


def _sum_of_equal(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum over ``axes`` of an array ``x`` whose strides are all 0, so that all elements are equal.

    If ``keepdims`` is true, the summed axes have size 1 in the result.
    """
    kept = [1 if axis in axes else size for axis, size in enumerate(x.shape)]
    count = math.prod(x.shape[axis] for axis in axes)
    found = numpy.full(kept, x[(0,) * x.ndim] * x.dtype.type(count), x.dtype)
    return found if keepdims else found.squeeze(axes)


def _one_after_the_other(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axes`` that are not adjacent, with the last axis summed first.

    The result is None if no Numba loop supports ``x``. If ``keepdims`` is true, the summed axes have size 1.
    """
    last = x.ndim - 1
    if len(axes) < 2 or last not in axes or x.shape[last] < 16:
        return None
    found = summed(x, (last,), True)
    if found is None:
        return None
    return found.sum(axis=axes, keepdims=keepdims)


def squares(x: Any, centre: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``(x - centre)**2`` over ``axes``, or None if no Numba loop supports ``x``.

    ``centre`` has size 1 along ``axes``; None means 0. If ``keepdims`` is true, the summed axes have size 1 in the
    result.
    """
    view = seen(x, axes)
    if view is None:
        return None
    array, loop = view.array, loops("reductions")
    outer, many, inner = array.shape
    if centre is None:
        middle = numpy.zeros((outer, inner), x.dtype)
    else:
        order = None if view.back is None else numpy.argsort(view.back)
        middle = numpy.ascontiguousarray(centre if order is None else centre.transpose(order)).reshape(outer, inner)
    if inner > 1:
        parts = numpy.empty((outer, _parts(outer, many, inner), inner))
        loop.sum_squares_of_columns(array, middle, parts)
        found = _joined(parts, x.dtype)
    elif outer < 8 and many >= LONG:
        lines = zip(array.reshape(outer, many), middle[:, 0], strict=True)
        found = numpy.array([_total_of_squares(row, here) for row, here in lines], x.dtype)
    else:
        found = numpy.empty(outer, x.dtype)
        loop.sum_squares_of_rows(array.reshape(outer, many), middle.reshape(outer), found)
    return view.put_back(found, axes, keepdims)


def _joined(parts: Any, dtype: Any) -> Any:
    return (parts[:, 0] if parts.shape[1] == 1 else numpy.add.reduce(parts, 1)).astype(dtype)


def _line(x: Any) -> Any:
    """Return all elements of ``x`` in memory order, as a 1-d view, or None if no Numba loop supports ``x``."""
    if suits(x.size, x) and x.flags.carray:
        return x.reshape(-1)
    view = seen(x, tuple(range(x.ndim)))
    return None if view is None else view.array.reshape(-1)


def total(x: Any) -> Any:
    """Return the sum of all elements of ``x``, or None if no Numba loop supports ``x``."""
    line = _line(x)
    if line is None:
        return None
    return x.dtype.type(loops("reductions").total(line, numpy.empty(-(-line.size // STRETCH))))


def _total_of_squares(line: Any, centre: Any) -> Any:
    return loops("reductions").total_of_squares(line, centre, numpy.empty(-(-line.size // STRETCH)))


def total_of_squares(x: Any) -> Any:
    """Return the sum of the squares of all elements of ``x``, or None if no Numba loop supports ``x``."""
    line = _line(x)
    return None if line is None else x.dtype.type(_total_of_squares(line, x.dtype.type(0)))


def product(x: Any) -> Any:
    """Return the product of all elements of ``x``, or None if no Numba loop supports ``x``."""
    line = _line(x)
    if line is None:
        return None
    products = numpy.empty(-(-line.size // STRETCH))
    loops("reductions").product(line, products)
    return x.dtype.type(numpy.multiply.reduce(products))


def products(x: Any, axis: int, keepdims: bool) -> Any:
    """Return the products of ``x`` along ``axis``, which must be the axis with the smallest stride.

    If ``keepdims`` is true, the axis has size 1 in the result. The result is None if no Numba loop supports ``x``.
    """
    view = seen(x, (axis,))
    if view is None or view.array.shape[2] != 1 or view.array.shape[0] < 8:
        return None
    found = numpy.empty(view.array.shape[0], x.dtype)
    loops("reductions").product_rows(view.array.reshape(view.array.shape[:2]), found)
    return view.put_back(found, (axis,), keepdims)


def products_of_others(x: Any, axis: int) -> Any:
    """Return for each element of ``x`` the product of the other elements along ``axis``, the last axis of ``x``.

    The result is None if no Numba loop supports ``x``.
    """
    view = seen(x, (axis,))
    if view is None or view.array.shape[2] != 1 or view.array.shape[0] < 8 or view.back is not None:
        return None
    out = numpy.empty(x.shape, x.dtype)
    form = view.array.shape[:2]
    loops("reductions").products_of_others(view.array.reshape(form), out.reshape(form))
    return out


#: From so many elements on several threads find the largest sooner than NumPy, which runs many lanes side by side.
MANY = 1 << 18


def largest_of_all(x: Any, sign: int = 1) -> Any:
    """Return the maximum of all elements of ``x``, or the minimum if ``sign`` is -1.

    The result is nan if any element is nan, and None if no Numba loop supports ``x``.
    """
    line = _line(x) if x.size >= MANY else None
    if line is None:
        return None
    return x.dtype.type(
        loops("reductions").largest_of_all(line, x.dtype.type(sign), numpy.empty(-(-line.size // STRETCH), x.dtype))
    )


def share_of_extreme(x: Any, top: Any, axes: tuple[int, ...]) -> Any:
    """Return the gradient of amax or amin with respect to ``x``, given ``top``, the result of amax or amin.

    ``top`` has size 1 along ``axes``. Elements of ``x`` that equal ``top`` get 1 / (number of these elements), all
    other elements get 0. The result is None if no Numba loop supports ``x``.
    """
    x, top = plain(x), plain(top)
    if not suits(x.size, x) or not x.flags.carray or top.dtype != x.dtype:
        return None
    out, loop = numpy.empty(x.shape, x.dtype), loops("reductions")
    if len(axes) == x.ndim:
        counts = numpy.empty(-(-x.size // STRETCH), numpy.int64)
        loop.share_of_all(x.reshape(-1), x.dtype.type(top.item()), counts, out.reshape(-1))
    elif axes in ((-1,), (x.ndim - 1,)) and top.size * x.shape[-1] == x.size >= 8 * x.shape[-1]:
        form = (-1, x.shape[-1])
        loop.share_of_rows(x.reshape(form), numpy.ascontiguousarray(top).reshape(-1), out.reshape(form))
    else:
        return None
    return out


def largest(x: Any, axes: tuple[int, ...], keepdims: bool, sign: int = 1) -> Any:
    """Return the maximum of ``x`` over ``axes``, or the minimum if ``sign`` is -1.

    The result is nan where any reduced element is nan. If ``keepdims`` is true, the reduced axes have size 1. The
    result is None if no Numba loop supports ``x``.
    """
    view = seen(x, axes)
    if view is None:
        return None
    outer, many, inner = view.array.shape
    if inner > 1:
        found, index = numpy.empty((outer, inner), x.dtype), numpy.empty((outer, inner), numpy.int32)
        if outer * inner < 2048:  # NumPy's is better at few columns
            return None
        loops("reductions").largest_of_columns(view.array, x.dtype.type(sign), found, index)
    elif outer < 8:
        return None
    else:
        found = numpy.empty(outer, x.dtype)
        loops("reductions").largest_of_rows(view.array.reshape(outer, many), x.dtype.type(sign), found)
    return view.put_back(found, axes, keepdims)


def where_largest(x: Any, axis: int, sign: int = 1) -> Any:
    """Return the index of the first maximum of ``x`` along ``axis``, or of the first minimum if ``sign`` is -1.

    The result is None if no Numba loop supports ``x``, and along the axis with the smallest stride, where NumPy's
    argmax is faster.
    """
    view = seen(x, (axis,))
    if view is None or view.array.shape[2] < 512:
        return None
    outer, _, inner = view.array.shape
    found, index = numpy.empty((outer, inner), x.dtype), numpy.empty((outer, inner), numpy.int32)
    loops("reductions").largest_of_columns(view.array, x.dtype.type(sign), found, index)
    return view.put_back(index.astype(numpy.int64), (axis,), False)


def running(x: Any, axis: int, product: bool, back: bool = False) -> Any:
    """Return the cumulative sums of ``x`` along ``axis``, or the cumulative products if ``product`` is true.

    If ``back`` is true, the elements are accumulated from the end of the axis. The result is None if no Numba loop
    supports ``x``.
    """
    view = seen(x if any(x.strides) else numpy.ascontiguousarray(x), (axis,))
    if view is None or view.back is not None:
        return None
    outer, many, inner = view.array.shape
    out = numpy.empty(x.shape, x.dtype)
    if inner > 1:
        loops("reductions").run_columns(view.array, product, back, out.reshape(outer, many, inner))
    elif outer == 1 and not product:
        sums = numpy.empty(min(64, -(-many // LARGE)))
        loops("reductions").sums_of_parts(view.array.reshape(-1), sums)
        # What lies before each part, added up without the part itself: that may be infinite, nan or much larger.
        begin = numpy.zeros_like(sums)
        if back:
            begin[:-1] = numpy.cumsum(sums[:0:-1])[::-1]
        else:
            begin[1:] = numpy.cumsum(sums[:-1])
        loops("reductions").run_parts(view.array.reshape(-1), begin, back, out.reshape(-1))
    else:
        loops("reductions").run_rows(view.array.reshape(outer, many), product, back, out.reshape(outer, many))
    return out


# -- Row by row ------------------------------------------------------------------------------------------------------


def rows(x: Any, width: int, *others: Any) -> list[Any] | None:
    """Return ``x`` and ``others``, arrays of one shape, as matrices whose rows have ``width`` elements.

    An array of ``others`` whose strides are all 0 is replaced by its only element. The result is None if no Numba loop
    supports the arrays.
    """
    if x.__class__ is not numpy.ndarray:
        x = plain(x)
    if not suits(x.size, x):
        return None
    found = []
    for array in map(plain, (x, *others)):
        if array.__class__ is not numpy.ndarray or array.dtype is not x.dtype or array.shape != x.shape:
            return None
        if array.flags.carray:
            found.append(array.reshape(-1, width))
        elif array is not x and not any(array.strides):
            found.append(array[(0,) * array.ndim])
        else:
            return None
    return found


def by_rows(name: str, x: Any, axis: int, *others: Any) -> Any:
    """Return the result of the Numba loop ``name``, such as "softmax", along ``axis`` of ``x``.

    The loops are in ``kernels/numba/normalization.py``. Along the last axis the loop ``name`` is called, along another
    axis the loop ``name_columns``. ``others`` are arrays of the shape of ``x``, passed to the loop before ``x``. The
    result is None if the loop does not support the arrays.
    """
    last = axis in (-1, x.ndim - 1)
    given = rows(x, x.shape[-1], *others) if x.size >= LARGE else None
    if given is None:
        return None
    out = numpy.empty(x.shape, x.dtype)
    if last:
        getattr(loops("normalization"), name)(*given[1:], given[0], out.reshape(given[0].shape))
        return out
    axis %= x.ndim
    form = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if form[2] < 16:
        return None
    lines = [(each if each.shape else numpy.broadcast_to(each, x.shape).copy()).reshape(form) for each in given]
    getattr(loops("normalization"), f"{name}_columns")(*lines[1:], lines[0], out.reshape(form))
    return out


def logsumexp(x: Any, axis: int) -> Any:
    """Return ``log(sum(exp(x)))`` over the last axis of ``x``, which has size 1 in the result.

    The result is None if no Numba loop supports ``x`` or if ``axis`` is not the last axis.
    """
    given = rows(x, x.shape[-1]) if axis in (-1, x.ndim - 1) else None
    if given is None:
        return None
    out = numpy.empty((*x.shape[:-1], 1), x.dtype)
    loops("normalization").logsumexp(given[0], out.reshape(-1))
    return out


__all__ = [
    "logsumexp",
    "by_rows",
    "rows",
    "largest",
    "largest_of_all",
    "products",
    "products_of_others",
    "share_of_extreme",
    "product",
    "running",
    "seen",
    "squares",
    "summed",
    "total",
    "total_of_squares",
    "where_largest",
]
