"""Kernels of x[index], index_put, index_add, masked_select, gather, scatter, scatter_add and scatter_reduce.

``picks`` is a tuple that represents an index. It has, for each dimension, an integer array or None (the whole
dimension), or it consists of a single boolean mask.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ..core.devices import on_gpu
from ..core.dtypes import HALF_PRECISION, unsupported
from . import numba_dispatch, numba_operands
from .gather_scatter import advanced_index, equal_except_axis, put_along, take_along, take_axis
from .half_precision import upcast_all_half
from .select import NUMBA, at_least, kernel
from .thresholds import ADDED, ADDED_ONE_BY_ONE, LARGE


def result_shape(shape: tuple[int, ...], picks: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the shape of ``x[picks]`` for an array ``x`` of the given ``shape``.

    ``picks`` has an integer array or None (the whole dimension) for each dimension, or a single boolean mask.
    """
    if picks[0] is not None and picks[0].dtype == bool:
        return int(numpy.count_nonzero(picks[0])), *shape[picks[0].ndim :]
    picked = numpy.broadcast_shapes(*(each.shape for each in picks if each is not None))
    places = [dim for dim, each in enumerate(picks) if each is not None]
    rest = [size for dim, size in enumerate(shape) if dim >= len(picks) or picks[dim] is None]
    adjacent = places == list(range(places[0], places[-1] + 1))
    at = places[0] if adjacent else 0
    return (*rest[:at], *picked, *rest[at:])


def _key(picks: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return ``picks`` as an index that NumPy accepts: None, which selects a whole dimension, becomes a slice."""
    return tuple([slice(None) if each is None else each for each in picks])


def take(np: Any, x: Any, picks: tuple[Any, ...]) -> Any:
    """Return ``x[picks]`` in C order.

    ``picks`` has an integer array or None (the whole dimension) for each dimension, or a single boolean mask. As in
    NumPy, adjacent indexed dimensions keep their position.
    """
    if len(picks) == 1:  # the common case
        return _masked(np, picks[0], x) if picks[0].dtype.kind == "b" else take_axis(np, x, picks[0], 0)
    places = [dim for dim, each in enumerate(picks) if each is not None]
    if len(places) == 1 and picks[places[0]].dtype.kind != "b":
        return take_axis(np, x, picks[places[0]], places[0])
    result = x[_key(picks)]
    return result if result.flags.c_contiguous else result.copy()


@at_least(LARGE, NUMBA)
def _masked_by_loop(np: Any, mask: Any, x: Any) -> Any:
    loops = numba_operands.movers("gather_scatter", mask.size, x, mask) if mask.shape == x.shape else None
    if loops is None:
        return None
    flat = numba_operands.bits(mask).reshape(-1)
    starts, count = _starts(loops, flat)
    result = numpy.empty(count, numba_operands.BITS[x.dtype.itemsize])
    loops.kept(numba_operands.bits(x).reshape(-1), flat, starts, result)
    return result.view(x.dtype)


@kernel(_masked_by_loop)
def _masked(np: Any, mask: Any, x: Any) -> Any:
    """Return the elements of ``x`` where ``mask`` is True, as a 1-d array."""
    return x[mask]


#: Parts of a mask, each counted and copied by one thread.
PARTS = 16


def _starts(loops: Any, mask: Any) -> tuple[Any, int]:
    """Return the number of selected elements before each part of ``mask``, and the number of all selected elements.

    In masked_select, the mask is divided into ``PARTS`` equal parts, which are processed by several threads. The first
    result is the position at which a thread writes the elements of its part. ``loops`` is the module of the Numba loop
    that counts the elements.
    """
    counts = numpy.empty(PARTS, numpy.int64)
    loops.counted(mask, counts)
    ends = counts.cumsum()
    return ends - counts, int(ends[-1])


def add_to_zeros(np: Any, values: Any, shape: tuple[int, ...], picks: tuple[Any, ...]) -> Any:
    """Return zeros of the given ``shape`` to which ``values`` are added at the index ``picks``.

    ``picks`` has an integer array or None (the whole dimension) for each dimension, or a single boolean mask.
    """
    mask = picks[0]
    if mask is not None and mask.dtype.kind == "b" and mask.shape == shape and values.size:
        loops = numba_operands.movers("gather_scatter", mask.size, values, mask)
        if loops is not None:
            flat, out = numba_operands.bits(mask).reshape(-1), numpy.empty(shape, values.dtype)
            given = numba_operands.bits(values).reshape(-1)
            loops.put_back(given, flat, _starts(loops, flat)[0], numba_operands.bits(out).reshape(-1))
            return out
    return add(np, np.zeros(shape, values.dtype), picks, values)


def put(np: Any, x: Any, picks: tuple[Any, ...], values: Any) -> Any:
    """Write ``values`` to ``x[picks]`` in place, and return ``x``.

    ``picks`` has an integer array or None (the whole dimension) for each dimension, or a single boolean mask. If an
    element is selected repeatedly, the last of its values is kept.
    """
    if np.__name__ == "cupy" and picks[0] is not None and picks[0].dtype.kind == "b":
        mask = picks[0]
        if values.ndim <= x.ndim - mask.ndim:  # the number of selected elements is not needed, which would wait
            np.copyto(x, values, "unsafe", where=mask.reshape(*mask.shape, *(1,) * (x.ndim - mask.ndim)))
            return x
    x[_key(picks)] = values
    return x


def add(np: Any, x: Any, picks: tuple[Any, ...], values: Any) -> Any:
    """Add ``values`` to ``x[picks]`` in place, and return ``x``.

    ``picks`` has an integer array or None (the whole dimension) for each dimension, or a single boolean mask. If an
    element is selected repeatedly, all of its values are added.
    """
    if np.__name__ == "meta":
        return x
    if x.dtype == bool:
        np.logical_or.at(x, _key(picks), values)
        return x
    places = [dim for dim, each in enumerate(picks) if each is not None]
    if picks[places[0]].dtype.kind == "b":
        x[_key(picks)] += values  # a mask selects no element twice
        return x
    if len(places) == 1 and _added_by_loop(x, picks[places[0]], values, places[0]):
        return x
    if len(places) == 1 and picks[places[0]].ndim == 1 and places[0] == 0 and values.ndim == x.ndim:
        return _add_rows(np, x, picks[0], values)
    np.add.at(x, _key(picks), values)
    return x


def _added_by_loop(x: Any, index: Any, values: Any, dim: int) -> bool:
    """Add ``values`` to ``x`` at ``index`` along ``dim``, in place, by a Numba loop; return whether that was possible.

    If no loop supports the arrays, ``x`` is unchanged and the result is False.
    """
    loops = numba_operands.loops("gather_scatter", values.size, x, values, least=ADDED)
    if loops is None or not x.flags.c_contiguous or values.shape != (*x.shape[:dim], *index.shape, *x.shape[dim + 1 :]):
        return False
    bad = numpy.zeros(1, numpy.uint8)
    before, after = math.prod(x.shape[:dim]), math.prod(x.shape[dim + 1 :])
    given = numpy.ascontiguousarray(values).reshape(before, index.size, after)
    loop = numba_dispatch.on_threads(loops.add_rows, values.size)
    loop(x.reshape(before, x.shape[dim], after), numpy.ascontiguousarray(index).reshape(-1), given, bad)
    numba_operands.said(bad)
    return True


def _add_rows(np: Any, x: Any, index: Any, rows: Any) -> Any:
    """Add ``rows[i]`` to ``x[index[i]]`` in place for all i, and return ``x``.

    Rows with equal indices are summed first, so that each row of ``x`` is written once.
    """
    if index.size == 0:
        return x
    if np is not numpy or rows.size <= ADDED_ONE_BY_ONE:
        np.add.at(x, index, rows)
        return x
    index = index % x.shape[0]  # counted from the front
    order = np.argsort(index, kind="stable")
    ordered = index[order]
    starts = np.flatnonzero(np.concatenate([np.asarray([True]), ordered[1:] != ordered[:-1]]))
    if starts.size == index.size:
        x[index] += rows
        return x
    x[ordered[starts]] += np.add.reduceat(rows[order], starts, axis=0)
    return x


def gather(np: Any, x: Any, index: Any, dim: int) -> Any:
    """Return ``torch.gather(x, dim, index)``: the elements of ``x`` at ``index`` along ``dim``."""
    if x.ndim == 0 or index.ndim == 0:
        return x.reshape(-1)[index.reshape(-1)].reshape(index.shape)
    if index.size == 0:
        return np.zeros(index.shape, x.dtype)
    return take_along(np, x, index, dim)


def _cut(values: Any, index: Any) -> Any:
    """Return the part of ``values`` that scatter reads, in the shape of ``index``.

    In PyTorch ``values`` may be longer than ``index`` along any dimension; only the leading elements are read. A 0-d
    ``values`` is returned unchanged.
    """
    if values.ndim == 0 or values.shape == index.shape:
        return values
    return values[tuple(slice(0, n) for n in index.shape)]


def scatter(np: Any, x: Any, index: Any, values: Any, dim: int) -> Any:
    """Write ``values`` to ``x`` at ``index`` along ``dim``, in place, and return ``x``."""
    if index.size == 0:
        return x
    if x.ndim == 0:
        x[...] = values.reshape(-1)[-1]
        return x
    if index.ndim == x.ndim:
        put_along(np, x, index, _cut(values, index), dim)
    else:
        x[advanced_index(np, index, dim)] = _cut(values, index)
    return x


@at_least(ADDED, NUMBA)
def _scatter_add_by_loop(np: Any, index: Any, x: Any, values: Any, dim: int) -> Any:
    if not x.ndim or not index.ndim or not x.flags.c_contiguous or not equal_except_axis(x.shape, index.shape, dim):
        return None
    values = _cut(values, index)
    loops = numba_operands.loops("gather_scatter", index.size, x, values, least=ADDED)
    if loops is None:
        return None
    bad = numpy.zeros(1, numpy.uint8)
    arrays = [numba_operands.around(each, dim) for each in (x, index, values)]
    if arrays[0].shape[2] == 1:
        numba_dispatch.on_threads(loops.scatter_add_rows, index.size)(*[each[:, :, 0] for each in arrays], bad)
    else:
        numba_dispatch.on_threads(loops.scatter_add, index.size)(*arrays, bad)
    numba_operands.said(bad)
    return x


@kernel(_scatter_add_by_loop)
def scatter_add(np: Any, index: Any, x: Any, values: Any, dim: int) -> Any:
    """Add ``values`` to ``x`` at ``index`` along ``dim``, in place, and return ``x``."""
    if index.size == 0:
        return x
    if x.ndim == 0 or index.ndim == 0:
        flat = x.reshape(-1)
        np.add.at(flat, index.reshape(-1), values.reshape(-1))
        return flat.reshape(x.shape)
    np.add.at(x, advanced_index(np, index, dim), _cut(values, index))
    return x


def scatter_reduce(np: Any, x: Any, index: Any, values: Any, dim: int, reduce: str, include_self: bool) -> Any:
    """Return a copy of ``x`` in which ``values`` are combined by ``reduce`` at ``index`` along ``dim``.

    ``reduce`` is "sum", "prod", "mean", "amax" or "amin". If ``include_self`` is true, the elements of ``x`` are
    included in the reduction.
    """
    if x.dtype in HALF_PRECISION and reduce in ("sum", "mean", "prod"):
        wide, added = upcast_all_half(x, values)
        return scatter_reduce(np, wide, index, added, dim, reduce, include_self).astype(x.dtype)
    out = np.array(x, order="C")
    if index.size == 0:
        return out
    if x.dtype.kind == "c" and reduce in ("amax", "amin"):
        raise unsupported("scatter_gather_tensor_cpu_reduce_" + reduce, x.dtype)
    shape = out.shape
    if not shape:
        out, index, values = out.reshape(1), index.reshape(-1), values.reshape(-1)
    where = advanced_index(np, index, dim)
    change = {"sum": np.add, "mean": np.add, "prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[reduce]
    if not include_self:
        out[where] = _neutral(np, reduce, out.dtype)
    change.at(out, where, _cut(values, index))
    if reduce == "mean":
        count = np.full(out.shape, int(include_self), np.int64)
        np.add.at(count, where, 1)
        count = np.maximum(count, 1)
        out = out // count if out.dtype.kind in "iu" else (out / count).astype(out.dtype)
    return out.reshape(shape)


def ranks_in_groups(np: Any, mask: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return the number of true elements of ``mask`` before each true element of the same group; -1 for false elements.

    Elements of a group are combined by ``scatter_reduce`` with the same element of an array of this ``shape``, at
    ``index`` along ``dim``.
    """
    if not mask.ndim or np.__name__ == "meta":
        return np.where(mask, 0, -1)
    if on_gpu(mask):
        return _all_ranks_in_groups(np, mask, index, shape, dim)
    ranks, chosen = np.full(mask.shape, -1, np.int64), np.nonzero(mask)
    groups = np.ravel_multi_index((*chosen[:dim], index[chosen], *chosen[dim + 1 :]), shape or (1,))
    order = np.argsort(groups, kind="stable")
    groups = groups[order]
    ranks[tuple(each[order] for each in chosen)] = np.arange(groups.size) - np.searchsorted(groups, groups)
    return ranks


def _all_ranks_in_groups(np: Any, mask: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return the result of :func:`ranks_in_groups` without asking where ``mask`` is true: all elements are sorted."""
    groups = index * math.prod(shape[dim + 1 :])
    for axis in range(mask.ndim):
        if axis != dim:
            place = np.arange(mask.shape[axis]) * math.prod(shape[axis + 1 :])
            groups = groups + place.reshape(-1, *(1,) * (mask.ndim - axis - 1))
    flat = (2 * groups + ~mask).reshape(-1)  # the true elements of each group come first
    order = np.argsort(flat)
    ordered = flat[order] // 2
    ranks = np.empty(flat.shape, np.int64)
    ranks[order] = np.arange(flat.size) - np.searchsorted(ordered, ordered)
    return np.where(mask, ranks.reshape(mask.shape), -1)


def _neutral(np: Any, reduce: str, dtype: Any) -> Any:
    """Return the neutral element of the reduction ``reduce`` for the dtype ``dtype``, such as 0 for "sum"."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype.kind == "b":
        return reduce == "amin"
    if dtype.kind in "fV":
        return -np.inf if reduce == "amax" else np.inf
    limits = np.iinfo(dtype)
    return limits.min if reduce == "amax" else limits.max
