"""Numba loops of 2-d convolution with few channels, and its adjoints, without matrix products.

Images have the shape (batch, channels, rows, columns). ``how`` is (row stride, column stride, row padding, column
padding, row dilation, column dilation). The elements of an image row that one kernel element multiplies are evenly
spaced. Therefore each kernel element is processed by one loop along the row, without branches. ``room`` (parts,
elements) is scratch memory: the work is divided into as many parts as ``room`` has rows.
"""

from __future__ import annotations

from typing import Any

import numpy
from numba import njit, prange

from .gemm_microkernel import move_rows
from .jit import loop, loop_of_sums, step, step_of_sums
from .math import like

# Loops run over slices of rows from index 0 on, because the compiler generates vector instructions only for an index
# that is known not to be negative.


@njit
def _seen(size: Any, out: Any, start: Any, stride: Any) -> Any:
    """Return (first, stop), the range of the windows k for which ``start + k * stride`` is inside the image.

    k is from 0 to ``out - 1``. The image has ``size`` elements along the axis.
    """
    first = 0 if start >= 0 else (-start + stride - 1) // stride
    last = 0 if start >= size else (size - 1 - start) // stride + 1
    return min(first, out), max(min(first, out), min(last, out))


@njit
def _fill(row: Any, value: Any) -> None:
    for k in range(row.size):  # row[:] = value is slower for short rows, and slow to compile
        row[k] = value


@njit
def _clear(row: Any) -> None:
    for k in range(row.size):
        row[k] = 0


# Note [Flat images]. A row of an image is too short for vector instructions to pay. So an image is copied with its
# padding into one line; the elements of all rows that a kernel element sees are then contiguous, beginning at its
# offset. Between the rows are elements that belong to no window: results there are not used, and gradients are
# zero there. With a stride of s an image is stored as s * s images of every s-th row and column, of which each kernel
# element sees one.


@njit(inline="always")
def _sizes(x: Any, w: Any, how: Any, y: Any) -> Any:
    """Return the number of rows and the number of columns of a flat image.

    A flat image is a padded copy of a channel in contiguous memory (Note [Flat images]). ``x``, ``w`` and ``y`` are the
    input, the weight and the output. ``how`` holds strides, paddings and dilations (see the module's docstring).
    """
    rows = max(x.shape[2] + 2 * how[2], (y.shape[2] - 1) * how[0] + how[4] * (w.shape[2] - 1) + 1)
    wide = max(x.shape[3] + 2 * how[3], (y.shape[3] - 1) * how[1] + how[5] * (w.shape[3] - 1) + 1)
    return (rows + how[0] - 1) // how[0], (wide + how[1] - 1) // how[1]


@njit(inline="always")
def _place(i: Any, j: Any, how: Any, width: Any) -> Any:
    """Return (index of a flat image, offset in it) of the first input that kernel element (``i``, ``j``) multiplies.

    A flat image is a padded copy of a channel in contiguous memory, with ``width`` elements per row. If the stride is
    not 1, each channel has several flat images, which hold different rows and columns (Note [Flat images]). ``how``
    holds strides, paddings and dilations (see the module's docstring).
    """
    return i * how[4] % how[0] * how[1] + j * how[5] % how[1], i * how[4] // how[0] * width + j * how[5] // how[1]


@njit
def _lay_out(image: Any, how: Any, width: Any, flat: Any) -> None:
    """Copy ``image`` to ``flat``, a padded image in the layout of Note [Flat images], with rows of ``width`` elements.

    The padding is not written, because the caller has set ``flat`` to 0.
    """
    tall, wide = image.shape
    if how[0] == 1 and how[1] == 1:
        move_rows(image.reshape(tall * wide), 0, wide, flat[0], how[2] * width + how[3], width, tall, wide)
        return
    for r in range(tall):
        row, at = image[r], r + how[2]
        for side in range(how[1]):
            first = (side - how[3]) % how[1]
            begin = at // how[0] * width + (first + how[3]) // how[1]
            part = row[first:]
            target = flat[at % how[0] * how[1] + side, begin : begin + (part.size + how[1] - 1) // how[1]]
            for k in range(target.size):
                target[k] = part[numpy.uintp(k) * numpy.uintp(how[1])]


@njit
def _gather_image(flat: Any, how: Any, width: Any, image: Any) -> None:
    """Copy ``flat``, a padded image in the layout that :func:`_lay_out` writes, to ``image`` without the padding."""
    tall, wide = image.shape
    if how[0] == 1 and how[1] == 1:
        move_rows(flat[0], how[2] * width + how[3], width, image.reshape(tall * wide), 0, wide, tall, wide)
        return
    for r in range(tall):
        row, at = image[r], r + how[2]
        for side in range(how[1]):
            first = (side - how[3]) % how[1]
            begin = at // how[0] * width + (first + how[3]) // how[1]
            target = row[first:]
            source = flat[at % how[0] * how[1] + side, begin : begin + (target.size + how[1] - 1) // how[1]]
            for k in range(source.size):
                target[numpy.uintp(k) * numpy.uintp(how[1])] = source[k]


@njit
def _lay_out_rows(y: Any, width: Any, line: Any) -> None:
    """Copy the rows of ``y``, an output, to the 1-d array ``line``, where a row begins every ``width`` elements.

    The elements between the rows are not written, because the caller has set ``line`` to 0.
    """
    move_rows(y.reshape(y.size), 0, y.shape[1], line, 0, width, y.shape[0], y.shape[1])


@loop
def direct(x: Any, w: Any, bias: Any, how: Any, kept: Any, room: Any, y: Any) -> None:
    """Write the convolution of ``x`` with ``w`` (outputs, channels per group, *kernel) plus ``bias`` to ``y``.

    ``kept`` is the number of input channels of which the scratch memory ``room`` holds padded copies at the same time:
    all channels of a group, or one. If it holds all, the copies are used for all output channels of the group. ``how``
    holds strides, paddings and dilations (see the module's docstring).
    """
    outputs, single, tall, _ = w.shape
    share, parts, jobs = outputs // (x.shape[1] // single), room.shape[0], x.shape[0] * outputs
    height, width = _sizes(x, w, how, y)
    length, used = (y.shape[2] - 1) * width + y.shape[3], kept * how[0] * how[1] * height * width
    for part in prange(parts):
        flats, line = room[part, :used].reshape(kept, how[0] * how[1], height * width), room[part, used : used + length]
        _clear(room[part, :used])
        last = -1
        for job in range(part * jobs // parts, (part + 1) * jobs // parts):
            n, o = job // outputs, job % outputs
            same, last = last == job // share and kept == single, job // share
            _fill(line, bias[o])
            for c in range(single):
                flat = flats[c % kept]
                if not same:
                    _lay_out(x[n, o // share * single + c], how, width, flat)
                for i in range(tall):
                    _add_row(w[o, c, i], i, how, width, flat, line)
            move_rows(line, 0, width, y[n, o].reshape(y.shape[2] * y.shape[3]), 0, y.shape[3], y.shape[2], y.shape[3])


@step
def _add_row(weights: Any, i: Any, how: Any, width: Any, flat: Any, line: Any) -> None:
    """Add the convolution of one input channel with one row of the kernel to ``line``, a flat output image.

    ``weights`` is row ``i`` of the kernel. ``flat`` holds the padded input channel in the layout of Note [Flat images],
    with rows of ``width`` elements. ``how`` holds strides, paddings and dilations (see the module's docstring). If the
    column stride is 1, three kernel elements are processed in one pass over ``line``, which is faster.
    """
    j, wide, length = 0, weights.size, line.size
    while j < wide:
        which, at = _place(i, j, how, width)
        a, seen = weights[j], flat[which, at:]
        if how[1] == 1 and j + 3 <= wide:
            b, d, next_, last = weights[j + 1], weights[j + 2], seen[how[5] :], seen[2 * how[5] :]
            for k in range(length):
                line[k] += a * seen[k] + b * next_[k] + d * last[k]
            j += 3
        else:
            for k in range(length):
                line[k] += a * seen[k]
            j += 1


@loop
def direct_input(y: Any, w: Any, how: Any, room: Any, x: Any) -> None:
    """Write the gradient of the input of :func:`direct` to ``x``, given ``y``, the gradient of the output.

    ``w`` is the weight of the convolution. ``how`` holds strides, paddings and dilations, and ``room`` is scratch
    memory (see the module's docstring).
    """
    outputs, single, tall, wide = w.shape
    channels, parts = x.shape[1], room.shape[0]
    share, jobs = outputs // (channels // single), x.shape[0] * channels
    height, width = _sizes(x, w, how, y)
    length, used = (y.shape[2] - 1) * width + y.shape[3], how[0] * how[1] * height * width
    for part in prange(parts):
        flat, line = room[part, :used].reshape(how[0] * how[1], height * width), room[part, used : used + length]
        _clear(line)
        for job in range(part * jobs // parts, (part + 1) * jobs // parts):
            n, c = job // channels, job % channels
            _clear(room[part, :used])
            for o in range(c // single * share, (c // single + 1) * share):
                _lay_out_rows(y[n, o], width, line)
                for i in range(tall):
                    for j in range(wide):
                        which, at = _place(i, j, how, width)
                        target, weight = flat[which, at:], w[o, c % single, i, j]
                        for k in range(length):
                            target[k] += weight * line[k]
            _gather_image(flat, how, width, x[n, c])


@loop_of_sums
def direct_weight(y: Any, x: Any, how: Any, room: Any, w: Any) -> None:
    """Add the gradient of the weight of :func:`direct` to ``w`` (parts, outputs, channels per group, *kernel).

    ``y`` is the gradient of the output and ``x`` is the input. Each part of the work is summed separately; the caller
    adds the sums. ``w`` is a float64 array of zeros. ``how`` holds strides, paddings and dilations, and ``room`` is
    scratch memory (see the module's docstring).
    """
    parts, outputs, single, tall, _ = w.shape
    share, jobs = outputs // (x.shape[1] // single), x.shape[0] * x.shape[1]
    height, width = _sizes(x, w[0], how, y)
    length, used = (y.shape[2] - 1) * width + y.shape[3], how[0] * how[1] * height * width
    for part in prange(parts):
        flat, line = room[part, :used].reshape(how[0] * how[1], height * width), room[part, used : used + length]
        _clear(room[part, : used + length])
        for job in range(part * jobs // parts, (part + 1) * jobs // parts):
            n, c = job // x.shape[1], job % x.shape[1]
            _lay_out(x[n, c], how, width, flat)
            for o in range(c // single * share, (c // single + 1) * share):
                _lay_out_rows(y[n, o], width, line)
                for i in range(tall):
                    _add_products(w[part, o, c % single, i], i, how, width, flat, line)


@step_of_sums
def _add_products(totals: Any, i: Any, how: Any, width: Any, flat: Any, line: Any) -> None:
    """Add the gradient of row ``i`` of the kernel to ``totals``, which has one number for each kernel element.

    The gradient of a kernel element is the sum of the elements of ``line`` times the inputs that the kernel element
    multiplies. ``line`` is the gradient of the output, and ``flat`` the input channel in the layout of Note [Flat
    images]; both have rows of ``width`` elements. ``how`` holds strides, paddings and dilations (see the module's
    docstring). If the column stride is 1, three kernel elements are processed in one pass.
    """
    j, wide, zero = 0, totals.size, like(line[0], 0)
    while j < wide:
        which, at = _place(i, j, how, width)
        seen, first, second, third = flat[which, at:], zero, zero, zero
        if how[1] == 1 and j + 3 <= wide:
            next_, last = seen[how[5] :], seen[2 * how[5] :]
            for k in range(line.size):
                first += line[k] * seen[k]
                second += line[k] * next_[k]
                third += line[k] * last[k]
            totals[j + 1] += second
            totals[j + 2] += third
        else:
            for k in range(line.size):
                first += line[k] * seen[k]
        totals[j] += first
        j += 3 if how[1] == 1 and j + 3 <= wide else 1
