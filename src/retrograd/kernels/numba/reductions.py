"""Numba loops of sum, prod, amax, argmax, var, cumsum and cumprod.

Arrays are summed in blocks (stretches) of 4096 consecutive elements. The sum of a block is computed in the precision of
the array. These sums are then added in double precision, so that the error does not grow with the length. Squares are
added in double precision.
"""

from __future__ import annotations

from typing import Any

import numpy
from numba import prange, uint64

from .jit import loop, loop_of_sums
from .math import larger, like

STRETCH = 4096
FLUSH = 128  # rows that are added before their sum goes to the double-precision sums

# -- Sums ------------------------------------------------------------------------------------------------------------


@loop_of_sums
def total(x: Any, sums: Any) -> Any:
    """Return the sum of the 1-d array ``x``.

    The array is divided into blocks of 4096 elements, which are distributed over the threads. The sum of each block is
    written to ``sums``, and these sums are added.
    """
    for k in prange(sums.size):
        partial = like(x[0], 0)
        part = x[k * STRETCH : (k + 1) * STRETCH]
        for i in range(part.size):
            partial += part[i]
        sums[k] = partial
    whole = 0.0
    for k in range(sums.size):
        whole += sums[k]
    return whole


@loop_of_sums
def total_of_squares(x: Any, centre: Any, sums: Any) -> Any:
    """Return the sum of ``(x - centre)**2`` over the 1-d array ``x``, the second pass of a two-pass variance.

    The sum over each block of 4096 consecutive elements is written to ``sums``.
    """
    for k in prange(sums.size):
        partial = 0.0
        part = x[k * STRETCH : (k + 1) * STRETCH]
        for i in range(part.size):
            gap = numpy.float64(part[i] - centre)
            partial += gap * gap
        sums[k] = partial
    whole = 0.0
    for k in range(sums.size):
        whole += sums[k]
    return whole


@loop_of_sums
def product(x: Any, products: Any) -> None:
    """Write the product of each block of 4096 consecutive elements of the 1-d array ``x`` to ``products``."""
    for k in prange(products.size):
        partial = like(x[0], 1)
        part = x[k * STRETCH : (k + 1) * STRETCH]
        for i in range(part.size):
            partial *= part[i]
        products[k] = partial


@loop_of_sums
def product_rows(x: Any, out: Any) -> None:
    """Write the product of each row of ``x`` to ``out``."""
    for r in prange(x.shape[0]):
        value, row = like(x[r, 0], 1), x[r]
        for i in range(row.size):
            value *= row[i]
        out[r] = value


@loop_of_sums
def products_of_others(x: Any, out: Any) -> None:
    """Write to ``out``, for each element of ``x``, the product of the other elements of its row.

    The product of the whole row is divided by the element if that product is between 1e-30 and 1e30. Otherwise the
    products of the elements before and after the element are multiplied.
    """
    for r in prange(x.shape[0]):
        row, into, whole = x[r], out[r], like(x[r, 0], 1)
        for i in range(row.size):
            whole *= row[i]
        if like(whole, 1e-30) < abs(whole) < like(whole, 1e30):
            for i in range(row.size):
                into[i] = whole / row[i]
        else:
            whole = like(whole, 1)
            for i in range(row.size):
                into[i] = whole
                whole *= row[i]
            whole = like(whole, 1)
            for i in range(row.size - 1, -1, -1):
                into[i] *= whole
                whole *= row[i]


@loop_of_sums
def sum_rows(x: Any, out: Any) -> None:
    """Write the sum of each row of ``x`` to ``out``."""
    for r in prange(x.shape[0]):
        whole = 0.0
        for start in range(0, x.shape[1], STRETCH):
            partial = like(x[r, 0], 0)
            part = x[r, start : start + STRETCH]
            for i in range(part.size):
                partial += part[i]
            whole += partial
        out[r] = whole


@loop_of_sums
def sum_squares_of_rows(x: Any, centre: Any, out: Any) -> None:
    """Write the sum of ``(x - centre)**2`` over each row of ``x`` to ``out``.

    ``centre`` has one number for each row.
    """
    for r in prange(x.shape[0]):
        row, middle, value = x[r], centre[r], 0.0
        for i in range(row.size):
            gap = numpy.float64(row[i] - middle)
            value += gap * gap
        out[r] = value


@loop_of_sums
def sum_columns(x: Any, sums: Any) -> None:
    """Write partial sums of ``x`` (outer, many, inner) over the middle axis to ``sums`` (outer, parts, inner).

    The middle axis is divided into parts, each of which is summed. The caller adds the sums of the parts.
    """
    outer, parts, inner = sums.shape
    step = (x.shape[1] + parts - 1) // parts
    width = min(inner, 1024)
    across = (inner + width - 1) // width
    for cell in prange(outer * parts * across):
        o, part, left = cell // (parts * across), cell // across % parts, cell % across * width
        right = min(inner, left + width)
        partial = numpy.empty(width, x.dtype)
        sums[o, part, left:right] = 0
        for start in range(part * step, min(x.shape[1], (part + 1) * step), FLUSH):
            partial[:] = 0
            end = min(x.shape[1], (part + 1) * step, start + FLUSH)
            eights = start + (end - start) // 8 * 8
            for r in range(start, eights, 8):  # eight at once: their sums are loaded and stored once
                a, b = x[o, r, left:right], x[o, r + 1, left:right]
                c, d = x[o, r + 2, left:right], x[o, r + 3, left:right]
                e, f = x[o, r + 4, left:right], x[o, r + 5, left:right]
                g, h = x[o, r + 6, left:right], x[o, r + 7, left:right]
                for j in range(a.size):
                    partial[j] += ((a[j] + b[j]) + (c[j] + d[j])) + ((e[j] + f[j]) + (g[j] + h[j]))
            for r in range(eights, end):
                row = x[o, r, left:right]
                for j in range(row.size):
                    partial[j] += row[j]
            sums_of_strip = sums[o, part, left:right]
            for j in range(sums_of_strip.size):
                sums_of_strip[j] += partial[j]


@loop_of_sums
def sum_squares_of_columns(x: Any, centre: Any, sums: Any) -> None:
    """Write partial sums of ``(x - centre)**2`` over the middle axis of ``x`` to ``sums`` (outer, parts, inner).

    ``x`` has the shape (outer, many, inner) and ``centre`` (outer, inner). The caller adds the sums of the parts.
    """
    outer, parts, inner = sums.shape
    step = (x.shape[1] + parts - 1) // parts
    width = min(inner, 512)
    across = (inner + width - 1) // width
    for cell in prange(outer * parts * across):
        o, part, left = cell // (parts * across), cell // across % parts, cell % across * width
        sums_of_strip, middle = sums[o, part, left : left + width], centre[o, left : left + width]
        sums_of_strip[:] = 0
        for r in range(part * step, min(x.shape[1], (part + 1) * step)):
            row = x[o, r, left : left + width]
            for j in range(row.size):
                gap = numpy.float64(row[j] - middle[j])
                sums_of_strip[j] += gap * gap


# -- Extremes --------------------------------------------------------------------------------------------------------


@loop_of_sums
def largest_of_rows(x: Any, sign: Any, out: Any) -> None:
    """Write the maximum of each row of ``x`` to ``out``, or the minimum if ``sign`` is -1.

    The result is nan for a row that contains nan.
    """
    for r in prange(x.shape[0]):
        row = x[r]
        top = sign * row[0]
        for i in range(row.size):
            top = larger(top, sign * row[i])
        out[r] = sign * top


@loop_of_sums
def largest_of_all(x: Any, sign: Any, tops: Any) -> Any:
    """Return the maximum of the 1-d array ``x``, or the minimum if ``sign`` is -1; nan if an element is nan.

    The array is divided into blocks of 4096 elements, which are distributed over the threads. The maximum of
    ``sign * x`` in each block is written to ``tops``.
    """
    for k in prange(tops.size):
        part = x[k * STRETCH : (k + 1) * STRETCH]
        top = sign * part[0]
        for i in range(part.size):
            top = larger(top, sign * part[i])
        tops[k] = top
    top = tops[0]
    for k in range(tops.size):
        top = larger(top, tops[k])
    return sign * top


@loop
def share_of_rows(x: Any, top: Any, out: Any) -> None:
    """Write the gradient of amax or amin along rows to ``out``; ``top`` holds the extreme value of each row.

    The elements of a row that equal its extreme value get 1 / (number of these elements), all other elements get 0. nan
    is treated as equal to nan.
    """
    for r in prange(x.shape[0]):
        here, into, best = x[r], out[r], top[r]
        count = 0
        for i in range(here.size):
            count += here[i] == best or (here[i] != here[i] and best != best)
        share = like(best, 1) / like(best, max(count, 1))
        for i in range(here.size):
            same = here[i] == best or (here[i] != here[i] and best != best)
            into[i] = share if same else like(best, 0)


@loop
def share_of_all(x: Any, top: Any, counts: Any, out: Any) -> None:
    """Write the gradient of amax or amin of the 1-d array ``x`` to ``out``; ``top`` is the extreme value, a number.

    The elements that equal ``top`` get 1 / (number of these elements), all other elements get 0. nan is treated as
    equal to nan. The number of elements that equal ``top`` in each block of 4096 consecutive elements is written to
    ``counts``.
    """
    for k in prange(counts.size):
        part, count = x[k * STRETCH : (k + 1) * STRETCH], 0
        for i in range(part.size):
            count += part[i] == top or (part[i] != part[i] and top != top)
        counts[k] = count
    total_count = 0
    for k in range(counts.size):
        total_count += counts[k]
    share = like(top, 1) / like(top, max(total_count, 1))
    for i in prange(x.size):
        out[i] = share if x[i] == top or (x[i] != x[i] and top != top) else like(top, 0)


@loop
def largest_of_columns(x: Any, sign: Any, out: Any, index: Any) -> None:
    """Write the maximum of ``x`` (outer, many, inner) over the middle axis to ``out``, its first index to ``index``.

    If ``sign`` is -1, the minimum is computed instead. ``out`` and ``index`` have the shape (outer, inner).
    """
    outer, inner = out.shape
    width = min(inner, 512)
    across = (inner + width - 1) // width
    for cell in prange(outer * across):
        o, left = cell // across, cell % across * width
        tops, places = out[o, left : left + width], index[o, left : left + width]
        first = x[o, 0, left : left + width]
        for j in range(tops.size):
            tops[j] = first[j]
            places[j] = 0
        for r in range(1, x.shape[1]):
            row, place = x[o, r, left : left + width], numpy.int32(r)
            for j in range(tops.size):
                here, top = row[j], tops[j]
                better = sign * here > sign * top or (here != here and top == top)
                tops[j] = here if better else top
                places[j] = place if better else places[j]


# -- Running sums ----------------------------------------------------------------------------------------------------


@loop
def run_rows(x: Any, product: Any, back: Any, out: Any) -> None:
    """Write the cumulative sums of each row of ``x`` to ``out``, or the cumulative products if ``product`` is true.

    The results are computed in double precision. If ``back`` is true, the elements are accumulated from the end of the
    row. Four rows are processed together, because each step has to wait for the previous step of the same row.
    """
    last = x.shape[0] - 1
    for job in prange((x.shape[0] + 3) // 4):
        a, b, c, d = 4 * job, min(4 * job + 1, last), min(4 * job + 2, last), min(4 * job + 3, last)
        of_a, of_b, of_c, of_d = x[a], x[b], x[c], x[d]
        to_a, to_b, to_c, to_d = out[a], out[b], out[c], out[d]
        one = two = three = four = 1.0 if product else 0.0
        for k in range(of_a.size):
            i = uint64(of_a.size - 1 - k if back else k)
            if product:
                one, two, three, four = one * of_a[i], two * of_b[i], three * of_c[i], four * of_d[i]
            else:
                one, two, three, four = one + of_a[i], two + of_b[i], three + of_c[i], four + of_d[i]
            to_a[i], to_b[i], to_c[i], to_d[i] = one, two, three, four


@loop
def run_columns(x: Any, product: Any, back: Any, out: Any) -> None:
    """Write the cumulative sums along the middle axis of ``x`` (outer, many, inner) to ``out``.

    If ``product`` is true, cumulative products are written instead. If ``back`` is true, the elements are accumulated
    from the end of the axis. The results are computed in double precision.
    """
    outer, many, inner = x.shape
    width = min(inner, 512)
    across = (inner + width - 1) // width
    for cell in prange(outer * across):
        o, left = cell // across, cell % across * width
        running = numpy.full(width, 1.0 if product else 0.0)
        for k in range(many):
            r = many - 1 - k if back else k
            row, into = x[o, r, left : left + width], out[o, r, left : left + width]
            if product:
                for j in range(row.size):
                    running[j] *= row[j]
                    into[j] = running[j]
            else:
                for j in range(row.size):
                    running[j] += row[j]
                    into[j] = running[j]


@loop
def run_parts(x: Any, begin: Any, back: Any, out: Any) -> None:
    """Write the cumulative sums of the 1-d array ``x`` to ``out``, computed in parts by several threads.

    ``begin[k]`` is the sum of all elements before part k. If ``back`` is true, the sums start at the end of ``x``, and
    ``begin[k]`` is the sum of all elements after part k.
    """
    step = (x.size + begin.size - 1) // begin.size
    for k in prange(begin.size):
        running = begin[k]
        part, into = x[k * step : (k + 1) * step], out[k * step : (k + 1) * step]
        for m in range(part.size):
            i = part.size - 1 - m if back else m
            running += part[i]
            into[i] = running


@loop_of_sums
def sums_of_parts(x: Any, sums: Any) -> None:
    """Write the sum of each part of the 1-d array ``x`` to ``sums``, computed in double precision.

    ``x`` is divided into as many parts as ``sums`` has elements.
    """
    step = (x.size + sums.size - 1) // sums.size
    for k in prange(sums.size):
        value = 0.0
        part = x[k * step : (k + 1) * step]
        for i in range(part.size):
            value += part[i]
        sums[k] = value
