"""Loops over windows of images (batch, channels, rows, columns): convolution without products of matrices, and pooling.

``how`` is (row stride, column stride, row padding, column padding, row dilation, column dilation). What a place of the
kernel sees of a row of the image are elements in even steps, and which windows it sees inside is a range: so each place
is a loop along a row, without a question.
"""

from __future__ import annotations

from typing import Any

import numpy
from numba import njit, prange

from .compile import loop, loop_of_sums
from .tiles import move_row

# Parts of rows are cut out before they are gone through: of an index that counts from 0 the compiler knows that it is
# not negative, and only then takes several elements at a time.


@njit(inline="always")
def _seen(size: Any, out: Any, start: Any, stride: Any) -> Any:
    """First and last (exclusive) window for which ``start + window * stride`` lies within ``size``."""
    first = 0 if start >= 0 else (-start + stride - 1) // stride
    last = 0 if start >= size else (size - 1 - start) // stride + 1
    return min(first, out), max(min(first, out), min(last, out))


@njit(inline="always")
def _clear(row: Any) -> None:
    for k in range(row.size):  # row[:] = 0 takes longer for a short one
        row[k] = 0


# Note [Shifted images]. With stride 1 and padding such that images keep their width, what a place of the kernel sees of an
# image is the image itself, all rows as one line, moved by some elements; only in the columns at the edge, where the end
# of one row would be seen in the next, there must be zeros.


@njit(inline="always")
def _clear_edges(line: Any, width: Any, start: Any) -> None:
    """Zeros in the columns from which, moved on by ``start``, another row would be reached."""
    first, last = (0, -start) if start < 0 else (max(width - start, 0), width)
    for at in range(0, line.size, width):
        for q in range(first, min(last, width)):
            line[at + q] = 0


@njit
def _shifted(image: Any, shift: Any, line: Any) -> None:
    """``line[k] = image[k + shift]``, zero outside."""
    first = min(max(0, -shift), line.size)
    last = max(first, min(line.size, image.size - shift))
    line[:first] = 0
    part, seen = line[first:last], image[first + shift :]
    for k in range(part.size):
        part[k] = seen[k]
    line[last:] = 0


# -- Convolution without products of matrices ------------------------------------------------------------------------
#
# Note [Flat images]. A row of an image is too short for a loop to get going. So an image is laid out flat with its padding;
# then what a place of the kernel sees of all rows is one long line, from the place's distance on. Between the rows lie
# elements that belong to no window: what is calculated for them is not used, and gradients are zero there. With a stride
# of s an image is laid out as s * s images of every s-th row and column, and each place of the kernel sees one of these.


@njit(inline="always")
def _sizes(x: Any, w: Any, how: Any, y: Any) -> Any:
    """Rows and columns of each of the flat images."""
    rows = max(x.shape[2] + 2 * how[2], (y.shape[2] - 1) * how[0] + how[4] * (w.shape[2] - 1) + 1)
    wide = max(x.shape[3] + 2 * how[3], (y.shape[3] - 1) * how[1] + how[5] * (w.shape[3] - 1) + 1)
    return (rows + how[0] - 1) // how[0], (wide + how[1] - 1) // how[1]


@njit(inline="always")
def _place(i: Any, j: Any, how: Any, width: Any) -> Any:
    """Which of the flat images a place of the kernel sees, and from where on."""
    return i * how[4] % how[0] * how[1] + j * how[5] % how[1], i * how[4] // how[0] * width + j * how[5] // how[1]


@njit
def _lay_out(image: Any, how: Any, width: Any, flat: Any) -> None:
    """Fill the flat images."""
    flat[:] = 0
    if how[0] == 1 and how[1] == 1:
        for r in range(image.shape[0]):
            move_row(image[r], flat[0, (r + how[2]) * width + how[3] :])
        return
    for r in range(image.shape[0]):
        row, at = image[r], r + how[2]
        for side in range(how[1]):
            first = (side - how[3]) % how[1]
            begin = at // how[0] * width + (first + how[3]) // how[1]
            part = row[first:]
            target = flat[at % how[0] * how[1] + side, begin : begin + (part.size + how[1] - 1) // how[1]]
            for k in range(target.size):
                target[k] = part[numpy.uintp(k) * numpy.uintp(how[1])]


@njit
def _put_together(flat: Any, how: Any, width: Any, image: Any) -> None:
    """The inverse of :func:`_lay_out`."""
    if how[0] == 1 and how[1] == 1:
        for r in range(image.shape[0]):
            begin = (r + how[2]) * width + how[3]
            move_row(flat[0, begin : begin + image.shape[1]], image[r])
        return
    for r in range(image.shape[0]):
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
    """The rows of an output as they lie in a flat image, zeros between them."""
    _clear(line)
    for r in range(y.shape[0]):
        move_row(y[r], line[r * width :])


@loop
def direct(x: Any, w: Any, how: Any, y: Any) -> None:
    """The convolution of ``x`` with ``w`` (outputs, channels a group, *kernel)."""
    outputs, single, tall, wide = w.shape
    share = outputs // (x.shape[1] // single)
    height, width = _sizes(x, w, how, y)
    length = (y.shape[2] - 1) * width + y.shape[3]
    for job in prange(x.shape[0] * outputs):
        n, o = job // outputs, job % outputs
        flat, line = numpy.empty((how[0] * how[1], height * width), x.dtype), numpy.zeros(length, x.dtype)
        for c in range(single):
            _lay_out(x[n, o // share * single + c], how, width, flat)
            for i in range(tall):
                j = 0
                while j < wide:
                    which, at = _place(i, j, how, width)
                    a, seen = w[o, c, i, j], flat[which, at:]
                    if how[1] == 1 and j + 3 <= wide:  # three at once
                        b, d, next_, last = w[o, c, i, j + 1], w[o, c, i, j + 2], seen[how[5] :], seen[2 * how[5] :]
                        for k in range(length):
                            line[k] += a * seen[k] + b * next_[k] + d * last[k]
                        j += 3
                    else:
                        for k in range(length):
                            line[k] += a * seen[k]
                        j += 1
        for r in range(y.shape[2]):
            move_row(line[r * width : r * width + y.shape[3]], y[n, o, r])


@loop
def direct_input(y: Any, w: Any, how: Any, x: Any) -> None:
    """The adjoint of :func:`direct` for its input."""
    outputs, single, tall, wide = w.shape
    channels = x.shape[1]
    share = outputs // (channels // single)
    height, width = _sizes(x, w, how, y)
    length = (y.shape[2] - 1) * width + y.shape[3]
    for job in prange(x.shape[0] * channels):
        n, c = job // channels, job % channels
        flat, line = numpy.zeros((how[0] * how[1], height * width), x.dtype), numpy.empty(length, x.dtype)
        for o in range(c // single * share, (c // single + 1) * share):
            _lay_out_rows(y[n, o], width, line)
            for i in range(tall):
                for j in range(wide):
                    which, at = _place(i, j, how, width)
                    target, weight = flat[which, at:], w[o, c % single, i, j]
                    for k in range(length):
                        target[k] += weight * line[k]
        _put_together(flat, how, width, x[n, c])


@loop_of_sums
def direct_weight(y: Any, x: Any, how: Any, w: Any) -> None:
    """The adjoint of :func:`direct` for its weight: added up image by image in float64."""
    outputs, single, tall, wide = w.shape
    share = outputs // (x.shape[1] // single)
    height, width = _sizes(x, w, how, y)
    length = (y.shape[2] - 1) * width + y.shape[3]
    for job in prange(outputs * single):
        o, c = job // single, job % single
        totals, zero = numpy.zeros((tall, wide)), numpy.zeros(1, x.dtype)[0]
        flat, line = numpy.empty((how[0] * how[1], height * width), x.dtype), numpy.empty(length, x.dtype)
        for n in range(x.shape[0]):
            _lay_out(x[n, o // share * single + c], how, width, flat)
            _lay_out_rows(y[n, o], width, line)
            for i in range(tall):
                for j in range(wide):
                    which, at = _place(i, j, how, width)
                    seen, total = flat[which, at:], zero
                    for k in range(length):
                        total += line[k] * seen[k]
                    totals[i, j] += total
        for i in range(tall):
            for j in range(wide):
                w[o, c, i, j] = totals[i, j]


# -- The largest of each window --------------------------------------------------------------------------------------


#: Windows in a row below which they are gone through one by one: a loop along the row would not get going.
SHORT = 12


@njit
def _maxima_of_few(image: Any, kernel: Any, how: Any, top: Any, best: Any, where: Any) -> None:
    """The largest elements of a row of windows, and their places."""
    height, width = image.shape
    low = 0 if top >= 0 else (-top + how[4] - 1) // how[4]
    for q in range(best.size):
        side = q * how[1] - how[3]
        left = 0 if side >= 0 else (-side + how[5] - 1) // how[5]
        place = (top + low * how[4]) * width + side + left * how[5]
        largest, at = -numpy.inf, place
        for i in range(low, min(kernel[0], (height - 1 - top) // how[4] + 1)):
            row = top + i * how[4]
            for j in range(left, min(kernel[1], (width - 1 - side) // how[5] + 1)):
                column = side + j * how[5]
                each = image[row, column]
                if each > largest or each != each:
                    largest, at = each, row * width + column
        best[q] = largest
        where[q] = at


@loop
def maxima(x: Any, kernel: Any, how: Any, values: Any, indices: Any) -> None:
    """The largest element of each window of planes (planes, rows, columns), and its place in the plane.

    Of equal ones the first, and of nans the last. Every window has an element inside.
    """
    height, width = x.shape[1], x.shape[2]
    for p in prange(x.shape[0]):
        for r in range(values.shape[1]):
            best, where = values[p, r], indices[p, r]
            top = r * how[0] - how[2]
            if best.size < SHORT:
                _maxima_of_few(x[p], kernel, how, top, best, where)
                continue
            begin = top if top >= 0 else top + (-top + how[4] - 1) // how[4] * how[4]
            for q in range(best.size):
                side = q * how[1] - how[3]
                column = side if side >= 0 else side + (-side + how[5] - 1) // how[5] * how[5]
                best[q] = -numpy.inf
                where[q] = begin * width + column
            for i in range(kernel[0]):
                at = top + i * how[4]
                if at < 0 or at >= height:
                    continue
                for j in range(kernel[1]):
                    start = j * how[5] - how[3]
                    first, last = _seen(width, best.size, start, how[1])
                    place = first * how[1] + start
                    source = x[p, at, place:]
                    if how[1] == 2:
                        _take_larger(best[first:last], where[first:last], source, at * width + place, 2)
                    else:
                        _take_larger(best[first:last], where[first:last], source, at * width + place, how[1])


@njit(inline="always")
def _take_larger(best: Any, where: Any, source: Any, place: Any, step: Any) -> None:
    for k in range(best.size):
        each, old, kept = source[numpy.uintp(k) * numpy.uintp(step)], best[k], where[k]
        larger = (each > old) | (each != each)
        best[k] = each if larger else old
        where[k] = place + k * step if larger else kept


@loop
def spread(given: Any, indices: Any, out: Any) -> None:
    """Add the elements of each plane (planes, elements) at their places to zeros."""
    size = out.shape[1]
    for p in prange(given.shape[0]):
        plane = out[p]
        plane[:] = 0
        for k in range(given.shape[1]):
            at = indices[p, k]
            if 0 <= at < size:
                plane[at] += given[p, k]
