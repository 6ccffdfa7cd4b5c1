"""Kernels of scaled_dot_product_attention and its gradients, computed block by block.

The matrix of all scores (the products of queries and keys) is never stored. A block is a range of heads and query rows.
Its scores are computed, used and discarded while they are in the CPU cache.

``query`` has the shape (batch, heads, L, E); ``key`` and ``value`` have (batch, key heads, S, E). Each key head is used
by the same number of query heads. ``mask`` broadcasts to (batch, heads, L, S). It is either boolean (True means that
the query may attend to the key) or numeric (added to the scores). Without a mask, large arrays are computed by the
Numba loops of ``kernels/attention_numba.py``. On a GPU the scores of many heads are computed by one product
(``kernels/cuda/attention.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy

from . import attention_numba
from .half_precision import upcast_half
from .matmul import product
from .select import NUMBA, at_least, kernel
from .thresholds import LARGE

#: Scores in a block (1 MB of float32).
BLOCK = 1 << 18
#: Rows in a block of causal attention: in a longer block up to half of the computed scores would be masked.
CAUSAL_ROWS = 128


class _BlockedAttention:
    """Operands of one scaled_dot_product_attention call, and methods that compute one block of the scores.

    Batch and heads are merged into one axis. A block is given by ``heads``, a slice of the merged axis, by ``rows``, a
    slice of the queries, and by ``seen``: only the first ``seen`` keys are needed for the block.
    """

    def __init__(self, np: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> None:
        self.np, self.causal, self.scale = np, causal, scale
        self.memory: dict[str, Any] = {}
        self.batch, self.heads, self.length, self.size = query.shape
        self.keys, self.share = key.shape[2], self.heads // max(key.shape[1], 1)
        self.query, self.key, self.value = self.flat(query), self.flat(key), self.flat(value)
        shape = (self.batch, self.heads, self.length, self.keys)
        self.mask = None if mask is None else np.broadcast_to(mask, shape)

    def flat(self, x: Any) -> Any:
        """Return ``x`` with the batch and head axes merged into one axis; half precision is cast to float32."""
        x = upcast_half(x)
        return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])

    def blocks(self) -> Iterator[tuple[slice, slice, int]]:
        """Yield each block as (slice of heads, slice of query rows, number of keys that the block needs).

        In causal attention a block needs only the keys up to its last row, otherwise all keys.
        """
        count, row = self.batch * self.heads, self.keys
        if self.np.__name__ == "meta":
            yield slice(0, count), slice(0, self.length), row
            return
        heads = max(1, BLOCK // max(self.length * row, 1))
        rows = self.length if heads > 1 else max(1, min(self.length, BLOCK // max(row, 1)))
        if self.causal and rows > CAUSAL_ROWS:
            rows = CAUSAL_ROWS
            heads = max(1, min(count, BLOCK // (rows * max(row, 1))))
        for first in range(0, count, heads):
            for low in range(0, self.length, rows):
                high = min(low + rows, self.length)
                yield slice(first, min(first + heads, count)), slice(low, high), min(high, row) if self.causal else row

    def owners(self, heads: slice) -> Any:
        """Return the index of the key head of each query head in ``heads``, for grouped-query attention.

        In grouped-query attention several consecutive query heads use the same key head. ``heads`` is a slice of the
        axis into which batch and heads are merged. The index is ``heads`` itself if there are as many key heads as
        query heads, else an array.
        """
        if self.share == 1:
            return heads
        return self.np.arange(heads.start, heads.stop) // self.share

    def products(self, heads: slice, rows: slice, seen: int) -> Any:
        """Return ``query @ keyᵀ`` for the query rows ``rows`` of the heads ``heads`` and the first ``seen`` keys."""
        return self.product("scores", self.query[heads, rows], self.key[self.owners(heads)][:, :seen].swapaxes(1, 2))

    def product(self, name: str, a: Any, b: Any) -> Any:
        """Return ``a @ b``, written to the scratch buffer called ``name``.

        The next call with the same name overwrites the result. Allocating a new buffer for each block would take as
        long as the product, because the operating system has to map its memory pages.
        """
        shape = (*a.shape[:2], b.shape[2])
        memory = self.memory.get(name)
        if memory is None or memory.size < math.prod(shape):
            memory = self.memory[name] = self.np.empty(math.prod(shape), a.dtype)
        out = memory[: math.prod(shape)].reshape(shape)
        return product(a, b, out) if self.np is numpy else self.np.matmul(a, b, out=out)

    def exponentials(self, heads: slice, rows: slice, seen: int, sums: Any) -> tuple[Any, Any]:
        """Return ``exp(scores - row maximum)`` for one block of scores, and the sum of each row of these exponentials.

        The block has the query rows ``rows`` of the heads ``heads``, and the first ``seen`` keys. The logsumexp of each
        row of scores is written to ``sums[heads, rows]``.
        """
        np = self.np
        scores = self.scores(heads, rows, seen)
        top = scores.max(-1, keepdims=True)
        top = np.where(np.isneginf(top), top.dtype.type(0), top)
        scores -= top
        np.exp(scores, out=scores)
        total = np.add.reduce(scores, -1, keepdims=True)
        blind = total == 0
        np.copyto(total, 1, where=blind)
        # The logsumexp of a row without keys is infinite, so that the backward pass computes zero probabilities.
        sums[heads, rows] = np.where(blind, np.inf, top + np.log(total))[..., 0]
        return scores, total

    def probabilities(self, heads: slice, rows: slice, seen: int, sums: Any) -> Any:
        """Return the softmax of one block of scores.

        The block has the query rows ``rows`` of the heads ``heads``, and the first ``seen`` keys. ``sums[heads, rows]``
        is the logsumexp of each row of scores.
        """
        scores = self.scores(heads, rows, seen)
        scores -= sums[heads, rows, None]
        self.np.exp(scores, out=scores)
        return scores

    def score_gradients(self, grad: Any, probabilities: Any, out: Any, g: Any) -> Any:
        """Return the gradient of the scores of a block, given ``grad``, the gradient of its probabilities.

        The result is computed in place in ``grad``. ``out`` is the attention output of the block and ``g`` the gradient
        of that output.
        """
        grad -= (g * out).sum(-1, keepdims=True)
        grad *= probabilities
        grad *= grad.dtype.type(self.scale)
        return grad

    def scores(self, heads: slice, rows: slice, seen: int) -> Any:
        """Return one block of scores: the scaled and masked products of query rows and keys.

        The block has the query rows ``rows`` of the heads ``heads``, and the first ``seen`` keys.
        """
        np = self.np
        scores = self.products(heads, rows, seen)
        scores *= scores.dtype.type(self.scale)
        if self.mask is not None:
            every = np.arange(heads.start, heads.stop)
            mask = self.mask[every // self.heads, every % self.heads, rows, :seen]
            if mask.dtype.kind == "b":
                np.copyto(scores, -np.inf, where=~mask)
            else:
                scores += mask
        if self.causal:
            later = np.arange(seen) > np.arange(rows.start, rows.stop)[:, None]
            np.copyto(scores, -np.inf, where=later)
        return scores


def _scores_forward(query: Any, key: Any, *others: Any) -> int:
    """Return the number of scores, which are products of a query and a key.

    By this number :func:`forward` selects a Numba loop or the NumPy implementation.
    """
    return math.prod(query.shape[:3]) * int(key.shape[2])


def _scores_backward(g: Any, query: Any, key: Any, *others: Any) -> int:
    return _scores_forward(query, key)


@at_least(LARGE, NUMBA)
def _forward_by_loop(np: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    if mask is not None:
        return None
    result = attention_numba.forward(upcast_half(query), upcast_half(key), upcast_half(value), causal, scale)
    return None if result is None else (result[0].astype(query.dtype, copy=False), result[1])


@kernel(_forward_by_loop, count=_scores_forward)
def forward(np: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    """Return the attention output, in the memory order of ``query``, and the logsumexp of each row of scores.

    The scores are the products of ``query`` and ``key``, times ``scale``, with ``mask`` applied. The shape of the
    logsumexp is (batch, heads, L). If ``causal`` is true, query i attends only to the keys 0 to i. The output of a
    query without any unmasked key is 0.
    """
    if np.__name__ == "cupy":
        found = np.attention.forward(query, key, value, mask, causal, scale)
        if found is not None:
            return found
    work = _BlockedAttention(np, query, key, value, mask, causal, scale)
    out = np.empty((work.batch * work.heads, work.length, value.shape[3]), work.query.dtype)
    sums = np.empty((work.batch * work.heads, work.length), work.query.dtype)
    for heads, rows, seen in work.blocks():
        scores, total = work.exponentials(heads, rows, seen, sums)
        summed = work.product("out", scores, work.value[work.owners(heads)][:, :seen])
        np.divide(summed, total, out=out[heads, rows])
    shaped = np.empty_like(query, shape=(*query.shape[:3], value.shape[3]))
    shaped[...] = out.reshape(shaped.shape)
    return shaped, sums.reshape(query.shape[:3])


@at_least(LARGE, NUMBA)
def _backward_by_loop(
    np: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, sums: Any, causal: bool, scale: float
) -> Any:
    if mask is not None:
        return None
    wide = upcast_half(query), upcast_half(key), upcast_half(value)
    result = attention_numba.backward(upcast_half(g), *wide, sums, causal, scale)
    return None if result is None else tuple([each.astype(query.dtype, copy=False) for each in result])


@kernel(_backward_by_loop, count=_scores_backward)
def backward(
    np: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, sums: Any, causal: bool, scale: float
) -> Any:
    """Return the gradients of ``query``, ``key`` and ``value``; the scores are recomputed block by block.

    ``g`` is the gradient of the attention output ``out``. ``sums`` is the logsumexp that :func:`forward` returned.
    ``mask``, ``causal`` and ``scale`` are the arguments of :func:`forward`.
    """
    if np.__name__ == "cupy":
        found = np.attention.backward(g, query, key, value, mask, out, sums, causal, scale)
        if found is not None:
            return found
    work = _BlockedAttention(np, query, key, value, mask, causal, scale)
    g, out, sums = work.flat(g), work.flat(out), sums.reshape(-1, work.length)
    grads = tuple(np.zeros(each.shape, each.dtype) for each in (work.query, work.key, work.value))
    for heads, rows, seen in work.blocks():
        probabilities = work.probabilities(heads, rows, seen, sums)
        grad_block, owners = g[heads, rows], work.owners(heads)
        slope = work.product("slopes", grad_block, work.value[owners][:, :seen].swapaxes(1, 2))
        slope = work.score_gradients(slope, probabilities, out[heads, rows], grad_block)
        grads[0][heads, rows] = work.product("out", slope, work.key[owners][:, :seen])
        _add(np, grads[1][:, :seen], owners, work.product("out", slope.swapaxes(1, 2), work.query[heads, rows]))
        _add(np, grads[2][:, :seen], owners, work.product("out", probabilities.swapaxes(1, 2), grad_block))
    return tuple(
        _heads_inside(np, grad.reshape(each.shape).astype(each.dtype, copy=False))
        for grad, each in zip(grads, (query, key, value), strict=True)
    )


def _add(np: Any, target: Any, owners: Any, values: Any) -> None:
    """Add the gradients ``values`` of query heads to the key heads that they use, in ``target``, in place.

    ``values`` has one item for each query head, and ``target`` one for each key head. ``owners`` is the index of the
    key head of each query head: a slice or an array. Several query heads may use the same key head; their values are
    summed.
    """
    if isinstance(owners, slice):
        target[owners] += values
    else:
        np.add.at(target, owners, values)


def _heads_inside(np: Any, x: Any) -> Any:
    """Return a copy of ``x`` (batch, heads, rows, elements), stored in memory as (batch, rows, heads, elements).

    PyTorch stores the gradients of query, key and value in this order.
    """
    return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
