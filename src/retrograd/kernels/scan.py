"""Recurrences along one axis: what running sums and products, and their derivatives, are made of. Knows no Tensor."""

from __future__ import annotations

from typing import Any

import numpy

from . import numba_operands
from .numba_dispatch import plain

SHORT = 24  # up to so many steps one after the other are faster than passes over all


def shifted(np: Any, x: Any, dim: int, by: int, fill: float) -> Any:
    """``x`` moved on by ``by`` places along ``dim`` (1 or -1), the place that becomes free filled."""
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
    """``s[k] = summand[k] + factor[k] * s[k - 1]``; ``backward``: ``s[k] = summand[k] + factor[k + 1] * s[k + 1]``.

    Without a division, so that it is right for factors of zero too.
    """
    summand, factor = plain(summand), plain(factor)
    loops = numba_operands.loops("scan", factor.size, factor, summand)
    if loops is not None:
        given = numba_operands.around(np.broadcast_to(summand, factor.shape), dim)
        times, made = numba_operands.around(factor, dim), numpy.empty(factor.shape, factor.dtype)
        out = made.reshape(given.shape)
        if out.shape[2] == 1:
            loops.recurrence_rows(given[:, :, 0], times[:, :, 0], out[:, :, 0], backward)
        else:
            loops.recurrence(given, times, out, backward)
        return made
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
    """The recurrence in passes over all elements, each reaching twice as far back (Hillis and Steele, 1986)."""
    steps, reach = steps.copy(), 1
    while reach < size:
        out[reach:] += steps[reach:] * out[:-reach]
        steps[reach:] = steps[reach:] * steps[:-reach]
        reach *= 2


def log_running_sum(np: Any, x: Any, dim: int) -> Any:
    """``log(cumsum(exp(x)))`` without overflow, of real or complex numbers."""
    if x.dtype.kind != "c":
        return np.logaddexp.accumulate(x, axis=dim)
    out = np.moveaxis(x.copy(), dim, 0)
    for k in range(1, out.shape[0]):
        larger = out[k].real >= out[k - 1].real
        top, low = np.where(larger, out[k], out[k - 1]), np.where(larger, out[k - 1], out[k])
        found = top + np.log1p(np.exp(low - top))
        out[k] = np.where(np.isneginf(top.real), top, found)
    return np.moveaxis(out, 0, dim)
