"""Conversions between layouts and dtypes, access to indices and values, and ``coalesce``."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.dtypes import dtype as dtype_class
from ..core.tensor import Tensor, contiguous_format, preserve_format, sparse_coo, sparse_csc, sparse_csr, strided, wrap
from ..core.tensor import layout as layout_class
from ..kernels import sparse as kernels
from ..operations.creation.conversion import parse_to_arguments
from .operations import ADD_AT, ALIAS
from .tensor import (
    IMPLEMENTED,
    NAMES,
    SHOWN,
    Compressed,
    Coordinates,
    SparseTensor,
    coo,
    flat_of,
    gather,
    implements,
    sparse_tensor,
    unsupported,
    with_values,
)


def expected(name: str, kind: str, x: Tensor) -> RuntimeError:
    """Return PyTorch's error for ``name``, a method of tensors of the layout ``kind``, called with ``x``."""
    return RuntimeError(f"{name} expected sparse {kind}tensor layout but got {SHOWN[x.layout.name]}")


def is_coo(x: Tensor) -> bool:
    return x.layout is sparse_coo


# -- Indices and values ----------------------------------------------------------------------------------------------


@implements()
def coalesce(self: Any) -> SparseTensor:
    """Return the tensor with sorted indices, in which elements with the same index are added.

    >>> import retrograd as torch
    >>> x = torch.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 3.0], (2,))
    >>> x.coalesce().values()
    tensor([3., 3.])
    """
    if not is_coo(self):
        raise expected("coalesce", "coordinate ", self)
    return coalesced(self)


def coalesced(x: SparseTensor) -> SparseTensor:
    """Return ``x``, coalesced if it is in coordinate format."""
    if x._pattern.coalesced:
        return x
    flat, place = numpy.unique(flat_of(x), return_inverse=True)
    coordinates = kernels.coordinates_of(flat, x._sizes[: x._pattern.dims])
    values = ADD_AT["CoalesceBackward0"](x._stored, wrap(place), (flat.size,))
    return coo(coordinates, values, x._sizes, True)


@implements()
def is_coalesced(self: Any) -> bool:
    """Return whether the indices are known to be sorted and distinct.

    >>> import retrograd as torch
    >>> torch.sparse_coo_tensor([[0, 0]], [1.0, 2.0], (2,)).is_coalesced()
    False
    """
    if not is_coo(self):
        raise expected("is_coalesced", "coordinate ", self)
    return bool(self._pattern.coalesced)


@implements()
def indices(self: Any) -> Tensor:
    """Return the indices of a coalesced tensor, of shape (sparse dimensions, elements).

    >>> import retrograd as torch
    >>> torch.eye(2).to_sparse().indices()
    tensor([[0, 1],
            [0, 1]])
    """
    if not is_coo(self):
        raise expected("indices", "coordinate ", self)
    if not self._pattern.coalesced:
        raise RuntimeError("Cannot get indices on an uncoalesced tensor, please call .coalesce() first")
    return wrap(self._pattern.indices)


@implements()
def values(self: Any) -> Tensor:
    """Return the values of a coalesced tensor, of shape (elements, *dense sizes), as part of the graph.

    >>> import retrograd as torch
    >>> torch.tensor([0.0, 2.0, 3.0]).to_sparse().values()
    tensor([2., 3.])
    """
    if self.layout is strided:
        raise expected("values", "", self)
    if not self._pattern.coalesced:
        raise RuntimeError("Cannot get values on an uncoalesced tensor, please call .coalesce() first")
    return ALIAS["ValuesBackward0"](self._stored)


@implements()
def _indices(self: Any) -> Tensor:
    """Return the indices, also those of an uncoalesced tensor."""
    if not is_coo(self):
        raise unsupported("_indices()", self.layout)
    return wrap(self._pattern.indices)


@implements()
def _values(self: Any) -> Tensor:
    """Return the values, also those of an uncoalesced tensor, outside the graph."""
    if self.layout is strided:
        raise unsupported("_values()", self.layout)
    return self._stored.detach()


@implements()
def _nnz(self: Any) -> int:
    """Return the number of stored elements."""
    if self.layout is strided:
        raise unsupported("_nnz()", self.layout)
    return int(self._pattern.count)


@implements()
def _coalesced_(self: Any, coalesced: bool) -> Any:
    """Mark the tensor as coalesced or not, without a check."""
    self.__dict__["_pattern"] = Coordinates(self._pattern.indices, coalesced)
    return self


def _of_compressed(name: str, kind: str, layout: layout_class, field: str) -> Any:
    def read(self: Any) -> Tensor:
        if self.layout is not layout:
            raise expected(name, f"{kind} compressed ", self)
        return wrap(getattr(self._pattern, field))

    read.__name__ = read.__qualname__ = name
    read.__doc__ = f"Return the {name} of a tensor of layout {layout}."
    return implements(name)(read)


crow_indices = _of_compressed("crow_indices", "row", sparse_csr, "starts")
col_indices = _of_compressed("col_indices", "row", sparse_csr, "plain")
ccol_indices = _of_compressed("ccol_indices", "column", sparse_csc, "starts")
row_indices = _of_compressed("row_indices", "column", sparse_csc, "plain")


@implements()
def sparse_dim(self: Any) -> int:
    """Return the number of sparse dimensions, 0 for a dense tensor.

    >>> import retrograd as torch
    >>> torch.eye(2).to_sparse().sparse_dim()
    2
    """
    return 0 if self.layout is strided else int(self._pattern.dims)


@implements()
def dense_dim(self: Any) -> int:
    """Return the number of dense dimensions.

    >>> import retrograd as torch
    >>> torch.eye(2).to_sparse(1).dense_dim()
    1
    """
    return int(self.dim() - sparse_dim(self))


# -- Layouts ---------------------------------------------------------------------------------------------------------


@implements()
def to_dense(self: Any, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the dense tensor with the same elements; elements that are not stored are 0.

    ``masked_grad=False``, the gradient with respect to elements that are not stored, is not supported.

    >>> import retrograd as torch
    >>> torch.sparse_coo_tensor([[0, 2]], [1.0, 2.0], (3,)).to_dense()
    tensor([1., 0., 2.])
    """
    if self.layout is strided:
        return self if dtype is None else self.to(dtype)
    if masked_grad is False and self.requires_grad:
        raise unsupported("to_dense(masked_grad=False) of a tensor that requires gradients", self.layout)
    sizes = self._sizes[: self._pattern.dims]
    result: Tensor = ADD_AT["ToDenseBackward0"](self._stored, wrap(flat_of(self)), sizes)
    return result if dtype is None else result.to(dtype)


@implements()
def to_sparse(
    self: Any, sparse_dim: Any = None, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> SparseTensor:
    """Return the tensor in coordinate format, with ``sparse_dim`` sparse dimensions, or in the given ``layout``.

    Zeros of a dense tensor, or slices of zeros, are not stored.

    >>> import retrograd as torch
    >>> torch.tensor([0.0, 2.0]).to_sparse()
    tensor(indices=tensor([[1]]),
           values=tensor([2.]),
           size=(2,), nnz=1, layout=torch.sparse_coo)
    """
    if isinstance(sparse_dim, layout_class):
        sparse_dim, layout = None, sparse_dim
    if blocksize is not None or layout not in (None, sparse_coo, sparse_csr, sparse_csc):
        raise unsupported("to_sparse() with blocks", layout or self.layout)
    if layout is not None and layout is not sparse_coo:
        return to_compressed(self, layout, dense_dim)
    if self.layout is strided:
        return _from_dense(self, sparse_dim)
    if sparse_dim is not None and sparse_dim != self._pattern.dims:
        raise RuntimeError(
            "to_sparse: conversion from Sparse to Sparse with sparse_dim argument !=self.sparse_dim() is not supported"
        )
    if is_coo(self):
        return self
    values = ALIAS["ToSparseBackward1"](self._stored)
    made = coo(self._pattern.coordinates().astype(numpy.int64), values, self._sizes, False)
    if self.layout is sparse_csr and sorted_rows(self._pattern):
        made._pattern.coalesced = True
    return made


def sorted_rows(pattern: Compressed) -> bool:
    """Whether the plain indices of each row are sorted and distinct."""
    return not ((numpy.diff(pattern.plain) <= 0) & (numpy.diff(kernels.expanded(pattern.starts)) == 0)).any()


def _from_dense(x: Tensor, dims: int | None) -> SparseTensor:
    ndim = x.dim()
    count = ndim if dims is None else dims
    if not 0 <= count <= ndim:
        raise RuntimeError(f"dense_to_sparse: sparse_dim argument must be in [0,{ndim}] range, but {dims} is given")
    if not count and ndim:
        raise RuntimeError("dense_to_sparse: sparse_dim argument must be in >0 when self.dim()>0")
    nonzero = x._array != 0
    nonzero = nonzero.any(tuple(range(count, ndim))) if ndim > count else nonzero
    flat = numpy.flatnonzero(nonzero)
    node = "ToSparseBackward1" if dims is None else "ToSparseBackward0"
    stored = gather(node, x, flat, count)
    return coo(kernels.coordinates_of(flat, x.shape[:count]), stored, tuple(x.shape), True)


@implements()
def to_sparse_coo(self: Any) -> SparseTensor:
    """Return the tensor in coordinate format.

    >>> import retrograd as torch
    >>> torch.tensor([0.0, 2.0]).to_sparse_coo()
    tensor(indices=tensor([[1]]),
           values=tensor([2.]),
           size=(2,), nnz=1, layout=torch.sparse_coo)
    """
    return to_sparse(self)


@implements()
def to_sparse_csr(self: Any, dense_dim: int | None = None) -> SparseTensor:
    """Return the matrix in compressed row format.

    >>> import retrograd as torch
    >>> torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csr().values()
    tensor([2., 3.])
    """
    return to_compressed(self, sparse_csr, dense_dim)


@implements()
def to_sparse_csc(self: Any, dense_dim: int | None = None) -> SparseTensor:
    """Return the matrix in compressed column format.

    >>> import retrograd as torch
    >>> torch.tensor([[0.0, 2.0], [3.0, 0.0]]).to_sparse_csc().values()
    tensor([3., 2.])
    """
    return to_compressed(self, sparse_csc, dense_dim)


def to_compressed(x: Any, layout: layout_class, dense_dim: int | None = None, node: str | None = None) -> SparseTensor:
    """Return ``x`` in the compressed format ``layout``; ``dense_dim`` is the number of dense dimensions of the result.

    ``node`` is the name of the graph node if this function is a part of another one.
    """
    if x.layout is layout:
        return x
    if x.layout is strided:
        if x.dim() - (dense_dim or 0) != 2:
            raise unsupported(f"A tensor of {x.dim()} dimensions and dense_dim={dense_dim or 0}", layout)
        x = _from_dense(x, 2)
    x = coalesced(to_sparse(x))
    if x._pattern.dims != 2:
        raise unsupported(f"A tensor of {x._pattern.dims} sparse dimensions", layout)
    kept, other = x._pattern.coordinates() if layout is sparse_csr else x._pattern.coordinates()[::-1]
    size = x._sizes[0] if layout is sparse_csr else x._sizes[1]
    starts = kernels.compressed(kept, size)
    node = node or ("ToSparseCsrBackward0" if layout is sparse_csr else "ToSparseCscBackward0")
    if layout is sparse_csr:
        return sparse_tensor(Compressed(layout, starts, other.copy()), ALIAS[node](x._stored), x._sizes)
    order = numpy.argsort(kept, kind="stable")
    stored = gather(node, x._stored, order, 1)
    return sparse_tensor(Compressed(layout, starts, other[order]), stored, x._sizes)


def like(x: SparseTensor, layout: layout_class, node: str) -> SparseTensor:
    """Return ``x``, a tensor in coordinate format, in ``layout``; ``node`` is the name of its graph node."""
    return x if layout is sparse_coo else to_compressed(x, layout, None, node)


# -- Dtypes and copies -----------------------------------------------------------------------------------------------


@implements()
def to(input: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the tensor with another dtype; other devices are not supported."""
    if not isinstance(input, SparseTensor):
        return input.to(args[0].dtype, *args[1:], **kwargs)
    if args and isinstance(args[0], SparseTensor):
        args = (args[0].dtype, *args[1:])
    device, target, copy, order = parse_to_arguments(args, dict(kwargs))
    if device is not None and device.type != "cpu":
        raise unsupported("A device other than the CPU", input.layout)
    if order not in (preserve_format, contiguous_format, None):
        raise unsupported(f"memory_format={order}", input.layout)
    stored = input._stored if target is None else input._stored.to(target)
    stored = stored.clone() if copy and stored is input._stored else stored
    return input if stored is input._stored else with_values(input, stored)


@implements()
def type_as(input: Any, other: Tensor) -> Any:
    """Return the tensor with the dtype of ``other``."""
    return to(input, other.dtype) if isinstance(input, SparseTensor) else input.to(other.dtype)


@implements("type")
def type_of(input: SparseTensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the name of the tensor's type, or the tensor with another dtype."""
    if dtype is None:
        return input._stored.type().replace("torch.", "torch.sparse.")
    return to(input, dtype if isinstance(dtype, dtype_class) else input._stored.type(dtype).dtype)


for _name in (
    "double",
    "float",
    "half",
    "bfloat16",
    "long",
    "int",
    "short",
    "char",
    "byte",
    "bool",
    "cfloat",
    "cdouble",
):

    def _convert(input: SparseTensor, *, memory_format: Any = None, _name: str = _name) -> SparseTensor:
        stored = getattr(input._stored, _name)()
        return input if stored is input._stored else with_values(input, stored)

    implements(_name)(_convert)


@implements()
def cpu(input: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    """Return the tensor."""
    return to(input, "cpu")


@implements()
def clone(input: SparseTensor, *, memory_format: Any = None) -> SparseTensor:
    """Return a copy."""
    pattern = input._pattern
    copied: Any = (
        Coordinates(pattern.indices.copy(), pattern.coalesced)
        if isinstance(pattern, Coordinates)
        else Compressed(pattern.layout, pattern.starts.copy(), pattern.plain.copy())
    )
    return sparse_tensor(copied, input._stored.clone(), input._sizes)


@implements()
def contiguous(input: SparseTensor, *, memory_format: Any = None) -> Any:
    """Raise PyTorch's error."""
    raise RuntimeError("unsupported memory format option Contiguous")


@implements()
def sparse_mask(self: Tensor, mask: SparseTensor) -> SparseTensor:
    """Return the elements of ``self`` at the indices of ``mask``, a sparse tensor of the same shape.

    >>> import retrograd as torch
    >>> torch.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(torch.eye(2).to_sparse()).values()
    tensor([1., 4.])
    """
    if not isinstance(mask, SparseTensor):
        raise unsupported("sparse_mask() with a dense mask", strided)
    if tuple(self.shape) != mask._sizes:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {list(self.shape)} but mask has size "
            f"{list(mask._sizes)}"
        )
    wanted = flat_of(mask)
    if not isinstance(self, SparseTensor):
        return with_values(mask, gather("SparseMaskBackward0", self, wanted, mask._pattern.dims))
    own = coalesced(to_sparse(self))
    if own._pattern.dims != mask._pattern.dims:
        raise unsupported("sparse_mask() with another number of sparse dimensions", mask.layout)
    have = flat_of(own)
    place = numpy.searchsorted(have, wanted)
    found = numpy.flatnonzero(numpy.take(have, place, mode="clip") == wanted) if have.size else place[:0]
    picked = gather("SparseMaskBackward0", own._stored, place[found], 1)
    if found.size != wanted.size:
        picked = ADD_AT["SparseMaskBackward0"](picked, wrap(found), (wanted.size,))
    return with_values(mask, picked)


def from_scipy(matrix: Any) -> SparseTensor:
    """Return the SciPy sparse matrix or array ``matrix`` as a tensor; CSR and CSC matrices keep their format.

    >>> import retrograd as torch
    >>> import scipy.sparse
    >>> torch.sparse.from_scipy(scipy.sparse.csr_array([[0.0, 2.0]]))
    tensor(crow_indices=tensor([0, 1]),
           col_indices=tensor([1]),
           values=tensor([2.]), size=(1, 2), nnz=1, dtype=torch.float64,
           layout=torch.sparse_csr)
    """
    layout = {"csr": sparse_csr, "csc": sparse_csc}.get(matrix.format)
    if layout is not None:
        kept = matrix.sorted_indices()
        pattern: Any = Compressed(layout, kept.indptr.astype(numpy.int64), kept.indices.astype(numpy.int64))
        return sparse_tensor(pattern, wrap(kept.data.copy()), matrix.shape)
    kept = matrix.tocoo()
    lines = numpy.stack([each.astype(numpy.int64) for each in (kept.row, kept.col)])
    return coo(lines, wrap(kept.data.copy()), matrix.shape, False)


def to_scipy(input: SparseTensor) -> Any:
    """Return a sparse matrix as a SciPy array in the same format, which has a copy of its elements.

    >>> import retrograd as torch
    >>> torch.sparse.to_scipy(torch.eye(2).to_sparse()).toarray()
    array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if input._pattern.dims != 2 or input._stored.dim() != 1:
        raise unsupported("to_scipy() of a tensor that is no matrix", input.layout)
    import scipy.sparse

    data, pattern = input._stored.detach()._array.copy(), input._pattern
    if isinstance(pattern, Coordinates):
        return scipy.sparse.coo_array((data, tuple(pattern.indices.copy())), input._sizes)
    kind = scipy.sparse.csr_array if pattern.layout is sparse_csr else scipy.sparse.csc_array
    return kind((data, pattern.plain.copy(), pattern.starts.copy()), input._sizes)


#: Methods of sparse tensors that dense tensors have, too.
METHODS = (
    "_coalesced_", "_indices", "_nnz", "_values", "ccol_indices", "coalesce", "col_indices", "crow_indices", "dense_dim",
    "indices", "is_coalesced", "row_indices", "sparse_dim", "sparse_mask", "to_dense", "to_sparse", "to_sparse_coo",
    "to_sparse_csc", "to_sparse_csr", "values",
)  # fmt: skip

__all__ = [
    "IMPLEMENTED",
    "METHODS",
    "NAMES",
    "coalesced",
    "from_scipy",
    "is_coo",
    "like",
    "sparse_mask",
    "to_compressed",
    "to_dense",
    "to_scipy",
    "to_sparse",
]
