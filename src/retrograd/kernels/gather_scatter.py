"""Kernels of take, gather, take_along_dim, index_select, and helpers that read or write elements along one axis.

In small arrays the elements are addressed by their positions in the flattened array, because ``take`` from a flat array
takes 0.2 µs, while NumPy's functions for this purpose take 5 to 10 µs. Large arrays are passed to the Numba loops of
``kernels/numba/gather_scatter.py``.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy

from ..core.devices import on_gpu
from . import numba_dispatch, numba_operands
from .select import NUMBA, at_least, at_most, kernel
from .thresholds import FLAT_POSITIONS, LARGE, TAKE_ROWS, TAKE_WIDTH

U64 = numpy.dtype(numpy.uint64)
PARTS = 16  # parts of an index, each checked by one thread


def slice_along(axis: int, ndim: int, part: slice) -> tuple[slice, ...]:
    """Return the index tuple that applies the slice ``part`` to ``axis`` of an array with ``ndim`` dimensions."""
    return (*(slice(None),) * (axis if axis >= 0 else axis + ndim), part)


def flip_view(x: Any, axis: int) -> Any:
    """Return a view of ``x`` with the elements in reverse order along ``axis``."""
    return x[slice_along(axis, x.ndim, slice(None, None, -1))]


def advanced_index(np: Any, index: Any, axis: int) -> tuple[Any, ...]:
    """Return the index tuple t for which ``x[t]`` equals ``take_along_axis(x, index, axis)``."""
    result = [np.arange(n).reshape((-1,) + (1,) * (index.ndim - at - 1)) for at, n in enumerate(index.shape)]
    result[axis] = index
    return tuple(result)


@at_least(LARGE, NUMBA)
def _all_in_range_by_loop(np: Any, index: Any, size: int) -> Any:
    if index.__class__ is not numpy.ndarray or not index.flags.c_contiguous:
        return None
    result = numpy.empty(PARTS, U64)
    numba_dispatch.loops("gather_scatter").highest_of_parts(index.view(U64).reshape(-1), result)
    return bool(result.item(result.argmax()) < size)


@kernel(_all_in_range_by_loop)
def all_in_range(np: Any, index: Any, size: int) -> bool:
    """Whether all elements of ``index``, an int64 array, are from 0 to ``size - 1``.

    The elements are compared as unsigned integers, so that a negative element is greater than ``size``. The result is
    True for an array on a GPU, which is not read.
    """
    if np is not numpy and on_gpu(index):
        return True
    flat = index.view(U64)
    return not flat.size or flat.item(flat.argmax()) < size


@lru_cache(maxsize=256)
def index_fits(picked: tuple[int, ...], shape: tuple[int, ...], axis: int) -> bool:
    """Whether an index of shape ``picked`` can be used along ``axis`` of an array of the given ``shape``.

    The ranks must be equal. Along every axis but ``axis`` the index must not be longer than the array.
    """
    rank = len(shape)
    return len(picked) == rank and all(picked[at] <= shape[at] for at in range(rank) if at not in (axis, axis + rank))


@lru_cache(maxsize=256)
def _starts(np: Any, shape: tuple[int, ...], picked: tuple[int, ...], axis: int) -> tuple[Any, int]:
    """Return (starts, stride), from which :func:`flat_positions` computes the flat positions of selected elements.

    The flat positions are ``starts + index * stride``. ``shape`` is the shape of the indexed array, and ``picked`` the
    shape of the index array. ``starts`` has one position for each element of the index array: that of the first element
    along ``axis``. ``stride`` is the stride of ``axis`` as a number of elements. The index array may lack ``axis``, or
    be smaller than the indexed array along other axes.
    """
    axis %= len(shape)
    every = np.arange(math.prod(shape)).reshape(shape)
    step = every.strides[axis] // every.itemsize
    first: Any = every.take(0, axis)
    if len(picked) == len(shape):
        first = first[tuple(slice(size) for at, size in enumerate(picked) if at != axis)]
        first = np.expand_dims(first, axis)
    return np.ascontiguousarray(np.broadcast_to(first, picked)), step


def flat_positions(np: Any, index: Any, shape: tuple[int, ...], axis: int) -> Any:
    """Return the positions in the flattened array of the elements at ``index`` along ``axis``.

    ``shape`` is the shape of the array before it is flattened.
    """
    starts, step = _starts(np, shape, index.shape, axis)
    return starts + index if step == 1 else starts + index * step


@at_least(TAKE_ROWS)
def _take_rows_by_loop(np: Any, x: Any, index: Any, axis: int) -> Any:
    shape, axis = x.shape, axis % x.ndim
    after, before = math.prod(shape[axis + 1 :]), math.prod(shape[:axis])
    if not x.size or after < TAKE_WIDTH:
        return None
    loops = numba_operands.movers("gather_scatter", index.size * before * after, x, index)
    if loops is None:
        return None
    kind = numba_operands.BITS[x.dtype.itemsize]
    out, bad = numpy.empty((*shape[:axis], *index.shape, *shape[axis + 1 :]), x.dtype), numpy.zeros(1, numpy.uint8)
    given, line = (
        numba_operands.bits(x).reshape(before, shape[axis], after),
        out.view(kind).reshape(before, index.size, after),
    )
    loops.take(given, index.reshape(-1), line, bad)
    return None if bad[0] else out  # NumPy raises the error for a bad index


@kernel(_take_rows_by_loop, count=lambda x, index: index.size)
def take_axis(np: Any, x: Any, index: Any, axis: int) -> Any:
    """Return ``x.take(index, axis)``."""
    return x.take(index, axis)


@at_most(FLAT_POSITIONS)
def _taken_from_few(np: Any, x: Any, index: Any, axis: int) -> Any:
    if x.__class__ is not numpy.ndarray or not x.size:
        return None
    return x.ravel().take(index if x.ndim == 1 else flat_positions(np, index, x.shape, axis))


@kernel(_taken_from_few)
def take_along(np: Any, x: Any, index: Any, axis: int) -> Any:
    """Return the elements of ``x`` at ``index`` along ``axis``, like ``numpy.take_along_axis``.

    An index with one dimension less than ``x`` selects one element along ``axis``.
    """
    if index.ndim == x.ndim:
        result = _taken_by_loop(x, index, axis)
        return x[advanced_index(np, index, axis)] if result is None else result
    return x[advanced_index(np, np.expand_dims(index, axis), axis)].squeeze(axis)


def _taken_by_loop(x: Any, index: Any, axis: int) -> Any:
    """Return ``take_along(np, x, index, axis)`` computed by a Numba loop, or None if no loop supports the arrays.

    The loops do not support small arrays. They require that ``x`` and ``index`` have equal sizes along all axes except
    ``axis``.
    """
    loops = numba_operands.movers("gather_scatter", index.size, x, index)
    if loops is None or not x.size or not equal_except_axis(x.shape, index.shape, axis):
        return None
    given, places = numba_operands.around(numba_operands.bits(x), axis), numba_operands.around(index, axis)
    out, bad = numpy.empty(places.shape, given.dtype), numpy.zeros(1, numpy.uint8)
    if places.shape[2] == 1:
        loops.gather_rows(given[:, :, 0], places[:, :, 0], out[:, :, 0], bad)
    else:
        loops.gather(given, places, out, bad)
    numba_operands.said(bad)
    return out.view(x.dtype).reshape(index.shape)


def equal_except_axis(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    """Whether the shapes ``shape`` and ``other`` are equal except for their sizes at ``axis``."""
    axis %= len(shape)
    return len(shape) == len(other) and shape[:axis] == other[:axis] and shape[axis + 1 :] == other[axis + 1 :]


@at_most(FLAT_POSITIONS)
def _put_to_few(np: Any, out: Any, index: Any, values: Any, axis: int) -> Any:
    if out.__class__ is not numpy.ndarray or not out.size or not out.flags.c_contiguous:
        return None
    out.ravel().put(index if out.ndim == 1 else flat_positions(np, index, out.shape, axis), values)
    return out


@kernel(_put_to_few)
def put_along(np: Any, out: Any, index: Any, values: Any, axis: int) -> Any:
    """Write ``values`` in place to the elements of ``out`` at ``index`` along ``axis``, like ``numpy.put_along_axis``.

    An index with one dimension less than ``out`` selects one element along ``axis``. The result is ``out``.
    """
    if index.ndim == out.ndim:
        out[advanced_index(np, index, axis)] = values
    else:
        out[advanced_index(np, np.expand_dims(index, axis), axis)] = np.expand_dims(values, axis)
    return out
