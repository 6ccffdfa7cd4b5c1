"""Kernels of cdist: distances between all pairs of points.

The distances are computed in slices of rows, so that the differences fit the cache.
"""

from __future__ import annotations

import math
from typing import Any

BLOCK = 1 << 18  # differences computed at a time, approximately


def distances(np: Any, x1: Any, x2: Any, p: float) -> Any:
    """Return the ``p``-norm of ``x1[…, i, :] - x2[…, j, :]`` for all i and j.

    ``x1`` has the shape (…, P, M), ``x2`` the shape (…, R, M), and the result the shape (…, P, R).
    """
    batch = np.broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    rows, columns, size = x1.shape[-2], x2.shape[-2], x1.shape[-1]
    out = np.zeros((*batch, rows, columns), x1.dtype)
    if not size or not out.size:
        return out
    step = rows if np.__name__ == "meta" else max(1, BLOCK // max(1, math.prod(batch) * columns * size))
    for start in range(0, rows, step):
        part = slice(start, start + step)
        out[..., part, :] = _norm(np, np.abs(x1[..., part, None, :] - x2[..., None, :, :]), p)
    return out


def _norm(np: Any, apart: Any, p: float) -> Any:
    """Return the ``p``-norm along the last axis of ``apart``, an array of absolute values."""
    if p == 0:
        return np.minimum(np.ceil(apart), 1).sum(-1)  # nan if an element is nan
    if p == 1:
        return apart.sum(-1)
    if p == 2:
        return np.sqrt((apart * apart).sum(-1))
    if p == math.inf:
        return apart.max(-1)
    return np.power(np.power(apart, apart.dtype.type(p)).sum(-1), apart.dtype.type(1 / p))


def euclidean_distances(np: Any, x1: Any, x2: Any) -> Any:
    """Return the Euclidean distances between all rows a of ``x1`` and b of ``x2``, as ``sqrt(|a|² + |b|² - 2ab)``.

    This is faster than :func:`distances` with ``p`` = 2, but less accurate for points near each other.
    """
    squares = (x1 * x1).sum(-1)[..., :, None] + (x2 * x2).sum(-1)[..., None, :]
    return np.sqrt(np.maximum(squares - 2 * np.matmul(x1, np.swapaxes(x2, -1, -2)), 0))
