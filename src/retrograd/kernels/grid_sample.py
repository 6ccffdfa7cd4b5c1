"""Kernels of grid_sample and all its derivatives: images interpolated at arbitrary positions, and the adjoint.

The value at a position is the sum of neighbouring elements times the interpolation kernel (constant, linear or cubic)
at their distance. The derivative of the value with respect to the position is the same sum with the derivative of the
interpolation kernel. ``orders`` holds the order of that derivative for each axis; order 0 is the kernel itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from .half_precision import upcast_half

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)


def _reflected(np: Any, x: Any, size: int, align: bool) -> tuple[Any, Any]:
    """Return the coordinates ``x`` reflected at both ends of the axis until they are inside, and the derivative.

    ``size`` is the number of elements along the axis. If ``align`` is true, the ends are the centres of the outer
    elements, else their borders. The derivative of the reflection is 1, -1 or 0.
    """
    low, span = (0.0, size - 1.0) if align else (-0.5, float(size))
    if span == 0:
        return np.zeros_like(x), np.zeros_like(x)
    sign = np.where(x < low, -1, 1)
    distance = np.abs(x - low)
    flips = np.floor(distance / span)
    rest = distance - flips * span
    odd = flips % 2 == 1
    return np.where(odd, span - rest, rest) + low, np.where(odd, -sign, sign).astype(x.dtype)


def _clipped(np: Any, x: Any, size: int) -> tuple[Any, Any]:
    """Return the coordinates ``x`` clipped to the range from 0 to ``size - 1``, and the derivative of this (1 or 0)."""
    return np.clip(x, 0, size - 1), ((x > 0) & (x < size - 1)).astype(x.dtype)


def _inside(np: Any, x: Any, size: int, padding: int, align: bool) -> tuple[Any, Any]:
    """Return the coordinates ``x`` mapped into the axis by the padding mode, and the derivative of this mapping.

    ``size`` is the number of elements along the axis. ``padding`` is PyTorch's number of the padding mode: 0 zeros, 1
    border, 2 reflection. ``align`` is the parameter ``align_corners`` of grid_sample.
    """
    if padding == ZEROS:
        return x, 1
    slope: Any = 1
    if padding == REFLECTION:
        x, slope = _reflected(np, x, size, align)
    x, kept = _clipped(np, x, size)
    return x, slope * kept


#: The cubic interpolation kernel on its four pieces (Keys 1981, a = -3/4): coefficients from the constant term on, of
#: polynomials in the fractional position between the middle two elements.
_A = -0.75
_CUBIC = (
    (0.0, _A, -2 * _A, _A),
    (1.0, 0.0, -(_A + 3), _A + 2),
    (0.0, -_A, 2 * _A + 3, -(_A + 2)),
    (0.0, 0.0, _A, -_A),
)


def _polynomial(np: Any, coefficients: Sequence[float], t: Any, order: int) -> Any:
    """Return the derivative of order ``order`` of a polynomial at ``t``; the constant coefficient comes first."""
    total = np.zeros_like(t)
    for power in range(len(coefficients) - 1, order - 1, -1):
        total = total * t + coefficients[power] * math.perm(power, order)
    return total


def _taps(np: Any, g: Any, size: int, mode: int, padding: int, align: bool, order: int) -> list[tuple[Any, Any]]:
    """Return a list with a pair (indices, weights) for each neighbour used by the interpolation along one axis.

    ``g`` holds the positions, as coordinates from -1 to 1. Indices and weights have the shape of ``g``. ``size`` is the
    number of elements of the axis. ``mode`` and ``padding`` are PyTorch's numbers of the interpolation and padding
    modes. ``align`` is the parameter ``align_corners`` of grid_sample. ``order`` is the order of the derivative of the
    interpolation kernel that gives the weights.
    """
    scale = (size - 1) / 2 if align else size / 2
    x = (g + 1) * scale if align else ((g + 1) * size - 1) / 2
    x = np.where(np.isfinite(x) & (np.abs(x) < 2.0**31), x, x.dtype.type(-100))
    slope: Any = scale
    if mode != BICUBIC:
        x, inner = _inside(np, x, size, padding, align)
        slope = scale * inner
    factor = slope**order if order else None
    if mode == NEAREST:
        taps = [] if order else [(np.rint(x), np.ones_like(x))]
    elif mode == BILINEAR:
        low = np.floor(x)
        part = x - low
        ones = np.ones_like(x)
        taps = [[(low, 1 - part), (low + 1, part)], [(low, -ones), (low + 1, ones)]][order] if order < 2 else []
    else:
        low = np.floor(x)
        taps = []
        for k, coefficients in enumerate(_CUBIC if order < 4 else ()):
            at, _ = _inside(np, low + (k - 1), size, padding, align)
            taps.append((at, _polynomial(np, coefficients, x - low, order)))
    clipped = []
    for at, weight in taps:
        index = at.astype(np.int64)
        within = (index >= 0) & (index < size)
        weight = weight * within if factor is None else weight * within * factor
        clipped.append((np.clip(index, 0, size - 1), weight.astype(g.dtype, copy=False)))
    return clipped


def _terms(
    np: Any, grid: Any, space: Sequence[int], mode: int, padding: int, align: bool, orders: Sequence[int]
) -> Iterator[tuple[Any, Any]]:
    """Yield a pair of arrays (flat indices, weights) for each neighbour from which an image is interpolated.

    The interpolated value is the sum over the neighbours of weight times image element; bilinear interpolation of a 2-d
    image, for example, has 4 neighbours. Both arrays have the shape (batch, positions), where a position is a point of
    ``grid``.

    ``space`` is the shape of the image without batch and channels. The last axis of ``grid`` holds the coordinates of a
    position; the first coordinate belongs to the last axis of the image. ``orders`` holds, for each coordinate, the
    order of the derivative of the interpolation kernel. ``mode``, ``padding`` and ``align`` are the parameters of
    :func:`read`.
    """
    batch = grid.shape[0]
    axes = [
        _taps(np, grid[..., d].reshape(batch, -1), space[-1 - d], mode, padding, align, orders[d])
        for d in range(len(space))
    ]
    for chosen in product(*axes):
        index, weight, step = 0, 1, 1
        for d, (at, share) in enumerate(chosen):
            index = index + at * step
            weight = weight * share
            step *= space[-1 - d]
        yield index, weight


def read(np: Any, x: Any, grid: Any, mode: int, padding: int, align: bool, orders: Sequence[int]) -> Any:
    """Return the image ``x`` (batch, channels, *space) interpolated at the positions ``grid`` (batch, *out, axes).

    The result has the shape (batch, channels, *out). ``mode`` and ``padding`` are PyTorch's numbers of the
    interpolation and padding modes; ``align`` is the parameter ``align_corners`` of grid_sample. ``orders`` holds, for
    each coordinate, the order of the derivative of the interpolation kernel.
    """
    dtype, x, grid = x.dtype, upcast_half(x), upcast_half(grid)
    batch, channels, *space = x.shape
    out = np.zeros((batch, channels, math.prod(grid.shape[1:-1])), x.dtype)
    flat = x.reshape(batch, channels, math.prod(space))
    for index, weight in _terms(np, grid, space, mode, padding, align, orders) if out.size else ():
        out += np.take_along_axis(flat, index[:, None, :], 2) * weight[:, None, :]
    return out.reshape(batch, channels, *grid.shape[1:-1]).astype(dtype, copy=False)


def spread(np: Any, g: Any, grid: Any, shape: Any, mode: int, padding: int, align: bool, orders: Sequence[int]) -> Any:
    """Return the adjoint of :func:`read` with respect to its image, applied to ``g``: the gradient of the image.

    The result has the given ``shape``. Each element of ``g`` is added to the neighbours of its position, times the
    interpolation weights. The other parameters are those of :func:`read`.
    """
    dtype, g, grid = g.dtype, upcast_half(g), upcast_half(grid)
    batch, channels, *space = shape
    size = math.prod(space)
    out = np.zeros(batch * channels * size, g.dtype)
    flat = g.reshape(batch, channels, math.prod(g.shape[2:]))
    planes = np.arange(batch * channels).reshape(batch, channels, 1) * size
    for index, weight in _terms(np, grid, space, mode, padding, align, orders) if g.size else ():
        np.add.at(out, (planes + index[:, None, :]).reshape(-1), (flat * weight[:, None, :]).reshape(-1))
    return out.reshape(shape).astype(dtype, copy=False)
