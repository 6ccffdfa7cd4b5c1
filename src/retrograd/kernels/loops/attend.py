"""Loops over blocks of scores of attention (heads, rows, keys): what stands between its products of matrices."""

from __future__ import annotations

import math
from typing import Any

from numba import njit, prange

from .compile import loop_of_sums
from .scalars import decay, larger, like


@njit(inline="always")
def _seen(r: Any, first: Any, keys: Any) -> Any:
    """How many keys a row sees: all, or with a ``first`` row that is not negative those that are not later."""
    return keys if first < 0 else min(keys, first + r + 1)


@loop_of_sums
def exponentials(scores: Any, scale: Any, first: Any, totals: Any, sums: Any) -> None:
    """``exp(scale * score - top)`` in place, their totals, and the logarithms of all that in ``sums``."""
    heads, rows, keys = scores.shape
    for job in prange(heads * rows):
        h, r = job // rows, job % rows
        row, seen = scores[h, r], _seen(r, first, keys)
        part = row[:seen]
        top = part[0]
        for k in range(part.size):
            top = larger(top, part[k])
        total, factor = like(top, 0), like(top, scale)
        for k in range(part.size):
            raised = decay((part[k] - top) * factor)
            part[k] = raised
            total += raised
        row[seen:] = 0
        totals[h, r] = total
        sums[h, r] = top * factor + like(top, math.log(total))


@loop_of_sums
def probabilities(scores: Any, scale: Any, first: Any, sums: Any) -> None:
    """``exp(scale * score - sum)`` in place."""
    heads, rows, keys = scores.shape
    for job in prange(heads * rows):
        h, r = job // rows, job % rows
        row, seen, less = scores[h, r], _seen(r, first, keys), sums[h, r]
        part, factor = row[:seen], like(less, scale)
        for k in range(part.size):
            part[k] = decay(part[k] * factor - less)
        row[seen:] = 0


@loop_of_sums
def slopes(given: Any, chances: Any, out: Any, g: Any, scale: Any) -> None:
    """``scale * chance * (given - sum(out * g))`` in place of ``given``."""
    heads, rows, keys = given.shape
    for job in prange(heads * rows):
        h, r = job // rows, job % rows
        row, chance, made, back = given[h, r], chances[h, r], out[h, r], g[h, r]
        mean = like(row[0], 0)
        for k in range(made.size):
            mean += made[k] * back[k]
        factor = like(mean, scale)
        for k in range(keys):
            row[k] = (row[k] - mean) * chance[k] * factor
