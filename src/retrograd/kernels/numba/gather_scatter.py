"""Numba loops of take, gather, scatter_add, index_add, masked_select, topk, searchsorted and bincount.

Arrays have three axes (before, axis, after), of which the middle axis is indexed. Negative indices count from the end.
Elements whose index is out of range are skipped, and the loop sets ``bad[0]`` to 1.
"""

from __future__ import annotations

from typing import Any

from numba import njit, prange, uint64

from .jit import loop

#: Columns that a thread takes at a time where rows cannot be divided among threads: two cache lines of float32.
COLUMNS = 32

#: Parts of an index, each of them one job for a thread.
PARTS = 16

#: Elements that are searched together, one in each SIMD lane.
SIDE = 64


@njit(inline="always")
def placed(at: Any, size: Any) -> Any:
    """Return the index ``at``, which may be negative, as an index from 0 to ``size - 1``; -1 if it is out of range."""
    if at < 0:
        at += size
    return at if 0 <= at < size else -1


@njit(inline="always")
def highest(index: Any) -> Any:
    """Return the maximum of the indices ``index``, read as unsigned integers.

    A negative index is then a very large number, so that one comparison of the result with the size of the indexed axis
    finds any index out of range.
    """
    found = uint64(0)
    for k in range(index.size):
        found = max(found, uint64(index[k]))
    return found


@loop
def gather(x: Any, index: Any, out: Any, bad: Any) -> None:
    """Write ``out[a, k, b] = x[a, index[a, k, b], b]`` for all elements.

    If an index is out of range, its element is skipped and ``bad[0]`` is set to 1.
    """
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
    """Write ``out[a, k] = x[a, index[a, k]]`` for all elements.

    If an index is out of range, its element is skipped and ``bad[0]`` is set to 1.
    """
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
    """Write the result of :func:`highest` for each part of ``index`` to ``found``.

    ``index`` is divided into as many equal parts as ``found`` has elements.
    """
    parts = found.size
    for p in prange(parts):
        found[p] = highest(index[index.size * p // parts : index.size * (p + 1) // parts])


@loop
def take(x: Any, index: Any, out: Any, bad: Any) -> None:
    """Copy rows of ``x`` to ``out``: ``out[a, k] = x[a, index[k]]``.

    If an index is out of range, its row is skipped and ``bad[0]`` is set to 1.
    """
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
    """Add ``values[a, k, b]`` to ``out[a, index[a, k, b], b]`` for all elements, in ascending order of k.

    If an index is out of range, its element is skipped and ``bad[0]`` is set to 1.
    """
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
    """Add ``values[a, k]`` to ``out[a, index[a, k]]`` for all elements, in ascending order of k.

    If an index is out of range, its element is skipped and ``bad[0]`` is set to 1.
    """
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
    """Add the row ``values[a, k]`` to the row ``out[a, index[k]]`` for all a and k, in ascending order of k.

    If an index is out of range, its row is skipped and ``bad[0]`` is set to 1.
    """
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
    """Write the minimum of each part of the 1-d array ``x`` to ``least``, and the maximum to ``most``.

    ``x`` is divided into as many equal parts as ``least`` has elements.
    """
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
    """Write to ``found[p, value - low]`` the number of occurrences of each ``value`` in part p of the 1-d array ``x``.

    ``x`` is divided into as many equal parts as ``found`` has rows. All values are at least ``low``.
    """
    parts = found.shape[0]
    for p in prange(parts):
        row = found[p]
        row[:] = 0
        part = x[x.size * p // parts : x.size * (p + 1) // parts]
        for k in range(part.size):
            row[uint64(part[k] - low)] += 1


@loop
def bisect(x: Any, edges: Any, right: Any, out: Any) -> None:
    """Write to ``out``, for each element of ``x``, the number of smaller elements in ``edges``, a sorted array.

    If ``right`` is true, elements of ``edges`` equal to the element of ``x`` are counted too. nan is treated as greater
    than any number.
    """
    for job in prange((x.size + SIDE - 1) // SIDE):
        part, low = x[job * SIDE : (job + 1) * SIDE], out[job * SIDE : (job + 1) * SIDE]
        low[:] = 0
        count = edges.size
        while count > 0:  # as many rounds for every element and no branches: vector instructions
            half = (count + 1) >> 1
            for k in range(part.size):
                edge, wanted = edges[uint64(low[k] + half - 1)], part[k]
                low[k] += 0 if (edge > wanted) | ((edge == wanted) & (not right)) else half
            count -= half


@loop
def largest(x: Any, values: Any, indices: Any) -> None:
    """Write the largest elements of each row of ``x``, in descending order, to ``values``.

    The column numbers of these elements are written to ``indices``. The number of elements is the number of columns of
    ``values``. nan counts as the largest number. Equal elements keep their order.
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
    """Write the smallest elements of each row of ``x``, in ascending order, to ``values``.

    The column numbers of these elements are written to ``indices``. The number of elements is the number of columns of
    ``values``. nan counts as the largest number. Equal elements keep their order.
    """
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
    """Write the elements of ``x`` where ``mask`` is True to ``out``, as masked_select does.

    ``x`` is divided into as many equal parts as ``starts`` has elements. The selected elements of part p are written
    from ``out[starts[p]]`` on.
    """
    parts = starts.size
    for p in prange(parts):
        at = starts[p]
        for k in range(x.size * p // parts, x.size * (p + 1) // parts):
            if mask[k]:
                out[at] = x[k]
                at += 1


@loop
def counted(mask: Any, counts: Any) -> None:
    """Write the number of True elements in each part of ``mask`` to ``counts``.

    ``mask`` is divided into as many equal parts as ``counts`` has elements.
    """
    parts = counts.size
    for p in prange(parts):
        total = 0
        for k in range(mask.size * p // parts, mask.size * (p + 1) // parts):
            total += mask[k]
        counts[p] = total


@loop
def put_back(values: Any, mask: Any, starts: Any, out: Any) -> None:
    """Write ``values`` to the elements of ``out`` where ``mask`` is True, and 0 to all other elements of ``out``.

    This is the adjoint of :func:`kept`. ``starts[p]`` is the index in ``values`` of the first element for part p of
    ``mask``.
    """
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
