"""Kernels of scaled_dot_product_attention and its gradients for large arrays without a mask, by compiled Numba loops.

The loops are in ``kernels/numba/attention.py``. A function returns None if the loops do not support its arguments; the
caller then computes with NumPy (``kernels/attention.py``). Arrays have the shape (batch, heads, rows, elements), with
any strides for the heads and rows.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_dispatch, numba_operands

#: Rows of a block, at most and at least, and how many scores it has at most (1 MB of float32) unless those are more.
MOST, LEAST, BLOCK = 64, 16, 1 << 18


def _sizes(query: Any, key: Any, value: Any) -> tuple[int, ...] | None:
    """Return the sizes that the Numba loops of attention need as a tuple, or None if no loop supports the arrays.

    The items are, in this order: batch size, query heads, key heads, query rows, keys, elements of a key, elements of a
    value, query rows in a block, and pieces. The blocks of each head are distributed over ``pieces`` jobs, so that
    every thread has work even if there are few heads.
    """
    batch, heads, length, size = query.shape
    owners, keys = key.shape[1], key.shape[2]
    if not numba_dispatch.suits(batch * heads * length * keys, query, key, value) or not (size and value.shape[3]):
        return None
    if not blas_threads.gemm_address(query.dtype.char):
        return None
    some = min(length, max(LEAST, min(MOST, BLOCK // keys)))
    pieces = 1 if batch * owners >= blas_threads.max_threads() else blas_threads.max_threads()
    return batch, heads, owners, length, keys, size, value.shape[3], some, pieces


def _line(x: Any, writeable: bool = False) -> tuple[Any, tuple[int, ...]]:
    """Return the memory of ``x`` as a 1-d view, and the strides of its batch, head and row axes.

    The Numba loops read elements at offsets in this view. Therefore the strides are numbers of elements, not of bytes.
    ``x`` is copied to C order first if the elements of a row are not adjacent, rows overlap, or a stride is negative.
    The view is writeable if ``writeable`` is true.
    """
    *steps, last = [step // x.itemsize for step in x.strides]
    if (last != 1 and x.shape[3] > 1) or min(steps) < 0 or (steps[2] < x.shape[3] and x.shape[2] > 1):
        x = numpy.ascontiguousarray(x)
        steps = [step // x.itemsize for step in x.strides[:3]]
    steps[2] = max(steps[2], x.shape[3])  # there may be but one row
    count = 1 + sum([(size - 1) * step for size, step in zip(x.shape, (*steps, 1), strict=True)])
    line = numpy.lib.stride_tricks.as_strided(x, (count,), (x.itemsize,), writeable=writeable)
    return line, tuple(steps)


def forward(query: Any, key: Any, value: Any, causal: bool, scale: float) -> tuple[Any, Any] | None:
    """Return the attention output (batch, heads, rows, elements) and the logsumexp of each row of scores.

    The scores are the products of ``query`` and ``key`` times ``scale``. The output has the memory order of ``query``.
    If ``causal`` is true, query i attends only to the keys 0 to i. The result is None if the Numba loops do not support
    the arrays.
    """
    sizes = _sizes(query, key, value)
    if sizes is None:
        return None
    batch, heads, _, length, keys, size, wide, some, _ = sizes
    out = numpy.empty_like(query, shape=(batch, heads, length, wide))
    if out.strides[3] != out.itemsize:
        out = numpy.empty(out.shape, out.dtype)
    sums = numpy.empty((batch, heads, length), out.dtype)
    lines, steps = zip(*map(_line, (query, key, value)), (_line(out, True)), strict=True)
    room = numba_operands.room(keys * (size + some) + some, out.dtype)
    with blas_threads.SINGLE_THREADED:
        address = blas_threads.gemm_address(out.dtype.char)
        numba_dispatch.loops("attention").forward(
            *lines[:3], numpy.array(steps), sizes, causal, scale, address, room, lines[3], sums
        )
    return out, sums


def backward(
    g: Any, query: Any, key: Any, value: Any, sums: Any, causal: bool, scale: float
) -> tuple[Any, ...] | None:  # fmt: skip
    """Return the gradients of ``query``, ``key`` and ``value``, or None if the Numba loops do not support the arrays.

    ``g`` is the gradient of the attention output and ``sums`` is the logsumexp that :func:`forward` returned;
    ``causal`` and ``scale`` are the arguments of :func:`forward`. In memory the results have the order (batch, rows,
    heads, elements), as in PyTorch.
    """
    sizes = _sizes(query, key, value)
    if sizes is None or g.dtype is not query.dtype:
        return None
    _, _, _, _, keys, size, wide, some, pieces = sizes
    lines, steps = zip(*map(_line, (g, query, key, value)), strict=True)
    counts = (1, pieces, pieces)
    backs = [
        numpy.empty((count, x.shape[0], x.shape[2], x.shape[1], x.shape[3]), x.dtype)
        for count, x in zip(counts, (query, key, value), strict=True)
    ]
    inner = [(x.strides[1], x.strides[3], x.strides[2]) for x in backs]
    steps += tuple([tuple([step // g.itemsize for step in each]) for each in inner])
    room = numba_operands.room(keys * (size + wide + 2 * some), g.dtype)
    flat = [x.reshape(len(x), -1) for x in backs]
    with blas_threads.SINGLE_THREADED:
        address = blas_threads.gemm_address(g.dtype.char)
        numba_dispatch.loops("attention").backward(
            *lines,
            numpy.ascontiguousarray(sums),
            numpy.array(steps),
            sizes,
            causal,
            scale,
            address,
            room,
            flat[0][0],
            *flat[1:],
        )
    return tuple([(x[0] if len(x) == 1 else x.sum(0)).swapaxes(1, 2) for x in backs])
