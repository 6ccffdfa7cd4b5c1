"""Numba loops of cat, roll, flip, tril and triu; elements are read as unsigned integers of the same size.

All arrays are contiguous.
"""

from __future__ import annotations

from typing import Any

from numba import prange, uint64

from .jit import loop

#: Elements of a row that a thread takes at a time.
PART = 1 << 14


@loop
def place(x: Any, start: Any, out: Any) -> None:
    """Copy the matrix ``x`` to the columns of ``out`` from ``start`` on: ``out[a, start + k] = x[a, k]``."""
    width = x.shape[1]
    parts = (width + PART - 1) // PART
    for job in prange(x.shape[0] * parts):
        a, first = job // parts, job % parts * PART
        last = min(first + PART, width)
        given, row = x[a, first:last], out[a, start + first : start + last]
        for k in range(given.size):
            row[k] = given[k]


@loop
def rotate(x: Any, by: Any, out: Any) -> None:
    """Copy each row of ``x`` to ``out``, shifted cyclically to the right by ``by`` elements."""
    stay = x.shape[1] - by
    for a in prange(x.shape[0]):
        out[a, :by] = x[a, stay:]
        out[a, by:] = x[a, :stay]


@loop
def reverse(x: Any, out: Any) -> None:
    """Copy ``x`` to ``out`` with the middle axis reversed: ``out[a, k, b] = x[a, length - 1 - k, b]``.

    ``length`` is the size of the middle axis.
    """
    length = x.shape[1]
    for job in prange(x.shape[0] * length):
        a, k = job // length, job % length
        given, row = x[a, length - 1 - k], out[a, k]
        for b in range(given.size):
            row[b] = given[b]


@loop
def reverse_rows(x: Any, out: Any) -> None:
    """Copy the matrix ``x`` to ``out`` with each row reversed: ``out[a, k] = x[a, length - 1 - k]``.

    ``length`` is the number of columns.
    """
    last = uint64(x.shape[1] - 1)
    for a in prange(x.shape[0]):
        given, row = x[a], out[a]
        for k in range(uint64(row.size)):
            row[k] = given[last - k]


@loop
def triangle(x: Any, diagonal: Any, lower: Any, out: Any) -> None:
    """Write the lower triangle of the matrices in ``x`` to ``out``, or the upper triangle if ``lower`` is false.

    In row i the lower triangle has the columns up to ``i + diagonal``, the upper triangle the columns from
    ``i + diagonal`` on. All other elements of ``out`` are set to 0.
    """
    width = x.shape[2]
    zero = x[0, 0, 0] ^ x[0, 0, 0]
    for job in prange(x.shape[0] * x.shape[1]):
        a, i = job // x.shape[1], job % x.shape[1]
        first, last = 0, width
        if lower:
            last = min(max(i + diagonal + 1, 0), width)
        else:
            first = min(max(i + diagonal, 0), width)
        row = out[a, i]
        row[:first] = zero
        row[first:last] = x[a, i, first:last]
        row[last:] = zero
