"""Attention on a GPU: products of whole matrices, and one kernel for the softmax of the scores or for their gradient.

Unlike on the CPU the scores of several heads are stored, in parts of at most ``PART`` scores.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import cupy

from . import launch
from .windows import computing_dtype

#: Scores that are stored at once, at most (1 GiB of float32); a head with more is left to the blocks of the CPU.
PART = 2**28
#: Elements of a mask of causal attention that is kept for the next call.
KEPT = 2**22


def _later(rows: int, keys: int, device: int) -> Any:
    return cupy.arange(keys) > cupy.arange(rows)[:, None]


_kept_later = lru_cache(8)(_later)


class _Heads:
    """Operands of one call with batch and heads as one axis, as matrices in C order."""

    def __init__(self, query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float, kind: Any) -> None:
        self.kind, self.scale = kind, scale
        self.batch, self.heads, self.length, _ = query.shape
        self.keys, self.count = key.shape[2], self.batch * self.heads
        self.query, self.value = self.flat(query), self.flat(value)
        #: The transposed key: a product copies a matrix that is not in C order.
        self.key = self.flat(key.swapaxes(2, 3))
        shape = self.batch, self.heads, self.length, self.keys
        self.mask = None if mask is None else cupy.broadcast_to(mask, shape)
        if self.mask is not None and self.mask.dtype.kind != "b":
            self.mask = self.mask.astype(kind, copy=False)
        self.later = None
        if causal:
            by = _kept_later if self.length * self.keys <= KEPT else _later
            self.later = by(self.length, self.keys, query.device.id)

    def flat(self, x: Any) -> Any:
        """Return ``x`` with batch and heads as one axis, in the dtype in which is computed."""
        x = cupy.ascontiguousarray(x.astype(self.kind, copy=False))
        return x.reshape(-1, *x.shape[2:])

    def parts(self) -> list[tuple[int, slice, slice]]:
        """Return (number of samples, samples, heads of all samples) of each part whose scores are stored at once."""
        most = max(1, PART // (self.length * self.keys * self.heads))
        found = [(first, min(first + most, self.batch)) for first in range(0, self.batch, most)]
        return [(b - a, slice(a, b), slice(a * self.heads, b * self.heads)) for a, b in found]

    def scores(self, samples: int, heads: slice) -> Any:
        """Return the products of queries and keys, as (samples, heads, rows, keys)."""
        found = cupy.matmul(self.query[heads], self.key[heads])
        return found.reshape(samples, self.heads, self.length, self.keys)

    def mask_of(self, samples: slice) -> Any:
        """Return the mask of ``samples``, or None."""
        return None if self.mask is None else self.mask[samples]


def _masked(np: Any, scores: Any, mask: Any, later: Any, scale: float) -> Any:
    scores = scores * scores.dtype.type(scale)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype.kind == "b" else scores + mask
    if later is not None:
        scores = np.where(later, -np.inf, scores)
    return scores


def _weights(np: Any, scores: Any, mask: Any, later: Any, scale: float) -> Any:
    """Return the softmax of the masked scores, and the logsumexp of each row: infinite if a row has no key."""
    scores = _masked(np, scores, mask, later, scale)
    top = scores.max(-1, keepdims=True)
    top = np.where(top == -np.inf, 0, top)
    powers = np.exp(scores - top)
    total = powers.sum(-1, keepdims=True)
    return powers / np.where(total == 0, 1, total), np.where(total == 0, np.inf, top + np.log(total))


def _row_product(np: Any, g: Any, out: Any) -> Any:
    return (g * out).sum(-1, keepdims=True)


def _gradients(
    np: Any, scores: Any, mask: Any, later: Any, sums: Any, slope: Any, product: Any, scale: float
) -> tuple[Any, Any]:
    """Return the softmax of the masked scores, and the gradient of the scores for ``slope``, that of the softmax."""
    weights = np.exp(_masked(np, scores, mask, later, scale) - sums)
    return weights, (slope - product) * weights * slope.dtype.type(scale)


def _call(function: Any, name: str, *args: Any) -> Any:
    found = launch.computed(function, name, args, {})
    return function(cupy, *args) if found is None else found


def _supported(query: Any, key: Any) -> Any:
    """Return the dtype in which attention is computed, or None if the blocks of the CPU are taken."""
    if key.shape[1] != query.shape[1] or 0 in query.shape or 0 in key.shape:
        return None
    return computing_dtype(query.dtype) if query.shape[1] * query.shape[2] * key.shape[2] <= PART else None


def forward(query: Any, key: Any, value: Any, mask: Any, causal: bool, scale: float) -> Any:
    """Return the output and the logsumexp of each row, as ``kernels/attention.py`` does; None if not supported."""
    kind = _supported(query, key)
    if kind is None or not value.shape[3]:
        return None
    work = _Heads(query, key, value, mask, causal, scale, kind)
    out = cupy.empty_like(query, shape=(*query.shape[:3], value.shape[3]))
    sums = []
    for samples, part, heads in work.parts():
        given = work.scores(samples, heads), work.mask_of(part), work.later, scale
        weights, found = _call(_weights, "attention", *given)
        sums.append(found.reshape(samples, work.heads, work.length))
        found = cupy.matmul(weights.reshape(-1, work.length, work.keys), work.value[heads])
        out[part] = found.reshape(samples, *out.shape[1:])
    return out, sums[0] if len(sums) == 1 else cupy.concatenate(sums)


def backward(
    g: Any, query: Any, key: Any, value: Any, mask: Any, out: Any, sums: Any, causal: bool, scale: float
) -> Any:
    """Return the gradients of ``query``, ``key`` and ``value``; None if not supported."""
    kind = _supported(query, key)
    if kind is None or not value.shape[3]:
        return None
    work = _Heads(query, key, value, mask, causal, scale, kind)
    product = _call(_row_product, "row_product", g.astype(kind, copy=False), out.astype(kind, copy=False))
    values, grads = work.flat(value.swapaxes(2, 3)), work.flat(g)
    key_rows = cupy.ascontiguousarray(work.key.swapaxes(1, 2))
    sums = sums.astype(kind, copy=False)[..., None]
    results = []
    for samples, part, heads in work.parts():
        scores = work.scores(samples, heads)
        slope = cupy.matmul(grads[heads], values[heads]).reshape(scores.shape)
        given = scores, work.mask_of(part), work.later, sums[part], slope, product[part], scale
        weights, slope = [
            each.reshape(-1, work.length, work.keys) for each in _call(_gradients, "attention_grad", *given)
        ]
        transposed = slope.swapaxes(1, 2), weights.swapaxes(1, 2)
        results.append([
            cupy.matmul(slope, key_rows[heads]), cupy.matmul(transposed[0], work.query[heads]),
            cupy.matmul(transposed[1], grads[heads]),
        ])  # fmt: skip
    found = []
    for k, model in enumerate((query, key, value)):
        parts = [each[k] for each in results]
        whole = parts[0] if len(parts) == 1 else cupy.concatenate(parts)
        whole = whole.reshape(model.shape).astype(model.dtype, copy=False).swapaxes(1, 2)
        found.append(cupy.ascontiguousarray(whole).swapaxes(1, 2))
    return tuple(found)


__all__ = ["backward", "forward"]
