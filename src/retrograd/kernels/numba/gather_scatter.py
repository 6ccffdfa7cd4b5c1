"""Loops that read and write at places: along the middle axis of arrays (before, axis, after).

Negative indices count from the end. Indices are not trusted: what lies outside is left out, and ``bad`` says so.
"""

from __future__ import annotations

from typing import Any

from numba import njit, prange, uint64

from .jit import loop

#: Columns that a thread takes at a time where the rows can not be shared out: two cache lines of float32.
COLUMNS = 32

#: Into how many parts an index is cut.
PARTS = 16

#: Elements that are searched side by side.
SIDE = 64


@njit(inline="always")
def placed(at: Any, size: Any) -> Any:
    """An index counted from the front; -1 if it lies outside."""
    if at < 0:
        at += size
    return at if 0 <= at < size else -1


@njit(inline="always")
def highest(index: Any) -> Any:
    """The highest of an index, negative numbers counted as large ones."""
    found = uint64(0)
    for k in range(index.size):
        found = max(found, uint64(index[k]))
    return found


@loop
def gather(x: Any, index: Any, out: Any, bad: Any) -> None:
    """``out[a, k, b] = x[a, index[a, k, b], b]``."""
    length, after = index.shape[1], index.shape[2]
    size = x.shape[1]
    for row in prange(index.shape[0] * length):
        a, k = row // length, row % length
        for b in range(after):
            at = placed(index[a, k, b], size)
            if at >= 0:
                out[a, k, b] = x[a, at, b]
            else:
                bad[0] = 1


@loop
def gather_rows(x: Any, index: Any, out: Any, bad: Any) -> None:
    """``out[a, k] = x[a, index[a, k]]``."""
    size = x.shape[1]
    for a in prange(index.shape[0]):
        given, places, row = x[a], index[a], out[a]
        if highest(places) < uint64(size):
            for k in range(places.size):
                row[k] = given[uint64(places[k])]
        else:
            for k in range(places.size):
                at = placed(places[k], size)
                if at >= 0:
                    row[k] = given[uint64(at)]
                else:
                    bad[0] = 1


@loop
def highest_of_parts(index: Any, found: Any) -> None:
    """The highest of each part of an index; there are as many parts as there is room for."""
    parts = found.size
    for p in prange(parts):
        found[p] = highest(index[index.size * p // parts : index.size * (p + 1) // parts])


@loop
def take(x: Any, index: Any, out: Any, bad: Any) -> None:
    """``out[a, k] = x[a, index[k]]``, row by row."""
    size, width, length = x.shape[1], x.shape[2], index.size
    for job in prange(x.shape[0] * PARTS):
        part, rows, lines = job % PARTS, x[job // PARTS], out[job // PARTS]
        for k in range(part * length // PARTS, (part + 1) * length // PARTS):
            at = placed(index[k], size)
            if at >= 0:
                row, line = rows[at], lines[k]
                for b in range(width):
                    line[b] = row[b]
            else:
                bad[0] = 1


@loop
def scatter_add(out: Any, index: Any, values: Any, bad: Any) -> None:
    """``out[a, index[a, k, b], b] += values[a, k, b]``, k after k."""
    after, size = index.shape[2], out.shape[1]
    parts = (after + COLUMNS - 1) // COLUMNS
    for job in prange(index.shape[0] * parts):
        a, first = job // parts, job % parts * COLUMNS
        for k in range(index.shape[1]):
            for b in range(first, min(first + COLUMNS, after)):
                at = placed(index[a, k, b], size)
                if at >= 0:
                    out[a, at, b] += values[a, k, b]
                else:
                    bad[0] = 1


@loop
def scatter_add_rows(out: Any, index: Any, values: Any, bad: Any) -> None:
    """``out[a, index[a, k]] += values[a, k]``, k after k."""
    size = out.shape[1]
    for a in prange(index.shape[0]):
        row, places, given = out[a], index[a], values[a]
        if highest(places) < uint64(size):
            for k in range(places.size):
                row[uint64(places[k])] += given[k]
        else:
            for k in range(places.size):
                at = placed(places[k], size)
                if at >= 0:
                    row[uint64(at)] += given[k]
                else:
                    bad[0] = 1


@loop
def add_rows(out: Any, index: Any, values: Any, bad: Any) -> None:
    """``out[a, index[k]] += values[a, k]``, k after k."""
    after, size = values.shape[2], out.shape[1]
    parts = (after + COLUMNS - 1) // COLUMNS
    for job in prange(values.shape[0] * parts):
        a, first = job // parts, job % parts * COLUMNS
        last = min(first + COLUMNS, after)
        for k in range(index.size):
            at = placed(index[k], size)
            if at >= 0:
                row, given = out[a, at, first:last], values[a, k, first:last]
                for b in range(given.size):
                    row[b] += given[b]
            else:
                bad[0] = 1


@loop
def limits(x: Any, least: Any, most: Any) -> None:
    """The least and the largest of each part of ``x``; there are as many parts as there is room for."""
    parts = least.size
    for p in prange(parts):
        part = x[x.size * p // parts : x.size * (p + 1) // parts]
        low = high = x[0]
        for k in range(part.size):
            low = min(low, part[k])
            high = max(high, part[k])
        least[p], most[p] = low, high


@loop
def counts(x: Any, low: Any, found: Any) -> None:
    """``found[p, value - low]``: how often each value, none of them below ``low``, is in part p of ``x``."""
    parts = found.shape[0]
    for p in prange(parts):
        row = found[p]
        row[:] = 0
        part = x[x.size * p // parts : x.size * (p + 1) // parts]
        for k in range(part.size):
            row[uint64(part[k] - low)] += 1


@loop
def bisect(x: Any, edges: Any, right: Any, out: Any) -> None:
    """How many of the ordered ``edges`` are less than (``right``: or equal to) each element; all are less than nan."""
    for job in prange((x.size + SIDE - 1) // SIDE):
        part, low = x[job * SIDE : (job + 1) * SIDE], out[job * SIDE : (job + 1) * SIDE]
        low[:] = 0
        count = edges.size
        while count > 0:  # as often for every element: several lanes go together, and there is no branch to be guessed
            half = (count + 1) >> 1
            for k in range(part.size):
                edge, wanted = edges[uint64(low[k] + half - 1)], part[k]
                low[k] += 0 if (edge > wanted) | ((edge == wanted) & (not right)) else half
            count -= half


@loop
def largest(x: Any, values: Any, indices: Any) -> None:
    """The largest elements of each row in order, as many as there is room for; nan is the largest of all.

    Of equal ones the first comes first.
    """
    most = values.shape[1]
    for a in prange(x.shape[0]):
        found, where, row = values[a], indices[a], x[a]
        count = 0
        for k in range(row.size):
            each = row[k]
            if count == most:
                last = found[most - 1]
                if not (each > last or (each != each and last == last)):
                    continue
                at = most - 1
            else:
                at = count
                count += 1
            while at > 0:
                before = found[at - 1]
                if not (each > before or (each != each and before == before)):
                    break
                found[at] = before
                where[at] = where[at - 1]
                at -= 1
            found[at] = each
            where[at] = k


@loop
def smallest(x: Any, values: Any, indices: Any) -> None:
    """The smallest elements of each row in order, otherwise as :func:`largest`."""
    most = values.shape[1]
    for a in prange(x.shape[0]):
        found, where, row = values[a], indices[a], x[a]
        count = 0
        for k in range(row.size):
            each = row[k]
            if count == most:
                last = found[most - 1]
                if not (each < last or (last != last and each == each)):
                    continue
                at = most - 1
            else:
                at = count
                count += 1
            while at > 0:
                before = found[at - 1]
                if not (each < before or (before != before and each == each)):
                    break
                found[at] = before
                where[at] = where[at - 1]
                at -= 1
            found[at] = each
            where[at] = k


@loop
def kept(x: Any, mask: Any, starts: Any, out: Any) -> None:
    """The elements where ``mask`` is True; part ``p`` of as many as ``starts`` has begins at ``starts[p]`` of ``out``."""
    parts = starts.size
    for p in prange(parts):
        at = starts[p]
        for k in range(x.size * p // parts, x.size * (p + 1) // parts):
            if mask[k]:
                out[at] = x[k]
                at += 1


@loop
def counted(mask: Any, counts: Any) -> None:
    """How many of each part of ``mask`` are True; there are as many parts as ``counts`` has places."""
    parts = counts.size
    for p in prange(parts):
        total = 0
        for k in range(mask.size * p // parts, mask.size * (p + 1) // parts):
            total += mask[k]
        counts[p] = total


@loop
def put_back(values: Any, mask: Any, starts: Any, out: Any) -> None:
    """The adjoint of :func:`kept`: the elements where ``mask`` is True from ``values``, zero elsewhere."""
    parts = starts.size
    zero = values[0] - values[0]
    for p in prange(parts):
        at = starts[p]
        for k in range(mask.size * p // parts, mask.size * (p + 1) // parts):
            if mask[k]:
                out[k] = values[at]
                at += 1
            else:
                out[k] = zero
