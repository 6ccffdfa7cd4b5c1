"""Linear algebra of the array API standard, its extension ``linalg``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import retrograd as torch
from retrograd import Tensor

from ._dtypes import ANY, FLOATING, NUMERIC, Axes, Dtype, check, promoted
from ._reductions import reduced
from ._reductions import sum as _sum

_LINALG = torch.linalg


def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the matrix product."""
    return torch.matmul(*promoted("matmul", NUMERIC, x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return matrices with rows and columns exchanged."""
    check("matrix_transpose", ANY, x)
    return x.mT


def tensordot(x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2) -> Tensor:
    """Return the products of elements, summed over ``axes``: the last and first ones, or pairs of sequences."""
    return torch.tensordot(*promoted("tensordot", NUMERIC, x1, x2), dims=axes)


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the sums along ``axis`` of the products of the conjugate of ``x1`` and ``x2``."""
    x1, x2 = promoted("vecdot", NUMERIC, x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < max(x1.ndim, x2.ndim):
        raise IndexError(f"vecdot(): axis {axis} is out of range for shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot(): the sizes of axis {axis} differ: {x1.shape[axis]} and {x2.shape[axis]}")
    x1, x2 = torch.broadcast_tensors(x1, x2)
    x1, x2 = (torch.movedim(each, axis, -1) for each in (x1, x2))
    return torch.matmul(x1.conj().unsqueeze(-2), x2.unsqueeze(-1))[..., 0, 0]


def cross(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the cross product of vectors of three elements."""
    x1, x2 = promoted("cross", NUMERIC, x1, x2)
    if not -min(x1.ndim, x2.ndim) <= axis < max(x1.ndim, x2.ndim) or not x1.shape[axis] == x2.shape[axis] == 3:
        raise ValueError(f"cross(): axis {axis} of shapes {tuple(x1.shape)} and {tuple(x2.shape)} is not of size 3")
    return _LINALG.cross(*torch.broadcast_tensors(x1, x2), dim=axis)


def outer(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the products of each element of the vector ``x1`` and each of the vector ``x2``."""
    x1, x2 = promoted("outer", NUMERIC, x1, x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"outer() takes vectors, not shapes {tuple(x1.shape)} and {tuple(x2.shape)}")
    return x1.unsqueeze(-1) * x2


def diagonal(x: Tensor, /, *, offset: int = 0) -> Tensor:
    """Return the diagonals of matrices."""
    check("diagonal", ANY, x)
    return torch.diagonal(x, offset, -2, -1)


def trace(x: Tensor, /, *, offset: int = 0, dtype: Dtype | None = None) -> Tensor:
    """Return the sums of diagonals."""
    check("trace", NUMERIC, x)
    return _sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)


def cholesky(x: Tensor, /, *, upper: bool = False) -> Tensor:
    """Return the Cholesky factors of matrices."""
    check("cholesky", FLOATING, x)
    return _LINALG.cholesky(x, upper=upper)


def det(x: Tensor, /) -> Tensor:
    """Return the determinants of matrices."""
    check("det", FLOATING, x)
    return _LINALG.det(x)


def slogdet(x: Tensor, /) -> Any:
    """Return the signs of determinants and the logarithms of their absolute values."""
    check("slogdet", FLOATING, x)
    return _LINALG.slogdet(x)


def inv(x: Tensor, /) -> Tensor:
    """Return the inverses of matrices."""
    check("inv", FLOATING, x)
    return _LINALG.inv(x)


def pinv(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """Return the pseudoinverses of matrices."""
    check("pinv", FLOATING, x)
    return _LINALG.pinv(x, rtol=rtol)


def solve(x1: Tensor, x2: Tensor, /) -> Tensor:
    """Return the solutions of systems of equations. ``x2`` is a vector if it has one dimension, otherwise matrices."""
    x1, x2 = promoted("solve", FLOATING, x1, x2)
    if x2.ndim == 1:
        return _LINALG.solve(x1, x2.unsqueeze(-1)).squeeze(-1)
    if x1.shape[:-1] == x2.shape:  # PyTorch reads such an x2 as vectors, but not with one more dimension
        x2 = x2.unsqueeze(0)
    return _LINALG.solve(x1, x2)


def eig(x: Tensor, /) -> Any:
    """Return eigenvalues and eigenvectors of matrices."""
    check("eig", FLOATING, x)
    return _LINALG.eig(x)


def eigh(x: Tensor, /) -> Any:
    """Return eigenvalues and eigenvectors of Hermitian matrices."""
    check("eigh", FLOATING, x)
    return _LINALG.eigh(x)


def eigvals(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of matrices."""
    check("eigvals", FLOATING, x)
    return _LINALG.eigvals(x)


def eigvalsh(x: Tensor, /) -> Tensor:
    """Return the eigenvalues of Hermitian matrices."""
    check("eigvalsh", FLOATING, x)
    return _LINALG.eigvalsh(x)


def qr(x: Tensor, /, *, mode: Literal["reduced", "complete"] = "reduced") -> Any:
    """Return the QR decompositions of matrices."""
    check("qr", FLOATING, x)
    return _LINALG.qr(x, mode=mode)


def svd(x: Tensor, /, *, full_matrices: bool = True) -> Any:
    """Return the singular value decompositions of matrices."""
    check("svd", FLOATING, x)
    return _LINALG.svd(x, full_matrices=full_matrices)


def svdvals(x: Tensor, /) -> Tensor:
    """Return the singular values of matrices."""
    check("svdvals", FLOATING, x)
    return _LINALG.svdvals(x)


def matrix_norm(x: Tensor, /, *, keepdims: bool = False, ord: float | Literal["fro", "nuc"] | None = "fro") -> Tensor:
    """Return norms of matrices."""
    check("matrix_norm", FLOATING, x)
    return _LINALG.matrix_norm(x, "fro" if ord is None else ord, (-2, -1), keepdims)


def matrix_power(x: Tensor, n: int, /) -> Tensor:
    """Return matrices raised to the integer power ``n``."""
    check("matrix_power", FLOATING, x)
    return _LINALG.matrix_power(x, n)


def matrix_rank(x: Tensor, /, *, rtol: Tensor | float | None = None) -> Tensor:
    """Return the numbers of singular values above ``rtol`` times the largest."""
    check("matrix_rank", FLOATING, x)
    return _LINALG.matrix_rank(x, rtol=rtol)


def vector_norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2) -> Tensor:
    """Return norms of vectors."""
    check("vector_norm", FLOATING, x)
    return reduced(_vector_norm, x, axis, keepdims, ord=ord)


def _vector_norm(x: Tensor, axes: tuple[int, ...], keepdims: bool, ord: float) -> Tensor:
    return _LINALG.vector_norm(x, ord, axes, keepdims)


__all__ = [
    "cholesky", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv", "matmul", "matrix_norm",
    "matrix_power", "matrix_rank", "matrix_transpose", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals",
    "tensordot", "trace", "vecdot", "vector_norm",
]  # fmt: skip
