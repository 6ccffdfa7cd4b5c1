"""Numba loops of the linear recurrences in the gradients of cumprod and logcumsumexp.

The recurrence is computed along the middle axis of arrays (before, axis, after).
"""

from __future__ import annotations

from typing import Any

from numba import prange, uint64

from .jit import loop

#: Columns that a thread processes together.
COLUMNS = 64


@loop
def recurrence(summand: Any, factor: Any, out: Any, backward: Any) -> None:
    """Write ``out[k] = summand[k] + factor[k] * out[k - 1]``, where k is the index along the middle axis.

    The first element is ``out[0] = summand[0]``. If ``backward`` is true, the elements are computed from the end:
    ``out[k] = summand[k] + factor[k + 1] * out[k + 1]``, beginning with ``out[-1] = summand[-1]``.
    """
    size, after = factor.shape[1], factor.shape[2]
    parts = (after + COLUMNS - 1) // COLUMNS
    for job in prange(factor.shape[0] * parts):
        a, first = job // parts, job % parts * COLUMNS
        last = min(first + COLUMNS, after)
        start, step, by = (size - 1, -1, 1) if backward else (0, 1, 0)
        for b in range(first, last):
            out[a, start, b] = summand[a, start, b]
        for k in range(start + step, size if step > 0 else -1, step):
            current, before = out[a, k, first:last], out[a, k - step, first:last]
            summands, factors = summand[a, k, first:last], factor[a, k + by, first:last]
            for b in range(current.size):
                current[b] = summands[b] + factors[b] * before[b]


@loop
def recurrence_rows(summand: Any, factor: Any, out: Any, backward: Any) -> None:
    """Write ``out[r, k] = summand[r, k] + factor[r, k] * out[r, k - 1]`` for each row r.

    The first column is that of ``summand``. If ``backward`` is true, the elements are computed from the end:
    ``out[r, k] = summand[r, k] + factor[r, k + 1] * out[r, k + 1]``, beginning with the last column of ``summand``.
    """
    size, last, by = factor.shape[1], factor.shape[0] - 1, uint64(1 if backward else 0)
    for job in prange((factor.shape[0] + 3) // 4):
        a, b, c, d = 4 * job, min(4 * job + 1, last), min(4 * job + 2, last), min(4 * job + 3, last)
        of_a, of_b, of_c, of_d = summand[a], summand[b], summand[c], summand[d]
        times_a, times_b, times_c, times_d = factor[a], factor[b], factor[c], factor[d]
        to_a, to_b, to_c, to_d = out[a], out[b], out[c], out[d]
        here = uint64(size - 1 if backward else 0)
        one, two, three, four = of_a[here], of_b[here], of_c[here], of_d[here]
        to_a[here], to_b[here], to_c[here], to_d[here] = one, two, three, four
        for k in range(1, size):
            here = uint64(size - 1 - k if backward else k)
            one = of_a[here] + times_a[here + by] * one
            two = of_b[here] + times_b[here + by] * two
            three = of_c[here] + times_c[here + by] * three
            four = of_d[here] + times_d[here + by] * four
            to_a[here], to_b[here], to_c[here], to_d[here] = one, two, three, four
