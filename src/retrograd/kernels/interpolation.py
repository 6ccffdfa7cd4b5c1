"""Maps along axes, each output a weighted sum of a few inputs: resampling, averaging, padding. Knows arrays only.

``Taps`` says for one axis which inputs count, and how much. A map along several axes is applied one axis after the
other; its adjoint is a map of the same kind, with the taps turned round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy

from . import numba_operands
from .half_precision import upcast_half
from .memory_format import in_memory_format_of

MANY = 8  # from so many taps on a product with a matrix is faster


class Taps:
    """For each of ``len(index)`` outputs the inputs (of ``size``) it is made of, and their weights (None: all 1).

    ``counts``: how many there are for each output, of which the rest of a row is then made (see :func:`_filled`).
    """

    def __init__(self, size: int, index: Any, weight: Any = None, counts: Any = None) -> None:
        self.size, self.index, self.weight = size, index, weight
        #: The outputs that are made of nothing.
        self.empty: Any = None
        #: The same for whole numbers, which have no halves: with weights of 0.
        self.whole: Taps | None = None
        if counts is not None:
            self.whole = Taps(size, index, weight)
            self.index, weight = _filled(index, weight, counts)
            self.weight = None if (weight == 1).all() else weight
            self.empty = numpy.flatnonzero(counts == 0) if (counts == 0).any() else None

    @property
    def out(self) -> int:
        return len(self.index)

    @cached_property
    def matrix(self) -> Any:
        """The map as a matrix (outputs, inputs), in float64."""
        found = numpy.zeros((self.out, self.size))
        rows = numpy.broadcast_to(numpy.arange(self.out)[:, None], self.index.shape)
        numpy.add.at(found, (rows, self.index), 1.0 if self.weight is None else self.weight)
        return found

    @cached_property
    def table(self) -> tuple[Any, dict[Any, Any]]:
        """For loops: the inputs and, for each dtype, their weights, tap by tap."""
        weight = numpy.ones(self.index.shape) if self.weight is None else self.weight
        kinds = (numba_operands.F32, numba_operands.F64)
        return numpy.ascontiguousarray(self.index.T), {kind: weight.T.astype(kind, "C") for kind in kinds}

    @cached_property
    def picks(self) -> list[Any]:
        """For each tap what takes its inputs along the axis: a slice where they stand in even steps, else an index."""
        return [regular(column) for column in self.index.T]

    @cached_property
    def turned(self) -> Taps:
        """The adjoint map, without a matrix: a signal may be long."""
        weights = numpy.ones(self.index.shape) if self.weight is None else self.weight
        takers = numpy.repeat(numpy.arange(self.out), self.index.shape[1])
        held = numpy.flatnonzero(weights)
        order = held[numpy.argsort(self.index.ravel()[held], kind="stable")]
        rows = self.index.ravel()[order]
        counts = numpy.bincount(rows, minlength=self.size)
        width = max(1, int(counts.max(initial=0)))
        index = numpy.zeros((self.size, width), numpy.intp)
        weight = numpy.zeros((self.size, width))
        place = numpy.arange(len(rows)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)
        index[rows, place], weight[rows, place] = takers[order], weights.ravel()[order]
        return Taps(self.out, index, weight, counts)


def _filled(index: Any, weight: Any, counts: Any) -> tuple[Any, Any]:
    """Rows of taps that are all as long: where an output has fewer, its first one is taken several times, in halves.

    (Another one, with the weight 0, would make it nan where that is infinite.)
    """
    width = index.shape[1]
    missing = numpy.where(counts > 0, width - counts, 0)[:, None]
    place = numpy.arange(width) - counts[:, None]  # from 0 on: of those that are missing
    halves = weight[:, :1] * 0.5 ** (place + 1)
    weight = numpy.where(place < 0, weight, numpy.where(missing > 0, halves, 0.0))
    weight[:, :1] *= 0.5**missing
    return numpy.where(place < 0, index, index[:, :1]), weight


def along(np: Any, x: Any, plan: Sequence[Taps]) -> Any:
    """``x`` with the maps of ``plan`` applied along its last dimensions."""
    dtype = x.dtype
    weighted = any(taps.weight is not None or taps.index.shape[1] > 1 for taps in plan)
    found = upcast_half(x) if weighted else x
    for axis, taps in sorted(enumerate(plan, x.ndim - len(plan)), key=_turn):
        found = _along(np, found, axis, taps)
        if taps.empty is not None:
            found[(*(slice(None),) * axis, np.asarray(taps.empty))] = 0
    if found is x or found.base is not None:
        found = found.copy()
    return in_memory_format_of(np, found.astype(dtype, copy=False), x)


def _turn(each: tuple[int, Taps]) -> tuple[float, int]:
    """When it is an axis's turn: what shrinks most goes first, and rows shrink before their elements, which grow first."""
    axis, taps = each
    growth = taps.out / max(taps.size, 1)
    return growth, axis if growth < 1 else -axis


def _along(np: Any, x: Any, axis: int, taps: Taps) -> Any:
    if taps.whole is not None and x.dtype.kind in "iu":
        taps = taps.whole
    width = taps.index.shape[1]
    if width >= MANY and x.dtype.kind in "fc":
        shape = x.shape
        before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        matrix = np.asarray(taps.matrix).astype(x.dtype)
        flat = x.reshape(before, shape[axis], after)
        made = flat[:, :, 0] @ matrix.T if after == 1 else np.matmul(matrix, flat)
        if np.isfinite(np.add.reduce(made, None)):  # else a 0 of the matrix may have met infinity
            return made.reshape(*shape[:axis], taps.out, *shape[axis + 1 :])
    if (
        loops := numba_operands.loops("interpolation", max(x.size, x.size // max(taps.size, 1) * taps.out), x)
    ) is not None:
        return _along_by_loop(loops, x, axis, taps)
    total = None
    for k, pick in enumerate(taps.picks):
        part = picked(np, x, axis, pick)
        if taps.weight is not None:
            weight = np.asarray(taps.weight[:, k]).astype(x.dtype)
            part = part * weight.reshape(-1, *(1,) * (x.ndim - axis - 1))
        if total is None:
            total = part.copy() if part.base is not None and width > 1 else part
        else:
            total += part
    return total


def _along_by_loop(loops: Any, x: Any, axis: int, taps: Taps) -> Any:
    shape = x.shape
    before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    out = numpy.empty((*shape[:axis], taps.out, *shape[axis + 1 :]), x.dtype)
    index, weights = taps.table
    given = numpy.ascontiguousarray(x).reshape(before, taps.size, after)
    if after == 1:
        loops.along_rows(given[:, :, 0], index, weights[x.dtype], out.reshape(before, taps.out))
    else:
        loops.across_rows(given, index, weights[x.dtype], out.reshape(before, taps.out, after))
    return out


def regular(places: Any) -> Any:
    """``places`` as a slice if they go up in even steps."""
    count = len(places)
    if count == 0:
        return slice(0, 0)
    if places[0] < 0:
        return places
    step = int(places[1] - places[0]) if count > 1 else 1
    if step < 1 or (numpy.diff(places) != step).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1, step)


def picked(np: Any, x: Any, axis: int, pick: Any) -> Any:
    """The elements at ``pick`` (of :func:`regular`) along an axis: a view where that is possible."""
    if isinstance(pick, slice):
        return x[(slice(None),) * axis + (pick,)]
    return x.take(np.asarray(pick), axis)


# -- Averages --------------------------------------------------------------------------------------------------------


def _ranges(size: int, starts: Any, stops: Any, divisors: Any) -> Taps:
    """The sums of the inputs from each start to each stop, divided."""
    width = max(1, int((stops - starts).max(initial=0)))
    index = starts[:, None] + numpy.arange(width)
    inside = index < stops[:, None]
    return Taps(size, numpy.where(inside, index, 0), inside / divisors[:, None], inside.sum(1))


@lru_cache(maxsize=256)
def adaptive(size: int, out: int) -> Taps:
    """Means over ``out`` ranges that cover the axis evenly."""
    starts, stops = adaptive_bounds(size, out)
    return _ranges(size, starts, stops, stops - starts)


def adaptive_bounds(size: int, out: int) -> tuple[Any, Any]:
    """The start and the end of each of ``out`` ranges that cover an axis evenly."""
    places = numpy.arange(out)
    return places * size // max(out, 1), -((places + 1) * -size // max(out, 1))


@lru_cache(maxsize=256)
def averages(size: int, out: int, kernel: int, stride: int, padding: int, include_pad: bool, divide: bool) -> Taps:
    """Means (or sums) over windows; ``include_pad``: what lies in the padding counts as zeros."""
    starts = numpy.arange(out) * stride - padding
    stops = numpy.minimum(starts + kernel, size + padding)
    whole = stops - starts
    starts, stops = numpy.maximum(starts, 0), numpy.minimum(stops, size)
    divisors = (whole if include_pad else numpy.maximum(stops - starts, 1)) if divide else numpy.ones(out)
    return _ranges(size, numpy.minimum(starts, size), numpy.maximum(stops, starts), divisors)


# -- Padding ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def bordered(size: int, before: int, after: int, mode: str) -> Taps:
    """The axis with elements before and after it (negative: fewer): mirrored, repeated, or from the other end."""
    places = numpy.arange(-before, size + after)
    if mode == "reflect":
        period = max(2 * (size - 1), 1)
        places = numpy.abs((places + size - 1) % period - (size - 1)) if size > 1 else places * 0
    elif mode == "replicate":
        places = numpy.clip(places, 0, size - 1)
    else:  # what is taken away is not there to be repeated
        first, last = max(-before, 0), size - max(-after, 0)
        places = first + numpy.arange(-max(before, 0), last - first + max(after, 0)) % max(last - first, 1)
    return Taps(size, places[:, None])


# -- Resampling ------------------------------------------------------------------------------------------------------


def _ratio(size: int, out: int, scale: float | None) -> float:
    """How many inputs there are for one output."""
    return 1.0 / scale if scale is not None and scale > 0 else size / out


@lru_cache(maxsize=256)
def nearest(size: int, out: int, scale: float | None, exact: bool, whole: bool) -> Taps:
    """The nearest input (``exact``: by the middles of the elements, else by their starts).

    ``whole``: for an output of the same or twice the size a scale near 1 or 2 is not asked, as PyTorch does for images.
    """
    if whole and not exact and out in (size, 2 * size):
        scale = None
    # PyTorch calculates places in single precision, and rounds as that does.
    ratio = numpy.float32(_ratio(size, out, scale))
    places = numpy.arange(out, dtype=numpy.float32)
    if exact:
        places = places + numpy.float32(0.5)
    index = numpy.floor(places * ratio).astype(numpy.intp)
    return Taps(size, numpy.clip(index, 0, size - 1)[:, None])


def _sources(size: int, out: int, scale: float | None, align: bool) -> Any:
    """Where each output lies between the inputs."""
    places = numpy.arange(out, dtype=numpy.float64)
    if align:
        return places * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (places + 0.5) * _ratio(size, out, scale) - 0.5


@lru_cache(maxsize=256)
def linear(size: int, out: int, scale: float | None, align: bool) -> Taps:
    """Straight lines between neighbours."""
    if size == out:
        return Taps(size, numpy.arange(size)[:, None])
    source = numpy.maximum(_sources(size, out, scale, align), 0)
    low = numpy.minimum(source.astype(numpy.intp), size - 1)
    part = numpy.clip(source - low, 0, 1)
    index = numpy.stack([low, numpy.minimum(low + 1, size - 1)], 1)
    return Taps(size, index, numpy.stack([1 - part, part], 1))


def cubic_weights(part: Any, a: float = -0.75) -> Any:
    """The weights of the four neighbours of places ``part`` of the way between the middle two (Keys 1981)."""

    def near(t: Any) -> Any:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Any) -> Any:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


@lru_cache(maxsize=256)
def cubic(size: int, out: int, scale: float | None, align: bool) -> Taps:
    """Cubic curves through four neighbours."""
    source = _sources(size, out, scale, align)
    low = numpy.floor(source)
    index = numpy.clip(low[:, None].astype(numpy.intp) + numpy.arange(-1, 3), 0, size - 1)
    return Taps(size, index, numpy.stack(cubic_weights(source - low), 1))


def _triangle(t: Any) -> Any:
    return numpy.maximum(1 - numpy.abs(t), 0)


def _keys(t: Any, a: float = -0.5) -> Any:
    t = numpy.abs(t)
    near, far = ((a + 2) * t - (a + 3)) * t * t + 1, (((t - 5) * t + 8) * t - 4) * a
    return numpy.where(t < 1, near, numpy.where(t < 2, far, 0.0))


def _windowed_sinc(t: Any) -> Any:
    return numpy.where(numpy.abs(t) < 3, numpy.sinc(t) * numpy.sinc(t / 3), 0.0)


#: Filters of smoothed resampling, and how far from its middle each reaches.
FILTERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "bilinear": (_triangle, 1), "bicubic": (_keys, 2), "lanczos": (_windowed_sinc, 3),
}  # fmt: skip


@lru_cache(maxsize=256)
def smoothed(size: int, out: int, scale: float | None, align: bool, mode: str) -> Taps:
    """A filter that is widened where the axis shrinks, so that no input is passed over."""
    if size == out:
        return Taps(size, numpy.arange(size)[:, None])
    ratio = ((size - 1) / (out - 1) if out > 1 else 0.0) if align else _ratio(size, out, scale)
    curve, reach = FILTERS[mode]
    widening = max(ratio, 1.0)
    support = reach * widening
    middles = ratio * (numpy.arange(out) + 0.5)
    starts = numpy.maximum((middles - support + 0.5).astype(numpy.intp), 0)
    stops = numpy.minimum((middles + support + 0.5).astype(numpy.intp), size)
    width = max(1, int((stops - starts).max()))
    index = starts[:, None] + numpy.arange(width)
    weight = curve((index - middles[:, None] + 0.5) / widening)
    weight = numpy.where(index < stops[:, None], weight, 0.0)
    total = weight.sum(1, keepdims=True)
    weight = weight / numpy.where(total == 0, 1, total)
    return Taps(size, numpy.minimum(index, size - 1), weight)
