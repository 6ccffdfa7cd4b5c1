"""Numba loops of interpolation, average pooling and padding: each output is a weighted sum of a few inputs of its axis.

``index`` and ``weight`` have the shape (taps, outputs): for each output the indices of its inputs, and their weights.
The two arrays are the property ``table`` of ``Taps`` (``kernels/interpolation.py``).
"""

from __future__ import annotations

from typing import Any

from numba import prange, uint64

from .jit import loop


@loop
def along_rows(x: Any, index: Any, weight: Any, out: Any) -> None:
    """Write ``out[r, k] = sum(weight[t, k] * x[r, index[t, k]])``, a weighted sum of inputs over t, for each row r."""
    taps, outs = index.shape
    for r in prange(x.shape[0]):
        row, line = x[r], out[r]
        first, one = index[0], weight[0]
        if taps == 1:
            for k in range(outs):
                line[k] = one[k] * row[uint64(first[k])]
            continue
        second, other = index[1], weight[1]
        for k in range(outs):
            line[k] = one[k] * row[uint64(first[k])] + other[k] * row[uint64(second[k])]
        for t in range(2, taps):
            first, one = index[t], weight[t]
            for k in range(outs):
                line[k] += one[k] * row[uint64(first[k])]


@loop
def across_rows(x: Any, index: Any, weight: Any, out: Any) -> None:
    """Write ``out[a, k] = sum(weight[t, k] * x[a, index[t, k]])``, a weighted sum of the rows ``x[a, i]`` over t."""
    taps, outs = index.shape
    for job in prange(x.shape[0] * outs):
        a, k = job // outs, job % outs
        line, row, factor = out[a, k], x[a, uint64(index[0, k])], weight[0, k]
        if taps == 1:
            for b in range(line.size):
                line[b] = factor * row[b]
            continue
        next_, other = x[a, uint64(index[1, k])], weight[1, k]
        for b in range(line.size):
            line[b] = factor * row[b] + other * next_[b]
        for t in range(2, taps):
            row, factor = x[a, uint64(index[t, k])], weight[t, k]
            for b in range(line.size):
                line[b] += factor * row[b]
