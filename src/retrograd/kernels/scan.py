"""Kernels of cumsum, cumprod and logcumsumexp, and of their gradients.

The gradients of cumprod and logcumsumexp are linear recurrences along one axis.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..core.dtypes import HALF_PRECISION
from . import numba_operands
from .gather_scatter import flip_view
from .numba_dispatch import F32, F64, loops, plain
from .reductions import seen, upcast_integers
from .select import NUMBA, at_least, kernel
from .thresholds import FEW_ROWS, LARGE, SERIAL_STEPS, SERIAL_WIDTH

# -- Cumulative sums and products ------------------------------------------------------------------------------------

_LONGER = {"f": numpy.float64, "F": numpy.complex128}  # accumulated in double precision, as in PyTorch


def _by_loop(x: Any, axis: int, product: bool, back: bool) -> Any:
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


@at_least(LARGE, NUMBA)
def _running_sums_by_loop(np: Any, x: Any, axis: int) -> Any:
    return _by_loop(x, axis, False, False)


@kernel(_running_sums_by_loop)
def float32_sums(np: Any, x: Any, axis: int) -> Any:
    """Return the cumulative sums of the float32 array ``x`` along ``axis``, accumulated in float64."""
    return np.add.accumulate(x.astype(F64), axis).astype(F32, "C")


@at_least(LARGE, NUMBA)
def _running_by_loop(np: Any, x: Any, axis: int, product: bool) -> Any:
    return _by_loop(x, axis, product, False)


@kernel(_running_by_loop)
def running(np: Any, x: Any, axis: int, product: bool) -> Any:
    """Return the cumulative sums of ``x`` along ``axis``, or the cumulative products if ``product`` is true.

    They are accumulated in double precision.
    """
    longer = _LONGER.get(x.dtype.char)
    accumulate = (np.multiply if product else np.add).accumulate
    return accumulate(x if longer is None else x.astype(longer), axis).astype(x.dtype, order="C", copy=False)


@at_least(LARGE, NUMBA)
def _running_back_by_loop(np: Any, x: Any, axis: int) -> Any:
    return _by_loop(x, axis, False, True)


@kernel(_running_back_by_loop)
def running_back(np: Any, x: Any, axis: int) -> Any:
    """Return the cumulative sums of ``x`` along ``axis`` from the last element to the first."""
    if x.dtype in HALF_PRECISION:
        return running_back(np, x.astype(np.float32), axis).astype(x.dtype)
    return flip_view(running(np, flip_view(upcast_integers(np, x), axis), axis, False), axis)


@at_least(LARGE, NUMBA)
def _products_of_others_by_loop(np: Any, x: Any, axis: int) -> Any:
    view = seen(x, (axis,))
    if view is None or view.array.shape[2] != 1 or view.array.shape[0] < FEW_ROWS or view.back is not None:
        return None
    out = numpy.empty(x.shape, x.dtype)
    form = view.array.shape[:2]
    loops("reductions").products_of_others(view.array.reshape(form), out.reshape(form))
    return out


@kernel(_products_of_others_by_loop)
def products_of_others(np: Any, x: Any, axis: int) -> Any:
    """Return for each element of ``x`` the product of the other elements along ``axis``; ``x`` may contain zeros."""
    before = shift_by_one(np, np.cumprod(x, axis), axis, 1, 1)
    after = shift_by_one(np, np.flip(np.cumprod(np.flip(x, axis), axis), axis), axis, -1, 1)
    return before * after


# -- Shifts and recurrences ------------------------------------------------------------------------------------------


def shift_by_one(np: Any, x: Any, dim: int, by: int, fill: float) -> Any:
    """Return ``x`` shifted by one element along ``dim``, with the vacated element set to ``fill``.

    ``by`` is 1 (towards higher indices) or -1.
    """
    out = np.empty_like(x)
    if x.shape[dim] == 0:
        return out
    before = (slice(None),) * (dim % x.ndim)
    first, rest, most = (*before, slice(0, 1)), (*before, slice(1, None)), (*before, slice(None, -1))
    if by > 0:
        out[first], out[rest] = fill, x[most]
    else:
        out[(*before, slice(-1, None))], out[most] = fill, x[rest]
    return out


@at_least(LARGE, NUMBA)
def _recurrence_by_loop(np: Any, factor: Any, summand: Any, dim: int, backward: bool) -> Any:
    summand, factor = plain(summand), plain(factor)
    module = numba_operands.loops("scan", factor.size, factor, summand)
    if module is None:
        return None
    summands = numba_operands.around(np.broadcast_to(summand, factor.shape), dim)
    factors, result = numba_operands.around(factor, dim), numpy.empty(factor.shape, factor.dtype)
    out = result.reshape(summands.shape)
    if out.shape[2] == 1:
        module.recurrence_rows(summands[:, :, 0], factors[:, :, 0], out[:, :, 0], backward)
    else:
        module.recurrence(summands, factors, out, backward)
    return result


@kernel(_recurrence_by_loop)
def recurrence(np: Any, factor: Any, summand: Any, dim: int, backward: bool) -> Any:
    """Return the array s with ``s[k] = summand[k] + factor[k] * s[k - 1]`` along ``dim``.

    If ``backward`` is true, ``s[k] = summand[k] + factor[k + 1] * s[k + 1]``. Factors of 0 are allowed, because the
    computation has no division.
    """
    summand, factor = plain(summand), plain(factor)
    out = np.moveaxis(np.array(np.broadcast_to(summand, factor.shape)), dim, 0)
    steps = np.moveaxis(factor, dim, 0)
    if backward:
        steps, view = np.flip(steps, 0), np.flip(out, 0)
        steps = np.concatenate([steps[:0], steps[:1], steps[:-1]])
    else:
        view = out
    size = 0 if np.__name__ == "meta" else view.shape[0]
    if size <= SERIAL_STEPS or view[:1].size > SERIAL_WIDTH:
        for k in range(1, size):
            view[k] += steps[k] * view[k - 1]
    else:
        _doubling(np, view, steps, size)
    return np.moveaxis(out, 0, dim)


def _doubling(np: Any, out: Any, steps: Any, size: int) -> None:
    """Compute the linear recurrence of :func:`recurrence` in place, by the parallel scan of Hillis and Steele (1986).

    The recurrence is along the first axis, which has ``size`` elements. ``out`` holds the summands and receives the
    result. ``steps`` holds the factors. The scan takes log2(``size``) passes over all elements.
    """
    steps, reach = steps.copy(), 1
    while reach < size:
        out[reach:] += steps[reach:] * out[:-reach]
        steps[reach:] = steps[reach:] * steps[:-reach]
        reach *= 2


def log_running_sum(np: Any, x: Any, dim: int) -> Any:
    """Return ``log(cumsum(exp(x)))`` along ``dim`` for real or complex ``x``, computed without overflow."""
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim)
    out = np.moveaxis(x.copy(), dim, 0)
    for k in range(1, out.shape[0]):
        larger = out[k].real >= out[k - 1].real
        top, low = np.where(larger, out[k], out[k - 1]), np.where(larger, out[k - 1], out[k])
        combined = top + np.log1p(np.exp(low - top))
        out[k] = np.where(np.isneginf(top.real), top, combined)
    return np.moveaxis(out, 0, dim)
