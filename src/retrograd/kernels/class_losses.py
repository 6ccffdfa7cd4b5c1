"""Kernels of nll_loss, cross_entropy and the multi-class margin losses: elements selected by class."""

from __future__ import annotations

from typing import Any

import numpy

from .gather_scatter import all_in_range, put_along, take_along
from .half_precision import upcast_all_half

INT = numpy.dtype(numpy.int64)


def check_classes(np: Any, target: Any, classes: int, ignore: int) -> Any:
    """Return a mask of the targets that count, or None if all do.

    Raises PyTorch's IndexError for a class out of range.
    """
    if not target.size:
        return None
    if target.dtype is INT and all_in_range(target, classes) and not 0 <= ignore < classes:
        return None
    low, high = target.min(), target.max()
    if low >= 0 and high < classes and not low <= ignore <= high:
        return None
    counts = target != ignore
    bad = target[counts & ((target < 0) | (target >= classes))]
    if bad.size:
        raise IndexError(f"Target {int(bad[0])} is out of bounds.")
    return None if counts.all() else counts


def class_weights(np: Any, target: Any, counts: Any, weight: Any, dtype: Any) -> tuple[Any, Any]:
    """Targets with class 0 for what does not count, and the weight of each (None: all 1)."""
    if counts is not None:
        target = np.where(counts, target, 0)
    if weight is None:
        return target, None if counts is None else counts.astype(dtype)
    found = upcast_all_half(weight)[0][target]
    return target, found if counts is None else found * counts


def pick(np: Any, x: Any, target: Any) -> Any:
    """``x[n, target[n, …], …]`` of ``x`` (N, C, …), or ``x[target]`` of (C)."""
    return x[target] if x.ndim == 1 else take_along(np, x, target, 1)


def place(np: Any, out: Any, target: Any, values: Any) -> None:
    """Write ``values`` where :func:`pick` reads."""
    if out.ndim == 1:
        out[target] = values
    else:
        put_along(np, out, target, values, 1)


def margins(np: Any, x: Any, target: Any, margin: float) -> tuple[Any, Any]:
    """By how much each class of (N, C) comes too near to the target's (0 for the target itself), and the rows."""
    rows = np.arange(x.shape[0])
    gap = x - (x[rows, target] - margin)[:, None]
    gap[rows, target] = 0
    return np.maximum(gap, 0, out=gap), rows


def listed(np: Any, target: Any) -> tuple[Any, Any]:
    """Of rows of classes that end at the first -1: which entries count, and which classes are named."""
    counts = np.logical_and.accumulate(target >= 0, axis=1)
    named = np.zeros(target.shape, bool)
    rows, columns = np.nonzero(counts)
    named[rows, target[rows, columns]] = True
    return counts, named
