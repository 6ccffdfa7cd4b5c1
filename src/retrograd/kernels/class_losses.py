"""Kernels of nll_loss, cross_entropy, multi_margin_loss and multilabel_margin_loss, which select by class index."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.devices import on_gpu
from ..core.dtypes import HALF_PRECISION
from .gather_scatter import all_in_range, put_along, take_along
from .half_precision import upcast_all_half
from .reductions import COUNTS, F32, sum_elements
from .select import at_most, kernel
from .thresholds import ONES_PRODUCT, SMALL_ROW

INT = numpy.dtype(numpy.int64)


def check_classes(np: Any, target: Any, classes: int, ignore: int) -> Any:
    """Check the class indices ``target``, and return a boolean mask of those that are not ignored.

    The mask is False where ``target`` equals ``ignore``, and True elsewhere. The result is None if no index is ignored.
    Raises PyTorch's IndexError if an index that is not ignored is outside the range from 0 to ``classes - 1``; on a
    GPU the indices are not read.
    """
    if not target.size:
        return None
    if np is not numpy and on_gpu(target):
        return target != ignore
    if target.dtype is INT and all_in_range(np, target, classes) and not 0 <= ignore < classes:
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
    """Return class indices of which all are valid, and the weight of each of them, for nll_loss.

    ``target`` holds the class indices. ``counts`` is the mask from :func:`check_classes`: False for an ignored index,
    or None if no index is ignored. In the first result, ignored indices are replaced by 0. The second result holds the
    weight of each index: 0 for ignored indices, otherwise ``weight[target]``, or 1 if ``weight`` is None. It is None if
    all weights are 1 because ``weight`` and ``counts`` are None. ``dtype`` is the dtype of the weights if ``weight`` is
    None.
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
    """Write ``values`` to ``out[n, target[n, …], …]`` in place, or to ``out[target]`` if ``out`` is 1-dimensional.

    ``target`` holds class indices. The written elements are those that ``pick(np, out, target)`` returns.
    """
    if out.ndim == 1:
        out[target] = values
    else:
        put_along(np, out, target, values, 1)


@at_most(SMALL_ROW)
def _likelihood_of_few(np: Any, target: Any, x: Any, weight: Any, reduction: str, ignore: int) -> Any:
    """Return the result of :func:`likelihood_loss` for a few rows, or None for arguments that are not supported.

    For a few rows, a loop over Python floats is faster than NumPy. The loop supports a float32 matrix ``x`` and valid
    class indices ``target``, without a weight and without the reduction "none". ``ignore`` must not be a valid class,
    so that no row is ignored.
    """
    if weight is not None or reduction == "none" or x.ndim != 2 or target.ndim != 1:
        return None
    rows, size = x.shape
    if not 0 < rows <= SMALL_ROW or x.__class__ is not numpy.ndarray or x.dtype is not F32 or 0 <= ignore < size:
        return None
    whole, number = 0.0, x.item
    for row, place in enumerate(target.tolist()):
        if not 0 <= place < size:
            return None
        whole += number(row, place)
    count = target.size
    return np.asarray(-whole / count if reduction == "mean" else -whole, F32), COUNTS[F32][count]


@kernel(_likelihood_of_few)
def likelihood_loss(np: Any, target: Any, x: Any, weight: Any, reduction: str, ignore: int) -> Any:
    """Return the negative log-likelihood loss of the log-probabilities ``x``, and the sum of the target weights.

    ``weight`` has one element per class, or is None if all weights are 1. Targets equal to ``ignore`` are excluded from
    the loss and from the sum. If ``reduction`` is ``"none"``, the returned sum is 0.
    """
    counts = check_classes(np, target, x.shape[0] if x.ndim == 1 else x.shape[1], ignore)
    if weight is None and counts is None and x.ndim == 2 and 0 < target.size <= ONES_PRODUCT and x.dtype in COUNTS:
        result, count = pick(np, x, target), COUNTS[x.dtype][target.size]
        if np is not numpy:
            count = np.asarray(count)
        if reduction == "none":
            return -result, np.zeros((), x.dtype)
        return -sum_elements(np, result) / count if reduction == "mean" else -sum_elements(np, result), count
    kind = np.dtype(np.float32) if x.dtype in HALF_PRECISION else x.dtype
    target, share = class_weights(np, target, counts, weight, kind)
    result = -upcast_all_half(pick(np, x, target))[0]
    if share is not None:
        result = np.where(share == 0, np.zeros((), kind), result * share)
    count = np.asarray(target.size, kind) if share is None else np.add.reduce(share, None)
    if reduction == "none":
        return result.astype(x.dtype), np.zeros((), x.dtype)
    loss = np.add.reduce(result, None)
    return (loss / count if reduction == "mean" else loss).astype(x.dtype), np.asarray(count).astype(x.dtype)


def margins(np: Any, x: Any, target: Any, margin: float) -> tuple[Any, Any]:
    """Return the amounts by which scores violate the margin of multi_margin_loss, and the row indices ``arange(N)``.

    ``x`` holds the scores (N, C), and ``target`` the class of each row. The amount for row n and class c is
    ``max(0, margin - x[n, target[n]] + x[n, c])``. It is 0 for the target class ``c == target[n]``.
    """
    rows = np.arange(x.shape[0])
    gap = x - (x[rows, target] - margin)[:, None]
    gap[rows, target] = 0
    return np.maximum(gap, 0, out=gap), rows


def listed(np: Any, target: Any) -> tuple[Any, Any]:
    """Return two boolean masks of shape (N, C) that mark the target classes of multilabel_margin_loss.

    Each row of ``target`` (N, C) is a list of class indices that ends before the first -1. The first mask is True for
    the elements of ``target`` that belong to these lists. Element (n, c) of the second mask is True if class c is in
    the list of row n.
    """
    counts = np.logical_and.accumulate(target >= 0, axis=1)
    if np.__name__ == "meta":
        return counts, np.zeros(target.shape, bool)
    rows, classes = target.shape
    named = np.zeros((rows, classes + 1), bool)  # what is behind the end of a list goes into the last column
    named[np.arange(rows)[:, None], np.where(counts, target, classes)] = True
    return counts, named[:, :classes]
