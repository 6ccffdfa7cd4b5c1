"""Functions that sort or rank elements: ``sort``, ``argsort``, ``msort``, ``topk``, ``kthvalue``; also ``bincount``."""

from __future__ import annotations

from typing import Any

import numpy

from ...core import dtypes
from ...core.devices import array_module_of
from ...core.dtypes import unsupported
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import op, public
from ...dispatch.return_types import named
from ...dispatch.transform_tensor import slicewise
from ...kernels import searching, sorting
from ...kernels.gather_scatter import take_along
from ...kernels.sorting import stable_argsort
from ..reductions.dims import select_one_rule, select_several_rule

_Sort, _Topk, _Kth = (named(name, ("values", "indices")) for name in ("sort", "topk", "kthvalue"))


def _sorted(np: Any, self: Any, /, dim: int, descending: bool) -> Any:
    """Return the tuple (sorted elements, indices) of ``self`` along ``dim``.

    The indices are the positions of the sorted elements in ``self``. If ``self`` is not contiguous, for example
    transposed, the dimensions of both arrays have the same order in memory as those of ``self``.
    """
    if self.dtype.kind == "c":
        raise RuntimeError(" Sort does not support complex dtypes on CPU")
    if not self.ndim:
        normalize_dim(dim, 0)
        return self.copy(), np.asarray(0)
    order = stable_argsort(np, self, dim, descending)
    sorted_values = take_along(np, self, order, dim)
    if self.flags.c_contiguous:
        return sorted_values, order
    values, indices = np.empty_like(self), np.empty_like(self, dtype=np.int64)  # in the memory order of the tensor
    values[...], indices[...] = sorted_values, order
    return values, indices


def _sorting(name: str, backward: str) -> Any:
    """Return a new operation, which sorts a tensor along a dimension.

    ``name`` is the name of the operation, and ``backward`` the name of its autograd node. There are two such
    operations, because the node of ``sort`` has another name in PyTorch if the argument ``stable`` is passed.
    """

    def kernel(np: Any, self: Any, /, dim: int, descending: bool) -> Any:
        return _sorted(np, self, dim, descending)

    kernel.__name__ = name
    kernel.__doc__ = "Return the elements of ``self`` sorted along ``dim`` and their indices."
    declared = op(backward=backward, outputs=("values", "indices"), differentiable=1, function=False, method=False)(
        kernel
    )
    declared.derivative(self=select_several_rule)
    return declared


sort_block, stable_sort_block = _sorting("sort_block", "SortBackward0"), _sorting("stable_sort_block", "SortBackward1")


@public(fast_path=sort_block, when=lambda dim: dim.__class__ is int, result_class=_Sort)
def sort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool | None = None, out: Any = None) -> Any:
    """Return the named tuple (values, indices): the elements of ``input`` sorted along ``dim``, and their indices.

    The order of equal elements is always kept. ``stable`` has no effect on the result.

    >>> import retrograd as torch
    >>> torch.sort(torch.tensor([3, 1, 2]), descending=True)
    torch.return_types.sort(
    values=tensor([3, 2, 1]),
    indices=tensor([0, 2, 1]))
    """
    block = sort_block if stable is None else stable_sort_block
    return _Sort(block(input, normalize_dim(dim, input._array.ndim), descending))


@op(function=False, method=False)
def argsort_block(np: Any, self: Any, /, dim: int, descending: bool) -> Any:
    """Return the indices that sort ``self`` along ``dim``, in descending order if ``descending`` is true."""
    return _sorted(np, self, dim, descending)[1]


@public(fast_path=argsort_block, when=lambda dim: dim.__class__ is int)
def argsort(input: Tensor, dim: int = -1, descending: bool = False, *, stable: bool = False, out: Any = None) -> Tensor:
    """Return the indices that sort ``input`` along ``dim``; equal elements keep their order."""
    return argsort_block(input, normalize_dim(dim, input._array.ndim), descending)


@public()
def msort(input: Tensor, *, out: Any = None) -> Tensor:
    """Return ``input`` sorted along its first dimension."""
    values: Tensor = sort_block(input, 0, False)[0]
    return values


@op(
    name="topk_block",
    backward="TopkBackward0",
    outputs=("values", "indices"),
    differentiable=1,
    function=False,
    method=False,
)
def topk_block(np: Any, self: Any, /, k: int, dim: int, largest: bool) -> Any:
    """Return the tuple (values, indices) of the ``k`` largest elements of ``self`` along ``dim``, sorted.

    If ``largest`` is false, return the ``k`` smallest elements instead.
    """
    if self.dtype.kind == "c":
        raise RuntimeError(" topk does not support complex dtypes on CPU")
    if self.dtype.kind == "b":
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not self.ndim:
        normalize_dim(dim, 0)
    if not 0 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError("selected index k out of range")
    if not self.ndim:
        return self.copy(), np.asarray(0)
    return sorting.topk(np, self, k, dim, largest)


topk_block.derivative(self=select_several_rule)


@public(fast_path=topk_block, when=lambda dim: dim.__class__ is int, result_class=_Topk)
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True, *, out: Any = None) -> Any:
    """Return the named tuple (values, indices) of the ``k`` largest elements of ``input`` along ``dim``.

    If ``largest`` is false, return the ``k`` smallest elements instead. The elements are always sorted; ``sorted`` has
    no effect.

    >>> import retrograd as torch
    >>> torch.topk(torch.tensor([3, 1, 2]), 2)
    torch.return_types.topk(
    values=tensor([3, 2]),
    indices=tensor([0, 2]))
    """
    at = normalize_dim(dim, input._array.ndim)
    if not 0 <= k <= (input._array.shape[at] if input._array.ndim else 1):
        raise RuntimeError("selected index k out of range")
    return _Topk(topk_block(input, k, at, largest))


@op(
    name="kthvalue_block",
    backward="KthvalueBackward0",
    outputs=("values", "indices"),
    differentiable=1,
    function=False,
    method=False,
)
def kthvalue_block(np: Any, self: Any, /, k: int, dim: int, keepdim: bool) -> Any:
    """Return the tuple (value, index) of the ``k``-th smallest element of ``self`` along ``dim``.

    ``k=1`` is the smallest element. If ``keepdim`` is true, the dimension is kept with size 1.
    """
    if self.dtype.kind in "bc":
        raise unsupported("kthvalue_cpu", self.dtype)
    if not self.ndim:
        return self.copy(), np.asarray(0)
    index = np.take(stable_argsort(np, self, dim, False), [k - 1], dim)
    values = np.take_along_axis(self, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


kthvalue_block.derivative(self=select_one_rule)


@public()
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the named tuple (values, indices) of the ``k``-th smallest element of ``input`` along ``dim``.

    ``k=1`` is the smallest element. If ``keepdim`` is true, the dimension is kept with size 1.
    """
    at = normalize_dim(dim, input._array.ndim)
    if not 1 <= k <= (input._array.shape[at] if input._array.ndim else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {at}")
    return _Kth(kthvalue_block(input, k, at, keepdim))


# -- Counting --------------------------------------------------------------------------------------------------------


@public()
@slicewise
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return the number of occurrences of each of the integers 0, 1, 2, … in ``input``.

    ``input`` is a 1-d tensor of non-negative integers. With ``weights``, element ``i`` of the result is the sum of the
    weights of the elements equal to ``i``. The result has at least ``minlength`` elements.

    >>> import retrograd as torch
    >>> torch.bincount(torch.tensor([0, 1, 1]))
    tensor([1, 2])
    """
    array = input._array
    if array.dtype.kind not in "iu":
        raise unsupported("bincount_cpu", array.dtype)
    if input.is_meta:
        raise array_module_of(array).no_values("bincount")
    low, high = searching.min_max(numpy, array) if array.size else (0, -1)
    if array.ndim != 1 or low < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if weights is not None and weights._array.shape != array.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    if weights is None and array.size:
        counts = searching.bincount_range(numpy, array, 0, max(high, minlength - 1))
    else:
        counts = numpy.bincount(array, None if weights is None else weights._array, minlength)
    if weights is not None and weights.dtype is dtypes.float32:
        counts = counts.astype(numpy.float32)
    return wrap(counts)
