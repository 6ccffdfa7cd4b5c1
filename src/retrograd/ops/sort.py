"""Sorting, selecting by order, counting: sort, topk, unique, histograms."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtypes
from ..core.dtypes import unsupported
from ..core.tensor import Tensor, dimension, wrap
from ..core.views import check_in_place
from .calls import check_cast, write_array
from .named import named
from .reduce import restored
from .table import op, surface

_Sort, _Topk, _Kth = (named(name, ("values", "indices")) for name in ("sort", "topk", "kthvalue"))


def _into(out: Tensor | None, result: Tensor) -> Tensor:
    """``result``, or ``out`` with it written in."""
    if out is None:
        return result
    check_cast(result.dtype, out.dtype)
    check_in_place(out, False)
    write_array(out, result._array)
    return out


def ordered(np: Any, x: Any, dim: int, descending: bool) -> Any:
    """The indices that sort ``x`` along ``dim``, stably; a nan is larger than any number."""
    if x.dtype == bool:
        x = x.astype(np.uint8)
    if str(x.dtype) == "bfloat16":
        x = x.astype(np.float32)
    if not descending:
        return np.argsort(x, axis=dim, kind="stable")
    # Sorting the reversed row and turning the result round keeps equal elements in their order.
    turned = np.argsort(np.flip(x, dim), axis=dim, kind="stable")
    return np.flip(x.shape[dim] - 1 - turned, dim)


def _sorted(np: Any, self: Any, /, dim: int, descending: bool) -> Any:
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.asarray(0)
    order = ordered(np, self, dim, descending)
    return np.take_along_axis(self, order, dim), np.ascontiguousarray(order)


def _sorting(name: str, backward: str) -> Any:
    """The same block under both names that PyTorch gives its node: it counts ``stable=`` as an overload."""

    def kernel(np: Any, self: Any, /, dim: int, descending: bool) -> Any:
        return _sorted(np, self, dim, descending)

    kernel.__name__ = name
    kernel.__doc__ = "The elements in order along a dimension, and where they were."
    made = op(backward=backward, outputs=("values", "indices"), differentiable=1, function=False, method=False)(kernel)
    made.derivative(self=lambda F, g, indices, self_shape, dim: F.put_along(g, indices, self_shape, dim))
    return made


sort_block, stable_sort_block = _sorting("sort_block", "SortBackward0"), _sorting("stable_sort_block", "SortBackward1")


@surface()
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: Any = None) -> Any:
    """The elements in order along ``dim``, and the indices at which they were; equal ones keep their order."""
    block = sort_block if stable is None else stable_sort_block
    return _Sort(block(input, dimension(dim, input._array.ndim), descending, out=out))


@surface()
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False) -> Tensor:
    """The indices that put the elements in order along ``dim``."""
    return sort_block(input, dimension(dim, input._array.ndim), descending)[1]


@surface()
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """The elements in order along the first dimension."""
    found = sort_block(input, 0, False)[0]
    return _into(out, found)


@op(
    name="topk_block",
    backward="TopkBackward0",
    outputs=("values", "indices"),
    differentiable=1,
    function=False,
    method=False,
)
def topk_block(np: Any, self: Any, /, k: int, dim: int, largest: bool) -> Any:
    """The ``k`` largest (or smallest) elements along a dimension, in order, and where they are."""
    if self.dtype.kind == "c":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not self.ndim:
        return self.copy(), np.asarray(0)
    order = np.take(ordered(np, self, dim, largest), np.arange(k), dim)
    return np.take_along_axis(self, order, dim), np.ascontiguousarray(order)


topk_block.derivative(self=lambda F, g, indices, self_shape, dim: F.put_along(g, indices, self_shape, dim))


@surface()
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """The ``k`` largest (or smallest) elements along ``dim`` and their indices."""
    at = dimension(dim, input._array.ndim)
    if not 0 <= k <= (input._array.shape[at] if input._array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    return _Topk(topk_block(input, k, at, largest, out=out))


@op(
    name="kthvalue_block",
    backward="KthvalueBackward0",
    outputs=("values", "indices"),
    differentiable=1,
    function=False,
    method=False,
)
def kthvalue_block(np: Any, self: Any, /, k: int, dim: int, keepdim: bool) -> Any:
    """The ``k``-th smallest element along a dimension, and where it is."""
    if self.dtype.kind in "bc":
        raise unsupported("kthvalue_cpu", self.dtype)
    if not self.ndim:
        return self.copy(), np.asarray(0)
    index = np.take(ordered(np, self, dim, False), [k - 1], dim)
    values = np.take_along_axis(self, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


def _kth_rule(F: Any, g: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    return F.put_along(
        restored(F, g, self_shape, dim, keepdim), restored(F, indices, self_shape, dim, keepdim), self_shape, dim
    )


kthvalue_block.derivative(self=_kth_rule)


@surface()
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The ``k``-th smallest elements along ``dim`` and their indices."""
    at = dimension(dim, input._array.ndim)
    if not 1 <= k <= (input._array.shape[at] if input._array.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    return _Kth(kthvalue_block(input, k, at, keepdim, out=out))


# -- Without repetition ----------------------------------------------------------------------------------------------


def _outputs(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    found = [wrap(numpy.ascontiguousarray(values))]
    if return_inverse:
        found.append(wrap(inverse.astype(numpy.int64)))
    if return_counts:
        found.append(wrap(counts.astype(numpy.int64)))
    return found[0] if len(found) == 1 else tuple(found)


@surface()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements (or slices along ``dim``) that occur, each once, in order; on request their places and counts."""
    array = input._array
    axis = None if dim is None else dimension(dim, array.ndim)
    values, inverse, counts = numpy.unique(array, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    inverse = inverse.reshape(array.shape) if axis is None else inverse.reshape(-1)
    return _outputs(values, inverse, counts, return_inverse, return_counts)


@surface()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along ``dim``) without those that equal their predecessor."""
    array = input._array
    rows = array.reshape(-1, 1) if dim is None else numpy.moveaxis(array, dim, 0).reshape(array.shape[dim], -1)
    new = numpy.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = numpy.flatnonzero(new)
    values = array.reshape(-1)[starts] if dim is None else numpy.take(array, starts, dim)
    inverse = numpy.cumsum(new) - 1
    counts = numpy.diff(numpy.append(starts, len(rows)))
    inverse = inverse.reshape(array.shape) if dim is None else inverse
    return _outputs(values, inverse, counts, return_inverse, return_counts)


# -- Counting --------------------------------------------------------------------------------------------------------


@surface()
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each of 0, 1, 2 … occurs in a vector of non-negative integers, or the sum of ``weights`` for each."""
    array = input._array
    if array.dtype.kind not in "iu":
        raise unsupported("bincount_cpu", array.dtype)
    if array.ndim != 1 or (array.size and int(array.min()) < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights._array.shape != array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    found = numpy.bincount(array, None if weights is None else weights._array, minlength)
    if weights is not None and weights.dtype is dtypes.float32:
        found = found.astype(numpy.float32)
    return wrap(found)


def _search(edges: Any, points: Any, right: bool, int32: bool, out: Any) -> Tensor:
    side: Any = "right" if right else "left"
    if edges.ndim == 1:
        found = numpy.searchsorted(edges, points, side)
    else:
        flat = zip(edges.reshape(-1, edges.shape[-1]), points.reshape(-1, points.shape[-1]), strict=True)
        found = numpy.stack([numpy.searchsorted(row, wanted, side) for row, wanted in flat]).reshape(points.shape)
    result = wrap(numpy.asarray(found).astype(numpy.int32 if int32 else numpy.int64))
    return _into(out, result)


def _values(values: Any) -> Any:
    return values._array if isinstance(values, Tensor) else numpy.asarray(values)


def _check_rows(edges: Any, points: Any) -> None:
    """Refuse values that do not go with the ordered rows."""
    if edges.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if edges.ndim > 1 and points.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({edges.ndim}) and input value's dim(0) numel(1)"
        )
    if edges.ndim > 1 and edges.shape[:-1] != points.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(edges.shape)} and input "
            f"value tensor {list(points.shape)}"
        )


@surface(method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    out: Any = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Where elements would have to be put into ordered rows to keep them ordered."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    edges, points = sorted_sequence._array, _values(input)
    _check_rows(edges, points)
    return _search(edges, points, right or side == "right", out_int32, out)


@surface(method=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """Between which of the ordered ``boundaries`` each element lies."""
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return _search(boundaries._array, _values(input), right, out_int32, out)


@surface(method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Any = None
) -> Tensor:
    """Whether each element is among ``test_elements``."""
    found = wrap(numpy.asarray(numpy.isin(_values(elements), _values(test_elements), invert=invert)))
    return _into(out, found)
