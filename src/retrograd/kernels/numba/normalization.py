"""Numba loops of softmax, log_softmax, logsumexp, layer_norm, group_norm, rms_norm, batch_norm and their gradients.

The loops read each row several times while it is in the cache. A gradient ``g`` may be a number if it is the same for
all elements; the functions ``row`` and ``at`` accept an array or a number. Loops named ``*_columns`` compute along the
middle axis of arrays (outer, many, inner).
"""

from __future__ import annotations

from math import log, sqrt
from typing import Any

import numpy
from numba import prange

from .jit import inlined_step_of_sums, loop_of_sums
from .math import at, decay, larger, like, part, row

#: Number of elements that are added in the precision of the array; the sums of such blocks are added in float64.
STRETCH = 4096


@inlined_step_of_sums
def sum_of(x: Any) -> float:
    """Return the sum of the 1-d array ``x``."""
    whole = 0.0
    for start in range(0, x.size, STRETCH):
        partial, block = like(x[0], 0), x[start : start + STRETCH]
        for i in range(block.size):
            partial += block[i]
        whole += partial
    return whole


@inlined_step_of_sums
def squares_of(x: Any, centre: Any) -> float:
    """Return the sum of ``(x - centre)**2`` over the 1-d array ``x``."""
    whole = 0.0
    for start in range(0, x.size, STRETCH):
        partial, block = like(x[0], 0), x[start : start + STRETCH]
        for i in range(block.size):
            partial += (block[i] - centre) * (block[i] - centre)
        whole += partial
    return whole


# -- Softmax ---------------------------------------------------------------------------------------------------------


@loop_of_sums
def softmax(x: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into = x[r], out[r]
        top, whole = here[0], like(here[0], 0)
        for i in range(here.size):
            top = larger(top, here[i])
        for i in range(here.size):
            raised = decay(here[i] - top)
            into[i] = raised
            whole += raised
        share = like(whole, 1) / whole
        for i in range(here.size):
            into[i] *= share


@loop_of_sums
def log_softmax(x: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into = x[r], out[r]
        top, whole = here[0], like(here[0], 0)
        for i in range(here.size):
            top = larger(top, here[i])
        for i in range(here.size):
            whole += decay(here[i] - top)
        whole = log(whole)
        for i in range(here.size):
            into[i] = (here[i] - top) - whole


@loop_of_sums
def logsumexp(x: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here = x[r]
        top, whole = here[0], like(here[0], 0)
        for i in range(here.size):
            top = larger(top, here[i])
        if abs(top) == numpy.inf:
            top = like(top, 0)
        for i in range(here.size):
            whole += decay(here[i] - top) if here[i] <= top else like(top, numpy.inf)
        out[r] = top + log(whole)


@loop_of_sums
def softmax_backward(g: Any, y: Any, out: Any) -> None:
    for r in prange(y.shape[0]):
        slope, here, into = row(g, r), y[r], out[r]
        along = like(here[0], 0)
        for i in range(here.size):
            along += at(slope, i) * here[i]
        for i in range(here.size):
            into[i] = (at(slope, i) - along) * here[i]


@loop_of_sums
def log_softmax_backward(g: Any, y: Any, out: Any) -> None:
    for r in prange(y.shape[0]):
        slope, here, into = row(g, r), y[r], out[r]
        whole = like(here[0], 0)
        for i in range(here.size):
            whole += at(slope, i)
        for i in range(here.size):
            into[i] = at(slope, i) - decay(here[i]) * whole


# -- Softmax along the middle axis of (outer, many, inner), in strips of columns that stay in the cache --------------

WIDTH = 256


@part
def tops(x: Any, o: Any, left: Any, right: Any) -> Any:
    """Return the maximum of each column of the matrix ``x[o, :, left:right]``."""
    top = x[o, 0, left:right].copy()
    for r in range(x.shape[1]):
        here = x[o, r, left:right]
        for j in range(here.size):
            top[j] = larger(top[j], here[j])
    return top


@loop_of_sums
def softmax_columns(x: Any, out: Any) -> None:
    across = (x.shape[2] + WIDTH - 1) // WIDTH
    for cell in prange(x.shape[0] * across):
        o, left = cell // across, cell % across * WIDTH
        right = min(left + WIDTH, x.shape[2])
        top, whole = tops(x, o, left, right), numpy.zeros(right - left, x.dtype)
        for r in range(x.shape[1]):
            here, into = x[o, r, left:right], out[o, r, left:right]
            for j in range(here.size):
                raised = decay(here[j] - top[j])
                into[j] = raised
                whole[j] += raised
        for j in range(whole.size):
            whole[j] = like(top[j], 1) / whole[j]
        for r in range(x.shape[1]):
            into = out[o, r, left:right]
            for j in range(into.size):
                into[j] *= whole[j]


@loop_of_sums
def log_softmax_columns(x: Any, out: Any) -> None:
    across = (x.shape[2] + WIDTH - 1) // WIDTH
    for cell in prange(x.shape[0] * across):
        o, left = cell // across, cell % across * WIDTH
        right = min(left + WIDTH, x.shape[2])
        top, whole = tops(x, o, left, right), numpy.zeros(right - left, x.dtype)
        for r in range(x.shape[1]):
            here = x[o, r, left:right]
            for j in range(here.size):
                whole[j] += decay(here[j] - top[j])
        for j in range(whole.size):
            whole[j] = log(whole[j])
        for r in range(x.shape[1]):
            here, into = x[o, r, left:right], out[o, r, left:right]
            for j in range(here.size):
                into[j] = (here[j] - top[j]) - whole[j]


@loop_of_sums
def softmax_backward_columns(g: Any, y: Any, out: Any) -> None:
    across = (y.shape[2] + WIDTH - 1) // WIDTH
    for cell in prange(y.shape[0] * across):
        o, left = cell // across, cell % across * WIDTH
        right = min(left + WIDTH, y.shape[2])
        along = numpy.zeros(right - left, y.dtype)
        for r in range(y.shape[1]):
            slope, here = g[o, r, left:right], y[o, r, left:right]
            for j in range(here.size):
                along[j] += slope[j] * here[j]
        for r in range(y.shape[1]):
            slope, here, into = g[o, r, left:right], y[o, r, left:right], out[o, r, left:right]
            for j in range(here.size):
                into[j] = (slope[j] - along[j]) * here[j]


@loop_of_sums
def log_softmax_backward_columns(g: Any, y: Any, out: Any) -> None:
    across = (y.shape[2] + WIDTH - 1) // WIDTH
    for cell in prange(y.shape[0] * across):
        o, left = cell // across, cell % across * WIDTH
        right = min(left + WIDTH, y.shape[2])
        whole = numpy.zeros(right - left, y.dtype)
        for r in range(y.shape[1]):
            slope = g[o, r, left:right]
            for j in range(slope.size):
                whole[j] += slope[j]
        for r in range(y.shape[1]):
            slope, here, into = g[o, r, left:right], y[o, r, left:right], out[o, r, left:right]
            for j in range(here.size):
                into[j] = slope[j] - decay(here[j]) * whole[j]


# -- Normalisation ---------------------------------------------------------------------------------------------------


@loop_of_sums
def layer_norm(x: Any, weight: Any, bias: Any, eps: Any, mean: Any, rstd: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into = x[r], out[r]
        centre = like(here[0], sum_of(here) / here.size)
        scale = like(centre, 1 / sqrt(squares_of(here, centre) / here.size + eps))
        mean[r], rstd[r] = centre, scale
        for i in range(here.size):
            into[i] = (here[i] - centre) * scale * weight[i] + bias[i]


@loop_of_sums
def layer_norm_backward(g: Any, weight: Any, x: Any, mean: Any, rstd: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        slope, here, into = row(g, r), x[r], out[r]
        centre, scale = mean[r], rstd[r]
        whole, along = like(centre, 0), like(centre, 0)
        for i in range(here.size):
            share = at(slope, i) * weight[i]
            whole += share
            along += share * (here[i] - centre)
        whole /= like(centre, here.size)
        along *= scale * scale / like(centre, here.size)
        for i in range(here.size):
            into[i] = scale * (at(slope, i) * weight[i] - whole - (here[i] - centre) * along)


@loop_of_sums
def layer_norm_weight_backward(g: Any, x: Any, mean: Any, rstd: Any, sums: Any) -> None:
    """Write partial sums of ``g * (x - mean) * rstd``, the gradient of the weight, to ``sums`` (parts, columns).

    ``x`` is divided into as many parts as ``sums`` has rows, and each part is summed over its rows. ``mean`` and
    ``rstd`` hold the mean and 1 / standard deviation of each row of ``x``.
    """
    parts = sums.shape[0]
    step = (x.shape[0] + parts - 1) // parts
    for piece in prange(parts):
        part_sums = sums[piece]
        part_sums[:] = 0
        for r in range(piece * step, min(x.shape[0], (piece + 1) * step)):
            slope, here, centre, scale = row(g, r), x[r], mean[r], rstd[r]
            for i in range(here.size):
                part_sums[i] += at(slope, i) * ((here[i] - centre) * scale)


@loop_of_sums
def group_norm(x: Any, weight: Any, bias: Any, eps: Any, mean: Any, rstd: Any, out: Any) -> None:
    """Write ``x`` normalised row by row, times ``weight`` plus ``bias``, to ``out``.

    A row holds the channels of one group of one sample. ``weight`` and ``bias`` have the shape (groups, channels); row
    r belongs to group ``r % groups``. ``eps`` is added to the variance. The mean and 1 / standard deviation of each row
    are written to ``mean`` and ``rstd``.
    """
    groups, channels = weight.shape
    places = x.shape[1] // channels
    for r in prange(x.shape[0]):
        here = x[r]
        centre = like(here[0], sum_of(here) / here.size)
        scale = like(centre, 1 / sqrt(squares_of(here, centre) / here.size + eps))
        mean[r], rstd[r] = centre, scale
        for k in range(channels):
            times = scale * weight[r % groups, k]
            plus = bias[r % groups, k] - centre * times
            line, into = x[r, k * places : (k + 1) * places], out[r, k * places : (k + 1) * places]
            for i in range(line.size):
                into[i] = line[i] * times + plus


@loop_of_sums
def group_norm_backward(g: Any, weight: Any, x: Any, mean: Any, rstd: Any, out: Any) -> None:
    channels, places = x.shape[1], x.shape[2]
    for r in prange(x.shape[0]):
        centre, scale, of = mean[r], rstd[r], weight[r % weight.shape[0]]
        whole, along = like(centre, 0), like(centre, 0)
        for k in range(channels):
            slope, here = row(row(g, r), k), x[r, k]
            of_slope, of_both = like(centre, 0), like(centre, 0)
            for i in range(here.size):
                of_slope += at(slope, i)
                of_both += at(slope, i) * (here[i] - centre)
            whole += of[k] * of_slope
            along += of[k] * of_both
        whole /= like(centre, channels * places)
        along *= scale * scale / like(centre, channels * places)
        for k in range(channels):
            slope, here, into = row(row(g, r), k), x[r, k], out[r, k]
            for i in range(here.size):
                into[i] = scale * (at(slope, i) * of[k] - whole - (here[i] - centre) * along)


@loop_of_sums
def rms_norm(x: Any, weight: Any, eps: Any, out: Any) -> None:
    for r in prange(x.shape[0]):
        here, into = x[r], out[r]
        scale = like(here[0], 1 / sqrt(squares_of(here, like(here[0], 0)) / here.size + eps))
        for i in range(here.size):
            into[i] = here[i] * scale * weight[i]


@loop_of_sums
def scaled_rows(x: Any, scale: Any, shift: Any, out: Any) -> None:
    """Write ``x * scale + shift`` to ``out``; ``scale`` and ``shift`` have one number for each row of ``x``."""
    for r in prange(x.shape[0]):
        here, into, times, plus = x[r], out[r], scale[r], shift[r]
        for i in range(here.size):
            into[i] = here[i] * times + plus


@loop_of_sums
def sums_with(g: Any, x: Any, centre: Any, sums: Any) -> None:
    """Write the sum of ``g`` and the sum of ``g * (x - centre)`` over each row to ``sums`` (rows, 2).

    The gradients of normalization, such as batch_norm, are computed from these sums. ``centre`` has one number for each
    row of ``x``.
    """
    for r in prange(x.shape[0]):
        slope, here, middle = row(g, r), x[r], centre[r]
        whole, along = like(middle, 0), like(middle, 0)
        for i in range(here.size):
            whole += at(slope, i)
            along += at(slope, i) * (here[i] - middle)
        sums[r, 0], sums[r, 1] = whole, along


@loop_of_sums
def blended_rows(g: Any, x: Any, first: Any, second: Any, shift: Any, out: Any) -> None:
    """Write ``g * first + x * second + shift`` to ``out``, as the last step of the gradient of a normalization.

    ``first``, ``second`` and ``shift`` have one number for each row of ``x``.
    """
    for r in prange(x.shape[0]):
        slope, here, into = row(g, r), x[r], out[r]
        of_g, of_x, plus = first[r], second[r], shift[r]
        for i in range(here.size):
            into[i] = at(slope, i) * of_g + here[i] * of_x + plus
