"""Distances between all pairs of points, without holding all their differences at once. Knows no Tensor."""

from __future__ import annotations

import math
from typing import Any

HELD = 1 << 18  # about how many differences are held at a time


def distances(np: Any, x1: Any, x2: Any, p: float) -> Any:
    """The ``p``-norms of the differences of points (…, P, M) and (…, R, M): (…, P, R)."""
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, columns, size = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    out = np.zeros((*batch, rows, columns), x1.dtype)
    if not size or not out.size:
        return out
    step = max(1, HELD // max(1, math.prod(batch) * columns * size))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        out[..., part, :] = _norm(np, np.abs(x1[..., part, None, :] - x2[..., None, :, :]), p)
    return out


def _norm(np: Any, apart: Any, p: float) -> Any:
    """The ``p``-norm of absolute values along the last axis."""
    if p == 0:
        return np.count_nonzero(apart, axis=-1)
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return np.sqrt((apart * apart).sum(-1))
    if p == math.inf:
        return apart.max(-1)
    return np.power(np.power(apart, apart.dtype.type(p)).sum(-1), apart.dtype.type(1 / p))


def lengths(np: Any, x1: Any, x2: Any) -> Any:
    """The Euclidean distances of the same, from ``|a|² + |b|² - 2ab``: fast, and less exact for near points."""
    squares = (x1 * x1).sum(-1)[..., :, None] + (x2 * x2).sum(-1)[..., None, :]
    return np.sqrt(np.maximum(squares - 2 * np.matmul(x1, np.swapaxes(x2, -1, -2)), 0))
