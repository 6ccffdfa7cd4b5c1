"""Rows of a table: shortening them, adding them up by number, and bags of them."""

from __future__ import annotations

from typing import Any

import numpy

from . import indexing


def added(np: Any, values: Any, index: Any, count: int) -> Any:
    """``count`` rows: each the sum of the ``values`` whose ``index`` it is."""
    return indexing.add(np, np.zeros((count, *values.shape[1:]), values.dtype), (index,), values)


def usefulness(np: Any, index: Any, padding_idx: int, scale: bool, dtype: Any) -> Any:
    """By what each gradient is multiplied: 0 for padding, 1 / how often the row is used; None if always 1."""
    if not scale and padding_idx < 0:
        return None
    found = np.ones(index.shape, dtype)
    if scale and index.size:
        found /= np.bincount(index)[index].astype(dtype)
    if padding_idx >= 0:
        found[index == padding_idx] = 0
    return found


def weighted(np: Any, values: Any, factor: Any) -> Any:
    """``values`` times ``factor``, and 0 where ``factor`` is 0, although the value may be infinite or nan."""
    found = values * factor
    found[(factor == 0)[..., 0]] = 0
    return found


def shorten(np: Any, table: Any, index: Any, most: float, p: float) -> bool:
    """Shorten the rows at ``index`` whose p-norm is above ``most`` to that; whether there were any."""
    used = np.unique(index)
    if used.size and not (used[0] >= 0 and used[-1] < table.shape[0]):
        raise IndexError("index out of range in self")
    with numpy.errstate(all="ignore"):
        length = np.linalg.norm(table[used].astype(np.float64), ord=p, axis=1)
    long = length > most
    if not long.any():
        return False
    factor = most / (length[long] + 1e-7)
    table[used[long]] = (table[used[long]] * factor[:, None]).astype(table.dtype)
    return True


def bag_numbers(np: Any, count: int, offsets: Any) -> tuple[Any, Any]:
    """For each of ``count`` rows the bag it is in, bag k going from ``offsets[k]`` to the next; and the sizes of bags."""
    sizes = np.diff(np.concatenate([offsets, np.asarray([count])]))
    return np.repeat(np.arange(offsets.size), sizes), sizes


def largest(np: Any, table: Any, index: Any, sizes: Any) -> tuple[Any, Any]:
    """The largest element of each column in each bag (0 if it is empty), and the row that it is from (-1)."""
    out = np.zeros((sizes.size, table.shape[1]), table.dtype)
    tops = np.full(out.shape, -1, np.int64)
    full = np.flatnonzero(sizes)
    if full.size == 0:
        return out, tops
    picked = table[index]
    starts = (np.cumsum(sizes) - sizes)[full]
    out[full] = np.maximum.reduceat(picked, starts, 0)
    # The first row of a bag that has the largest element: all others are put behind the end.
    places = np.where(picked == np.repeat(out[full], sizes[full], 0), np.arange(index.size)[:, None], index.size)
    tops[full] = index[np.minimum.reduceat(places, starts, 0)]
    return out, tops


def added_each(np: Any, grad: Any, tops: Any, count: int) -> Any:
    """The adjoint of :func:`picked_each`."""
    rows, columns = np.nonzero(tops >= 0)
    out = np.zeros((count, grad.shape[1]), grad.dtype)
    np.add.at(out, (tops[rows, columns], columns), grad[rows, columns])
    return out


def picked_each(np: Any, table: Any, tops: Any) -> Any:
    """``table[tops[i, j], j]``, 0 where there is no top."""
    found = np.take_along_axis(table, np.maximum(tops, 0), 0)
    return np.where(tops >= 0, found, np.zeros((), table.dtype))
