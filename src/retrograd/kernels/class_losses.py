"""Kernels of nll_loss, cross_entropy, multi_margin_loss and multilabel_margin_loss, which select by class index."""

from __future__ import annotations

from typing import Any

import numpy

from .gather_scatter import all_in_range, put_along, take_along
from .half_precision import upcast_all_half

INT = numpy.dtype(numpy.int64)


def check_classes(np: Any, target: Any, classes: int, ignore: int) -> Any:
    """Return a boolean mask of the elements of ``target`` that differ from ``ignore``, or None if all of them differ.

    Raises PyTorch's IndexError if an element that differs from ``ignore`` is not from 0 to ``classes - 1``.
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
    """Return ``target`` with ignored elements replaced by class 0, and the weight of each element of ``target``.

    ``counts`` is the mask from :func:`check_classes`, or None if no element is ignored. ``weight`` holds one weight for
    each class, or is None. Ignored elements get the weight 0. If all weights are 1, the second result is None.
    """
    if counts is not None:
        target = np.where(counts, target, 0)
    if weight is None:
        return target, None if counts is None else counts.astype(dtype)
    found = upcast_all_half(weight)[0][target]
    return target, found if counts is None else found * counts


def pick(np: Any, x: Any, target: Any) -> Any:
    """Return the score of each target class: ``x[n, target[n, …], …]``, or ``x[target]`` if ``x`` is 1-dimensional."""
    return x[target] if x.ndim == 1 else take_along(np, x, target, 1)


def place(np: Any, out: Any, target: Any, values: Any) -> None:
    """Write ``values`` in place to the elements of ``out`` that ``pick(np, out, target)`` returns."""
    if out.ndim == 1:
        out[target] = values
    else:
        put_along(np, out, target, values, 1)


def margins(np: Any, x: Any, target: Any, margin: float) -> tuple[Any, Any]:
    """Return ``max(0, margin - x[n, target[n]] + x[n, c])`` for all rows n and classes c, and the indices of the rows.

    ``x`` and the first result have the shape (N, C). In the first result, the elements of the target classes are 0. The
    second result is ``arange(N)``.
    """
    rows = np.arange(x.shape[0])
    gap = x - (x[rows, target] - margin)[:, None]
    gap[rows, target] = 0
    return np.maximum(gap, 0, out=gap), rows


def listed(np: Any, target: Any) -> tuple[Any, Any]:
    """Return two boolean masks of the shape of ``target`` (N, C), whose rows list class indices, terminated by -1.

    The first mask is true for the entries before the first -1 of each row. Element (n, c) of the second mask is true if
    class c is among these entries of row n.
    """
    counts = np.logical_and.accumulate(target >= 0, axis=1)
    named = np.zeros(target.shape, bool)
    rows, columns = np.nonzero(counts)
    named[rows, target[rows, columns]] = True
    return counts, named
