"""Kernels of logcumsumexp, and of the gradients of cumprod and logcumsumexp, by linear recurrences along one axis."""

from __future__ import annotations

from typing import Any

import numpy

from . import numba_operands
from .numba_dispatch import plain

SHORT = 24  # at most so many steps one after the other are faster than passes over all elements


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


def recurrence(np: Any, summand: Any, factor: Any, dim: int, backward: bool) -> Any:
    """Return the array s with ``s[k] = summand[k] + factor[k] * s[k - 1]`` along ``dim``.

    If ``backward`` is true, ``s[k] = summand[k] + factor[k + 1] * s[k + 1]``. Factors of 0 are allowed, because the
    computation has no division.
    """
    summand, factor = plain(summand), plain(factor)
    loops = numba_operands.loops("scan", factor.size, factor, summand)
    if loops is not None:
        summands = numba_operands.around(np.broadcast_to(summand, factor.shape), dim)
        factors, result = numba_operands.around(factor, dim), numpy.empty(factor.shape, factor.dtype)
        out = result.reshape(summands.shape)
        if out.shape[2] == 1:
            loops.recurrence_rows(summands[:, :, 0], factors[:, :, 0], out[:, :, 0], backward)
        else:
            loops.recurrence(summands, factors, out, backward)
        return result
    out = np.moveaxis(np.array(np.broadcast_to(summand, factor.shape)), dim, 0)
    steps = np.moveaxis(factor, dim, 0)
    if backward:
        steps, view = np.flip(steps, 0), np.flip(out, 0)
        steps = np.concatenate([steps[:0], steps[:1], steps[:-1]])
    else:
        view = out
    size = view.shape[0]
    if size <= SHORT or view[:1].size > 256:
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
    """Return ``log(cumsum(exp(x)))`` of real or complex ``x`` without overflow."""
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim)
    out = np.moveaxis(x.copy(), dim, 0)
    for k in range(1, out.shape[0]):
        larger = out[k].real >= out[k - 1].real
        top, low = np.where(larger, out[k], out[k - 1]), np.where(larger, out[k - 1], out[k])
        combined = top + np.log1p(np.exp(low - top))
        out[k] = np.where(np.isneginf(top.real), top, combined)
    return np.moveaxis(out, 0, dim)
