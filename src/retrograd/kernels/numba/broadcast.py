"""Numba loops that add, subtract, multiply or divide a matrix and a row or column; also outer products and copies.

The operand ``y`` is a matrix of one row, which is the same for all rows of ``x``, or a 1-d array with one number for
each row of ``x``.
"""

from __future__ import annotations

from typing import Any

from numba import prange

from .jit import loop, loop_of_sums
from .math import at, shared


@loop_of_sums
def add(x: Any, y: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into, other = x[r], out[r], shared(y, r)
        for i in range(here.size):
            into[i] = here[i] + at(other, i)


@loop_of_sums
def subtract(x: Any, y: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into, other = x[r], out[r], shared(y, r)
        for i in range(here.size):
            into[i] = here[i] - at(other, i)


@loop_of_sums
def multiply(x: Any, y: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into, other = x[r], out[r], shared(y, r)
        for i in range(here.size):
            into[i] = here[i] * at(other, i)


@loop_of_sums
def divide(x: Any, y: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into, other = x[r], out[r], shared(y, r)
        for i in range(here.size):
            into[i] = here[i] / at(other, i)


@loop_of_sums
def spread(y: Any, out: Any) -> None:
    """Copy ``y`` to all rows of the matrix ``out`` if ``y`` is a matrix of one row, to all columns if ``y`` is 1-d."""
    for r in prange(out.shape[0]):
        into, other = out[r], shared(y, r)
        for i in range(into.size):
            into[i] = at(other, i)


@loop
def add_to_rows(x: Any, y: Any) -> None:
    """Add the 1-d array ``y`` to each row of the matrix ``x``, in place."""
    for r in prange(x.shape[0]):
        here = x[r]
        for i in range(here.size):
            here[i] += y[i]


@loop
def outer(x: Any, y: Any, out: Any) -> None:
    """Write the outer product of ``x``, a matrix of one column, and ``y``: ``out[i, j] = x[i, 0] * y[j]``."""
    for i in prange(out.shape[0]):
        number, line = x[i, 0], out[i]
        for j in range(line.size):
            line[j] = number * y[j]


#: Rows and columns of a tile.
TILE = 32


@loop_of_sums
def exchanged(x: Any, out: Any) -> None:
    """Copy ``x`` (outer, many, inner) to ``out`` (outer, inner, many), with the last two axes exchanged.

    The arrays are processed in small square tiles, so that the elements that are read and those that are written stay
    in the cache.
    """
    down, across = (out.shape[1] + TILE - 1) // TILE, (out.shape[2] + TILE - 1) // TILE
    for cell in prange(x.shape[0] * down):
        o, top = cell // down, cell % down * TILE
        bottom = min(top + TILE, out.shape[1])
        for step in range(across):
            left = step * TILE
            right = min(left + TILE, out.shape[2])
            for r in range(top, bottom):
                into, line = out[o, r, left:right], x[o, left:right, r]
                for j in range(into.size):
                    into[j] = line[j]
