"""Kernels of conv1d to conv3d, conv_transpose, unfold, fold and the gradients of convolution.

:func:`convolve` computes the output from the input and the weight. :func:`input_adjoint` computes the gradient of the
input from the gradient of the output and the weight. :func:`weight_adjoint` computes the gradient of the weight from
the gradient of the output and the input. Each of the three functions is linear in both of its arrays, and the other two
compute its derivatives.

A window is the set of input elements that one output position reads. The array of all windows is never stored. The work
is done in blocks of samples, or of output rows of one sample, whose windows fit the cache, with one matrix product for
each block. A convolution with a kernel of one element is a single matrix product. A depthwise convolution (one channel
per group) is a sum over the offsets of the kernel. Large arrays are computed by the Numba loops of
``kernels/convolution_numba.py`` where the loops support them.

On a GPU all windows are stored, and there is one matrix product for the whole batch (``kernels/cuda/windows.py``).

Arrays have the shape (batch, channels, *space), weights (output channels, channels per group, *kernel).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache
from itertools import product
from typing import Any

import numpy

from . import convolution_numba, matmul
from .half_precision import upcast_half
from .interpolation import window_positions
from .memory_format import window_view, zero_padded
from .reductions import F32
from .select import at_most, kernel
from .thresholds import BLAS_THREADS, SMALL, WINDOW_TABLE

#: Elements of the buffer in which windows are laid out (1 MB of float32: half of a core's second-level cache).
BLOCK = 1 << 18


class Plan:
    """Sizes of one convolution, and the blocks in which it is computed.

    A block is a range of samples, or a range of output rows of one sample. The windows of a block (the input elements
    that it reads) fit the cache. A row holds the elements with one index along the first spatial dimension.
    """

    dilation: Any
    groups: int
    padding: Any
    stride: Any
    batch: Any
    channels: Any
    space: list[Any]
    kernel: Any
    out: Any

    def __init__(
        self, x_shape: Any, w_shape: Any, y_shape: Any, stride: Any, padding: Any, dilation: Any, groups: int
    ) -> None:
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        self.batch, self.channels, *self.space = x_shape
        self.kernel, self.out = w_shape[2:], y_shape[2:]
        self.outputs: Any = w_shape[0]
        self.rest: int = math.prod(self.out[1:])
        self.empty: bool = 0 in x_shape or 0 in w_shape or 0 in y_shape
        self.single: Any = self.outputs // groups  # output channels a group
        self.pointwise: bool = (
            all(n == 1 for n in self.kernel) and all(n == 1 for n in stride) and not any(padding)
            and tuple(self.space) == tuple(self.out)
        )  # fmt: skip
        self.depthwise: Any | bool = w_shape[1] == 1 and groups > 1

    def blocks(self) -> Iterator[tuple[slice, int, int]]:
        """Yield each block as (slice of samples, first output row, last output row); the last row is exclusive."""
        row = self.rest * self.channels * (self.single if self.depthwise else math.prod(self.kernel))
        rows = self.out[0]
        if row * rows <= BLOCK:
            step = max(1, BLOCK // (row * rows))
            for first in range(0, self.batch, step):
                yield slice(first, min(first + step, self.batch)), 0, rows
            return
        step = max(1, BLOCK // row)
        for sample in range(self.batch):
            for first in range(0, rows, step):
                yield slice(sample, sample + 1), first, min(first + step, rows)

    def reach(self, first: int, last: int) -> tuple[int, int]:
        """Return (start, stop), the range of padded input rows that the output rows ``first`` to ``last - 1`` read."""
        return (
            first * self.stride[0],
            (last - 1) * self.stride[0] + self.dilation[0] * (self.kernel[0] - 1) + 1,
        )

    def widths(self) -> list[int]:
        """Return the size of the padded input along each spatial dimension except the first.

        The first dimension is not included, because a block holds only some of the input rows. If the last window ends
        past the padded input, the size is increased to include this window.
        """
        return [
            max(n + 2 * p, (o - 1) * s + d * (k - 1) + 1)
            for n, p, o, s, d, k in zip(
                self.space, self.padding, self.out, self.stride, self.dilation, self.kernel, strict=True
            )
        ][1:]

    def inner(self, start: int, stop: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """Return two indices that select the same elements in a part of the padded input and in the input.

        The part consists of the rows ``start`` to ``stop - 1`` of the padded input. The first index selects its
        elements that are not padding. The second index selects the same elements in the input without padding.
        """
        p = self.padding[0]
        low, high = max(start - p, 0), min(stop - p, self.space[0])
        high = max(low, high)
        within = [slice(q, q + n) for q, n in zip(self.padding[1:], self.space[1:], strict=True)]
        return (..., slice(low + p - start, high + p - start), *within), (
            ...,
            slice(low, high),
            *map(slice, self.space[1:]),
        )

    def fits(self) -> bool:
        """Whether windows can be read directly from the input, without a padded copy.

        This is so if there is no padding, and no window ends past the input. Along the first spatial dimension the
        callers check whether a window ends past the input.
        """
        return not any(self.padding) and all(a <= b for a, b in zip(self.widths(), self.space[1:], strict=True))

    def slab(self, np: Any, x: Any, start: int, stop: int) -> Any:
        """Return the rows ``start`` to ``stop - 1`` of ``x`` padded with zeros.

        The result is a view of ``x`` if no row contains padding.
        """
        if self.fits() and stop <= self.space[0]:
            return x[:, :, start:stop]
        slab = np.zeros((*x.shape[:2], stop - start, *self.widths()), x.dtype)
        within, source = self.inner(start, stop)
        slab[within] = x[source]
        return slab

    def seen(self, np: Any, x: Any, first: int, last: int) -> Any:
        """Return a view of the windows of ``x`` that the output rows ``first`` to ``last - 1`` read.

        A window is the set of input elements that one output position reads. The view has the shape (batch, channels,
        *kernel, *out), where ``out`` is the number of windows along each dimension.
        """
        slab = self.slab(np, x, *self.reach(first, last))
        return window_view(np, slab, self.kernel, self.stride, self.dilation, (last - first, *self.out[1:]))

    def columns(self, np: Any, x: Any, first: int, last: int, buffer: Any) -> Any:
        """Return the windows of ``x`` copied to ``buffer`` as the columns of matrices (im2col).

        A window is the set of input elements that one output position reads. The windows are those of the output rows
        ``first`` to ``last - 1``. The result has the shape (groups, channels per group * kernel elements,
        batch * output positions).
        """
        seen = self.seen(np, x, first, last)
        n = 1 + len(self.kernel)
        seen = seen.transpose(*range(1, n + 1), 0, *range(n + 1, seen.ndim))
        columns = buffer[: seen.size].reshape(seen.shape)
        columns[...] = seen
        return columns.reshape(self.groups, -1, math.prod(seen.shape[n:]))

    def buffer(self, np: Any, dtype: Any) -> Any:
        """Return uninitialised 1-d memory of ``dtype`` that is large enough for the windows of any block."""
        size = self.channels * math.prod(self.kernel) * self.rest
        whole = size * self.out[0] * self.batch
        return np.empty(min(whole, max(BLOCK, size)), dtype)


@lru_cache(maxsize=64)
def _columns(x: tuple[int, ...], w: tuple[int, ...], stride: Any, dilation: Any, out: tuple[int, ...]) -> Any:
    """Return a table of the inputs that each output reads; an entry is a flat index into one sample.

    Element (k, o) is the index of the input that weight k of an output channel multiplies for output position o. ``x``,
    ``w`` and ``out`` are the shapes of the input, the weight and the output. The result is None if the table would have
    too many elements.
    """
    if math.prod(w[1:]) * math.prod(out[2:]) > WINDOW_TABLE or 0 in out:
        return None
    every = zip(w[2:], stride, dilation, out[2:], strict=True)
    places = tuple([tuple([tuple([k * d + s * o for o in range(n)]) for k in range(size)]) for size, s, d, n in every])
    one = window_positions(x[2:], places)
    return (numpy.arange(x[1])[:, None, None] * math.prod(x[2:]) + one).reshape(-1, one.shape[1])


@at_most(SMALL)
def _convolve_small(
    np: Any, x: Any, w: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int, bias: Any
) -> Any:
    """Return the result of :func:`convolve` for small arrays, or None if the arguments are not supported.

    The inputs that each output reads are gathered into a column (im2col), by a cached table of indices. The columns are
    then multiplied by the weight matrix.
    """
    if groups != 1 or x.__class__ is not numpy.ndarray or x.dtype is not F32 or w.dtype is not F32 or not x.size:
        return None
    if any(padding):
        x = zero_padded(np, x, padding)
    table = _columns(x.shape, w.shape, stride, dilation, shape)
    if table is None:
        return None
    outputs, rows = len(w), len(x)
    matrix = w.reshape(outputs, -1)
    if rows == 1:
        found = matrix.dot(x.take(table))
    else:
        found = np.matmul(matrix, x.reshape(rows, -1).take(table, 1))
    if bias is not None:
        np.add(found, bias.reshape(-1, 1), found)
    return found.reshape(shape)


@kernel(_convolve_small)
def convolve(
    np: Any, x: Any, w: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int, bias: Any
) -> Any:
    """Return the convolution of ``x`` with the weight ``w``, plus ``bias`` if that is not None.

    The result has the given ``shape``. ``stride``, ``padding`` and ``dilation`` have one number for each spatial
    dimension.
    """
    if np.__name__ == "cupy" and 0 not in (x.size, w.size, *shape):
        plan = Plan(x.shape, w.shape, shape, stride, padding, dilation, groups)
        if (y := np.windows.convolved(plan, x, w, shape, bias)) is not None:
            return y
    dtype, x, w = x.dtype, upcast_half(x), upcast_half(w)
    bias = None if bias is None else upcast_half(bias)
    if np is numpy and _is_pointwise(x.shape, w.shape, shape, stride, padding, groups):
        y = _times_each(w.reshape(w.shape[:2]), _flat_images(x)).reshape(shape)
        return _with_bias(y, bias, dtype)
    if (y := convolution_numba.output(x, w, bias, shape, stride, padding, dilation, groups)) is not None:
        return y.astype(dtype, copy=False)
    plan = Plan(x.shape, w.shape, shape, stride, padding, dilation, groups)
    if plan.empty or np.__name__ == "meta":
        y = np.zeros(shape, x.dtype)
    elif plan.pointwise:
        y = np.matmul(w.reshape(groups, plan.single, -1), x.reshape(plan.batch, groups, -1, plan.rest * plan.out[0]))
        y = y.reshape(shape)
    elif plan.depthwise:
        y = _depthwise_output(np, plan, x, w, shape)
    else:
        y = _blocked_output(np, plan, x, w, shape)
    return _with_bias(y, bias, dtype)


def _with_bias(y: Any, bias: Any, dtype: Any) -> Any:
    """Add ``bias``, one number for each channel or None, to ``y`` (batch, channels, *space); return it as ``dtype``."""
    if bias is not None:
        y += bias.reshape(-1, *(1,) * (y.ndim - 2))
    return y.astype(dtype, copy=False)


# -- Kernels of one element ------------------------------------------------------------------------------------------


def _is_pointwise(x: Any, w: Any, y: Any, stride: Any, padding: Any, groups: int) -> bool:
    """Whether a convolution is a matrix product for each image, given the shapes of input, weight and output.

    With ``output_padding`` a transposed convolution has an input that is larger than what its output reads.
    """
    return groups == 1 and math.prod(w[2:]) == 1 and max(stride) == 1 and max(padding) == 0 and x[2:] == tuple(y[2:])


def _flat_images(x: Any) -> Any:
    """Return ``x`` (batch, channels, *space) with the spatial dimensions as one."""
    return x.reshape(*x.shape[:2], math.prod(x.shape[2:]))


def _times_each(matrix: Any, images: Any) -> Any:
    """Return the product of ``matrix`` and each of ``images`` (batch, channels, places)."""
    work = matrix.size * len(images) * images.shape[2]
    if work < BLAS_THREADS or matrix.shape[1] > images.shape[2]:
        return numpy.matmul(matrix, images)
    return matmul.product(numpy.repeat(matrix[None], len(images), 0), images)  # on Numba's threads


#: Elements of products that are summed together: those of more images would need much memory.
SUMMED = 1 << 20


def _sum_of_products(first: Any, second: Any) -> Any:
    """Return the sum over the batch of the products of ``first`` and the transposed ``second`` (batch, channels, places)."""
    total = numpy.zeros((first.shape[1], second.shape[1]), first.dtype)
    some = max(1, SUMMED // max(1, total.size))
    for k in range(0, len(first), some):
        total += numpy.add.reduce(matmul.product(first[k : k + some], second[k : k + some].swapaxes(1, 2)), 0)
    return total


# -- Matrix products of columns --------------------------------------------------------------------------------------

#: Columns in one matrix product: with many more BLAS is 20 % slower.
WIDTH = 1024


def _blocked_output(np: Any, plan: Plan, x: Any, w: Any, shape: Any) -> Any:
    """Return the convolution of ``x`` with ``w``, of shape ``shape``, computed by a matrix product for each block.

    ``plan`` has the sizes of the convolution and the blocks, which are ranges of samples or of output rows.
    """
    y, buffer = np.empty(shape, x.dtype), plan.buffer(np, x.dtype)
    matrix = w.reshape(plan.groups, plan.single, -1)
    for samples, first, last in plan.blocks():
        columns = plan.columns(np, x[samples], first, last, buffer)
        places, count = (last - first) * plan.rest, samples.stop - samples.start
        step = max(1, WIDTH // places)
        for k in range(0, count, step):
            part = columns[:, :, k * places : (k + step) * places]
            if step == 1 and plan.groups == 1:
                target = y[samples.start + k].reshape(plan.outputs, -1)[:, first * plan.rest : last * plan.rest]
                _multiply_in_parts(np, matrix[0], part[0], target)
            else:
                some = slice(samples.start + k, min(samples.start + k + step, samples.stop))
                block = np.matmul(matrix, part).reshape(plan.outputs, -1, last - first, *plan.out[1:])
                y[some, :, first:last] = block.swapaxes(0, 1)
    return y


def _multiply_in_parts(np: Any, matrix: Any, columns: Any, target: Any) -> None:
    """Write ``matrix @ columns`` to ``target``, computed for at most ``WIDTH`` columns at a time.

    BLAS is slower if it multiplies many more columns at once.
    """
    count = columns.shape[1]
    width = -(-count // -(-count // WIDTH))
    for at in range(0, count, width):
        np.matmul(matrix, columns[:, at : at + width], out=target[:, at : at + width])


def _depthwise_output(np: Any, plan: Plan, x: Any, w: Any, shape: Any) -> Any:
    """Return the depthwise convolution of ``x`` with ``w`` (one channel per group) as an array of the given ``shape``.

    The result is the sum over the kernel elements of weight times shifted input.
    """
    y = np.empty(shape, x.dtype)
    weights = w.reshape(plan.groups, plan.single, *plan.kernel)
    ones = (1,) * len(plan.kernel)
    for samples, first, last in plan.blocks():
        seen = plan.seen(np, x[samples], first, last)
        count = samples.stop - samples.start
        total = np.zeros((count, plan.groups, plan.single, last - first, *plan.out[1:]), x.dtype)
        part = np.empty_like(total)
        for place in product(*map(range, plan.kernel)):
            factor = weights[(..., *place)].reshape(plan.groups, plan.single, *ones)
            total += np.multiply(seen[(slice(None), slice(None), None, *place)], factor, out=part)
        y[samples, :, first:last] = total.reshape(count, plan.outputs, last - first, *plan.out[1:])
    return y


def input_adjoint(
    np: Any, y: Any, w: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int, bias: Any = None
) -> Any:
    """Return the gradient of the input of a convolution, given ``y``, the gradient of its output.

    The same computation gives the output of a transposed convolution of ``y``, to which ``bias`` is added if it is not
    None. ``w`` is the weight, and the result has the given ``shape``. The other parameters are those of
    :func:`convolve`.
    """
    dtype, w = y.dtype, upcast_half(w)
    bias = None if bias is None else upcast_half(bias)
    if np.__name__ == "cupy" and 0 not in (y.size, w.size, *shape):
        plan = Plan(shape, w.shape, y.shape, stride, padding, dilation, groups)
        if (x := np.windows.input_gradient(plan, y, w, shape)) is not None:
            return x if bias is None else (x + bias.reshape(-1, *(1,) * len(stride))).astype(dtype, copy=False)
    y = upcast_half(y)
    if np is numpy and _is_pointwise(shape, w.shape, y.shape, stride, padding, groups):
        x = _times_each(numpy.ascontiguousarray(w.reshape(w.shape[:2]).T), _flat_images(y)).reshape(shape)
        return _with_bias(x, bias, dtype)
    if (x := convolution_numba.input_of(y, w, bias, shape, stride, padding, dilation, groups)) is not None:
        return x.astype(dtype, copy=False)
    plan = Plan(shape, w.shape, y.shape, stride, padding, dilation, groups)
    if plan.empty or np.__name__ == "meta":
        x = np.zeros(shape, y.dtype)
    elif plan.pointwise:
        matrix = w.reshape(groups, plan.single, -1).swapaxes(1, 2)
        x = np.matmul(matrix, y.reshape(plan.batch, groups, plan.single, -1)).reshape(shape)
    else:
        x = np.zeros(shape, y.dtype)
        for samples, first, last in plan.blocks():
            _add_input(np, plan, y[samples, :, first:last], w, x[samples], first, last)
    return _with_bias(x, bias, dtype)


def _add_input(np: Any, plan: Plan, y: Any, w: Any, x: Any, first: int, last: int) -> None:
    """Add to ``x``, the gradient of the input, the part that comes from the output rows ``first`` to ``last - 1``.

    ``y`` is the gradient of these output rows, for the samples that ``x`` holds. ``plan`` holds the sizes of the
    convolution, and ``w`` is the weight.
    """
    count = len(x)
    start, stop = plan.reach(first, last)
    direct = plan.fits() and stop <= plan.space[0]
    slab = x[:, :, start:stop] if direct else np.zeros((*x.shape[:2], stop - start, *plan.widths()), x.dtype)
    seen = window_view(np, slab, plan.kernel, plan.stride, plan.dilation, (last - first, *plan.out[1:]))
    places = product(*map(range, plan.kernel))
    if plan.depthwise:
        split = y.reshape(count, plan.groups, plan.single, *y.shape[2:])
        weights = w.reshape(plan.groups, plan.single, *plan.kernel)
        ones = (1,) * len(plan.kernel)
        for place in places:
            part = split * weights[(..., *place)].reshape(plan.groups, plan.single, *ones)
            seen[(slice(None), slice(None), *place)] += part[:, :, 0] if plan.single == 1 else np.add.reduce(part, 2)
    else:
        columns = _columns_of(np, plan, y, w)
        for place in places:
            seen[(slice(None), slice(None), *place)] += columns[(slice(None), *place)].swapaxes(0, 1)
    if not direct:
        within, target = plan.inner(start, stop)
        x[target] += slab[within]


def _columns_of(np: Any, plan: Plan, y: Any, w: Any) -> Any:
    """Return the gradient of each window of the input, given the weight ``w`` and ``y``, the gradient of the output.

    ``plan`` has the sizes of the convolution. A window is the set of input elements that one output position reads. The
    result has the shape (channels, *kernel, batch, *out).
    """
    matrix = w.reshape(plan.groups, plan.single, -1).swapaxes(1, 2)
    columns = np.matmul(matrix, y.swapaxes(0, 1).reshape(plan.groups, plan.single, -1))
    return columns.reshape(plan.channels, *plan.kernel, len(y), *y.shape[2:])


def weight_adjoint(np: Any, y: Any, x: Any, shape: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    """Return the gradient of the weight of a convolution, as an array of the given ``shape``.

    ``x`` is the input of the convolution and ``y`` the gradient of its output. The other parameters are those of
    :func:`convolve`.
    """
    if np.__name__ == "cupy" and 0 not in (y.size, x.size, *shape):
        plan = Plan(x.shape, shape, y.shape, stride, padding, dilation, groups)
        if (result := np.windows.weight_gradient(plan, y, x, shape)) is not None:
            return result
    dtype, y, x = y.dtype, upcast_half(y), upcast_half(x)
    if np is numpy and _is_pointwise(x.shape, shape, y.shape, stride, padding, groups):
        return _sum_of_products(_flat_images(y), _flat_images(x)).reshape(shape).astype(dtype, copy=False)
    if (result := convolution_numba.weight(y, x, shape, stride, padding, dilation, groups)) is not None:
        return result.astype(dtype, copy=False)
    plan = Plan(x.shape, shape, y.shape, stride, padding, dilation, groups)
    w = np.zeros(shape, y.dtype)
    if plan.empty or np.__name__ == "meta":
        return w.astype(dtype, copy=False)
    if plan.depthwise:
        weights = w.reshape(groups, plan.single, *plan.kernel)
        for samples, first, last in plan.blocks():
            seen = plan.seen(np, x[samples], first, last)
            part = y[samples, :, first:last].reshape(len(seen), groups, plan.single, *seen.shape[2 + len(stride) :])
            for place in product(*map(range, plan.kernel)):
                view = seen[(slice(None), slice(None), None, *place)]
                weights[(..., *place)] += (view * part).sum((0, *range(3, part.ndim)))
        return w.astype(dtype, copy=False)
    buffer, matrix = plan.buffer(np, x.dtype), w.reshape(groups, plan.single, -1)
    for samples, first, last in plan.blocks():
        columns = plan.columns(np, x[samples], first, last, buffer)
        part = y[samples, :, first:last].swapaxes(0, 1).reshape(groups, plan.single, -1)
        # With the larger matrix first BLAS is faster by a sixth.
        matrix += np.matmul(columns, part.swapaxes(1, 2)).swapaxes(1, 2)
    return w.astype(dtype, copy=False)


# -- unfold and fold -------------------------------------------------------------------------------------------------


def unfold_windows(np: Any, x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> Any:
    """Return the windows of ``x`` (…, channels, *space) as columns (…, channels * kernel elements, ``prod(out)``).

    ``out`` holds the number of windows along each spatial dimension.
    """
    seen = window_view(np, zero_padded(np, x, padding), kernel, stride, dilation, out)
    *lead, channels = x.shape[: x.ndim - len(kernel)]
    # The copy comes first: reshaping alone might give a view of x.
    return seen.copy().reshape(*lead, channels * math.prod(kernel), math.prod(out))


def fold_windows(np: Any, x: Any, space: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, out: Any) -> Any:
    """Return an array (…, channels, *space) that sums the columns ``x`` at the positions of their windows.

    This is the adjoint of :func:`unfold_windows`. ``out`` holds the number of windows along each spatial dimension.
    """
    dtype, x = x.dtype, upcast_half(x)
    lead = (*x.shape[:-2], x.shape[-2] // math.prod(kernel))
    columns = x.reshape(*lead, *kernel, *out)
    slab = np.zeros((*lead, *(n + 2 * p for n, p in zip(space, padding, strict=True))), x.dtype)
    seen = window_view(np, slab, kernel, stride, dilation, out)
    for place in product(*map(range, kernel)):
        at = (*(slice(None),) * len(lead), *place)
        seen[at] += columns[at]
    cut = slab[(..., *(slice(p, p + n) for n, p in zip(space, padding, strict=True)))]
    return (cut.copy() if any(padding) else slab).astype(dtype, copy=False)
