"""Kernels of interpolate, average pooling and pad.

These operations are linear maps along axes of an image: each element of the output is a weighted sum of a few elements
of the input. As in a digital filter, a tap is one of these input elements together with its weight. :class:`Taps` holds
the taps of all outputs along one axis. A map along several axes is applied one axis at a time. The gradient is computed
by the adjoint map (:attr:`Taps.turned`), in which inputs and outputs are exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy

from ..core.devices import on_gpu
from ..runtime.cached_property import cached_property
from . import numba_operands
from .half_precision import upcast_half
from .memory_format import in_memory_format_of
from .thresholds import DENSE_TAPS


class Taps:
    """Linear map of interpolation, pooling or padding along one axis: each output is a weighted sum of a few inputs.

    The axis has ``size`` inputs. A tap is one input of an output, with its weight. Row k of ``index`` (outputs, taps)
    holds the indices of the inputs of output k, and row k of ``weight`` their weights. If ``weight`` is None, all
    weights are 1. If the outputs have different numbers of taps, ``counts`` holds these numbers: output k uses only the
    first ``counts[k]`` taps of its row.
    """

    size: int
    index: Any
    weight: Any

    def __init__(self, size: int, index: Any, weight: Any = None, counts: Any = None) -> None:
        self.size, self.index, self.weight = size, index, weight
        #: The outputs without inputs, which are 0.
        self.empty: Any = None
        #: The map for integers, padded with weights of 0 because integers have no halves.
        self.whole: Taps | None = None
        if counts is not None:
            self.whole = Taps(size, index, weight)
            self.index, weight = _filled(index, weight, counts)
            self.weight = None if (weight == 1).all() else weight
            self.empty = numpy.flatnonzero(counts == 0) if (counts == 0).any() else None

    @property
    def out(self) -> int:
        """The number of outputs along the axis."""
        return len(self.index)

    @cached_property
    def is_identity(self) -> bool:
        """Whether the outputs are the inputs."""
        if self.weight is not None or self.index.shape != (self.size, 1):
            return False
        return isinstance(self.picks[0], slice) and self.picks[0] == slice(0, self.size, 1)

    @cached_property
    def matrix(self) -> Any:
        """The linear map as a dense float64 matrix of shape (outputs, inputs)."""
        matrix = numpy.zeros((self.out, self.size))
        rows = numpy.broadcast_to(numpy.arange(self.out)[:, None], self.index.shape)
        numpy.add.at(matrix, (rows, self.index), 1.0 if self.weight is None else self.weight)
        return matrix

    @cached_property
    def table(self) -> tuple[Any, dict[Any, Any]]:
        """The input indices and the weights in the layout that the Numba loops read: (taps, outputs).

        The weights are a dictionary with one array for each of the dtypes float32 and float64.
        """
        weight = numpy.ones(self.index.shape) if self.weight is None else self.weight
        kinds = (numba_operands.F32, numba_operands.F64)
        return numpy.ascontiguousarray(self.index.T), {kind: weight.T.astype(kind, "C") for kind in kinds}

    @cached_property
    def picks(self) -> list[Any]:
        """For each tap, the input indices of all outputs: a slice if the indices are evenly spaced, else an array."""
        return [as_slice(column) for column in self.index.T]

    @cached_property
    def turned(self) -> Taps:
        """The adjoint of this linear map, computed without the dense matrix, which would be large for long axes."""
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
    """Return ``index`` and ``weight`` with the unused taps of each row replaced by repetitions of the first tap.

    A tap is an input index with its weight. Row k uses only its first ``counts[k]`` taps. The weight of the first tap
    is divided among the first tap and its repetitions, so that the weighted sum does not change. An unused tap that had
    weight 0 at another input would give nan if that input were infinite.
    """
    width = index.shape[1]
    missing = numpy.where(counts > 0, width - counts, 0)[:, None]
    place = numpy.arange(width) - counts[:, None]  # from 0 on for the missing taps
    halves = weight[:, :1] * 0.5 ** (place + 1)
    weight = numpy.where(place < 0, weight, numpy.where(missing > 0, halves, 0.0))
    weight[:, :1] *= 0.5**missing
    return numpy.where(place < 0, index, index[:, :1]), weight


def apply_maps(np: Any, x: Any, plan: Sequence[Taps]) -> Any:
    """Return ``x`` with the linear maps in ``plan`` applied, one along each of the last ``len(plan)`` dimensions."""
    dtype = x.dtype
    maps = sorted(enumerate(plan, x.ndim - len(plan)), key=_axis_order)
    if np.__name__ == "cupy":
        made = np.windows.mapped(x, [(axis, taps) for axis, taps in maps if not taps.is_identity])
        if made is not None:
            return in_memory_format_of(np, made, x)
    weighted = any(taps.weight is not None or taps.index.shape[1] > 1 for taps in plan)
    result = upcast_half(x) if weighted else x
    for axis, taps in maps:
        result = _along(np, result, axis, taps)
        if taps.empty is not None:
            result[(*(slice(None),) * axis, np.asarray(taps.empty))] = 0
    if result is x or result.base is not None:
        result = result.copy()
    return in_memory_format_of(np, result.astype(dtype, copy=False), x)


def apply_whole_maps(np: Any, x: Any, plan: Sequence[Taps]) -> Any:
    """Apply maps with weights to the last axes of ``x``, of dtype uint8, as PyTorch does.

    The weights are integers of at most 15 bits and a common power of two, and the result along each axis, the last
    one first, is rounded to uint8. The products of integers are exact in float64.
    """
    first = x.ndim - len(plan)
    for axis in range(x.ndim - 1, first - 1, -1):
        taps = plan[axis - first]
        if taps.weight is None:
            x = _along(np, x, axis, taps)
            continue
        matrix = np.asarray(taps.matrix)
        bits = next(bits for bits in range(22) if bits == 21 or int(0.5 + matrix.max() * 2 ** (bits + 1)) >= 2**15)
        scaled = matrix * 2**bits
        whole = np.trunc(np.where(scaled < 0, scaled - 0.5, scaled + 0.5))
        sums = np.moveaxis(np.moveaxis(x, axis, -1).astype(np.float64) @ whole.T, -1, axis)
        x = np.clip(np.floor((sums + 2 ** (bits - 1)) / 2**bits), 0, 255).astype(x.dtype)
    return x


def _axis_order(each: tuple[int, Taps]) -> tuple[float, int]:
    """Return the sort key of ``each``, a pair (axis, taps), for the order in which maps are applied to several axes.

    The axis that shrinks most comes first, so that fewer elements are left for the other axes. If several axes shrink
    by the same factor, the first of them comes first. If several axes grow by the same factor, the last of them comes
    first.
    """
    axis, taps = each
    growth = taps.out / max(taps.size, 1)
    return growth, axis if growth < 1 else -axis


def _along(np: Any, x: Any, axis: int, taps: Taps) -> Any:
    """Return ``x`` with the linear map ``taps`` applied along ``axis``.

    The map is applied by a matrix product, a Numba loop or a sum over the taps.
    """
    if taps.whole is not None and x.dtype.kind in "iu":
        taps = taps.whole
    width = taps.index.shape[1]
    if width >= DENSE_TAPS and x.dtype.kind in "fc" and not on_gpu(x):
        shape = x.shape
        before, after = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
        matrix = np.asarray(taps.matrix).astype(x.dtype)
        flat = x.reshape(before, shape[axis], after)
        product = flat[:, :, 0] @ matrix.T if after == 1 else np.matmul(matrix, flat)
        if np.isfinite(np.add.reduce(product, None)):  # else a 0 of the matrix may have been multiplied by infinity
            return product.reshape(*shape[:axis], taps.out, *shape[axis + 1 :])
    if (
        loops := numba_operands.loops("interpolation", max(x.size, x.size // max(taps.size, 1) * taps.out), x)
    ) is not None:
        return _along_by_loop(loops, x, axis, taps)
    total = None
    for k, pick in enumerate(taps.picks):
        part = take_regular(np, x, axis, pick)
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
    source = numpy.ascontiguousarray(x).reshape(before, taps.size, after)
    if after == 1:
        loops.along_rows(source[:, :, 0], index, weights[x.dtype], out.reshape(before, taps.out))
    else:
        loops.across_rows(source, index, weights[x.dtype], out.reshape(before, taps.out, after))
    return out


def as_slice(places: Any) -> Any:
    """Return the 1-d index array ``places`` as a slice if the indices increase in equal steps, else unchanged."""
    count = len(places)
    if count == 0:
        return slice(0, 0)
    if places[0] < 0:
        return places
    step = int(places[1] - places[0]) if count > 1 else 1
    if step < 1 or (numpy.diff(places) != step).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1, step)


def take_regular(np: Any, x: Any, axis: int, pick: Any) -> Any:
    """Return the elements of ``x`` along ``axis`` at ``pick``: a view for a slice, a copy for an index array."""
    if isinstance(pick, slice):
        return x[(slice(None),) * axis + (pick,)]
    return x.take(np.asarray(pick), axis)


# -- Average pooling -------------------------------------------------------------------------------------------------


def _ranges(size: int, starts: Any, stops: Any, divisors: Any) -> Taps:
    """Return the taps (input indices and weights) of a map whose output k is a sum of neighbouring inputs, scaled.

    The inputs of output k are ``starts[k]`` to ``stops[k] - 1``; their sum is divided by ``divisors[k]``. ``size`` is
    the number of all inputs.
    """
    width = max(1, int((stops - starts).max(initial=0)))
    index = starts[:, None] + numpy.arange(width)
    inside = index < stops[:, None]
    return Taps(size, numpy.where(inside, index, 0), inside / divisors[:, None], inside.sum(1))


@lru_cache(maxsize=256)
def adaptive(size: int, out: int) -> Taps:
    """Return the taps (input indices and weights) of adaptive average pooling along one axis.

    The axis has ``size`` inputs and ``out`` outputs.
    """
    starts, stops = adaptive_bounds(size, out)
    return _ranges(size, starts, stops, stops - starts)


def adaptive_bounds(size: int, out: int) -> tuple[Any, Any]:
    """Return the first and the last (exclusive) input of each of ``out`` windows that cover ``size`` inputs evenly."""
    places = numpy.arange(out)
    return places * size // max(out, 1), -((places + 1) * -size // max(out, 1))


@lru_cache(maxsize=256)
def averages(size: int, out: int, kernel: int, stride: int, padding: int, include_pad: bool, divide: bool) -> Taps:
    """Return the taps (input indices and weights) of average pooling along one axis.

    The axis has ``size`` inputs and ``out`` windows. If ``divide`` is false, the windows are summed instead of
    averaged. If ``include_pad`` is true, the divisor includes the padding.
    """
    starts = numpy.arange(out) * stride - padding
    stops = numpy.minimum(starts + kernel, size + padding)
    sizes = stops - starts
    starts, stops = numpy.maximum(starts, 0), numpy.minimum(stops, size)
    divisors = (sizes if include_pad else numpy.maximum(stops - starts, 1)) if divide else numpy.ones(out)
    return _ranges(size, numpy.minimum(starts, size), numpy.maximum(stops, starts), divisors)


# -- Padding ---------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def pad_map(size: int, before: int, after: int, mode: str) -> Taps:
    """Return the taps (input indices and weights) of padding along one axis of ``size`` elements.

    ``before`` elements are added at the start and ``after`` elements at the end; negative numbers remove elements.
    ``mode`` is ``"reflect"``, ``"replicate"`` or ``"circular"``.
    """
    places = numpy.arange(-before, size + after)
    if mode == "reflect":
        period = max(2 * (size - 1), 1)
        places = numpy.abs((places + size - 1) % period - (size - 1)) if size > 1 else places * 0
    elif mode == "replicate":
        places = numpy.clip(places, 0, size - 1)
    else:  # circular; removed elements are not repeated
        first, last = max(-before, 0), size - max(-after, 0)
        places = first + numpy.arange(-max(before, 0), last - first + max(after, 0)) % max(last - first, 1)
    return Taps(size, places[:, None])


# -- Interpolation ---------------------------------------------------------------------------------------------------


def _ratio(size: int, out: int, scale: float | None) -> float:
    """Return the number of inputs for each output along an axis of ``size`` inputs and ``out`` outputs.

    The number is ``1 / scale``, or ``size / out`` if ``scale``, the scale factor, is None.
    """
    return 1.0 / scale if scale is not None and scale > 0 else size / out


@lru_cache(maxsize=256)
def nearest(size: int, out: int, scale: float | None, exact: bool, whole: bool) -> Taps:
    """Return the taps (input indices and weights) of nearest-neighbour interpolation along one axis.

    The axis has ``size`` inputs and ``out`` outputs. If ``exact`` is true, the input whose centre is nearest is used,
    as in the mode "nearest-exact". ``scale`` is the scale factor or None. If ``whole`` is true and the output has the
    same or twice the size, ``scale`` is ignored, as PyTorch does for images.
    """
    if whole and not exact and out in (size, 2 * size):
        scale = None
    # PyTorch computes the positions in single precision; the rounding is the same here.
    ratio = numpy.float32(_ratio(size, out, scale))
    places = numpy.arange(out, dtype=numpy.float32)
    if exact:
        places = places + numpy.float32(0.5)
    index = numpy.floor(places * ratio).astype(numpy.intp)
    return Taps(size, numpy.clip(index, 0, size - 1)[:, None])


def _sources(size: int, out: int, scale: float | None, align: bool) -> Any:
    """Return the input coordinate of each of ``out`` outputs of interpolate, usually a fraction.

    The axis has ``size`` inputs, with coordinates from 0 to ``size - 1``. ``align`` is the parameter ``align_corners``
    of interpolate. ``scale`` is the scale factor or None.
    """
    places = numpy.arange(out, dtype=numpy.float64)
    if align:
        return places * ((size - 1) / (out - 1) if out > 1 else 0.0)
    return (places + 0.5) * _ratio(size, out, scale) - 0.5


@lru_cache(maxsize=256)
def linear(size: int, out: int, scale: float | None, align: bool) -> Taps:
    """Return the taps (input indices and weights) of linear interpolation from ``size`` inputs to ``out`` outputs.

    ``align`` is the parameter ``align_corners`` of interpolate. ``scale`` is the scale factor or None.
    """
    if size == out:
        return Taps(size, numpy.arange(size)[:, None])
    source = numpy.maximum(_sources(size, out, scale, align), 0)
    low = numpy.minimum(source.astype(numpy.intp), size - 1)
    part = numpy.clip(source - low, 0, 1)
    index = numpy.stack([low, numpy.minimum(low + 1, size - 1)], 1)
    return Taps(size, index, numpy.stack([1 - part, part], 1))


def cubic_weights(part: Any, a: float = -0.75) -> Any:
    """Return a list of the weights of four neighbouring inputs for cubic interpolation between the middle two.

    ``part`` is the distance from the second input, from 0 to 1. The weights are those of cubic convolution (Keys 1981)
    with the coefficient ``a``.
    """

    def near(t: Any) -> Any:
        return ((a + 2) * t - (a + 3)) * t * t + 1

    def far(t: Any) -> Any:
        return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a

    return [far(part + 1), near(part), near(1 - part), far(2 - part)]


@lru_cache(maxsize=256)
def cubic(size: int, out: int, scale: float | None, align: bool) -> Taps:
    """Return the taps (input indices and weights) of cubic interpolation from ``size`` inputs to ``out`` outputs.

    ``align`` is the parameter ``align_corners`` of interpolate. ``scale`` is the scale factor or None.
    """
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


#: Filters of antialiased interpolation, and the radius of each.
FILTERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "bilinear": (_triangle, 1), "bicubic": (_keys, 2), "lanczos": (_windowed_sinc, 3),
}  # fmt: skip


@lru_cache(maxsize=256)
def antialiased(size: int, out: int, scale: float | None, align: bool, mode: str) -> Taps:
    """Return the taps (input indices and weights) of antialiased interpolation along one axis.

    The axis has ``size`` inputs and ``out`` outputs. ``mode`` is the name of the filter, which is widened if the axis
    shrinks. ``align`` is the parameter ``align_corners`` of interpolate. ``scale`` is the scale factor or None.
    """
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


@lru_cache(maxsize=64)
def window_positions(space: tuple[int, ...], places: tuple[tuple[tuple[int, ...], ...], ...]) -> Any:
    """Return a table of flat indices: element (k, o) is the input that kernel element k reads for output position o.

    ``space`` is the shape of the input. ``places[d][k]`` lists, for dimension d and offset k along the kernel, the
    input index that each output reads.
    """
    found = numpy.zeros((1, 1), numpy.int64)
    for size, along in zip(space, places, strict=True):
        here = numpy.array(along)
        found = found[:, None, :, None] * size + here[None, :, None, :]
        found = found.reshape(found.shape[0] * len(along), -1)
    return found
