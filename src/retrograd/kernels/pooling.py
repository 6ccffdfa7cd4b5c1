"""Kernels of max pooling (max_pool, adaptive_max_pool, fractional_max_pool), max_unpool and their gradients.

A window is a product of index ranges, one for each axis. Therefore the maximum is computed one axis at a time, the last
axis first. Of equal elements the first is selected; as in PyTorch, of several nan the last is selected.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..core.devices import on_gpu
from ..runtime.cached_property import cached_property
from . import numba_operands
from .elementwise import copy_where
from .half_precision import upcast_half
from .interpolation import adaptive_bounds, as_slice, take_regular, window_positions
from .memory_format import in_memory_format_of
from .select import NUMBA, at_least, at_most, kernel
from .thresholds import ADDED, BRANCHES, SMALL


def out_size(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """Return the number of pooling windows along an axis of ``size`` elements.

    If ``ceil_mode`` is true, the last window may end past the padded input.
    """
    count = (size + 2 * padding - dilation * (kernel - 1) - 1 + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - (ceil_mode and (count - 1) * stride >= size + padding)


def window_indices(size: int, out: int, kernel: int, stride: int, padding: int, dilation: int) -> list[Any]:
    """Return a list with one array for each kernel offset: the input index that each of ``out`` windows reads.

    An index in the padding is replaced by the nearest index of the same window that is inside the input. If the whole
    window is in the padding, the index is -1.
    """
    starts = numpy.arange(out) * stride - padding
    first = -(numpy.minimum(starts, 0) // dilation)
    last = numpy.minimum((size - 1 - starts) // dilation, kernel - 1)
    return [numpy.where(first > last, -1, starts + numpy.clip(k, first, last) * dilation) for k in range(kernel)]


class WindowTable:
    """Max pooling of small inputs, by cached tables of the flat indices of the elements in each window.

    A plane is one channel of one sample. ``seen`` (windows, kernel elements) holds the flat indices within one plane.
    For each number of planes, the indices for the whole input are computed once and cached.
    """

    def __init__(self, seen: Any) -> None:
        self.seen = seen
        self._tables: dict[int, tuple[Any, Any, Any]] = {}

    def _table(self, size: int, planes: int) -> tuple[Any, Any, Any]:
        """Return three index arrays, by which :meth:`maxima` reads an input of ``size`` elements in ``planes`` planes.

        The first array (windows of all planes, kernel elements) holds the flat index in the input of each element of
        each window. The second holds, for each window, the position of its first element in the flattened first array.
        The third holds, for each element of the flattened first array, the flat index within its plane.
        """
        if planes not in self._tables:
            windows, places = self.seen.shape
            every = (numpy.arange(planes)[:, None, None] * (size // planes) + self.seen).reshape(-1, places)
            own = numpy.concatenate([self.seen.ravel()] * planes)
            self._tables[planes] = every, numpy.arange(planes * windows) * places, own
        return self._tables[planes]

    def maxima(self, x: Any, out: list[int]) -> Any:
        """Return the maximum of each window of ``x`` and its flat index in the plane; None if a maximum is nan.

        ``out`` is the number of windows along each pooled dimension.
        """
        lead = x.shape[: -len(out)]
        every, rows, own = self._table(x.size, math.prod(lead))
        seen = x.take(every)
        best = seen.argmax(1) + rows
        values = seen.take(best)
        top = values.item(values.argmax()) if values.dtype.kind in "fV" else 0
        if top != top:
            return None
        shape = (*lead, *out)
        return values.reshape(shape), own.take(best).reshape(shape)


class StridedWindows(list[list[Any]]):
    """List of the input indices that the windows of max pooling read, with one entry for each pooled dimension.

    An entry is the result of :func:`window_indices`: a list with one array for each kernel offset. ``how`` holds a
    tuple (size, kernel, stride, padding, dilation) for each dimension.
    """

    def __init__(self, how: Sequence[tuple[int, int, int, int, int]], ceil_mode: bool) -> None:
        self.how = tuple(how)
        self.out = [out_size(*each, ceil_mode) for each in how]
        super().__init__(
            window_indices(n, o, k, s, p, d) for (n, k, s, p, d), o in zip(self.how, self.out, strict=True)
        )

    @cached_property
    def inside(self) -> bool:
        """Whether every window contains at least one element of the input that is not padding."""
        return all(each[0].size and each[0].min() >= 0 for each in self)

    @cached_property
    def apart(self) -> bool:
        """Whether the windows do not overlap."""
        return all(s >= (k - 1) * d + 1 for _, k, s, _, d in self.how)

    @cached_property
    def table(self) -> WindowTable:
        """The flat window indices for small inputs, as a :class:`WindowTable`."""
        along = tuple([tuple([tuple(place.tolist()) for place in each]) for each in self])
        return WindowTable(window_positions(tuple([each[0] for each in self.how]), along).T)


def adaptive_indices(size: int, out: int) -> list[Any]:
    """Return the window indices of adaptive pooling from ``size`` inputs to ``out`` windows along one axis.

    The result is a list with one array for each offset in a window: the input index at this offset in each window. In a
    smaller window, the last index is repeated.
    """
    starts, stops = adaptive_bounds(size, out)
    width = int((stops - starts).max(initial=1))
    return [numpy.minimum(starts + k, stops - 1) for k in range(width)]


def fractional_indices(np: Any, samples: Any, size: int, out: int, kernel: int) -> list[Any]:
    """Return the window indices of fractional pooling (Graham 2014): a list with an array for each kernel offset.

    ``samples`` holds one random number in [0, 1) for each plane (one channel of one sample); the numbers determine the
    positions of the windows. The arrays have the shape of ``samples`` followed by ``out``.
    """
    starts = np.full((*samples.shape, out), size - kernel, np.int64)
    if out > 1:
        step = samples.dtype.type((size - kernel) / (out - 1))
        places = np.arange(out - 1).astype(samples.dtype)
        begun = ((places + samples[..., None]) * step).astype(np.int64) - (samples[..., None] * step).astype(np.int64)
        starts[..., : out - 1] = begun
    return [starts + k for k in range(kernel)]


@at_most(SMALL)
def _maxima_by_table(np: Any, x: Any, places: Sequence[list[Any]], indices: bool) -> Any:
    if not isinstance(places, StridedWindows) or x.__class__ is not numpy.ndarray or not indices or not x.size:
        return None
    return places.table.maxima(x, places.out) if x.flags.c_contiguous and places.inside else None


@at_least(BRANCHES, NUMBA)
def _maxima_by_loop(np: Any, x: Any, places: Sequence[list[Any]], wanted: bool) -> Any:
    if not isinstance(places, StridedWindows):
        return None
    loops = numba_operands.loops("pooling", x.size, x, least=BRANCHES)
    if loops is None or len(places) != 2 or any(each[0].min(initial=0) < 0 for each in places):
        return None
    planes = np.ascontiguousarray(x).reshape(-1, *x.shape[-2:])
    values = np.empty((len(planes), *places.out), x.dtype)
    indices = np.empty(values.shape, np.int64)
    _, kernel, stride, padding, dilation = zip(*places.how, strict=True)
    loops.maxima(planes, kernel, (*stride, *padding, *dilation), values, indices)
    return tuple([in_memory_format_of(np, each.reshape(*x.shape[:-2], *places.out), x) for each in (values, indices)])


@kernel(_maxima_by_table, _maxima_by_loop)
def maxima(np: Any, x: Any, places: Sequence[list[Any]], indices: bool) -> Any:
    """Return the maximum of each window over the last dimensions of ``x``, and its flat index in these dimensions.

    ``places`` holds, for each pooled dimension, a list as :func:`window_indices` returns it. Its arrays are 1-d, or
    have one row for each plane (one channel of one sample). If ``indices`` is false, the second result is None.
    """
    best, where = x, None
    rank = len(places)
    if not x.size:
        shape = (*x.shape[: x.ndim - rank], *(each[0].shape[-1] if each else 0 for each in places))
        return np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    if np.__name__ == "cupy" and isinstance(places, StridedWindows) and places.inside:
        found = np.windows.maxima(x, places.how, places.out, indices)
        if found is not None:
            return tuple([None if each is None else in_memory_format_of(np, each, x) for each in found])
    nan = x.dtype.kind in "fV" and (on_gpu(x) or _has_nan(np, x))
    small = np.int32 if math.prod(x.shape[x.ndim - rank :]) < 2**31 else np.int64
    step = 1
    for axis in range(x.ndim - 1, x.ndim - rank - 1, -1):
        along = places[axis - x.ndim + rank]
        best, where = _along(np, best, where, axis, along, step, nan, small if indices else None)
        step *= x.shape[axis]
        if along[0].ndim == 1 and along[0].min(initial=0) < 0:
            best[(..., along[0] < 0, *(slice(None),) * (x.ndim - axis - 1))] = _lowest(np, x.dtype)
    return in_memory_format_of(np, best, x), None if where is None else in_memory_format_of(
        np, where.astype(np.int64), x
    )


def _has_nan(np: Any, x: Any) -> bool:
    """Whether an element of ``x`` is nan."""
    # The maximum is nan if any element is; that of bfloat16 elements warns then.
    return bool(np.isnan(np.max(x)) if x.dtype.kind == "f" else np.isnan(x).any())


def _lowest(np: Any, dtype: Any) -> Any:
    """Return the lowest value of ``dtype``: the minimum of an integer dtype, else minus infinity."""
    return np.iinfo(dtype).min if dtype.kind in "iu" else -np.inf


def _along(
    np: Any, x: Any, where: Any, axis: int, places: list[Any], step: int, nan: bool, kind: Any
) -> tuple[Any, Any]:
    """Return (maximum of each window along ``axis``, flat index of this maximum).

    Helper of :func:`maxima`, which computes the maxima one axis at a time, the last axis first. For the first of these
    axes, ``x`` is the image and ``where`` is None. For each later axis, ``x`` holds the maxima over the axes before,
    and ``where`` their flat indices.

    ``places[k]`` holds, for each window, the index along ``axis`` of element k of the window. ``step`` is the
    difference between the flat indices of two neighbours along ``axis``. ``nan`` is true if ``x`` contains nan.
    ``kind`` is the dtype of the flat indices; None means that they are not needed, and the second result is None.
    """
    best = index = None
    for each in places:
        planes = each.ndim > 1
        pick = None if planes else as_slice(each)
        seen = _per_plane(np, x, each, axis) if planes else take_regular(np, x, axis, pick)
        if kind is not None:
            at = _standing(np.asarray(each * step).astype(kind), axis, x.ndim)
            if where is not None:
                at = at + (_per_plane(np, where, each, axis) if planes else take_regular(np, where, axis, pick))
        if best is None:
            best = seen.copy()
            index = np.broadcast_to(at, best.shape).copy() if kind is not None else None
        elif kind is None:
            np.maximum(best, seen, out=best)
        else:
            larger = seen > best
            if nan:
                larger |= seen != seen
            copy_where(np, best, seen, larger)
            copy_where(np, index, at, larger)
    return best, index


def _standing(places: Any, axis: int, ndim: int) -> Any:
    """Return ``places``, window indices along ``axis``, reshaped to broadcast with an array of ``ndim`` dimensions.

    ``places`` has the shape (out) or (planes, out), where a plane is one channel of one sample.
    """
    lead = places.ndim - 1
    return places.reshape(*places.shape[:lead], *(1,) * (axis - lead), -1, *(1,) * (ndim - axis - 1))


def _per_plane(np: Any, x: Any, places: Any, axis: int) -> Any:
    """Return the elements of ``x`` at ``places`` along ``axis``.

    ``places`` has one row of indices for each plane (one channel of one sample).
    """
    shape = (*x.shape[:axis], places.shape[-1], *x.shape[axis + 1 :])
    return np.take_along_axis(x, np.broadcast_to(_standing(places, axis, x.ndim), shape), axis)


def take_flat(np: Any, x: Any, indices: Any, rank: int) -> Any:
    """Return the elements of ``x`` at ``indices``, flat indices into the last ``rank`` dimensions of ``x``."""
    lead = x.shape[: x.ndim - rank]
    if not indices.size:
        return np.zeros(indices.shape, x.dtype)
    count = math.prod(indices.shape[len(lead) :])
    taken = np.take_along_axis(x.reshape(*lead, -1), indices.reshape(*lead, count), -1)
    return taken.reshape(indices.shape)


@at_least(ADDED, NUMBA)
def _add_by_loop(np: Any, g: Any, indices: Any, shape: Any, rank: int, once: bool) -> Any:
    if (loops := numba_operands.loops("pooling", g.size, g, least=ADDED)) is None:
        return None
    size, planes = math.prod(shape[len(shape) - rank :]), math.prod(shape[: len(shape) - rank])
    spreading = np.empty((planes, size), g.dtype)
    flat = [np.ascontiguousarray(each).reshape(planes, -1) for each in (g, indices)]
    loops.spread(*flat, spreading)
    return spreading.reshape(shape)


@kernel(_add_by_loop)
def add_flat(np: Any, g: Any, indices: Any, shape: Any, rank: int, once: bool) -> Any:
    """Return zeros of the given ``shape`` to which the elements of ``g`` are added at ``indices``.

    An index refers to one plane, which consists of the last ``rank`` dimensions, and counts the elements of the plane
    in row-major order. ``g``, ``indices`` and ``shape`` have the same preceding dimensions. If ``once`` is true, no
    index occurs twice in a plane.
    """
    size, planes = math.prod(shape[len(shape) - rank :]), math.prod(shape[: len(shape) - rank])
    if np.__name__ == "cupy" and g.size and (found := np.windows.scattered(g, indices, planes, size, once)) is not None:
        return found.reshape(shape).astype(g.dtype, copy=False)
    out = np.zeros(planes * size, upcast_half(g).dtype if not once else g.dtype)
    if g.size:
        places = indices.reshape(planes, -1) + np.arange(planes)[:, None] * size
        if once:
            out[places.reshape(-1)] = g.reshape(-1)
        else:
            np.add.at(out, places.reshape(-1), upcast_half(g).reshape(-1))
    return out.reshape(shape).astype(g.dtype, copy=False)
