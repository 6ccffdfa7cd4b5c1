"""Kernels of embedding, embedding_bag and their gradients: rows of a table selected, renormalised, added and pooled.

They also serve embedding_renorm.
"""

from __future__ import annotations

from typing import Any

import numpy

from . import indexing


def sum_rows(np: Any, values: Any, index: Any, count: int) -> Any:
    """Return ``count`` rows, each the sum of the rows of ``values`` whose ``index`` is its number."""
    return indexing.add(np, np.zeros((count, *values.shape[1:]), values.dtype), (index,), values)


def gradient_factors(np: Any, index: Any, padding_idx: int, scale: bool, dtype: Any) -> Any:
    """Return the factor of each selected row's gradient, or None if all are 1.

    The factor is 0 for ``padding_idx`` and, with ``scale``, 1 / (number of occurrences of the index) otherwise.
    """
    if not scale and padding_idx < 0:
        return None
    result = np.ones(index.shape, dtype)
    if scale and index.size:
        result /= np.bincount(index)[index].astype(dtype)
    if padding_idx >= 0:
        result[index == padding_idx] = 0
    return result


def multiply_rows(np: Any, values: Any, factor: Any) -> Any:
    """Return ``values * factor``, with 0 wherever ``factor`` is 0 even if the value is infinite or nan."""
    result = values * factor
    result[(factor == 0)[..., 0]] = 0
    return result


def renormalise_rows(np: Any, table: Any, index: Any, max_norm: float, p: float) -> bool:
    """Scale the rows at ``index`` whose p-norm exceeds ``most`` to that norm, in place.

    Returns whether any row was scaled. Raises PyTorch's IndexError for an index outside of the table.
    """
    used = np.unique(index)
    if used.size and not (used[0] >= 0 and used[-1] < table.shape[0]):
        raise IndexError("index out of range in self")
    with numpy.errstate(all="ignore"):
        length = np.linalg.norm(table[used].astype(np.float64), ord=p, axis=1)
    exceeding = length > max_norm
    if not exceeding.any():
        return False
    factor = max_norm / (length[exceeding] + 1e-7)
    table[used[exceeding]] = (table[used[exceeding]] * factor[:, None]).astype(table.dtype)
    return True


def bag_indices(np: Any, count: int, offsets: Any) -> tuple[Any, Any]:
    """Return the bag of each of ``count`` rows, and the sizes of the bags.

    Bag k holds the rows from ``offsets[k]`` to the next offset.
    """
    sizes = np.diff(np.concatenate([offsets, np.asarray([count])]))
    return np.repeat(np.arange(offsets.size), sizes), sizes


def bag_maxima(np: Any, table: Any, index: Any, sizes: Any) -> tuple[Any, Any]:
    """Return the maximum of each column in each bag, and the table row that holds it.

    An empty bag has the maximum 0 and the row -1.
    """
    out = np.zeros((sizes.size, table.shape[1]), table.dtype)
    tops = np.full(out.shape, -1, np.int64)
    filled = np.flatnonzero(sizes)
    if filled.size == 0:
        return out, tops
    picked = table[index]
    starts = (np.cumsum(sizes) - sizes)[filled]
    out[filled] = np.maximum.reduceat(picked, starts, 0)
    # The first row that holds the maximum: rows that do not hold it get an index past the end.
    places = np.where(picked == np.repeat(out[filled], sizes[filled], 0), np.arange(index.size)[:, None], index.size)
    tops[filled] = index[np.minimum.reduceat(places, starts, 0)]
    return out, tops


def add_to_maxima(np: Any, grad: Any, tops: Any, count: int) -> Any:
    """Return the adjoint of :func:`take_maxima`: each element of ``grad`` added to its row in ``count`` rows."""
    rows, columns = np.nonzero(tops >= 0)
    out = np.zeros((count, grad.shape[1]), grad.dtype)
    np.add.at(out, (tops[rows, columns], columns), grad[rows, columns])
    return out


def take_maxima(np: Any, table: Any, tops: Any) -> Any:
    """Return ``table[tops[i, j], j]``, with 0 where ``tops`` is -1."""
    result = np.take_along_axis(table, np.maximum(tops, 0), 0)
    return np.where(tops >= 0, result, np.zeros((), table.dtype))
