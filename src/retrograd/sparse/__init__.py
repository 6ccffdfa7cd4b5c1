"""Sparse tensors: the counterpart of ``torch.sparse``; see ``docs/sparse.md``.

``tensor`` has the class, ``operations`` the operations on values, ``creation``, ``conversion`` and ``functions`` the
functions of sparse tensors. The package is loaded on demand: the methods that dense tensors share with sparse ones
(``to_sparse``, ``coalesce`` …) are replaced here by their implementations.
"""

# ruff: noqa: F401 - torch.sparse_coo_tensor and others are loaded from here
from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from ..dispatch.intercept import interceptable
from ..dispatch.public_wrapper import public_wrapper
from ..operations.tensor_methods import add_method, name_for_pickle
from . import conversion
from .conversion import from_scipy, to_scipy
from .creation import (
    check_sparse_tensor_invariants,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    spdiags,
)
from .functions import _addmm, _mm, log_softmax, sampled_addmm, softmax
from .functions import hspmm as _hspmm
from .functions import smm as _smm
from .functions import sparse_sum as sum
from .functions import spmm as _spmm
from .functions import sspaddmm as _sspaddmm
from .legacy_types import SPARSE_TYPES as _TYPES
from .tensor import IMPLEMENTED as _IMPLEMENTED
from .tensor import SparseTensor as _SparseTensor


def mm(sparse: Any, dense: Any, reduce: Any = None) -> Any:
    """Return the product of two matrices, one or both sparse, with sparse gradients for sparse matrices.

    ``reduce`` replaces the sum of the products of stored elements, for a CSR matrix: "sum", "mean", "amax" or "amin".

    >>> import retrograd as torch
    >>> a = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> torch.sparse.mm(a, torch.ones(3, 2))
    tensor([[3., 3.],
            [4., 4.]])
    """
    if reduce is not None:
        return _reduced(sparse, dense, reduce)
    if not (isinstance(sparse, _SparseTensor) or isinstance(dense, _SparseTensor)):
        return sparse.mm(dense)
    return _mm(sparse, dense, "SparseAddmmBackward0")


def _reduced(sparse: Any, dense: Any, reduce: str) -> Any:
    """Return the product of the CSR matrix ``sparse`` and ``dense``, in which ``reduce`` replaces the sum."""
    if reduce not in ("sum", "mean", "amax", "amin"):
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
            if reduce != "prod"
            else "torch.sparse.mm() with reduce='prod' is not implemented"
        )
    matrix = sparse.to_sparse_csr()
    counts, columns = matrix.crow_indices().diff(), matrix.col_indices()
    rows = counts.new_tensor(range(len(counts))).repeat_interleave(counts)
    products = dense[columns] * matrix.values().unsqueeze(1)
    result = products.new_zeros((sparse.shape[0], dense.shape[1]))
    return result.scatter_reduce(0, rows.unsqueeze(1).expand_as(products), products, reduce, include_self=False)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any:
    """Return ``beta * input + alpha * (mat1 @ mat2)`` for a sparse matrix ``mat1``.

    >>> import retrograd as torch
    >>> a = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> torch.sparse.addmm(torch.ones(2, 2), a, torch.ones(3, 2), beta=2)
    tensor([[5., 5.],
            [6., 6.]])
    """
    return _addmm(input, mat1, mat2, beta, alpha, "SparseAddmmBackward0")


def _install() -> None:
    """Set the methods that dense tensors share with sparse ones as attributes of Tensor."""
    for name in conversion.METHODS:
        setattr(Tensor, name, interceptable(_IMPLEMENTED[name]))
        name_for_pickle(name)
    for name in ("smm", "sspaddmm"):
        add_method(name, _IMPLEMENTED[name])


_install()
smm, sspaddmm, hspmm = (public_wrapper(each, "torch", each.__name__) for each in (_smm, _sspaddmm, _hspmm))
spmm = interceptable(_spmm)
FloatTensor, DoubleTensor, HalfTensor = _TYPES["FloatTensor"], _TYPES["DoubleTensor"], _TYPES["HalfTensor"]
LongTensor, IntTensor, ShortTensor = _TYPES["LongTensor"], _TYPES["IntTensor"], _TYPES["ShortTensor"]
CharTensor, ByteTensor, BFloat16Tensor = _TYPES["CharTensor"], _TYPES["ByteTensor"], _TYPES["BFloat16Tensor"]
dsmm, saddmm, hsmm = spmm, sspaddmm, hspmm  # further names of the same functions
for _function in (spmm, smm, sspaddmm, hspmm):
    _function.__module__ = __name__  # where pickle finds the function
__all__ = [
    "addmm", "check_sparse_tensor_invariants", "from_scipy", "log_softmax", "mm", "sampled_addmm", "softmax", "spdiags",
    "sum", "to_scipy",
]  # fmt: skip
