"""Kernels of conv1d, conv2d and their gradients for large arrays, by compiled Numba loops.

The loops are in ``kernels/numba/convolution.py`` (matrix products of tiles) and ``kernels/numba/direct_convolution.py``
(for few channels). A function returns None if no loop supports its arrays; the caller then computes with NumPy
(``kernels/convolution.py``). Inputs have the shape (batch, channels, *space), weights (output channels, channels per
group, *kernel). A 1-d convolution is computed as a 2-d convolution of images with one row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_dispatch, numba_operands
from .thresholds import CONVOLVED, DIRECT_KERNEL, DIRECT_OUTPUTS, NARROW_OUTPUTS

#: Elements of the lines of images that a thread works on at a time (1 MB of float32: a core's second cache).
BLOCK = 1 << 18


class Shape:
    """Sizes of one 2-d convolution, computed from the shapes ``x``, ``w`` and ``y`` of its input, weight and output.

    The attribute ``seen`` is the number of input channels per group, and ``single`` the number of output channels per
    group. The attribute ``how`` is the tuple (row stride, column stride, row padding, column padding, row dilation,
    column dilation).
    """

    batch: Any
    channels: Any
    space: list[Any]
    kernel: list[Any]
    outputs: Any
    seen: Any
    groups: int
    out: tuple[Any, ...]
    dilation: Any
    padding: Any
    stride: Any

    def __init__(self, x: Any, w: Any, y: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
        self.batch, self.channels, *self.space = x
        self.outputs, self.seen, *self.kernel = w
        self.out, self.groups = tuple(y[2:]), groups
        self.single: Any = self.outputs // groups
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.how: tuple[Any, ...] = (*stride, *padding, *dilation)

    def direct(self) -> bool:
        """Whether the convolution has so few channels that loops without matrix products are faster.

        This is so if each group has one input and one output channel, or if the kernel, counted over all channels of a
        group, and the number of output channels per group are small.
        """
        return self.seen == self.single == 1 or (
            self.seen * math.prod(self.kernel) <= DIRECT_KERNEL and self.single <= DIRECT_OUTPUTS
        )

    def narrow(self, outputs: int) -> bool:
        """Whether loops without matrix products are faster because a group has only a few output channels.

        ``outputs`` is the number of output channels per group. A matrix product is computed in tiles, blocks of results
        in registers, which a few channels do not fill. The result is False if the stride is not 1.
        """
        return outputs <= NARROW_OUTPUTS and all(step == 1 for step in self.stride)

    def rows(self, row: int, groups: int) -> int:
        """Return the number of output rows that are computed together as one block.

        ``row`` is the number of elements of scratch memory that one output row needs. ``groups`` is the number of
        groups of the convolution. All blocks have the same size, and there are enough blocks to give every thread work.
        """
        some = max(1, min(self.out[0], BLOCK // row))
        pieces = max(-(-self.out[0] // some), -(-2 * blas_threads.max_threads() // (self.batch * groups)))
        return -(-self.out[0] // min(pieces, self.out[0]))


def _loops(a: Any, b: Any, shapes: tuple[Any, ...]) -> bool:
    """Whether Numba loops support the arrays ``a`` and ``b``, and the convolution is large enough to use them.

    ``shapes`` holds the shapes of the input, the weight and the output.
    """
    if any(0 in shape or len(shape) not in (3, 4, 5) for shape in shapes):
        return False
    x, w, y = shapes
    size = y[0] * math.prod(y[2:]) * max(x[1], w[0])
    return numba_operands.loops("convolution", size, a, b, least=CONVOLVED) is not None


def _images(values: Any, missing: int) -> Any:
    """Return a shape or parameter of a 1-d convolution in the form that it has for a 2-d convolution.

    A 1-d convolution is computed as a 2-d convolution of images with one row. ``values`` is a shape with three
    elements, or a parameter (such as the stride) with one. ``missing`` is inserted before its last element, as the
    value for the rows. Values of a 2-d convolution, with four or two elements, are returned unchanged.
    """
    values = tuple(values)
    return values if len(values) in (2, 4) else (*values[:-1], missing, values[-1])


def _shape(shapes: tuple[Any, ...], stride: Any, padding: Any, dilation: Any, groups: int) -> Shape:
    x, w, y = (_images(each, 1) for each in shapes)
    return Shape(x, w, y, _images(stride, 1), _images(padding, 0), _images(dilation, 1), groups)


def output(
    x: Any, w: Any, bias: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:  # fmt: skip
    """Return the convolution of ``x`` with the weight ``w`` plus ``bias``; None if no Numba loop supports the arrays.

    The result has the given ``shape``. ``bias`` is None or has one element for each output channel. ``stride``,
    ``padding`` and ``dilation`` have one number for each spatial dimension.
    """
    shapes = (x.shape, w.shape, shape)
    if not _loops(x, w, shapes):
        return None
    if len(shape) == 5:
        return _output_of_volumes(x, w, bias, shape, stride, padding, dilation, groups)
    form = _shape(shapes, stride, padding, dilation, groups)
    x, y = _contiguous(x, form.space), numpy.empty((form.batch, form.outputs, *form.out), x.dtype)
    if form.direct() or form.narrow(form.single):
        _directly(x, numpy.ascontiguousarray(w).reshape(form.outputs, form.seen, *form.kernel), bias, form.how, y)
    else:
        whole = _grouped(w, form)
        _tiles(x, whole, whole, bias, y, form, form.out, (0, 1, 0, 1))
    return y.reshape(shape)


def _directly(x: Any, w: Any, bias: Any, how: Any, y: Any) -> None:
    """Write the convolution of ``x`` with ``w`` plus ``bias`` to ``y``, by Numba loops without matrix products.

    These loops are faster for few channels. ``how`` is (row stride, column stride, row padding, column padding, row
    dilation, column dilation).
    """
    size = _flat(x.shape, w.shape, how, y.shape)
    kept = w.shape[1] if w.shape[1] * size <= BLOCK else 1
    shifts = numpy.zeros(len(w), x.dtype) if bias is None else numpy.ascontiguousarray(bias)
    looped_windows().direct(x, w, shifts, how, kept, numba_operands.room((kept + 1) * size, x.dtype), y)


def _flat(x: Any, w: Any, how: Any, y: Any) -> int:
    """Return the number of elements of scratch memory that holds one channel of the input with its padding.

    The numbers of rows and columns are rounded up to multiples of the stride (Note [Flat images] of
    ``kernels/numba/direct_convolution.py``). ``x``, ``w`` and ``y`` are the shapes of input, weight and output. ``how``
    is (row stride, column stride, row padding, column padding, row dilation, column dilation).
    """
    sizes = [
        -(-max(n + 2 * p, (o - 1) * s + d * (k - 1) + 1) // s) * s
        for n, k, o, s, p, d in zip(x[2:], w[2:], y[2:], how[:2], how[2:4], how[4:], strict=True)
    ]
    return math.prod(sizes)


def _contiguous(x: Any, space: Any) -> Any:
    return numpy.ascontiguousarray(x).reshape(*x.shape[:2], *space)


def _grouped(w: Any, form: Shape) -> Any:
    return numpy.ascontiguousarray(w).reshape(form.groups, form.single, form.seen, *form.kernel)


def _tiles(x: Any, w: Any, whole: Any, bias: Any, y: Any, form: Shape, size: Any, where: Any) -> None:
    """Write the convolution of ``x`` with ``w`` plus ``bias`` to some elements of ``y``, by matrix products of tiles.

    A tile is a block of results that stay in registers. ``w`` (groups, outputs per group, channels per group, *kernel)
    may have any strides; its memory is that of ``whole``, a contiguous array. ``form`` holds the sizes of the
    convolution. ``size`` is the number of rows and columns to compute. ``where`` is their position in ``y``: (first
    row, row step, first column, column step).
    """
    loops, tiles = convolve_loops(), tile_sizes()
    groups, single, channels, tall, wide = w.shape
    count = -(-single // tiles.ROWS)
    cut = numpy.empty((groups, count, channels * tall * wide, tiles.ROWS), x.dtype)
    start, first = (each.__array_interface__["data"][0] // x.itemsize for each in (whole, w))
    steps = tuple([step // x.itemsize for step in w.strides])
    loops.cut(whole.reshape(-1), first - start, steps, w.shape, cut)
    shifts = numpy.zeros((groups, count * tiles.ROWS), x.dtype)
    if bias is not None:
        shifts[:, :single] = bias.reshape(groups, single)
    some = form.rows(wide * form.stride[0] * channels * size[1], groups)
    step = 2 * tiles.BYTES // x.itemsize
    plane = _plane((some + (tall - 1) * form.dilation[0] // form.stride[0]) * size[1] + step)
    offsets = _offsets(channels, (tall, wide), form.stride[0], form.dilation[0], plane, size[1], 1)
    memory = numba_operands.room(wide * form.stride[0] * channels * plane + tiles.ROWS * step, x.dtype)
    loops.output(x, cut, shifts, form.how, (tall, wide), offsets, plane, some, size, where, memory, y)


def _plane(size: int) -> int:
    """Return ``size`` rounded up to an odd multiple of 16 elements (a cache line of float32).

    With an even multiple, the data of all channels would be mapped to the same cache sets and would evict each other.
    """
    return (-(-size // 16) | 1) * 16


@lru_cache(256)
def _offsets(channels: int, kernel: Any, stride: int, dilation: int, plane: int, width: int, whole: int) -> Any:
    """Return, for each channel and kernel element, the offset at which the inputs that it multiplies begin.

    The inputs are read from the scratch memory of the Numba loops, a copy of the image in the layout of Note [Lines of
    images] of ``kernels/numba/convolution.py``. ``plane`` is the number of elements of one channel in this memory, and
    ``width`` the number of elements of one row. ``stride`` and ``dilation`` are those of the rows. Zeros are appended
    until the number of offsets is a multiple of ``whole``.
    """
    found = [
        ((j * stride + i * dilation % stride) * channels + c) * plane + i * dilation // stride * width
        for c in range(channels)
        for i in range(kernel[0])
        for j in range(kernel[1])
    ]
    return numpy.array(found + [0] * (-len(found) % whole))


def input_of(
    y: Any, w: Any, bias: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:  # fmt: skip
    """Return the gradient of the input of a convolution, plus ``bias``; None if no Numba loop supports the arrays.

    ``y`` is the gradient of the output, ``w`` is the weight, and the result has the given ``shape``. With a stride of
    s, the rows of the result form s sets: set k has the rows k, k + s, k + 2 s and so on. Each set depends only on a
    part of the kernel, and is computed as a convolution of ``y`` with this part, flipped. The columns form sets in the
    same way.
    """
    shapes = (shape, w.shape, y.shape)
    if not _loops(y, w, shapes):
        return None
    if len(shape) == 5:
        return _input_of_volumes(y, w, bias, shape, stride, padding, dilation, groups)
    form = _shape(shapes, stride, padding, dilation, groups)
    x, y = numpy.empty((form.batch, form.channels, *form.space), y.dtype), _contiguous(y, form.out)
    whole = _grouped(w, form)
    turned = whole.swapaxes(1, 2)
    if form.direct() or form.narrow(form.seen):
        padding = tuple(d * (k - 1) - p for d, k, p in zip(form.dilation, form.kernel, form.padding, strict=True))
        if form.stride == (1, 1) and min(padding) >= 0:
            back = numpy.ascontiguousarray(turned[..., ::-1, ::-1]).reshape(form.channels, form.single, *form.kernel)
            _directly(y, back, bias, (1, 1, *padding, *form.dilation), x)
            return x.reshape(shape)
        kernel = numpy.ascontiguousarray(w).reshape(form.outputs, form.seen, *form.kernel)
        memory = numba_operands.room(2 * _flat(x.shape, kernel.shape, form.how, y.shape), x.dtype)
        looped_windows().direct_input(y, kernel, form.how, memory, x)
        if bias is not None:
            x += bias.reshape(-1, 1, 1)
        return x.reshape(shape)
    for row, rows, high, tall, down, above in _phases(form, 0):
        for column, columns, broad, wide, apart, before in _phases(form, 1):
            where = (row, form.stride[0], column, form.stride[1])
            if not tall or not wide:
                x[:, :, row :: form.stride[0], column :: form.stride[1]] = 0 if bias is None else bias.reshape(-1, 1, 1)
                continue
            part = turned[:, :, :, high, broad]
            inner = Shape(
                y.shape, (form.channels, form.single, tall, wide), (0, 0, rows, columns), (1, 1), (above, before),
                (down, apart), groups,
            )  # fmt: skip
            _tiles(y, part, whole, bias, x, inner, (rows, columns), where)
    return x.reshape(shape)


def _phases(form: Shape, axis: int) -> Iterator[tuple[int, int, slice, int, int, int]]:
    """Yield the convolutions that together compute the input gradient of a convolution with a stride along ``axis``.

    For a stride of s, each of up to s convolutions computes every s-th row of the gradient (every s-th column if
    ``axis`` is 1). It is described by (first row, number of rows, slice of the kernel, length of the slice, dilation,
    padding). The slice selects the rows of the kernel that contribute to these rows of the gradient, in descending
    order.
    """
    stride, padding, dilation = form.stride[axis], form.padding[axis], form.dilation[axis]
    for phase in range(stride):
        first = (phase - padding) % stride
        count = len(range(first, form.space[axis], stride))
        if not count:
            continue
        places = [i for i in range(form.kernel[axis]) if i * dilation % stride == phase][::-1]
        apart = (places[0] - places[1]) * dilation // stride if len(places) > 1 else 1
        before = places[0] * dilation // stride - (first + padding) // stride if places else 0
        yield first, count, _downwards(places), len(places), apart, before


def _downwards(places: list[int]) -> slice:
    """Return the slice that selects the indices ``places``, which descend in equal steps."""
    if len(places) < 2:
        return slice(places[0], places[0] + 1) if places else slice(0, 0)
    step = places[1] - places[0]
    return slice(places[0], places[-1] + step if places[-1] + step >= 0 else None, step)


def weight(y: Any, x: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Return the gradient of the weight of a convolution, or None if no Numba loop supports the arrays.

    ``y`` is the gradient of the output and ``x`` is the input. The result has the given ``shape``.
    """
    shapes = (x.shape, shape, y.shape)
    if not _loops(y, x, shapes):
        return None
    if len(shape) == 5:
        return _weight_of_volumes(y, x, shape, stride, padding, dilation, groups)
    form = _shape(shapes, stride, padding, dilation, groups)
    y, x = _contiguous(y, form.out), _contiguous(x, form.space)
    if form.direct() or (form.seen == 1 and math.prod(form.kernel) <= DIRECT_KERNEL):
        kernel = (form.outputs, form.seen, *form.kernel)
        memory = numba_operands.room(2 * _flat(x.shape, kernel, form.how, y.shape), x.dtype)
        totals = numpy.zeros((len(memory), *kernel))
        looped_windows().direct_weight(y, x, form.how, memory, totals)
        return totals.sum(0).astype(y.dtype).reshape(shape)
    loops, tiles = convolve_loops(), tile_sizes()
    places, width = form.seen * math.prod(form.kernel), form.out[1]
    lanes = tiles.BYTES // x.itemsize
    lead = -(-form.single // lanes) * lanes
    some = form.rows((form.kernel[1] * form.stride[0] * form.seen + lead) * width, groups)
    plane = _plane((some + (form.kernel[0] - 1) * form.dilation[0] // form.stride[0]) * width + 2 * lanes)
    offsets = _offsets(form.seen, tuple(form.kernel), form.stride[0], form.dilation[0], plane, width, tiles.ROWS)
    memory = numba_operands.room(form.kernel[1] * form.stride[0] * form.seen * plane + lead * some * width, x.dtype)
    parts = numpy.empty((len(memory), groups, len(offsets), lead), x.dtype)
    loops.weight(y, x, form.how, tuple(form.kernel), offsets, plane, some, memory, parts)
    w = numpy.empty((groups, form.single, places), x.dtype)
    loops.collected(parts, w)
    return w.reshape(shape)


# -- Volumes -----------------------------------------------------------------------------------------------------------
#
# A convolution of volumes is a convolution of images: the images of a window along the depth are the channels of one image
# for each output image, and the kernel's planes its channels.


def _samples(count: int, size: int) -> Iterator[slice]:
    """Yield slices of ``count`` samples, whose images of ``size`` elements each fit in the cache."""
    some = max(1, BLOCK // max(1, size))
    for first in range(0, count, some):
        yield slice(first, min(first + some, count))


def _depth_windows(x: Any, kernel: int, out: int, stride: int, padding: int, dilation: int) -> Any:
    """Return the images (samples * out, channels * kernel, rows, columns) of the windows along the depth of ``x``."""
    count, channels, depth, *space = x.shape
    if padding:
        padded = numpy.zeros((count, channels, depth + 2 * padding, *space), x.dtype)
        padded[:, :, padding : padding + depth] = x
        x = padded
    found = numpy.empty((count, out, channels, kernel, *space), x.dtype)
    for k in range(kernel):
        first = k * dilation
        found[:, :, :, k] = x[:, :, first : first + (out - 1) * stride + 1 : stride].swapaxes(1, 2)
    return found.reshape(count * out, channels * kernel, *space)


def _as_images(y: Any) -> Any:
    """Return the volumes ``y`` (samples, channels, depth, rows, columns) as images (samples * depth, channels, …)."""
    return numpy.ascontiguousarray(y.swapaxes(1, 2)).reshape(-1, y.shape[1], *y.shape[3:])


def _output_of_volumes(
    x: Any, w: Any, bias: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:  # fmt: skip
    plane = w.reshape(len(w), -1, *w.shape[3:])
    along = w.shape[2], shape[2], stride[0], padding[0], dilation[0]
    y = numpy.empty(shape, x.dtype)
    for some in _samples(len(x), math.prod(shape[2:]) * x.shape[1] * w.shape[2]):
        seen = _depth_windows(x[some], *along)
        size = (len(seen), shape[1], *shape[3:])
        part = output(seen, plane, bias, size, stride[1:], padding[1:], dilation[1:], groups)
        if part is None:
            return None
        y[some] = part.reshape(-1, shape[2], *size[1:]).swapaxes(1, 2)
    return y


def _input_of_volumes(
    y: Any, w: Any, bias: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:  # fmt: skip
    plane = w.reshape(len(w), -1, *w.shape[3:])
    kernel, out, channels = w.shape[2], y.shape[2], shape[1]
    x = numpy.empty(shape, y.dtype)
    for some in _samples(len(y), math.prod(shape[3:]) * out * channels * kernel):
        given = _as_images(y[some])
        size = (len(given), channels * kernel, *shape[3:])
        part = input_of(given, plane, None, size, stride[1:], padding[1:], dilation[1:], groups)
        if part is None:
            return None
        part = part.reshape(-1, out, channels, kernel, *shape[3:])
        total = numpy.zeros((len(part), channels, shape[2] + 2 * padding[0], *shape[3:]), y.dtype)
        for k in range(kernel):
            first = k * dilation[0]
            total[:, :, first : first + (out - 1) * stride[0] + 1 : stride[0]] += part[:, :, :, k].swapaxes(1, 2)
        x[some] = total[:, :, padding[0] : padding[0] + shape[2]]
    if bias is not None:
        x += bias.reshape(-1, 1, 1, 1)
    return x


def _weight_of_volumes(y: Any, x: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    along = shape[2], y.shape[2], stride[0], padding[0], dilation[0]
    size = (shape[0], shape[1] * shape[2], *shape[3:])
    w = numpy.zeros(size, y.dtype)
    for some in _samples(len(x), math.prod(y.shape[2:]) * x.shape[1] * shape[2]):
        seen = _depth_windows(x[some], *along)
        part = weight(_as_images(y[some]), seen, size, stride[1:], padding[1:], dilation[1:], groups)
        if part is None:
            return None
        w += part
    return w.reshape(shape)


# -- What the loops need ---------------------------------------------------------------------------------------------


def looped_windows() -> Any:
    """Return the module of the Numba loops for few channels, ``kernels/numba/direct_convolution.py``."""
    return numba_dispatch.loops("direct_convolution")


def convolve_loops() -> Any:
    """Return the module of the Numba loops for matrix products of tiles, ``kernels/numba/convolution.py``."""
    return numba_dispatch.loops("convolution")


@cache
def tile_sizes() -> Any:
    """Return the module ``kernels/numba/gemm_microkernel.py``, which defines the tile sizes ``ROWS`` and ``BYTES``."""
    return numba_dispatch.loops("gemm_microkernel")
