"""Numba loops of scaled_dot_product_attention and its gradients, computed in blocks whose scores stay in the cache.

Arrays are passed as 1-d memory, with the strides (in elements) of batch, head and row. Matrix products call NumPy's
BLAS (``kernels/numba/gemm.py``). ``room`` (parts, elements) is scratch memory: the work is divided into as many parts
as ``room`` has rows, and each thread computes some of the parts. A block is a range of query rows of one head. The
blocks of each head are distributed over ``pieces`` jobs, so that every thread has work even if there are few heads: job
k computes the blocks k, k + pieces, k + 2 * pieces and so on.
"""

from __future__ import annotations

import math
from typing import Any

from numba import njit, prange

from .gemm import gemm
from .jit import inlined_step_of_sums, loop_of_sums
from .math import decay, larger, like

#: Rows of a matrix that are transposed together: a cache line of float32.
SIDE = 16


@inlined_step_of_sums
def _transpose(x: Any, at: Any, lead: Any, rows: Any, columns: Any, out: Any) -> None:
    """Write the transpose of a matrix to the 1-d array ``out``: ``out[c * rows + r] = x[at + r * lead + c]``.

    The matrix, with ``rows`` rows and ``columns`` columns, begins at ``x[at]``; ``lead`` is the stride of its rows. It
    is transposed once for all blocks, because BLAS would transpose the operand again for each block.
    """
    for first in range(0, rows, SIDE):
        count = min(SIDE, rows - first)
        for c in range(columns):
            part, line = x[at + first * lead + c :], out[c * rows + first : c * rows + first + count]
            for r in range(line.size):
                line[r] = part[r * lead]


@inlined_step_of_sums
def _exponentials(row: Any, scale: Any) -> Any:
    """Replace ``row``, a row of scores, by ``exp(scale * row - top)`` in place; return (sum of the new row, ``top``).

    ``top`` is the maximum of ``scale * row``.
    """
    top = row[0]
    for k in range(row.size):
        top = larger(top, row[k])
    total, factor = like(top, 0), like(top, scale)
    for k in range(row.size):
        raised = decay((row[k] - top) * factor)
        row[k] = raised
        total += raised
    return total, top * factor


@inlined_step_of_sums
def _probabilities(row: Any, scale: Any, less: Any) -> None:
    """Replace ``row``, a row of scores, by ``exp(scale * row - less)`` in place.

    The result is the softmax of ``scale * row`` if ``less`` is the logsumexp of ``scale * row``.
    """
    factor = like(less, scale)
    for k in range(row.size):
        row[k] = decay(row[k] * factor - less)


@inlined_step_of_sums
def _score_gradients(given: Any, chance: Any, scale: Any) -> None:
    """Replace ``given``, the gradient of a row of probabilities, by the gradient of the row of scores, in place.

    ``chance`` holds the probabilities: the softmax of the scores times ``scale``. The formula contains the mean of
    ``given``, weighted by the probabilities. This mean is divided by the sum of the probabilities, because with
    rounding the sum is not exactly 1.
    """
    mean, total = like(given[0], 0), like(given[0], 0)
    for k in range(given.size):
        mean += given[k] * chance[k]
        total += chance[k]
    mean, factor = mean / total, like(mean, scale)
    for k in range(given.size):
        given[k] = (given[k] - mean) * chance[k] * factor


@njit(inline="always")
def _place(steps: Any, b: Any, h: Any, r: Any) -> Any:
    """Return the flat offset of row ``r`` of head ``h`` of batch ``b`` in an array with the strides ``steps``."""
    return b * steps[0] + h * steps[1] + r * steps[2]


@loop_of_sums
def forward(
    query: Any, key: Any, value: Any, steps: Any, sizes: Any, causal: Any, scale: Any, address: Any, room: Any,
    out: Any, sums: Any,
) -> None:  # fmt: skip
    """Write the attention output to ``out`` and the logsumexp of each row of scores to ``sums`` (batch, heads, rows).

    ``steps`` holds the strides of query, key, value and out. ``sizes`` holds batch, heads, key heads, rows, keys,
    elements of a key, elements of a value, rows in a block, and pieces. ``address`` is the address of the BLAS routine
    gemm. ``room`` is scratch memory. ``pieces`` and ``room`` are described in the module's docstring.
    """
    batch, heads, owners, length, keys, size, wide, some, pieces = sizes
    blocks, parts, jobs = (length + some - 1) // some, room.shape[0], batch * heads * pieces
    for part in prange(parts):
        turned, scores = room[part, : keys * size], room[part, keys * size :]
        for job in range(part, jobs, parts):
            b, h, piece = job // pieces // heads, job // pieces % heads, job % pieces
            owner = h // (heads // owners)
            _transpose(key, _place(steps[1], b, owner, 0), steps[1, 2], keys, size, turned)
            for block in range(piece, blocks, pieces):
                low = block * some
                rows = min(some, length - low)
                seen = min(keys, low + rows) if causal else keys
                lines, to = query[_place(steps[0], b, h, low) :], _place(steps[3], b, h, low)
                gemm(address, False, False, (seen, rows, size, keys, steps[0, 2], seen), turned, lines, False, scores)
                for r in range(rows):
                    sees = min(seen, low + r + 1) if causal else seen
                    total, top = _exponentials(scores[r * seen : r * seen + sees], scale)
                    scores[r * seen + sees : (r + 1) * seen] = 0
                    sums[b, h, low + r] = top + like(top, math.log(total))
                    scores[rows * seen + r] = like(top, 1) / total
                lines = value[_place(steps[2], b, owner, 0) :]
                numbers = (wide, rows, seen, steps[2, 2], seen, steps[3, 2])
                gemm(address, False, False, numbers, lines, scores, False, out[to:])
                for r in range(rows):
                    factor, made = scores[rows * seen + r], out[to + r * steps[3, 2] :][:wide]
                    for k in range(made.size):
                        made[k] *= factor


@loop_of_sums
def backward(
    given: Any, query: Any, key: Any, value: Any, sums: Any, steps: Any, sizes: Any, causal: Any, scale: Any,
    address: Any, room: Any, back: Any, back_key: Any, back_value: Any,
) -> None:  # fmt: skip
    """Write the gradients of query, key and value to ``back``, ``back_key`` and ``back_value``.

    ``back_key`` and ``back_value`` have the shape (pieces, elements); the caller sums them over the pieces. ``given``
    is the gradient of the attention output, and ``sums`` the logsumexp that :func:`forward` writes. ``steps`` holds the
    strides of ``given``, query, key, value and the three results. ``sizes``, ``address`` and ``room`` are as in
    :func:`forward`.
    """
    batch, heads, owners, length, keys, size, wide, some, pieces = sizes
    blocks, parts, share, both = (length + some - 1) // some, room.shape[0], heads // owners, keys * (size + wide)
    for part in prange(parts):
        turned, turned_value = room[part, : keys * size], room[part, keys * size : both]
        scores, slopes = room[part, both : both + some * keys], room[part, both + some * keys :]
        for job in range(part, batch * owners * pieces, parts):
            b, owner, piece = job // pieces // owners, job // pieces % owners, job % pieces
            from_key, from_value = _place(steps[2], b, owner, 0), _place(steps[3], b, owner, 0)
            to_key = back_key[piece, _place(steps[5], b, owner, 0) :]
            to_value = back_value[piece, _place(steps[6], b, owner, 0) :]
            _transpose(key, from_key, steps[2, 2], keys, size, turned)
            _transpose(value, from_value, steps[3, 2], keys, wide, turned_value)
            for k in range(keys):
                to_key[k * steps[5, 2] : k * steps[5, 2] + size] = 0
                to_value[k * steps[6, 2] : k * steps[6, 2] + wide] = 0
            for job_of in range(share * ((blocks - piece + pieces - 1) // pieces)):
                h, low = owner * share + job_of % share, (job_of // share * pieces + piece) * some
                rows = min(some, length - low)
                seen = min(keys, low + rows) if causal else keys
                lines, gradient = query[_place(steps[1], b, h, low) :], given[_place(steps[0], b, h, low) :]
                lead, gradients = steps[1, 2], steps[0, 2]
                gemm(address, False, False, (seen, rows, size, keys, lead, seen), turned, lines, False, scores)
                numbers = (seen, rows, wide, keys, gradients, seen)
                gemm(address, False, False, numbers, turned_value, gradient, False, slopes)
                for r in range(rows):
                    sees = min(seen, low + r + 1) if causal else seen
                    row, slope = scores[r * seen : r * seen + sees], slopes[r * seen : r * seen + sees]
                    _probabilities(row, scale, sums[b, h, low + r])
                    _score_gradients(slope, row, scale)
                    scores[r * seen + sees : (r + 1) * seen] = 0
                    slopes[r * seen + sees : (r + 1) * seen] = 0
                numbers = (size, rows, seen, steps[2, 2], seen, steps[4, 2])
                gemm(address, False, False, numbers, key[from_key:], slopes, False, back[_place(steps[4], b, h, low) :])
                gemm(address, False, True, (size, seen, rows, lead, seen, steps[5, 2]), lines, slopes, True, to_key)
                numbers = (wide, seen, rows, gradients, seen, steps[6, 2])
                gemm(address, False, True, numbers, gradient, scores, True, to_value)
