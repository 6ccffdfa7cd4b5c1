"""Attention on NumPy arrays without the matrix of all scores: it is made, used and dropped in blocks that fit a cache.

``query`` (batch, heads, L, E), ``key`` and ``value`` (batch, key heads, S, E); each key head serves the same number of
query heads. ``mask`` broadcasts to (batch, heads, L, S): booleans (what is True counts) or numbers that are added.
Without a mask compiled loops do it all, where there are any (``kernels/attention_numba.py``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy

from . import attention_numba
from .half_precision import upcast_half
from .matmul import product

#: Scores in a block (1 MB of float32).
BLOCK = 1 << 18
#: Rows in a block where rows see only the keys that are not later: a longer one would work for nothing in half of it.
STEPS = 128


class _Work:
    """The arrays of one attention, heads and batch as one, and the blocks into which the scores are cut."""

    def __init__(self, np: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> None:
        self.np, self.causal, self.scale = np, causal, scale
        self.memory: dict[str, Any] = {}
        self.batch, self.heads, self.length, self.size = query.shape
        self.keys, self.share = key.shape[2], self.heads // max(key.shape[1], 1)
        self.query, self.key, self.value = self.flat(query), self.flat(key), self.flat(value)
        shape = (self.batch, self.heads, self.length, self.keys)
        self.mask = None if mask is None else np.broadcast_to(mask, shape)

    def flat(self, x: Any) -> Any:
        """Batch and heads as one dimension."""
        x = upcast_half(x)
        return x.reshape(x.shape[0] * x.shape[1], *x.shape[2:])

    def blocks(self) -> Iterator[tuple[slice, slice, int]]:
        """Heads, rows, and how many of the keys these rows see."""
        count, row = self.batch * self.heads, self.keys
        heads = max(1, BLOCK // max(self.length * row, 1))
        rows = self.length if heads > 1 else max(1, min(self.length, BLOCK // max(row, 1)))
        if self.causal and rows > STEPS:
            rows = STEPS
            heads = max(1, min(count, BLOCK // (rows * max(row, 1))))
        for first in range(0, count, heads):
            for low in range(0, self.length, rows):
                high = min(low + rows, self.length)
                yield slice(first, min(first + heads, count)), slice(low, high), min(high, row) if self.causal else row

    def owners(self, heads: slice) -> Any:
        """The key heads that serve a block of query heads."""
        if self.share == 1:
            return heads
        return self.np.arange(heads.start, heads.stop) // self.share

    def products(self, heads: slice, rows: slice, seen: int) -> Any:
        """Products of a block of queries with the keys that they see."""
        return self.product("scores", self.query[heads, rows], self.key[self.owners(heads)][:, :seen].swapaxes(1, 2))

    def product(self, name: str, a: Any, b: Any) -> Any:
        """``a @ b`` in memory that is used again for the next block: fresh pages cost as much as the product."""
        shape = (*a.shape[:2], b.shape[2])
        memory = self.memory.get(name)
        if memory is None or memory.size < math.prod(shape):
            memory = self.memory[name] = self.np.empty(math.prod(shape), a.dtype)
        out = memory[: math.prod(shape)].reshape(shape)
        return product(a, b, out) if self.np is numpy else self.np.matmul(a, b, out=out)

    def exponentials(self, heads: slice, rows: slice, seen: int, sums: Any) -> tuple[Any, Any]:
        """Exponentials of the scores less the largest of their row, and their sums; and their logarithms into ``sums``."""
        np = self.np
        scores = self.scores(heads, rows, seen)
        top = scores.max(-1, keepdims=True)
        top = np.where(np.isneginf(top), top.dtype.type(0), top)
        scores -= top
        np.exp(scores, out=scores)
        total = np.add.reduce(scores, -1, keepdims=True)
        blind = total == 0
        total[blind] = 1
        # Against infinity every exponential is zero on the way back.
        sums[heads, rows] = np.where(blind, np.inf, top + np.log(total))[..., 0]
        return scores, total

    def probabilities(self, heads: slice, rows: slice, seen: int, sums: Any) -> Any:
        """Which part of what each key holds a query gets."""
        scores = self.scores(heads, rows, seen)
        scores -= sums[heads, rows, None]
        self.np.exp(scores, out=scores)
        return scores

    def slopes(self, given: Any, chances: Any, out: Any, g: Any) -> Any:
        """The gradients of the scores, of those of the probabilities; in their place."""
        given -= (g * out).sum(-1, keepdims=True)
        given *= chances
        given *= given.dtype.type(self.scale)
        return given

    def scores(self, heads: slice, rows: slice, seen: int) -> Any:
        """Scaled and masked products of a block of queries with the keys that they see."""
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


def forward(np: Any, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> tuple[Any, Any]:
    """What the queries get, laid out as ``query``, and the logarithms of the sums of exponentials (batch, heads, L).

    A query that sees no key gets zeros.
    """
    if mask is None:
        found = attention_numba.forward(upcast_half(query), upcast_half(key), upcast_half(value), causal, scale)
        if found is not None:
            return found[0].astype(query.dtype, copy=False), found[1]
    work = _Work(np, query, key, value, mask, causal, scale)
    out = np.empty((work.batch * work.heads, work.length, value.shape[3]), work.query.dtype)
    sums = np.empty((work.batch * work.heads, work.length), work.query.dtype)
    for heads, rows, seen in work.blocks():
        scores, total = work.exponentials(heads, rows, seen, sums)
        made = work.product("made", scores, work.value[work.owners(heads)][:, :seen])
        np.divide(made, total, out=out[heads, rows])
    shaped = np.empty_like(query, shape=(*query.shape[:3], value.shape[3]))
    shaped[...] = out.reshape(shaped.shape)
    return shaped, sums.reshape(query.shape[:3])


def backward(
    np: Any, g: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, sums: Any, causal: bool, scale: float
) -> tuple[Any, ...]:
    """The gradients of query, key and value. The scores are made again, block by block."""
    if mask is None:
        wide = upcast_half(query), upcast_half(key), upcast_half(value)
        found = attention_numba.backward(upcast_half(g), *wide, sums, causal, scale)
        if found is not None:
            return tuple([each.astype(query.dtype, copy=False) for each in found])
    work = _Work(np, query, key, value, mask, causal, scale)
    g, out, sums = work.flat(g), work.flat(out), sums.reshape(-1, work.length)
    grads = tuple(np.zeros(each.shape, each.dtype) for each in (work.query, work.key, work.value))
    for heads, rows, seen in work.blocks():
        part = work.probabilities(heads, rows, seen, sums)
        given, owners = g[heads, rows], work.owners(heads)
        slope = work.product("slopes", given, work.value[owners][:, :seen].swapaxes(1, 2))
        slope = work.slopes(slope, part, out[heads, rows], given)
        grads[0][heads, rows] = work.product("made", slope, work.key[owners][:, :seen])
        _add(np, grads[1][:, :seen], owners, work.product("made", slope.swapaxes(1, 2), work.query[heads, rows]))
        _add(np, grads[2][:, :seen], owners, work.product("made", part.swapaxes(1, 2), given))
    return tuple(
        _heads_inside(np, grad.reshape(each.shape).astype(each.dtype, copy=False))
        for grad, each in zip(grads, (query, key, value), strict=True)
    )


def _add(np: Any, target: Any, owners: Any, values: Any) -> None:
    if isinstance(owners, slice):
        target[owners] += values
    else:
        np.add.at(target, owners, values)


def _heads_inside(np: Any, x: Any) -> Any:
    """``x`` with its heads inside its rows in memory, as PyTorch lays gradients of attention out."""
    return np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
