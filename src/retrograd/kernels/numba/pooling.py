"""Numba loops of max_pool2d and its gradient.

A plane is one channel of one sample. ``how`` is (row stride, column stride, row padding, column padding, row dilation,
column dilation).
"""

from __future__ import annotations

from typing import Any

import numpy
from numba import njit, prange

from .direct_convolution import _seen
from .jit import loop

#: Rows of fewer windows are processed window by window: too short for vector instructions along the row.
SHORT = 12


@njit
def _maxima_of_few(image: Any, kernel: Any, how: Any, top: Any, best: Any, where: Any) -> None:
    """Write the maxima of one row of windows to ``best``, and their flat indices in ``image`` to ``where``.

    The windows begin at the image row ``top``. ``kernel`` is (rows, columns) of a window; ``how`` holds strides,
    paddings and dilations (see the module's docstring). Each window is processed separately, which is faster for short
    rows.
    """
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


@njit(inline="always")
def _maxima_of_twos(above: Any, below: Any, place: Any, best: Any, where: Any) -> None:
    """Write the maxima of adjacent windows of 2 x 2 elements to ``best``, and their flat indices to ``where``.

    ``above`` and ``below`` are the two image rows; ``place`` is the flat index of the first element of ``above``.
    """
    width = above.size
    for q in range(best.size):
        k = numpy.uintp(q) * numpy.uintp(2)
        largest, second, third, fourth, at = above[k], above[k + 1], below[k], below[k + 1], 0
        larger = (second > largest) | (second != second)
        largest, at = second if larger else largest, 1 if larger else at
        larger = (third > largest) | (third != third)
        largest, at = third if larger else largest, width if larger else at
        larger = (fourth > largest) | (fourth != fourth)
        best[q] = fourth if larger else largest
        where[q] = place + 2 * q + (width + 1 if larger else at)


@loop
def maxima(x: Any, kernel: Any, how: Any, values: Any, indices: Any) -> None:
    """Write the maximum of each window of ``x`` (planes, rows, columns) to ``values``, and its index to ``indices``.

    The indices are flat indices within a plane (one channel of one sample). Of equal elements the first is selected, of
    several nan the last. Every window must contain an element of the image. ``how`` holds strides, paddings and
    dilations (see the module's docstring).
    """
    height, width = x.shape[1], x.shape[2]
    by_twos = (
        kernel == (2, 2)
        and how == (2, 2, 0, 0, 1, 1)
        and width >= 2 * values.shape[2]
        and height >= 2 * values.shape[1]
    )
    for p in prange(x.shape[0]):
        for r in range(values.shape[1]):
            best, where = values[p, r], indices[p, r]
            top = r * how[0] - how[2]
            if by_twos:
                _maxima_of_twos(x[p, 2 * r], x[p, 2 * r + 1], 2 * r * width, best, where)
                continue
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
    """Compare the maximum of each window with one more element, and replace the maximum if the element is larger.

    ``best`` holds the maxima, and ``where`` their flat indices. The element of window k is ``source[k * step]``, with
    the flat index ``place + k * step``. nan counts as larger than any number.
    """
    for k in range(best.size):
        each, old, kept = source[numpy.uintp(k) * numpy.uintp(step)], best[k], where[k]
        larger = (each > old) | (each != each)
        best[k] = each if larger else old
        where[k] = place + k * step if larger else kept


@loop
def spread(given: Any, indices: Any, out: Any) -> None:
    """Write the gradient of the input of max_pool2d to ``out`` (planes, elements).

    ``given`` is the gradient of the output. ``given[p, k]`` is added at ``out[p, indices[p, k]]``; all other elements
    of ``out`` become 0.
    """
    size = out.shape[1]
    for p in prange(given.shape[0]):
        plane = out[p]
        plane[:] = 0
        for k in range(given.shape[1]):
            at = indices[p, k]
            if 0 <= at < size:
                plane[at] += given[p, k]
