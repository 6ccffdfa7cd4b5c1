"""Kernels of batch_norm, layer_norm, group_norm and instance_norm: mean and variance over axes, and the gradients.

Large arrays are processed in slices whose temporary arrays stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from . import normalization_numba
from .numba_dispatch import LARGE
from .reductions import mean_broadcast, sum_axes

PIECE = 1 << 16  # elements of a slice: its temporary arrays fit into the second-level cache


def _mean(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean of ``x`` over ``axes``, which have size 1 in the result."""
    result = sum_axes(np, x, axes, True)
    return result / math.prod(x.shape[axis] for axis in axes) if x.size else result


def _spread(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return the mean of ``x`` over ``axes``, in a shape that broadcasts with ``x``.

    In the result each of ``axes`` has either size 1 or the same size as in ``x``.
    """
    return mean_broadcast(np, x, axes[0]) if len(axes) == 1 else _mean(np, x, axes)


def iterate_slices(x: Any, axes: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yield index tuples that divide ``x`` into slices along the first axis that is not in ``axes``.

    The slices can be normalised over ``axes`` independently of each other, and each slice fits the cache.
    """
    at = next((axis for axis in range(x.ndim) if axis not in axes), None)
    if at is None or x.size <= PIECE:
        yield (slice(None),)
        return
    step = max(1, PIECE * x.shape[at] // x.size)
    for start in range(0, x.shape[at], step):
        yield (*[slice(None)] * at, slice(start, start + step))


def _within(x: Any, piece: tuple[slice, ...]) -> Any:
    """Return the elements of ``x``, such as a mean or a weight, that belong to one slice of the normalised array.

    ``piece`` is the index of the slice. Axes along which ``x`` has size 1 are not sliced.
    """
    return x[tuple(slice(None) if size == 1 else part for size, part in zip(x.shape, piece, strict=False))]


def mean_and_variance(np: Any, x: Any, axes: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the mean and the biased variance of ``x`` over ``axes``, which have size 1 in the results."""
    if x.size >= LARGE and (result := normalization_numba.moments(x, axes)) is not None:
        return result
    kept = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
    mean, variance = np.empty(kept, x.dtype), np.empty(kept, x.dtype)
    for piece in iterate_slices(x, axes):
        part = x[piece]
        mean[piece] = centre = _mean(np, part, axes)
        gap = part - centre
        variance[piece] = _mean(np, np.multiply(gap, gap, out=gap), axes)
    return mean, variance


def normalise(np: Any, x: Any, mean: Any, rstd: Any) -> Any:
    """Return ``(x - mean) * rstd`` in C order, where ``rstd`` is 1 / standard deviation."""
    out = np.subtract(x, mean, out=np.empty(x.shape, x.dtype))  # contiguous, as PyTorch's
    out *= rstd
    return out


def input_gradient(np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """Return the gradient of ``x`` in ``(x - mean) * rstd * weight``, given ``grad``, the gradient of this product.

    ``mean`` and ``rstd`` (1 / standard deviation) are computed from ``x`` over ``axes``; their dependence on ``x`` is
    included in the gradient.
    """
    if x.size >= LARGE:
        result = normalization_numba.input_gradient(grad, weight, x, mean, rstd, axes)
        if result is not None:
            return result
    if x.size <= PIECE:
        return _input_gradient(np, grad, weight, x, mean, rstd, axes)
    out = np.empty(x.shape, x.dtype)
    for piece in iterate_slices(x, axes):
        within = None if weight is None else _within(weight, piece)
        moments = _within(mean, piece), _within(rstd, piece)
        out[piece] = _input_gradient(np, grad[piece], within, x[piece], *moments, axes)
    return out


def _input_gradient(np: Any, grad: Any, weight: Any, x: Any, mean: Any, rstd: Any, axes: tuple[int, ...]) -> Any:
    """Return the result of :func:`input_gradient` for one slice of the arrays."""
    flat = normalise(np, x, mean, rstd)
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
    """Return ``grad * (x - mean) * rstd`` summed to ``shape``, the shape of the weight.

    ``mean`` and ``rstd`` (1 / standard deviation) are the statistics of ``x`` over ``axes``.
    """
    if x.size >= LARGE:
        result = normalization_numba.weight_gradient(grad, x, mean, rstd, axes, shape)
        if result is not None:
            return result
    rest = tuple([axis for axis, size in enumerate(shape) if size == 1])
    if x.size <= PIECE:
        return sum_axes(np, normalise(np, x, mean, rstd) * grad, rest, True)
    out = np.zeros(shape, x.dtype)
    for piece in iterate_slices(x, axes):
        flat = normalise(np, x[piece], _within(mean, piece), _within(rstd, piece))
        flat *= grad[piece]
        target = _within(out, piece)
        target += sum_axes(np, flat, rest, True)
    return out
