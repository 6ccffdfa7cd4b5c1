"""Kernels of embedding, embedding_bag, their gradients and embedding_renorm: select, scale and sum rows of a table."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.devices import on_gpu
from . import indexing


def sum_rows(np: Any, values: Any, index: Any, count: int) -> Any:
    """Return a matrix of ``count`` rows, in which row k is the sum of all rows ``values[i]`` with ``index[i] == k``."""
    return indexing.add(np, np.zeros((count, *values.shape[1:]), values.dtype), (index,), values)


def gradient_factors(np: Any, index: Any, padding_idx: int, scale: bool, dtype: Any) -> Any:
    """Return the factor for the gradient of each row that an embedding selects, or None if all factors are 1.

    ``index`` holds the numbers of the selected rows. The factor of the row ``padding_idx`` is 0; a negative
    ``padding_idx`` means that there is no such row. If ``scale`` is true (the parameter ``scale_grad_by_freq``), the
    factor of any other row is 1 / (number of occurrences of the row in ``index``). If ``scale`` is false, it is 1.
    """
    if not scale and padding_idx < 0:
        return None
    result = np.ones(index.shape, dtype)
    if scale and index.size and np.__name__ != "meta":
        if on_gpu(index):  # np.bincount would wait for the device
            rows = np.sort(index.reshape(-1))
            counts = np.searchsorted(rows, index, "right") - np.searchsorted(rows, index, "left")
        else:
            counts = np.bincount(index)[index]
        result /= counts.astype(dtype)
    if padding_idx >= 0:
        np.copyto(result, 0, where=index == padding_idx)
    return result


def multiply_rows(np: Any, values: Any, factor: Any) -> Any:
    """Return ``values * factor``; rows with the factor 0 become 0 even if they hold infinity or nan.

    ``factor`` has one number for each row of ``values``.
    """
    if on_gpu(values):
        return np.where(factor == 0, values.dtype.type(0), values * factor)
    result = values * factor
    result[(factor == 0)[..., 0]] = 0
    return result


def renormalise_rows(np: Any, table: Any, index: Any, max_norm: float, p: float) -> bool:
    """Scale the rows ``table[index]`` whose ``p``-norm exceeds ``max_norm`` to the norm ``max_norm``, in place.

    Returns True if any row was scaled. Raises PyTorch's IndexError for an index outside of the table.
    """
    if np.__name__ == "meta":
        return False
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
    """Return the bag number of each of ``count`` rows, and the number of rows in each bag.

    Bag k holds the rows from ``offsets[k]`` to ``offsets[k + 1] - 1``; the last bag ends with the last row.
    """
    sizes = np.diff(np.concatenate([offsets, np.asarray([count])]))
    if np.__name__ == "meta":
        return np.empty(count, np.int64), sizes
    if on_gpu(offsets):  # np.repeat would wait for the device
        return np.searchsorted(offsets, np.arange(count), "right") - 1, sizes
    return np.repeat(np.arange(offsets.size), sizes), sizes


def bag_maxima(np: Any, table: Any, index: Any, sizes: Any) -> tuple[Any, Any]:
    """Return the maximum of each column of ``table`` in each bag, and the table row in which the maximum occurs first.

    ``index`` lists the table rows of all bags one after the other; ``sizes`` holds the number of rows in each bag. An
    empty bag has the maximum 0 and the row -1.
    """
    out = np.zeros((sizes.size, table.shape[1]), table.dtype)
    tops = np.full(out.shape, -1, np.int64)
    if np.__name__ == "meta":
        return out, tops
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
    """Return zeros with ``count`` rows to which each ``grad[i, j]`` is added at row ``tops[i, j]`` of column j.

    This is the gradient of the table of :func:`bag_maxima`, which returns ``tops``, the table row of each maximum.
    Elements with -1 in ``tops``, those of empty bags, are ignored. The function is the adjoint of :func:`take_maxima`.
    """
    if on_gpu(tops):
        out = np.zeros((count + 1, grad.shape[1]), grad.dtype)
        np.add.at(out, (np.where(tops < 0, count, tops), np.arange(grad.shape[1])), grad)
        return out[:count]
    rows, columns = np.nonzero(tops >= 0)
    out = np.zeros((count, grad.shape[1]), grad.dtype)
    np.add.at(out, (tops[rows, columns], columns), grad[rows, columns])
    return out


def take_maxima(np: Any, table: Any, tops: Any) -> Any:
    """Return the array whose element (i, j) is ``table[tops[i, j], j]``, or 0 where ``tops[i, j]`` is -1."""
    result = np.take_along_axis(table, np.maximum(tops, 0), 0)
    return np.where(tops >= 0, result, np.zeros((), table.dtype))
