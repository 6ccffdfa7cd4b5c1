"""``segment_reduce``: sums, means, extremes or products of consecutive segments of a dimension.

Each element gets the index of its segment. The operation of ``scatter_reduce`` then reduces the elements that have the
same index.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core.devices import array_module_of, on_gpu
from ...core.dtypes import unsupported
from ...core.tensor import Tensor, wrap
from ...dispatch.declare import public, variant
from ...dispatch.generic_path import apply
from ..creation.factory import full
from ..indexing.gather_scatter import scatter_reduce_block, segment_reduce_src_rule
from ..shape.slicing import narrow

_segments = variant(scatter_reduce_block, backward="SegmentReduceBackward0")
_segments.derivative(self=scatter_reduce_block.op.rules[0], src=segment_reduce_src_rule)
#: By reduction: the name of the scattered reduction, and its value for an empty segment.
_KINDS = {
    "sum": ("sum", 0.0), "mean": ("mean", math.nan), "max": ("amax", -math.inf), "amax": ("amax", -math.inf),
    "min": ("amin", math.inf), "amin": ("amin", math.inf), "prod": ("prod", 1.0),
}  # fmt: skip


@public(method=False)
def segment_reduce(
    data: Tensor, reduce: str, *, lengths: Tensor | None = None, indices: Tensor | None = None,
    offsets: Tensor | None = None, axis: int = 0, unsafe: bool = False, initial: Any = None,
) -> Tensor:  # fmt: skip
    """Return the results of reducing consecutive segments of ``data`` along the dimension ``axis``.

    reduce   "sum", "mean", "max", "min" or "prod"
    lengths  the lengths of the segments, of shape (…, number of segments)
    indices  not supported: a tensor raises RuntimeError
    offsets  used if ``lengths`` is None: the start of each segment, followed by the end of the last segment
    unsafe   if true, do not check that all lengths are at least 0 and add up to the size of the dimension
    initial  the initial value of each reduction, which is also the result for an empty segment

    >>> import retrograd as torch
    >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "max", lengths=torch.tensor([1, 2]))
    tensor([1., 3.])
    """
    if reduce not in _KINDS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    if data._array.dtype.kind not in "fV":
        raise unsupported("_segment_reduce_cpu", data._array.dtype)
    starts, counts = _segment_bounds(data, lengths, offsets, axis, unsafe)
    axis %= max(data.ndim, 1)
    index = _segment_index(data, starts, counts, axis)
    name, empty = _KINDS[reduce]
    segments = counts.shape[-1]
    # Some elements may be in no segment; on a GPU, a segment for them is made without asking.
    loose = on_gpu(index._array) or bool((index._array == segments).any())
    shape = [*counts.shape[:-1], segments + loose, *data.shape[axis + 1 :]]
    begin = full(shape, empty if initial is None else initial, dtype=data.dtype, device=data.device)
    if name == "mean" and initial is not None:
        total = apply(_segments, (begin, index, data), (axis, "sum", True))
        result = total / wrap(_append_dims(numpy.maximum(counts, 1), data.ndim)).to(data.dtype)
    else:
        result = apply(_segments, (begin, index, data), (axis, name, name != "mean"))
    return narrow(result, axis, 0, segments) if loose else result


def _segment_bounds(data: Tensor, lengths: Any, offsets: Any, axis: int, unsafe: bool) -> tuple[Any, Any]:
    """Return the tuple (starts, lengths) of the segments of ``segment_reduce``, as two int64 arrays.

    ``lengths`` holds the lengths of the segments. If ``lengths`` is None, ``offsets`` holds the start of each segment
    and the end of the last segment. ``axis`` is the segmented dimension of ``data``. If ``unsafe`` is true, the lengths
    are not checked. Raises PyTorch's RuntimeError for invalid arguments.
    """
    if lengths is None and offsets is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    what, given = ("lengths", lengths) if lengths is not None else ("offsets", offsets)
    array = array_module_of(given._array).asarray(given._array, numpy.int64)
    if array.ndim > data.ndim:
        raise RuntimeError(f"Expected data.dim() >= {what}_value.dim() to be true, but got false.")
    if axis not in (array.ndim - 1, array.ndim - 1 - data.ndim):
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {what} but got {axis}.")
    unsafe = unsafe or on_gpu(array)
    if lengths is None:
        counts = numpy.diff(array, axis=-1)
        if not on_gpu(array) and (counts < 0).any():
            raise RuntimeError("Expected segment_length >= 0 to be true, but got false.")
        return array[..., :-1], counts
    if not unsafe:
        if array.size and array.min() < 0:
            raise RuntimeError("lengths contains negative value!")
        if (array.sum(-1) != data.shape[array.ndim - 1]).any():
            raise RuntimeError(
                "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
                "!unsafe."
            )
    return numpy.cumsum(array, -1) - array, array


def _segment_index(data: Tensor, starts: Any, counts: Any, axis: int) -> Tensor:
    """Return for each element of ``data`` the index of its segment along ``axis``, as a tensor of the same shape.

    ``starts`` and ``counts`` are the starts and lengths of the segments. An element that belongs to no segment gets the
    number of segments as its index.
    """
    size, segments = data.shape[axis], counts.shape[-1]
    if data.is_meta:
        return wrap(array_module_of(data._array).empty((*data.shape[: axis + 1], *data.shape[axis + 1 :]), numpy.int64))
    np = array_module_of(counts)
    rows = math.prod(counts.shape[:-1])
    ends = np.zeros((rows, size + 1), np.int64)
    np.add.at(ends, (np.arange(rows)[:, None], np.minimum(starts + counts, size).reshape(rows, segments)), 1)
    index = np.cumsum(ends, -1)[:, :size].reshape(*counts.shape[:-1], size)  # how many segments have ended
    if segments:
        index = np.where(np.arange(size) < starts[..., :1], segments, index)
    return wrap(np.broadcast_to(_append_dims(index, data.ndim), data.shape).copy())


def _append_dims(array: Any, ndim: int) -> Any:
    """Return ``array`` reshaped to ``ndim`` dimensions by appending dimensions of size 1."""
    return array.reshape(*array.shape, *(1,) * (ndim - array.ndim))


__all__ = ["segment_reduce"]
