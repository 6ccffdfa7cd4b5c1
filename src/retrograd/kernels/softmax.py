"""Kernels of softmax, log_softmax and logsumexp, and of the gradients of softmax and log_softmax.

On small arrays the row maximum is not subtracted, because exponentials of moderate numbers do not overflow, and rows are
summed by products with ones. Large arrays use the Numba loops of ``kernels/numba/normalization.py``. The NumPy
implementations allocate only the array of the result.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..core.devices import on_gpu
from ..core.dtypes import unsupported
from ..core.tensor import normalize_dim
from .extrema import max_along
from .normalization import iterate_slices
from .numba_dispatch import loops
from .reductions import (
    F32,
    F64,
    ONES,
    axes_of,
    keepdim_shape,
    reduced_shape,
    rows_of,
    small_matrix,
    sum_axes,
    sum_broadcast,
)
from .select import NUMBA, Variant, at_least, at_most, kernel
from .thresholds import CACHED_PIECE, LARGE, LOOP_ROW, SMALL, SMALL_ROW

#: For a sum of squares below it exponentials neither overflow nor get lost, even added up: of float32, and of float64.
TAME, TAME64 = 40.0**2, 600.0**2
#: By the length of a row, the matrices that put its sum at every place of it.
SUMS, WIDE_SUMS = ([numpy.ones((n, n), kind) for n in range(SMALL_ROW + 1)] for kind in (F32, F64))


def _check(name: str, x: Any, axis: int) -> None:
    """Raise the error of PyTorch's function ``name`` for the dtype of ``x`` if ``x`` is not a floating-point array."""
    if x.dtype.kind in "biuc":
        where = "lastdim_kernel_impl" if axis == x.ndim - 1 or not x.ndim else "kernel_impl"
        raise unsupported(f"{name}_{where}", x.dtype)


def _minus_maximum(np: Any, x: Any, axis: int) -> Any:
    """Return ``x`` minus its maximum along ``axis``, as a new array, whose exponential cannot overflow."""
    result = np.empty(x.shape, x.dtype)
    return np.subtract(x, max_along(np, x, axis), result) if x.size else result


def by_rows(name: str, x: Any, axis: int, *others: Any) -> Any:
    """Return the result of the Numba loop ``name``, such as "softmax", along ``axis`` of ``x``.

    The loops are in ``kernels/numba/normalization.py``. Along the last axis the loop ``name`` is called, along another
    axis the loop ``name_columns``. ``others`` are arrays of the shape of ``x``, passed to the loop before ``x``. The
    result is None if the loop does not support the arrays.
    """
    last = axis in (-1, x.ndim - 1)
    given = rows_of(x, x.shape[-1], *others)
    if given is None:
        return None
    out = numpy.empty(x.shape, x.dtype)
    if last:
        getattr(loops("normalization"), name)(*given[1:], given[0], out.reshape(given[0].shape))
        return out
    axis %= x.ndim
    form = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    if form[2] < LOOP_ROW:
        return None
    lines = [(each if each.shape else numpy.broadcast_to(each, x.shape).copy()).reshape(form) for each in given]
    getattr(loops("normalization"), f"{name}_columns")(*lines[1:], lines[0], out.reshape(form))
    return out


def _row_loop(name: str) -> Variant:
    """Return an implementation of a kernel ``f(np, x, …, axis)`` for large arrays: the Numba loop ``name``."""

    def loop(np: Any, x: Any, *others: Any) -> Any:
        return by_rows(name, x, others[-1], *others[:-1]) if x.ndim else None

    return at_least(LARGE, NUMBA)(loop)


# -- Softmax ---------------------------------------------------------------------------------------------------------


@at_most(SMALL)
def _softmax_small(np: Any, x: Any, axis: int) -> Any:
    """Return the softmax of ``x``, or None if ``x`` is not supported or its exponentials might overflow."""
    rows, axis, size = small_matrix(x, axis)
    if not size or not (flat := x.ravel()).dot(flat) < TAME:
        return None
    found = np.exp(rows)
    np.divide(found, found.dot(SUMS[size]) if axis else SUMS[size].dot(found), found)
    return found if rows is x else found.reshape(x.shape)


@kernel(_softmax_small, _row_loop("softmax"))
def softmax(np: Any, x: Any, axis: int) -> Any:
    """Return ``exp(x)`` divided by its sum along ``axis``, computed without overflow."""
    _check("softmax", x, axis)
    if not x.ndim:
        normalize_dim(axis, 0)
        return np.where(np.isfinite(x), np.ones_like(x), np.nan).astype(x.dtype)
    exponentials = _minus_maximum(np, x, axis)
    np.exp(exponentials, exponentials)
    exponentials /= sum_broadcast(np, exponentials, axis)
    return exponentials


@kernel(_row_loop("softmax_backward"))
def softmax_gradient(np: Any, output: Any, grad: Any, axis: int) -> Any:
    """Return the gradient of the input of softmax, given ``grad``, the gradient of the result.

    ``output`` is the result, the softmax along ``axis``.
    """
    slope = grad * output
    np.subtract(grad, sum_broadcast(np, slope, axis), out=slope)
    slope *= output
    return slope


# -- Log-softmax -----------------------------------------------------------------------------------------------------


@at_most(SMALL)
def _log_softmax_small(np: Any, x: Any, axis: int) -> Any:
    """Return the log-softmax of ``x`` by exponentials in double precision, or None if they might overflow."""
    rows, axis, size = small_matrix(x, axis)
    if not size or not (flat := x.ravel()).dot(flat) < TAME64:
        return None
    wide = rows.astype(F64)
    whole = np.exp(wide)
    whole = whole.dot(WIDE_SUMS[size]) if axis else WIDE_SUMS[size].dot(whole)
    found = np.subtract(wide, np.log(whole, whole), wide).astype(F32)
    return found if rows is x else found.reshape(x.shape)


@kernel(_log_softmax_small, _row_loop("log_softmax"))
def log_softmax(np: Any, x: Any, axis: int) -> Any:
    """Return the logarithm of the softmax of ``x`` along ``axis``, computed without overflow."""
    _check("log_softmax", x, axis)
    if not x.ndim:
        normalize_dim(axis, 0)
        return np.where(np.isfinite(x), np.zeros_like(x), np.nan).astype(x.dtype)
    shifted = _minus_maximum(np, x, axis)
    if shifted.size <= CACHED_PIECE:
        return shifted - np.log(sum_broadcast(np, np.exp(shifted), axis))
    for piece in iterate_slices(shifted, (normalize_dim(axis, x.ndim),)):
        shifted[piece] -= np.log(sum_broadcast(np, np.exp(shifted[piece]), axis))
    return shifted


@kernel(_row_loop("log_softmax_backward"))
def log_softmax_gradient(np: Any, output: Any, grad: Any, axis: int) -> Any:
    """Return the gradient of the input of log-softmax, given ``grad``, the gradient of the result.

    ``output`` is the result, the log-softmax along ``axis``.
    """
    slope = np.exp(output)
    slope *= sum_broadcast(np, grad, axis)
    return np.subtract(grad, slope, out=slope)


# -- The logarithm of the sum ----------------------------------------------------------------------------------------


@at_most(SMALL)
def _logsumexp_small(np: Any, x: Any, dim: Any, keepdims: bool) -> Any:
    """Return the result of :func:`logsumexp` by exponentials in double precision, or None if they might overflow."""
    if dim.__class__ is not int:
        return None
    rows, along, size = small_matrix(x, dim)
    if not size or not (flat := x.ravel()).dot(flat) < TAME64:
        return None
    found = np.exp(rows.astype(F64))
    found = found.dot(ONES[F64][size]) if along else ONES[F64][size].dot(found)
    return reduced_shape(np.log(found, found).astype(F32), x, dim, keepdims)


@at_least(LARGE, NUMBA)
def _logsumexp_by_loop(np: Any, x: Any, dim: Any, keepdims: bool) -> Any:
    axes = axes_of(dim, x.ndim)
    given = rows_of(x, x.shape[-1]) if axes == (x.ndim - 1,) else None
    if given is None:
        return None
    out = numpy.empty((*x.shape[:-1], 1), x.dtype)
    loops("normalization").logsumexp(given[0], out.reshape(-1))
    return out if keepdims else out.squeeze(axes)


@kernel(_logsumexp_small, _logsumexp_by_loop)
def logsumexp(np: Any, x: Any, dim: Any, keepdims: bool) -> Any:
    """Return ``log(sum(exp(x)))`` over ``dim``, computed without overflow.

    ``dim`` is an int, a tuple of ints, or None for all dimensions. If ``keepdims`` is true, these dimensions have size
    1 in the result.
    """
    axes = axes_of(dim, x.ndim)
    if not x.size:
        top = np.zeros(keepdim_shape(x.shape, dim), x.dtype)
    elif len(axes) == 1 and x.dtype.kind == "f":
        top = max_along(np, x, axes[0])
    else:
        top = np.maximum.reduce(x.real, axis=axes, keepdims=True)
    if on_gpu(top) or not np.isfinite(top).all():
        top = np.where(np.isfinite(top), top, 0)
    top = top.astype(x.dtype, copy=False)
    logs = np.log(sum_axes(np, np.exp(x - top), axes, True)) + (top if top.shape != x.shape else top[_first(axes)])
    return logs if keepdims else logs.reshape(tuple([n for i, n in enumerate(x.shape) if i not in axes]))


def _first(axes: tuple[int, ...]) -> tuple[slice, ...]:
    """Return an index that selects the first element of an array along each of ``axes`` and keeps these dimensions.

    The other dimensions are selected completely.
    """
    return tuple([slice(1) if axis in axes else slice(None) for axis in range(max(axes, default=-1) + 1)])
