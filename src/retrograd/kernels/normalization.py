"""Centring and scaling: mean and variance over axes, and the gradient of ``(x - mean) * rstd``.

Large arrays are worked through in pieces that stay in the cache, so that what lies between costs no memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from . import normalization_numba
from .numba_dispatch import LARGE
from .reductions import spread_mean, summed

PIECE = 1 << 16  # elements of a piece: its few temporary arrays fit into the second-level cache


def _mean(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    found = summed(np, x, axes, True)
    return found / math.prod(x.shape[axis] for axis in axes) if x.size else found


def _spread(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """The mean, as broadcasting needs it."""
    return spread_mean(np, x, axes[0]) if len(axes) == 1 else _mean(np, x, axes)


def pieces(x: Any, axes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Slices along the first axis that is not reduced: what is in two of them is independent."""
    at = next((axis for axis in range(x.ndim) if axis not in axes), None)
    if at is None or x.size <= PIECE:
        yield (slice(None),)
        return
    step = max(1, PIECE * x.shape[at] // x.size)
    for start in range(0, x.shape[at], step):
        yield (*[slice(None)] * at, slice(start, start + step))


def _within(x: Any, piece: tuple[slice, ...]) -> Any:
    """The part of ``x``, of size 1 in some dimensions, that goes with a piece of the whole."""
    return x[tuple(slice(None) if size == 1 else part for size, part in zip(x.shape, piece, strict=False))]


def moments(np: Any, x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Mean and (biased) variance over ``axes``, which stay with size 1."""
    if x.size >= LARGE and (found := normalization_numba.moments(x, axes)) is not None:
        return found
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    mean, variance = np.empty(kept, x.dtype), np.empty(kept, x.dtype)
    for piece in pieces(x, axes):
        part = x[piece]
        mean[piece] = centre = _mean(np, part, axes)
        gap = part - centre
        variance[piece] = _mean(np, np.multiply(gap, gap, out=gap), axes)
    return mean, variance


def standardised(np: Any, x: Any, mean: Any, rstd: Any) -> Any:
    """``(x - mean) * rstd``."""
    out = np.subtract(x, mean, out=np.empty(x.shape, x.dtype))  # contiguous, as PyTorch's
    out *= rstd
    return out


def input_gradient(np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """The gradient for ``x`` of ``(x - mean) * rstd * weight``, mean and rstd being those of ``x`` over ``axes``."""
    if x.size >= LARGE:
        found = normalization_numba.input_gradient(grad, weight, x, mean, rstd, axes)
        if found is not None:
            return found
    if x.size <= PIECE:
        return _input_gradient(np, grad, weight, x, mean, rstd, axes)
    out = np.empty(x.shape, x.dtype)
    for piece in pieces(x, axes):
        within = None if weight is None else _within(weight, piece)
        moments = _within(mean, piece), _within(rstd, piece)
        out[piece] = _input_gradient(np, grad[piece], within, x[piece], *moments, axes)
    return out


def _input_gradient(np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    flat = standardised(np, x, mean, rstd)
    slope = grad if weight is None else grad * weight
    out = slope * flat
    flat *= _spread(np, out, axes)
    np.subtract(slope, _spread(np, slope, axes), out=out)
    out -= flat
    out *= rstd
    return out


def weight_gradient(
    np: Any, grad: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...], shape: tuple[int, ...]
) -> Any:
    """The gradient for the weight, of ``shape``: the sum of ``grad * (x - mean) * rstd`` over the rest."""
    if x.size >= LARGE:
        found = normalization_numba.weight_gradient(grad, x, mean, rstd, axes, shape)
        if found is not None:
            return found
    rest = tuple([axis for axis, size in enumerate(shape) if size == 1])
    if x.size <= PIECE:
        return summed(np, standardised(np, x, mean, rstd) * grad, rest, True)
    out = np.zeros(shape, x.dtype)
    for piece in pieces(x, axes):
        flat = standardised(np, x[piece], _within(mean, piece), _within(rstd, piece))
        flat *= grad[piece]
        target = _within(out, piece)
        target += summed(np, flat, rest, True)
    return out
