"""Loops of recurrences along the middle axis of arrays (before, axis, after)."""

from __future__ import annotations

from typing import Any

from numba import prange

from .compile import loop

#: Columns that go along together.
COLUMNS = 64


@loop
def recurrence(summand: Any, factor: Any, out: Any, backward: Any) -> None:
    """``out[k] = summand[k] + factor[k] * out[k - 1]``; ``backward``: ``summand[k] + factor[k + 1] * out[k + 1]``."""
    size, after = factor.shape[1], factor.shape[2]
    parts = (after + COLUMNS - 1) // COLUMNS
    for job in prange(factor.shape[0] * parts):
        a, first = job // parts, job % parts * COLUMNS
        last = min(first + COLUMNS, after)
        start, step, by = (size - 1, -1, 1) if backward else (0, 1, 0)
        for b in range(first, last):
            out[a, start, b] = summand[a, start, b]
        if last == first + 1:
            one = out[a, start, first]
            for k in range(start + step, size if step > 0 else -1, step):
                one = summand[a, k, first] + factor[a, k + by, first] * one
                out[a, k, first] = one
        else:
            for k in range(start + step, size if step > 0 else -1, step):
                made, before = out[a, k, first:last], out[a, k - step, first:last]
                given, times = summand[a, k, first:last], factor[a, k + by, first:last]
                for b in range(made.size):
                    made[b] = given[b] + times[b] * before[b]
