"""Kernels of cat, stack, flip, roll, tril and triu, which copy elements to other positions.

Small arrays are gathered by cached tables of flat positions, large ones copied by Numba loops
(``kernels/numba/rearrangement.py``). Results never share memory with the
operands and are in C order unless a docstring names another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_operands
from .gather_scatter import slice_along
from .numpy_internals import concatenate
from .select import NUMBA, at_least, at_most, kernel
from .thresholds import LARGE, SMALL


@at_least(LARGE)
def _concatenate_by_loop(np: Any, arrays: Sequence[Any], axis: int) -> Any:
    """Return ``arrays`` concatenated along ``axis``, or None if no Numba loop supports them."""
    first = arrays[0]
    shape = list(first.shape)
    axis = axis if axis >= 0 else axis + first.ndim
    if len({each.shape[:axis] + each.shape[axis + 1 :] for each in arrays}) > 1:
        return None  # NumPy raises the error
    shape[axis] = sum(each.shape[axis] for each in arrays)
    before = math.prod(shape[:axis])
    if before == 1 and (first.size < LARGE or blas_threads.max_threads() == 1):
        return None  # NumPy copies each array at once; an array is too small to be divided among threads
    loops = numba_operands.movers("rearrangement", math.prod(shape), *arrays)
    if loops is None or any(each.dtype is not first.dtype for each in arrays):
        return None
    out = numpy.empty((before, math.prod(shape[axis:])), first.dtype)
    start = 0
    for each in arrays:
        if each.size:
            rows = numba_operands.bits(each).reshape(before, -1)
            loops.place(rows, start, out.view(rows.dtype))
            start += rows.shape[1]
    return out.reshape(shape)


@kernel(_concatenate_by_loop, count=lambda arrays: arrays[0].size * len(arrays))
def concatenate_arrays(np: Any, arrays: Sequence[Any], axis: int) -> Any:
    """Return ``arrays`` concatenated along ``axis``.

    An implementation is selected by the number of elements, which is estimated from the size of the first array.
    """
    return concatenate(arrays, axis) if np is numpy else np.concatenate(arrays, axis)


@at_least(LARGE, NUMBA)
def _flip_by_loop(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    loops = numba_operands.movers("rearrangement", x.size, x) if x.flags.c_contiguous and len(axes) == 1 else None
    if loops is None:
        return None
    given = numba_operands.around(numba_operands.bits(x), axes[0])
    out = numpy.empty(given.shape, given.dtype)
    if given.shape[2] == 1:
        loops.reverse_rows(given[:, :, 0], out[:, :, 0])
    else:
        loops.reverse(given, out)
    return out.view(x.dtype).reshape(x.shape)


@kernel(_flip_by_loop)
def flip_axes(np: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """Return ``x`` with the elements in reverse order along ``axes``, in the memory order of ``x`` unless it is expanded."""
    expanded = 0 in [step for step, size in zip(x.strides, x.shape, strict=True) if size > 1]
    reverse = x[tuple([slice(None, None, -1 if axis in axes else 1) for axis in range(x.ndim)])]
    return np.array(reverse, order="C" if expanded else "K")


@lru_cache(maxsize=64)
def _rolled_positions(np: Any, shape: tuple[int, ...], shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    return np.roll(np.arange(math.prod(shape)).reshape(shape), shifts, axes or None)


@at_most(SMALL)
def _roll_small(np: Any, x: Any, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    if x.__class__ is not numpy.ndarray or not x.size:
        return None
    return x.take(_rolled_positions(np, x.shape, shifts, axes))


@kernel(_roll_small)
def roll_axes(np: Any, x: Any, shifts: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    """Return ``x`` with the elements shifted cyclically by ``shifts`` along ``axes``.

    If ``axes`` is empty, the flattened array is shifted.
    """
    if not axes:
        return roll_axes(np, x.reshape(-1), shifts, (0,)).reshape(x.shape)
    for shift, axis in zip(shifts, axes, strict=True):
        by = shift % x.shape[axis] if x.size else 0
        if by and axis and (result := _rotated(x, axis, by)) is not None:
            x = result
            continue
        begin, end = (x[slice_along(axis, x.ndim, part)] for part in (slice(-by, None), slice(0, -by)))
        x = concatenate_arrays(np, (begin, end), axis) if by else x.copy()
    return np.ascontiguousarray(x)


def _rotated(x: Any, axis: int, by: int) -> Any:
    """Return ``x`` shifted cyclically by ``by`` along ``axis``, or None if no Numba loop supports ``x``.

    ``axis`` must not be the first axis.
    """
    loops = numba_operands.movers("rearrangement", x.size, x)
    if loops is None:
        return None
    rows = numba_operands.bits(x).reshape(math.prod(x.shape[:axis]), -1)
    out = numpy.empty(rows.shape, rows.dtype)
    loops.rotate(rows, by * math.prod(x.shape[axis + 1 :]), out)
    return out.view(x.dtype).reshape(x.shape)


def _axis_of_stack(arrays: Sequence[Any], axis: int) -> int:
    """Return ``axis``, the new axis of a stack of ``arrays``, as a non-negative int.

    Raises ValueError if ``axis`` is out of range or the shapes of ``arrays`` differ.
    """
    first = arrays[0]
    at = axis if axis >= 0 else axis + first.ndim + 1
    if not 0 <= at <= first.ndim or [each for each in arrays if each.shape != first.shape]:
        raise ValueError
    return at


@at_least(LARGE)
def _stack_large(np: Any, arrays: Sequence[Any], axis: int) -> Any:
    at = _axis_of_stack(arrays, axis)
    longer = (slice(None),) * at + (None,)  # numpy.expand_dims takes ten times as long
    return concatenate_arrays(np, [each[longer] for each in arrays], at)


@kernel(_stack_large, count=lambda arrays: arrays[0].size * len(arrays))
def stack_arrays(np: Any, arrays: Sequence[Any], axis: int) -> Any:
    """Return ``arrays``, which must have one dtype, stacked along the new axis ``axis``.

    Raises ValueError if the shapes differ. ``numpy.stack`` takes five times as long.
    """
    return numpy.array(arrays) if not axis and np is numpy else _stack_along(np, arrays, axis)


def _stack_along(np: Any, arrays: Sequence[Any], axis: int) -> Any:
    first, at = arrays[0], _axis_of_stack(arrays, axis)
    out = np.empty((*first.shape[:at], len(arrays), *first.shape[at:]), first.dtype)
    before = (slice(None),) * at
    for i, each in enumerate(arrays):
        out[(*before, i)] = each
    return out


@lru_cache(maxsize=64)
def _outside(np: Any, shape: tuple[int, ...], diagonal: int, lower: bool) -> Any:
    """Return the flat positions of the elements that :func:`triangle` sets to 0 in matrices of the given ``shape``.

    ``diagonal`` and ``lower`` are the parameters of :func:`triangle`.
    """
    return np.flatnonzero((np.tril if lower else np.triu)(np.ones(shape, bool), diagonal) == 0)


@at_most(SMALL)
def _triangle_small(np: Any, x: Any, diagonal: int, lower: bool) -> Any:
    if x.__class__ is not numpy.ndarray:
        return None
    out = x.copy()
    out.put(_outside(np, x.shape, diagonal, lower), 0)
    return out


@at_least(LARGE, NUMBA)
def _triangle_by_loop(np: Any, x: Any, diagonal: int, lower: bool) -> Any:
    loops = numba_operands.movers("rearrangement", x.size, x)
    if loops is None:
        return None
    given = numba_operands.bits(x).reshape(-1, *x.shape[-2:])
    out = numpy.empty(given.shape, given.dtype)
    loops.triangle(given, diagonal, lower, out)
    return out.view(x.dtype).reshape(x.shape)


@kernel(_triangle_small, _triangle_by_loop)
def triangle(np: Any, x: Any, diagonal: int, lower: bool) -> Any:
    """Return the lower triangle of the matrices in ``x``, or the upper triangle if ``lower`` is false.

    ``diagonal`` is the number of the outermost diagonal of the triangle, as in torch.tril. The other elements are 0.
    """
    return (np.tril if lower else np.triu)(x, diagonal)
