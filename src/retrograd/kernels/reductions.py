"""Kernels of sum, mean, prod, var and norms.

Sums are accurate for float32 and half precision: NumPy uses pairwise summation only along a contiguous last axis, so
that sums along other axes lose digits. Small arrays are reduced by products with ones (0.3 µs, where NumPy's reduction
takes 1 µs), large ones by the Numba loops of ``kernels/numba/reductions.py``. The loops reduce the middle axis of
arrays (outer, many, inner): ``many`` is the number of elements along the reduced axes, ``outer`` and ``inner`` are
those along the axes before and after the reduced axes in memory.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy
from numpy import ndarray

from ..core.devices import on_gpu
from ..core.tensor import normalize_dim
from ..runtime import blas_threads
from .numba_dispatch import loops, plain, suits
from .select import NUMBA, at_least, at_most, kernel
from .thresholds import FEW_ROWS, LARGE, LONG_ROW, LOOP_ROW, ONES_MATRIX, ONES_PRODUCT, PYTHON_SUM, SMALL, SMALL_ROW

F32, F64 = numpy.dtype(numpy.float32), numpy.dtype(numpy.float64)
BLOCK = 128  # elements added one after the other, as in NumPy's pairwise sum
STRETCH = 4096  # elements whose sum is one number of what `total` adds up (see kernels/numba/reductions.py)
SHORT = "eE"  # float16 and bfloat16, which are added in float32, because long sums would lose all digits
MOST = 65504  # the largest float16: a larger number of elements is not representable as a divisor
#: Vectors of ones by length, and the lengths as arrays: dividing by an array takes half the time of a Python number.
ONES = {
    numpy.dtype(kind): [numpy.ones(n, kind) for n in range(ONES_PRODUCT + 1)] for kind in (numpy.float32, numpy.float64)
}
ONES32, ONES64 = ONES[F32], ONES[F64]
COUNTS = {kind: [numpy.asarray(n, kind) for n in range(ONES_PRODUCT + 1)] for kind in ONES}
#: By the length of a row, the float64 matrices that put the row's mean at every place of it.
WIDE_MEANS = [numpy.full((n, n), 1 / max(n, 1), F64) for n in range(SMALL_ROW + 1)]


# -- Reduced axes ----------------------------------------------------------------------------------------------------


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the reduced dimensions ``dim`` of an array with ``ndim`` dimensions as a tuple of non-negative ints.

    ``dim`` is an int or a sequence of ints. None or an empty sequence means all dimensions. Raises IndexError if a
    dimension is out of range, and RuntimeError if a dimension is passed twice.
    """
    if dim.__class__ is int and -ndim <= dim < ndim:
        return (dim if dim >= 0 else dim + ndim,)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple([normalize_dim(each, ndim) for each in dims])
    if len(set(axes)) != len(axes):
        twice = next(each for each in axes if axes.count(each) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return axes if ndim else ()


def keepdim_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """Return ``shape`` with the size of each dimension in ``dim`` set to 1, as after a reduction with keepdim."""
    axes = axes_of(dim, len(shape))
    if len(axes) == 1:
        return (*shape[: axes[0]], 1, *shape[axes[0] + 1 :])
    return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])


# -- Layouts of operands ---------------------------------------------------------------------------------------------


def small_matrix(x: Any, axis: int) -> tuple[Any, int, int]:
    """Return a small array as a matrix (two axes), so that it can be reduced by a product with a constant vector.

    The result is (matrix, axis of the matrix that corresponds to ``axis`` of ``x``, size of this axis). The size is 0
    if the arguments are not supported: ``x`` is not a small float32 array, or ``axis`` is longer than 16 or neither the
    first nor the last axis.
    """
    if x.__class__ is not ndarray or x.dtype is not F32 or not 0 < x.size <= SMALL:
        return x, 0, 0
    shape = x.shape
    rank = len(shape)
    if axis < 0:
        axis += rank
    if not 0 <= axis < rank or 0 < axis < rank - 1 or shape[axis] > SMALL_ROW:
        return x, 0, 0
    size = shape[axis]
    if rank == 2:
        return x, axis, size
    return (x.reshape(size, -1), 0, size) if axis < rank - 1 else (x.reshape(-1, size), 1, size)


def reduced_shape(found: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return ``found``, the results of a reduction of ``x`` along ``axis``, in the shape of the reduced array.

    If ``keepdims`` is true, ``axis`` has size 1, else it is removed.
    """
    if x.ndim == 2 and not keepdims:
        return found
    shape = list(x.shape)
    shape[axis : axis + 1 or None] = [1] if keepdims else []
    return found.reshape(shape)


class Seen(NamedTuple):
    """Operand of a reduction such as torch.sum, in the form that the Numba loops read.

    ``array`` is the operand reshaped to (outer, many, inner), where many is the number of elements along the reduced
    axes. From ``kept`` and ``back``, :meth:`put_back` computes the shape of the reduction's result: it reshapes the
    result of a loop to ``kept`` and then permutes the axes by ``back``.

    ``kept`` has size 1 for the reduced axes, and lists the axes in the order of memory. ``back`` permutes the axes to
    the order of the operand; it is None if the orders are equal.
    """

    array: Any
    kept: tuple[int, ...]
    back: tuple[int, ...] | None

    def put_back(self, found: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
        """Return ``found`` (outer, inner), computed by a Numba loop, in the shape of the result of the reduction.

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


def rows_of(x: Any, width: int, *others: Any) -> list[Any] | None:
    """Return ``x`` and ``others``, arrays of one shape, as matrices whose rows have ``width`` elements.

    The Numba loops over rows read these matrices. An array of ``others`` that repeats a single element, by strides of
    0, is replaced by this element. The result is None if no Numba loop supports the arrays.
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


def line_of(x: Any) -> Any:
    """Return all elements of ``x`` in memory order, as a 1-d view, or None if no Numba loop supports ``x``."""
    if suits(x.size, x) and x.flags.carray:
        return x.reshape(-1)
    view = seen(x, tuple(range(x.ndim)))
    return None if view is None else view.array.reshape(-1)


# -- Sums ------------------------------------------------------------------------------------------------------------


@at_most(ONES_PRODUCT)
def _sum_of_few(np: Any, x: Any) -> Any:
    """Return the sum of all elements of ``x`` as a product with ones, or None if the dtype is not supported."""
    return x.ravel().dot(ONES[x.dtype][x.size]) if x.__class__ is ndarray and x.dtype in ONES else None


@at_least(LARGE, NUMBA)
def _sum_by_loop(np: Any, x: Any) -> Any:
    return total(x)


@kernel(_sum_of_few, _sum_by_loop)
def sum_elements(np: Any, x: Any) -> Any:
    """Return the sum of all elements of ``x``."""
    if x.dtype.char in SHORT:
        return np.add.reduce(x.astype(np.float32), None).astype(x.dtype)
    return np.add.reduce(x, None)


@at_most(PYTHON_SUM)
def _sum_of_list(np: Any, x: Any, kind: Any) -> Any:
    return np.asarray(sum((x if x.ndim == 1 else x.ravel()).tolist()), kind)


@at_most(ONES_PRODUCT)
def _sum_by_ones(np: Any, x: Any, kind: Any) -> Any:
    return x.ravel().dot((ONES32 if kind is F32 else ONES64)[x.size])


@kernel(_sum_of_list, _sum_by_ones)
def sum_floats(np: Any, x: Any, kind: Any) -> Any:
    """Return the sum of all elements of ``x``; ``kind``, the dtype of ``x``, is float32 or float64."""
    return sum_elements(np, x)


@kernel(_sum_of_list)
def sum_integers(np: Any, x: Any, kind: Any) -> Any:
    """Return the sum of all elements of ``x``; ``kind``, the dtype of ``x``, is int64."""
    return np.add.reduce(x, None)


@at_most(PYTHON_SUM)
def _mean_of_list(np: Any, x: Any, kind: Any) -> Any:
    return np.asarray(sum((x if x.ndim == 1 else x.ravel()).tolist()) / x.size, kind)


@at_most(ONES_PRODUCT)
def _mean_by_ones(np: Any, x: Any, kind: Any) -> Any:
    return x.ravel().dot((ONES32 if kind is F32 else ONES64)[x.size]) / x.size


@kernel(_mean_of_list, _mean_by_ones)
def mean_floats(np: Any, x: Any, kind: Any) -> Any:
    """Return the mean of all elements of ``x``, which is not empty.

    ``kind``, the dtype of ``x``, is float32 or float64.
    """
    return sum_elements(np, x) / x.size


def sum_axes(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axes``. If ``keepdims`` is true, the summed axes have size 1 in the result."""
    return sum_along(np, x, axes[0], keepdims) if len(axes) == 1 else _sum_several(np, x, axes, keepdims)


@at_least(LARGE)
def _sum_several_by_loop(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    return summed(x, axes, keepdims)


@kernel(_sum_several_by_loop)
def _sum_several(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``x`` over one or several ``axes``."""
    char = x.dtype.char
    if char in SHORT:
        return sum_axes(np, x.astype(np.float32), axes, keepdims).astype(x.dtype)
    apart = any(x.shape[axis] > BLOCK and x.strides[axis] != x.itemsize for axis in axes)
    if char not in "fF" or not apart or np.__name__ == "cupy":  # CuPy adds pairs of partial sums
        return np.add.reduce(x, axis=axes, keepdims=keepdims)
    for axis in sorted(axes, reverse=True):
        x = _along(np, x, axis)
    return x if keepdims else x.squeeze(axes)


@at_most(ONES_MATRIX)
def _sum_along_by_ones(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return the sum of the matrix ``x`` over ``axis``, computed as a matrix product with a vector of ones.

    The result is None if ``x`` is not a small matrix of a supported dtype.
    """
    if x.ndim != 2 or x.__class__ is not ndarray or x.dtype not in ONES or (size := x.shape[axis]) > ONES_PRODUCT:
        return None
    ones = ONES[x.dtype][size]
    result = x.dot(ones) if axis in (1, -1) else ones.dot(x)
    if keepdims is False:
        return result
    return (result.reshape(-1, 1) if axis in (1, -1) else result.reshape(1, -1)) if keepdims is True else None


@at_least(LARGE)
def _sum_along_by_loop(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    return summed(x, (axis if axis >= 0 else axis + x.ndim,), keepdims)


@kernel(_sum_along_by_ones, _sum_along_by_loop)
def sum_along(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axis``. If ``keepdims`` is true, the summed axis has size 1 in the result."""
    if axis < 0:
        axis += x.ndim
    char = x.dtype.char
    if char in SHORT:
        return sum_along(np, x.astype(np.float32), axis, keepdims).astype(x.dtype)
    if x.shape[axis] > BLOCK and char in "fF" and x.strides[axis] != x.itemsize and np.__name__ != "cupy":
        result = _along(np, x, axis)
        return result if keepdims else result.squeeze(axis)
    return np.add.reduce(x, axis=axis, keepdims=keepdims)


@at_most(ONES_MATRIX)
def _sum_broadcast_by_ones(np: Any, x: Any, axis: int) -> Any:
    """Return an array of the shape of the matrix ``x`` in which every element is the sum of ``x`` along ``axis``.

    The sums are computed as a product with a square matrix of ones. The result is None if ``x`` is not supported.
    """
    if x.ndim != 2 or x.__class__ is not ndarray or x.dtype not in ONES or (size := x.shape[axis]) > SMALL_ROW:
        return None
    return x.dot(_square(np, size, x.dtype)) if axis in (1, -1) else _square(np, size, x.dtype).dot(x)


@kernel(_sum_broadcast_by_ones)
def sum_broadcast(np: Any, x: Any, axis: int) -> Any:
    """Return the sum of ``x`` over ``axis``, in a shape that broadcasts with ``x``.

    Along ``axis`` the result has size 1. For small matrices it has the size of ``x``, with each sum repeated, because
    NumPy takes 1 µs longer if it has to broadcast an operand.
    """
    return sum_along(np, x, axis, True)


@lru_cache(maxsize=64)
def _square(np: Any, size: int, dtype: Any) -> Any:
    return np.ones((size, size), dtype)


def _along(np: Any, x: Any, axis: int) -> Any:
    """Return the sum of ``x`` over ``axis``, which has size 1 in the result, with reduced rounding errors.

    The axis is divided into blocks of ``BLOCK`` elements. Each block is summed first; the sums of the blocks are then
    summed in the same way.
    """
    size = x.shape[axis]
    if size <= BLOCK or x.strides[axis] == x.itemsize:
        return np.add.reduce(x, axis=axis, keepdims=True)
    count, before = size // BLOCK, (slice(None),) * axis
    # Splitting an axis is always a view.
    blocks = x[(*before, slice(count * BLOCK))].reshape(*x.shape[:axis], count, BLOCK, *x.shape[axis + 1 :])
    result = _along(np, np.add.reduce(blocks, axis=axis + 1), axis)
    rest = x[(*before, slice(count * BLOCK, None))]
    return result + np.add.reduce(rest, axis=axis, keepdims=True) if rest.size else result


def summed(x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the sum of ``x`` over ``axes``, or None if no Numba loop supports ``x``.

    If ``keepdims`` is true, the summed axes have size 1 in the result. An ``x`` whose strides are all 0, such as an
    expanded number, is summed by one multiplication, which does not need Numba.
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
    elif outer < FEW_ROWS and many >= LONG_ROW:
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
    if len(axes) < 2 or last not in axes or x.shape[last] < LOOP_ROW:
        return None
    found = summed(x, (last,), True)
    if found is None:
        return None
    return found.sum(axis=axes, keepdims=keepdims)


def _joined(parts: Any, dtype: Any) -> Any:
    return (parts[:, 0] if parts.shape[1] == 1 else numpy.add.reduce(parts, 1)).astype(dtype)


def total(x: Any) -> Any:
    """Return the sum of all elements of ``x``, or None if no Numba loop supports ``x``."""
    line = line_of(x)
    if line is None:
        return None
    return x.dtype.type(loops("reductions").total(line, numpy.empty(-(-line.size // STRETCH))))


# -- Means -----------------------------------------------------------------------------------------------------------


def mean_broadcast(np: Any, x: Any, axis: int) -> Any:
    """Return the mean of ``x`` over ``axis``, in a shape that broadcasts with ``x``.

    Along ``axis`` the result has size 1. For small matrices it has the size of ``x``, with each mean repeated, as in
    :func:`sum_broadcast`.
    """
    size = x.shape[axis]
    small = np is numpy and size <= ONES_PRODUCT and x.dtype in COUNTS
    return sum_broadcast(np, x, axis) / (COUNTS[x.dtype][size] if small else size)


def mean_along(np: Any, x: Any, axis: int, keepdims: bool) -> Any:
    """Return the mean of ``x`` over ``axis``. If ``keepdims`` is true, this axis has size 1 in the result."""
    result, size = sum_along(np, x, axis, keepdims), x.shape[axis]
    small = np is numpy and size <= ONES_PRODUCT and x.dtype in COUNTS
    return result / (COUNTS[x.dtype][size] if small else x.dtype.type(size))


# -- Products --------------------------------------------------------------------------------------------------------


@at_least(LARGE, NUMBA)
def _product_by_loop(np: Any, x: Any) -> Any:
    line = line_of(x)
    if line is None:
        return None
    products = numpy.empty(-(-line.size // STRETCH))
    loops("reductions").product(line, products)
    return x.dtype.type(numpy.multiply.reduce(products))


@kernel(_product_by_loop)
def product(np: Any, x: Any) -> Any:
    """Return the product of all elements of ``x``; integers are multiplied as int64."""
    return np.multiply.reduce(upcast_integers(np, x), None)


@at_least(LARGE, NUMBA)
def _products_of_rows(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the products of ``x`` over ``axes``, or None if no Numba loop supports the arguments.

    The loop requires that ``axes`` is one axis, and that this axis has the smallest stride.
    """
    view = seen(x, axes) if len(axes) == 1 else None
    if view is None or view.array.shape[2] != 1 or view.array.shape[0] < FEW_ROWS:
        return None
    found = numpy.empty(view.array.shape[0], x.dtype)
    loops("reductions").product_rows(view.array.reshape(view.array.shape[:2]), found)
    return view.put_back(found, axes, keepdims)


@kernel(_products_of_rows)
def product_axes(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return the product of ``x`` over ``axes``; integers are multiplied as int64.

    If ``keepdims`` is true, the reduced axes have size 1 in the result.
    """
    return np.multiply.reduce(upcast_integers(np, x), axis=axes, keepdims=keepdims)


def upcast_integers(np: Any, x: Any) -> Any:
    """Return ``x``, converted to int64 if ``x`` is an integer or bool array."""
    return x.astype(np.int64, copy=False) if x.dtype.kind in "biu" else x


# -- Sums of squares: variances and norms ----------------------------------------------------------------------------

#: Sums of squares below this bound may have lost precision in float32 by underflow.
TINY = 1e-30


@at_most(SMALL)
def _variance_small(np: Any, x: Any, dim: Any, count: int, left: float, keepdims: bool) -> Any:
    """Return the result of :func:`variance` as float64, or None if the arguments are not supported.

    Along one axis of a small matrix, it is computed by products with constant matrices; over all elements of a small
    array, by Python's arithmetic. ``count`` is the number of elements that are combined to one result, and ``left`` the
    divisor: ``count`` minus the correction.
    """
    if dim.__class__ is not int:
        return _variance_of_few(np, x, count, left) if dim is None and not keepdims else None
    rows, along, size = small_matrix(x, dim)
    if not size or not left:
        return None
    gap = rows.astype(F64)
    np.subtract(gap, gap.dot(WIDE_MEANS[size]) if along else WIDE_MEANS[size].dot(gap), gap)
    np.multiply(gap, gap, gap)
    share = _shares(np, size, left)
    found = gap.dot(share) if along else share.dot(gap)
    return found if x.ndim == 2 and not keepdims else reduced_shape(found, x, dim, keepdims)


@lru_cache(maxsize=64)
def _shares(np: Any, size: int, parts: float) -> Any:
    return np.full(size, 1 / parts)


def _variance_of_few(np: Any, x: Any, count: int, left: float) -> Any:
    """Return the variance of all elements of ``x``, or None unless they are at most 64 floating-point numbers.

    ``count`` is the number of elements, and ``left`` the divisor: ``count`` minus the correction. At most 16 elements
    are added up as Python floats, which is faster than NumPy.
    """
    size = x.size
    if not 0 < size <= ONES_PRODUCT or x.dtype.kind != "f" or x.__class__ is not numpy.ndarray:
        return None
    if size > SMALL_ROW:
        flat = x.ravel().astype(np.float64)
        flat -= sum_elements(np, flat) / count
        return np.divide(flat.dot(flat), left)
    values = x.ravel().tolist()
    mean, whole = sum(values) / len(values), 0.0
    for each in values:
        each -= mean
        whole += each * each
    return np.float64(whole) / left


@kernel(_variance_small)
def variance(np: Any, x: Any, dim: Any, count: int, left: float, keepdims: bool) -> Any:
    """Return the variance of ``x`` over ``dim``: the sum of squared distances from the mean, divided by ``left``.

    ``dim`` is an int, a tuple of ints, or None for all dimensions. ``count`` is the number of elements that are
    combined to one result. ``left`` is the divisor: ``count`` minus the correction. The result may have a higher
    precision than ``x``: a float32 sum of squares that overflows or underflows is computed again in float64, because
    the standard deviation may be representable in float32.
    """
    axes = axes_of(dim, x.ndim)
    squares = _centred_squares(np, x, axes, count, keepdims)
    if squares.dtype == np.float32 and not on_gpu(x) and not ((squares > TINY) & (squares < math.inf)).all():
        wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)
        squares = _centred_squares(np, wide, axes, count, keepdims)
    return np.divide(squares, squares.dtype.type(left))


@at_least(LARGE, NUMBA)
def _centred_squares_by_loop(np: Any, x: Any, axes: tuple[int, ...], count: int, keepdims: bool) -> Any:
    if x.dtype.kind != "f":
        return None
    return squares(x, sum_axes(np, x, axes, True) / x.dtype.type(count), axes, keepdims)


@kernel(_centred_squares_by_loop)
def _centred_squares(np: Any, x: Any, axes: tuple[int, ...], count: int, keepdims: bool) -> Any:
    """Return the sum over ``axes`` of the squared distances of ``x`` from its mean, by the two-pass algorithm.

    The first pass computes the mean over ``axes``, and the second pass the sum of squares. ``count`` is the number of
    elements of ``x`` that are combined to one result.
    """
    sums = sum_broadcast(np, x, axes[0]) if len(axes) == 1 else sum_axes(np, x, axes, True)
    centred = x - sums / x.dtype.type(max(count, 1))
    each = (centred * centred.conj()).real if x.dtype.kind == "c" else centred * centred
    return sum_axes(np, each, axes, keepdims)


@at_most(ONES_PRODUCT)
def _norm_of_few(np: Any, x: Any, dim: Any, keepdims: bool) -> Any:
    if dim is not None or keepdims or x.dtype.kind != "f":
        return None
    flat = x.ravel()
    return np.sqrt(flat.dot(flat))


@at_least(LARGE, NUMBA)
def _norm_by_loop(np: Any, x: Any, dim: Any, keepdims: bool) -> Any:
    if dim is None and not keepdims and (whole := total_of_squares(x)) is not None:
        return np.sqrt(whole)
    found = squares(x, None, axes_of(dim, x.ndim), keepdims)
    return None if found is None else np.sqrt(found)


@kernel(_norm_of_few, _norm_by_loop)
def norm(np: Any, x: Any, dim: Any, keepdims: bool) -> Any:
    """Return the square root of the sum of ``abs(x)**2`` over ``dim``: an int, a tuple of ints, or None for all."""
    size = x if x.dtype.kind == "f" else np.absolute(x)
    return np.sqrt(sum_axes(np, size * size, axes_of(dim, x.ndim), keepdims))


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
    elif outer < FEW_ROWS and many >= LONG_ROW:
        lines = zip(array.reshape(outer, many), middle[:, 0], strict=True)
        found = numpy.array([_total_of_squares(row, here) for row, here in lines], x.dtype)
    else:
        found = numpy.empty(outer, x.dtype)
        loop.sum_squares_of_rows(array.reshape(outer, many), middle.reshape(outer), found)
    return view.put_back(found, axes, keepdims)


def _total_of_squares(line: Any, centre: Any) -> Any:
    return loops("reductions").total_of_squares(line, centre, numpy.empty(-(-line.size // STRETCH)))


def total_of_squares(x: Any) -> Any:
    """Return the sum of the squares of all elements of ``x``, or None if no Numba loop supports ``x``."""
    line = line_of(x)
    return None if line is None else x.dtype.type(_total_of_squares(line, x.dtype.type(0)))
