"""Numba loops of 2-d convolution and its adjoints, as matrix products in tiles.

A tile is a block of results that stay in registers. Images have the shape (batch, channels, rows, columns). One matrix
of the product would consist of all windows of the image, but this matrix is never stored. Instead the image is copied
to scratch lines (Note [Lines of images]), in which the elements of a channel that one kernel element multiplies are
contiguous.

``how`` is (row stride, column stride, row padding, column padding, row dilation, column dilation); ``kernel`` is (rows,
columns). ``offsets`` holds for each channel and kernel element the offset of its data in the scratch lines. ``plane``
is the number of elements from one channel to the next in the scratch lines. ``some`` is the number of output rows that
are computed together. ``room`` (parts, elements) is scratch memory: the work is divided into as many parts as ``room``
has rows, and each thread computes some of the parts.

Note [Lines of images]. For each column of the kernel the image is copied, padding included, so that each row has only
the elements that this column multiplies, one for each output column. The kernel elements of this column all read the
same copy; an element further down begins at a later row. With a stride of s rows, there are s copies instead of one:
copy k has the image rows k, k + s, k + 2 s and so on. Their order in memory is (columns of the kernel, s, channels,
plane).
"""

from __future__ import annotations

from typing import Any

import numpy
from numba import njit, prange

from .direct_convolution import _clear, _seen
from .gemm_microkernel import BYTES, ROWS, half_tile, move_rows, thin_rows, tile
from .jit import loop

#: Kernel elements whose data is read for one tile after the other, so that it stays in a core's first cache.
SPAN = 128


@njit
def _lay_out(x: Any, n: Any, c: Any, how: Any, top: Any, rows: Any, width: Any, lines: Any) -> None:
    """Copy part of image ``n`` of ``x``, padding included, to the scratch array ``lines``.

    The layout of ``lines`` is described in Note [Lines of images]. The channels begin at channel ``c``; their number is
    that of ``lines``. Of each channel, ``rows`` rows of ``width`` elements are written, beginning with row ``top`` of
    the image. Elements outside of the image are set to 0. ``how`` holds strides, paddings and dilations (see the
    module's docstring).
    """
    whole, area = x.reshape(x.size), x.shape[2] * x.shape[3]
    for j in range(lines.shape[0]):
        start = j * how[5] - how[3]
        first, last = _seen(x.shape[3], width, start, how[1])
        for side in range(how[0]):
            # The rows of the lines that are inside the image.
            low = min(max(0, (-top - side + how[0] - 1) // how[0]), rows)
            high = max(low, min(rows, (x.shape[2] - top - side + how[0] - 1) // how[0])) if first < last else low
            for k in range(lines.shape[2]):
                line = lines[j, side, k]
                begin = (n * x.shape[1] + c + k) * area + (top + side) * x.shape[3] + first * how[1] + start
                lead = how[0] * x.shape[3]
                at, to, count = begin + low * lead, low * width + first, last - first
                if how[1] == 1:
                    move_rows(whole, at, lead, line, to, width, high - low, count)
                elif how[1] == 2:
                    thin_rows(whole, at, lead, line, to, width, high - low, count)
                else:
                    for r in range(high - low):
                        for q in range(count):
                            line[to + r * width + q] = whole[at + r * lead + q * how[1]]
                _clear(line[: low * width])
                _clear(line[high * width : rows * width])
                for r in range(low * width, high * width, width):
                    for q in range(r, r + first):
                        line[q] = 0
                    for q in range(r + last, r + width):
                        line[q] = 0


@loop
def cut(w: Any, start: Any, steps: Any, sizes: Any, out: Any) -> None:
    """Copy the weights to ``out``, in the order in which the loops read them.

    ``out`` has the shape (groups, tiles, channels * kernel elements, ``ROWS``). A tile is a block of ``ROWS`` output
    channels; the last tile of a group is filled up with zeros.

    ``w`` is 1-d memory in which the weights begin at ``start``. ``sizes`` holds the numbers of groups, outputs per
    group, channels per group, rows and columns of the kernel. ``steps`` holds the stride of each of these axes.
    """
    groups, single, channels, tall, wide = sizes
    tiles = out.shape[1]
    for job in prange(groups * tiles):
        g, t = job // tiles, job % tiles
        first, outputs = start + g * steps[0] + t * ROWS * steps[1], min(ROWS, single - t * ROWS)
        row = 0
        for c in range(channels):
            for i in range(tall):
                for j in range(wide):
                    at, given = first + c * steps[2] + i * steps[3] + j * steps[4], out[g, t, row]
                    for r in range(outputs):
                        given[r] = w[at + r * steps[1]]
                    for r in range(outputs, ROWS):
                        given[r] = 0
                    row += 1


@loop
def output(
    x: Any, w: Any, bias: Any, how: Any, kernel: Any, offsets: Any, plane: Any, some: Any, size: Any, where: Any,
    room: Any, y: Any,
) -> None:  # fmt: skip
    """Write the convolution of ``x`` with ``w`` plus ``bias`` to ``y``, or to evenly spaced elements of ``y``.

    The result is computed in tiles, blocks of ``ROWS`` output channels whose results stay in registers. ``w`` has the
    shape (groups, tiles, channels * kernel elements, ``ROWS``), as :func:`cut` writes it. ``bias`` has the shape
    (groups, tiles * ``ROWS``).

    ``size`` is the number of rows and columns of the result. ``where`` is the position of the result in ``y``: (first
    row, row step, first column, column step). ``how`` holds strides, paddings and dilations, and ``kernel`` is (rows,
    columns). ``some`` is the number of output rows that are computed together. ``room`` is scratch memory, which holds
    a copy of the image. ``offsets`` and ``plane`` describe the layout of this copy (see the module's docstring).
    """
    groups, tiles, places, _ = w.shape
    channels, single, wide, parts = x.shape[1] // groups, y.shape[1] // groups, size[1], room.shape[0]
    pieces, there = (size[0] + some - 1) // some, y.reshape(y.size)
    weights, base = w.reshape(w.size), bias.reshape(bias.size)
    step, steps, area = 2 * BYTES // x.itemsize, numpy.arange(ROWS), y.shape[2] * y.shape[3]
    simple = where[1] == 1 and where[3] == 1 and y.shape[3] == wide
    jobs, used = x.shape[0] * groups * pieces, kernel[1] * how[0] * channels * plane
    for part in prange(parts):
        space = room[part]
        lines = space[:used].reshape(kernel[1], how[0], channels, plane)
        for job in range(part * jobs // parts, (part + 1) * jobs // parts):
            n, g, first = job // (groups * pieces), job // pieces % groups, job % pieces * some
            rows, corner = min(some, size[0] - first), (n * groups + g) * single * area + first * wide
            below = rows + (kernel[0] - 1) * how[4] // how[0]
            _lay_out(x, n, g * channels, how, first * how[0] - how[2], below, wide, lines)
            for at in range(0, rows * wide, step):
                count = min(step, rows * wide - at)
                whole = single // ROWS if simple and count == step else 0  # tiles that are computed in place
                for begin in range(0, places if whole else 0, SPAN):
                    span = (begin, min(begin + SPAN, places))
                    for t in range(whole):
                        row, to = (g * tiles + t) * ROWS, corner + t * ROWS * area + at
                        if begin:
                            tile(weights, row * places, steps, ROWS, space, at, offsets, span, there, to, area, True, 0)
                        else:
                            tile(
                                weights, row * places, steps, ROWS, space, at, offsets, span, there, to, area, base, row
                            )
                for t in range(whole, tiles):
                    row = (g * tiles + t) * ROWS
                    args = (weights, row * places, steps, ROWS, space, at, offsets, (0, places))
                    if 2 * count <= step:
                        half_tile(*args, space, used, step, base, row)
                    else:
                        tile(*args, space, used, step, base, row)
                    for r in range(min(ROWS, single - t * ROWS)):
                        begin = (n * y.shape[1] + g * single + t * ROWS + r) * area
                        _copy_to_image(
                            space, used + r * step, count, first * wide + at, wide, where, there, begin, y.shape[3]
                        )


@njit
def _copy_to_image(
    made: Any, start: Any, count: Any, at: Any, wide: Any, where: Any, there: Any, begin: Any, width: Any
) -> None:  # fmt: skip
    """Copy ``count`` results of one output channel from the scratch array ``made`` to an output image.

    The results begin at ``made[start]``. They are consecutive elements, from the flat index ``at`` on, of a matrix with
    ``wide`` columns. ``where`` is (first row, row step, first column, column step): row r and column c of the matrix
    are written to row ``where[0] + r * where[1]`` and column ``where[2] + c * where[3]`` of the image. The image begins
    at the offset ``begin`` of the 1-d array ``there``, and has rows of ``width`` elements.
    """
    row, column = at // wide, at % wide
    while count > 0:
        some = count if where[1] == where[3] == 1 and width == wide else min(count, wide - column)
        to = begin + (where[0] + row * where[1]) * width + where[2] + column * where[3]
        if where[3] == 1:
            for k in range(some):
                there[to + k] = made[start + k]
        else:
            for k in range(some):
                there[to + k * where[3]] = made[start + k]
        row, column, start, count = row + 1, 0, start + some, count - some


@loop
def weight(
    y: Any, x: Any, how: Any, kernel: Any, offsets: Any, plane: Any, some: Any, room: Any, w: Any
) -> None:  # fmt: skip
    """Write the gradient of the weight to ``w`` as partial sums, which the caller adds up.

    ``x`` is the input and ``y`` the gradient of the output. ``w`` has the shape (parts, groups, channels * kernel
    elements, outputs), where parts are the parts of the work. ``offsets`` is padded to a multiple of ``ROWS``, and the
    outputs to full vector registers. The other parameters (strides, sizes, scratch memory) are described in the
    module's docstring.
    """
    parts, groups, places, lead = w.shape
    channels, single, wide = x.shape[1] // groups, y.shape[1] // groups, y.shape[3]
    pieces = (y.shape[2] + some - 1) // some
    step, steps, made = BYTES // x.itemsize, numpy.arange(some * wide) * lead, w.reshape(w.size)
    jobs, used = x.shape[0] * groups * pieces, kernel[1] * how[0] * channels * plane
    for part in prange(parts):
        space = room[part]
        _clear(made[part * (w.size // parts) : (part + 1) * (w.size // parts)])
        lines = space[:used].reshape(kernel[1], how[0], channels, plane)
        for job in range(part * jobs // parts, (part + 1) * jobs // parts):
            n, g, first = job // (groups * pieces), job // pieces % groups, job % pieces * some
            rows = min(some, y.shape[2] - first)
            below, length = rows + (kernel[0] - 1) * how[4] // how[0], rows * wide
            _lay_out(x, n, g * channels, how, first * how[0] - how[2], below, wide, lines)
            turned = space[used : used + length * lead].reshape(length, lead)
            for o in range(single):
                _write_column(y[n, g * single + o].reshape(y.shape[2] * wide)[first * wide :], turned, o)
            for row in range(0, places, ROWS):
                seen = offsets[row : row + ROWS]
                for o in range(0, lead, 2 * step):
                    to, span = ((part * groups + g) * places + row) * lead + o, (0, length)
                    if o + step == lead:
                        half_tile(space, 0, seen, 1, space, used + o, steps, span, made, to, lead, True, 0)
                    else:
                        tile(space, 0, seen, 1, space, used + o, steps, span, made, to, lead, True, 0)


@njit
def _write_column(row: Any, columns: Any, o: Any) -> None:
    for k in range(columns.shape[0]):
        columns[k, o] = row[k]


#: Outputs whose weights are added together: a cache line of float32.
SIDE = 16


@loop
def collected(parts: Any, w: Any) -> None:
    """Write the gradient of the weight, the sum of ``parts`` over its first axis, to ``w``.

    ``parts`` holds the partial sums that :func:`weight` computes. ``w`` has the shape (groups, outputs per group,
    channels * kernel elements).
    """
    groups, single, places = w.shape
    strips = (single + SIDE - 1) // SIDE
    for job in prange(groups * strips):
        g, first = job // strips, job % strips * SIDE
        count = min(SIDE, single - first)
        for k in range(places):
            for o in range(first, first + count):
                total = parts[0, g, k, o]
                for part in range(1, parts.shape[0]):
                    total += parts[part, g, k, o]
                w[g, o, k] = total
