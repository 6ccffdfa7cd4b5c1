"""Elements picked along an axis by an index, and put back: for few of them by their places in one row of all elements.

NumPy's functions for this build a tuple of indices for every call and take 5 to 10 µs; ``take`` from one row takes 0.2.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy

from . import numba_operands, reductions_numba
from .numba_dispatch import LARGE

U64 = numpy.dtype(numpy.uint64)
SOME, WIDE = 512, 16  # from so many slices on, of rows of so many elements, a loop may be faster than NumPy's take
PARTS = 16  # of an index, so that several threads look at it
FEW = 1024  # up to so many elements the tables of places are kept


def along(axis: int, ndim: int, part: slice) -> tuple[slice, ...]:
    """The index of a part of an axis."""
    return (*(slice(None),) * (axis if axis >= 0 else axis + ndim), part)


def flipped(x: Any, axis: int) -> Any:
    """The elements in reverse order along an axis, as a view."""
    return x[along(axis, x.ndim, slice(None, None, -1))]


def grid(np: Any, index: Any, axis: int) -> tuple[Any, ...]:
    """The places that ``index`` means along ``axis``: itself there, each its own elsewhere."""
    found = [np.arange(n).reshape((-1,) + (1,) * (index.ndim - at - 1)) for at, n in enumerate(index.shape)]
    found[axis] = index
    return tuple(found)


def within(index: Any, size: int) -> bool:
    """Whether an index of int64 is from 0 to below ``size`` everywhere; negative numbers count as large ones."""
    flat = index.view(U64)
    if (
        flat.size >= LARGE
        and (loops := numba_operands.movers("gather_scatter", flat.size, index))
        and index.flags.c_contiguous
    ):
        found = numpy.empty(PARTS, U64)
        loops.highest_of_parts(flat.reshape(-1), found)
        return bool(found.item(found.argmax()) < size)
    return not flat.size or flat.item(flat.argmax()) < size


@lru_cache(maxsize=256)
def fits(picked: tuple[int, ...], shape: tuple[int, ...], axis: int) -> bool:
    """Whether an index of shape ``picked`` is nowhere longer than ``shape`` but along the axis."""
    rank = len(shape)
    return len(picked) == rank and all(picked[at] <= shape[at] for at in range(rank) if at not in (axis, axis + rank))


@lru_cache(maxsize=256)
def _starts(np: Any, shape: tuple[int, ...], picked: tuple[int, ...], axis: int) -> tuple[Any, int]:
    """For an index of shape ``picked`` the places in one row where it is 0, and how far apart its steps are.

    The index may lack the axis, or be shorter than ``shape`` along any axis.
    """
    axis %= len(shape)
    every = np.arange(math.prod(shape)).reshape(shape)
    step = every.strides[axis] // every.itemsize
    first: Any = every.take(0, axis)
    if len(picked) == len(shape):
        first = first[tuple(slice(size) for at, size in enumerate(picked) if at != axis)]
        first = np.expand_dims(first, axis)
    return np.ascontiguousarray(np.broadcast_to(first, picked)), step


def _places(np: Any, index: Any, shape: tuple[int, ...], axis: int) -> Any:
    starts, step = _starts(np, shape, index.shape, axis)
    return starts + index if step == 1 else starts + index * step


def taken(x: Any, index: Any, axis: int) -> Any:
    """``x.take(index, axis)`` of a NumPy array: much of it by a loop."""
    shape, axis = x.shape, axis % x.ndim
    after, before = math.prod(shape[axis + 1 :]), math.prod(shape[:axis])
    enough = x.size and after >= WIDE and index.size >= SOME
    loops = numba_operands.movers("gather_scatter", index.size * before * after, x, index) if enough else None
    if loops is None:
        return x.take(index, axis)
    kind = numba_operands.BITS[x.dtype.itemsize]
    out, bad = numpy.empty((*shape[:axis], *index.shape, *shape[axis + 1 :]), x.dtype), numpy.zeros(1, numpy.uint8)
    given, line = (
        numba_operands.bits(x).reshape(before, shape[axis], after),
        out.view(kind).reshape(before, index.size, after),
    )
    loops.take(given, index.reshape(-1), line, bad)
    return x.take(index, axis) if bad[0] else out  # or says what is wrong


def taken_along(np: Any, x: Any, index: Any, axis: int) -> Any:
    """The elements of ``x`` at ``index`` along ``axis``; an index without that axis picks one element of each row."""
    if 0 < x.size <= FEW and x.__class__ is numpy.ndarray:
        return x.ravel().take(index if x.ndim == 1 else _places(np, index, x.shape, axis))
    if index.ndim == x.ndim:
        found = _taken_by_loop(x, index, axis)
        return x[grid(np, index, axis)] if found is None else found
    return x[grid(np, np.expand_dims(index, axis), axis)].squeeze(axis)


def _taken_by_loop(x: Any, index: Any, axis: int) -> Any:
    """The same where both are large and differ in size along the axis only; else None."""
    loops = numba_operands.movers("gather_scatter", index.size, x, index)
    if loops is None or not x.size or not same_around(x.shape, index.shape, axis):
        return None
    given, places = numba_operands.around(numba_operands.bits(x), axis), numba_operands.around(index, axis)
    out, bad = numpy.empty(places.shape, given.dtype), numpy.zeros(1, numpy.uint8)
    if places.shape[2] == 1:
        loops.gather_rows(given[:, :, 0], places[:, :, 0], out[:, :, 0], bad)
    else:
        loops.gather(given, places, out, bad)
    numba_operands.said(bad)
    return out.view(x.dtype).reshape(index.shape)


def same_around(shape: tuple[int, ...], other: tuple[int, ...], axis: int) -> bool:
    """Whether two shapes differ at ``axis`` only."""
    axis %= len(shape)
    return len(shape) == len(other) and shape[:axis] == other[:axis] and shape[axis + 1 :] == other[axis + 1 :]


def largest(np: Any, x: Any, axis: int) -> Any:
    """The largest elements along an axis (nan if there is one), broadcast along it or ready to be."""
    if 0 < x.size <= FEW and x.ndim == 2 and axis in (1, -1) and x.__class__ is numpy.ndarray and x.dtype.kind == "f":
        index = x.argmax(1).repeat(x.shape[1]).reshape(x.shape)
        return x.ravel().take(_places(np, index, x.shape, 1))
    if x.size >= LARGE and (found := reductions_numba.largest(x, (axis,), True)) is not None:
        return found
    return np.maximum.reduce(x, axis=axis, keepdims=True)


def put_along(np: Any, out: Any, index: Any, values: Any, axis: int) -> None:
    """Write ``values`` where :func:`taken_along` reads."""
    if 0 < out.size <= FEW and out.__class__ is numpy.ndarray and out.flags.c_contiguous:
        out.ravel().put(index if out.ndim == 1 else _places(np, index, out.shape, axis), values)
    elif index.ndim == out.ndim:
        out[grid(np, index, axis)] = values
    else:
        out[grid(np, np.expand_dims(index, axis), axis)] = np.expand_dims(values, axis)
