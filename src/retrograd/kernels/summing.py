"""Sums of many short floats that lose no digits: NumPy adds in pairs only along a contiguous last axis."""

from __future__ import annotations

from typing import Any

BLOCK = 128  # how many numbers are added one after the other, as in NumPy's own pairwise sum


def summed(np: Any, x: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """The sum of ``x`` over ``axes``, one axis after the other, each in blocks whose sums are added in turn."""
    if x.dtype.char not in "fF" or not any(x.shape[axis] > BLOCK and x.strides[axis] != x.itemsize for axis in axes):
        return np.add.reduce(x, axis=axes, keepdims=keepdims)
    for axis in sorted(axes, reverse=True):
        x = _along(np, x, axis)
    return x if keepdims else x.squeeze(axes)


def _along(np: Any, x: Any, axis: int) -> Any:
    size = x.shape[axis]
    if size <= BLOCK or x.strides[axis] == x.itemsize:
        return np.add.reduce(x, axis=axis, keepdims=True)
    whole, before = size // BLOCK, (slice(None),) * axis
    # Splitting an axis never copies.
    blocks = x[(*before, slice(whole * BLOCK))].reshape(*x.shape[:axis], whole, BLOCK, *x.shape[axis + 1 :])
    found = _along(np, np.add.reduce(blocks, axis=axis + 1), axis)
    rest = x[(*before, slice(whole * BLOCK, None))]
    return found + np.add.reduce(rest, axis=axis, keepdims=True) if rest.size else found
