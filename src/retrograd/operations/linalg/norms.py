"""Norms and functions of matrices: ``matrix_norm``, ``cond``, ``matrix_rank``, ``matrix_power``, ``matrix_exp``."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import dtypes, promotion
from ...core.devices import on_gpu
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import FUNCTIONS, TENSORS, exported, public
from ...dispatch.operand_promotion import broadcast_mismatch
from ...kernels import lapack
from ..creation.conversion import clone
from ..elementwise.rounding import nan_to_num
from ..reductions import sums as _reduce
from ..reductions.extrema import amax, amin
from ..reductions.sums import vector_norm
from ..shape.join import cat
from ..shape.slicing import narrow
from ..shape.views import permute_block, squeeze, unsqueeze
from .checks import check_floating, check_matrix, check_square, check_tensors, linalg_op, scalar_type_name, shape_of
from .eigen_svd import eigvalsh, svdvals
from .matmul import matmul, vdot
from .solve import inv, inv_ex, singular_value_tolerance

F: Any = TENSORS


# -- Norms -----------------------------------------------------------------------------------------------------------


def _cast_wider(name: str, A: Tensor, dtype: Any) -> Tensor:
    """Return ``A`` converted to ``dtype``, or ``A`` itself if ``dtype`` is None.

    Raise RuntimeError if ``dtype`` cannot represent all values of the dtype of ``A``. ``name`` is the name of the
    function in the error message.
    """
    if dtype is None:
        return A
    if promotion.promote_types(A.dtype, dtype) is not dtype:
        raise RuntimeError(
            f"{name}: the dtype of the input ({dtypes.scalar_name(A.dtype)}) should be convertible without narrowing to "
            f"the specified dtype ({dtypes.scalar_name(dtype)})"
        )
    result: Tensor = A.to(dtype)
    return result


@exported("linalg")
def matrix_norm(
    input: Tensor, ord: Any = "fro", dim: Any = (-2, -1), keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """Return the norms of the matrices whose rows and columns are the dimensions ``dim`` of ``input``.

    ``ord`` is "fro" (Frobenius norm), "nuc" (sum of singular values), 2 or -2 (largest or smallest singular value), 1
    or -1 (largest or smallest column sum of absolute values), or inf or -inf (largest or smallest row sum).

    >>> import retrograd as torch
    >>> A = torch.tensor([[3.0, 0.0], [4.0, 0.0]])
    >>> torch.linalg.matrix_norm(A), torch.linalg.matrix_norm(A, 1)
    (tensor(5.), tensor(7.))
    """
    name = "linalg.matrix_norm"
    check_tensors("linalg_matrix_norm", input=input)
    check_matrix(name, input._array)
    check_floating(name, input._array)
    if len(dim) != 2:
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {', '.join(map(str, dim))}")
    ndim = input._array.ndim
    over, beside = (normalize_dim(each, ndim) for each in dim)
    if over == beside:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    if isinstance(ord, str) and ord not in ("fro", "nuc"):
        raise RuntimeError(f"{name}: Order {ord} not supported.")
    if not isinstance(ord, str) and abs(ord) not in (1, 2, math.inf):
        raise RuntimeError(f"{name}: Order {ord:g} not supported.")
    if ord == "fro":
        return vector_norm(_cast_wider(name, input, dtype), 2, (over, beside), keepdim)
    input = _cast_wider(name, input, dtype)
    if ord in ("nuc", 2, -2):
        result = _by_singular_values(input, ord, over, beside, keepdim)
    else:
        if abs(ord) == math.inf:
            over, beside = beside, over
        sums = vector_norm(input, 1, over, keepdim)
        if not keepdim and beside > over:
            beside -= 1
        result = _extreme(ord, sums, beside, keepdim)
    return result


def _extreme(ord: Any, values: Tensor, dim: int, keepdim: bool) -> Tensor:
    """Return the maximum, or if ``ord`` is negative the minimum, of ``values`` along ``dim``; 0 for no elements."""
    if ord > 0 and not values._array.shape[dim]:
        result: Tensor = _reduce.sum(values, dim, keepdim)
    else:
        result = (amax if ord > 0 else amin)(values, dim, keepdim)
    return result


TENSORS.__dict__["matrix_norm"] = matrix_norm  # used by torch.norm(…, "nuc")


def _by_singular_values(A: Tensor, ord: Any, over: int, beside: int, keepdim: bool) -> Tensor:
    ndim = A._array.ndim
    order = (*(axis for axis in range(ndim) if axis not in (over, beside)), over, beside)
    values = svdvals(permute_block(A, order))
    if ord == "nuc":
        result: Tensor = _reduce.sum(values, -1, keepdim)
    else:
        result = _extreme(ord, values, -1, keepdim)
    if not keepdim:
        return result
    result = unsqueeze(result, -1)
    back: Tensor = permute_block(result, tuple(order.index(axis) for axis in range(ndim)))
    return back


@exported("linalg")
def norm(
    input: Tensor, ord: Any = None, dim: Any = None, keepdim: bool = False, *, out: Any = None, dtype: Any = None
) -> Tensor:
    """Return a matrix norm or a vector norm of ``input``, by default the 2-norm of all elements.

    If ``ord`` is a string, the result is a matrix norm, as in ``matrix_norm``. If ``ord`` is a number and two
    dimensions are reduced, it is also a matrix norm. Otherwise the result is a vector norm, as in ``vector_norm``.
    ``dim`` holds the one or two dimensions to reduce. If ``dim`` is None, all dimensions are reduced.
    """
    axes = None if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if axes is not None and len(axes) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(axes)}")
    ndim = input._array.ndim
    if ord is not None and axes is None and ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {ndim}D.")
    if ord is not None and (isinstance(ord, str) or (ndim if axes is None else len(axes)) == 2):
        return matrix_norm(input, ord, (-2, -1) if axes is None else axes, keepdim, dtype=dtype)
    return vector_norm(input, 2 if ord is None else ord, axes, keepdim, dtype=dtype)


@exported("linalg")
def cond(input: Tensor, p: Any = None, *, out: Any = None) -> Tensor:
    """Return the condition number of each matrix of ``input``: its norm times the norm of its inverse.

    ``p`` is the order of the norm, as in ``matrix_norm``. If ``p`` is None, the order is 2.

    >>> import retrograd as torch
    >>> torch.linalg.cond(torch.tensor([[2.0, 0.0], [0.0, 0.5]]))
    tensor(4.)
    """
    x = input._array
    if x.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p not in (None, "fro", "nuc", 1, -1, 2, -2, math.inf, -math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not x.size:
        return wrap(numpy.zeros(x.shape[:-2], x.real.dtype))
    if p in (None, 2, -2):
        values = svdvals(input)
        top, bottom = narrow(values, -1, 0, 1), narrow(values, -1, -1, 1)
        ratio: Tensor = bottom / top if p == -2 else top / bottom
        result = squeeze(ratio, -1)
    else:
        check_square(f"linalg.cond(ord={p if isinstance(p, str) else format(p, 'g')})", x)
        result = _cond_by_inverse(input, p)
    return result


def _cond_by_inverse(A: Tensor, p: Any) -> Tensor:
    if p == "nuc":  # the inverse must exist
        values = svdvals(A)
        return values.sum(-1) * (1 / values).sum(-1)
    inverse, info = inv_ex(A)
    singular = info._array.reshape((*info._array.shape, 1, 1)) != 0
    if on_gpu(singular) or singular.any():
        inverse = FUNCTIONS["masked_fill"](inverse, wrap(singular), math.inf)
    product = matrix_norm(A, p) * matrix_norm(inverse, p)
    result: Tensor = nan_to_num(product, nan=math.inf, posinf=math.inf, neginf=-math.inf)
    return result


@linalg_op("matrix_rank_block")
def matrix_rank_block(np: Any, self: Any, /, size: int, atol: Any, rtol: Any) -> Any:
    """Return the rank of each matrix: the number of its singular values ``self`` (…, k) that exceed a tolerance.

    :func:`singular_value_tolerance` computes the tolerance from ``atol``, ``rtol`` and ``size``, the larger of the
    numbers of rows and columns of a matrix.
    """
    return (
        (self > singular_value_tolerance(np, self, size, atol, rtol)).sum(-1)
        if self.shape[-1]
        else np.zeros(self.shape[:-1], np.int64)
    )


@exported("linalg")
def matrix_rank(
    input: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    """Return the rank of each matrix of ``input``: the number of singular values that exceed a tolerance.

    The tolerance is ``max(atol, rtol * s)``, where s is the largest singular value. If ``atol`` and ``rtol`` are both
    None, ``rtol`` is the machine epsilon times the larger of the numbers of rows and columns. If ``hermitian`` is true,
    the absolute values of the eigenvalues are used as singular values. If ``tol`` is not None, it replaces ``atol``,
    and ``rtol`` is 0.

    >>> import retrograd as torch
    >>> torch.linalg.matrix_rank(torch.tensor([[1.0, 2.0], [2.0, 4.0]]))
    tensor(1)
    """
    x = input._array
    check_matrix("torch.linalg.matrix_rank", x, "input")
    if x.dtype.kind not in "fc":
        raise RuntimeError("This function doesn't handle types other than float and double")
    if tol is not None:
        atol, rtol = tol, 0.0
    atol, rtol = (each._array if isinstance(each, Tensor) else each for each in (atol, rtol))
    detached = input.detach()
    values = eigvalsh(detached).abs() if hermitian else svdvals(detached)
    return matrix_rank_block(values, max(x.shape[-2:]), atol, rtol)


# -- Products of vectors ---------------------------------------------------------------------------------------------


@exported("linalg")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Any = None) -> Tensor:
    """Return the dot product of ``conj(x)`` and ``y`` along the dimension ``dim``.

    >>> import retrograd as torch
    >>> torch.linalg.vecdot(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    check_floating("linalg.vecdot", x._array)
    if x._array.dtype != y._array.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{scalar_type_name(x._array)} and y of type {scalar_type_name(y._array)} instead"
        )
    if x._array.ndim == y._array.ndim == 1:
        normalize_dim(dim, 1)
        return vdot(x, y)
    error = broadcast_mismatch(x._array.shape, y._array.shape)
    if error is not None:
        raise error
    return _reduce.sum(x.conj() * y, dim)


@exported("linalg")
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return Vandermonde matrices: the powers 0 to ``N - 1`` of ``x`` along a new last dimension.

    If ``N`` is None, ``N`` is the size of the last dimension of ``x``.
    """
    size = N if N is not None else (x._array.shape[-1] if x._array.ndim else 0)
    if size <= 1:
        raise RuntimeError("N must be greater than 1.")
    x = x if x._array.ndim else unsqueeze(x, 0)
    powers = unsqueeze(x, -1).expand((*x._array.shape, size - 1)).cumprod(-1)
    return cat([narrow(powers, -1, 0, 1).new_ones((*x._array.shape, 1)), powers], -1)


@public(name="vander", method=False)
def old_vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the Vandermonde matrix of the vector ``x``: row i has ``N`` powers of ``x[i]``, in descending order.

    If ``N`` is None, ``N`` is the number of elements of ``x``. If ``increasing`` is true, the powers are in ascending
    order.

    >>> import retrograd as torch
    >>> torch.vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x._array.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    count = x._array.shape[0] if N is None else N
    if count < 0:
        raise RuntimeError("N must be non-negative.")
    result = x.new_empty((x._array.shape[0], count), dtype=promotion.promote_types(x.dtype, dtypes.int64))
    if count:
        result.select(1, 0).fill_(1)
    if count > 1:
        repeated = unsqueeze(x, 1).expand(x._array.shape[0], count - 1)
        narrow(result, 1, 1, count - 1).copy_(FUNCTIONS["cumprod"](repeated, 1))
    return result if increasing else result.flip(1)


# -- Powers and the exponential --------------------------------------------------------------------------------------


@exported("linalg")
@public()
def matrix_power(input: Tensor, n: int, *, out: Any = None) -> Tensor:
    """Return the ``n``-th power of ``input``, a square matrix or a batch of them.

    If ``n`` is negative, return the power ``-n`` of the inverse of ``input``.
    """
    check_square("linalg.matrix_power", input._array)
    result = _power(input, n)
    return result


def _power(A: Tensor, n: int) -> Tensor:
    if n == 0:
        shape = A._array.shape
        identity: Tensor = clone(A).copy_(FUNCTIONS["eye"](shape[-1], dtype=A.dtype, device=A.device))
        return identity
    if n < 0:
        A, n = inv(A), -n
        if n == 1:
            return A
    elif n == 1:
        return clone(A)
    if n == 2:
        return matmul(A, A)
    if n == 3:
        return matmul(matmul(A, A), A)
    result: Tensor | None = None
    power: Tensor | None = None
    while n:
        power = A if power is None else matmul(power, power)
        if n & 1:
            result = power if result is None else matmul(result, power)
        n >>= 1
    assert result is not None
    return result


@linalg_op("matrix_exp_block", "LinalgMatrixExpBackward0", opmath=True)
def matrix_exp_block(np: Any, self: Any, /) -> Any:
    """Return the matrix exponential of each square matrix of ``self``."""
    check_square("linalg.matrix_exp", self)
    check_floating("linalg.matrix_exp", self)
    return lapack.exponential(np, self)


def _exponential_rule(F: Any, g: Any, self: Any) -> Any:
    # The derivative of a matrix function at A in direction G is the upper right block of the function of [[A G] [0 A]].
    turned = F.turned_fast(self)
    *batch, n = shape_of(self)[:-1]
    whole = (*batch, 2 * n, 2 * n)
    last = len(whole) - 1
    top = F.padded_to(turned, whole)
    beside = F.slice_backward(F.padded_to(g, (*batch, 2 * n, n)), whole, last, n, 2 * n, 1)
    below = F.slice_backward(turned, (*batch, n, 2 * n), last, n, 2 * n, 1)
    below = F.slice_backward(below, whole, last - 1, n, 2 * n, 1)
    return F.slice(F.slice(F.matrix_exp_block(top + beside + below), last, n, 2 * n, 1), last - 1, 0, n, 1)


matrix_exp_block.derivative(self=_exponential_rule)


@exported("linalg")
@public()
def matrix_exp(input: Tensor) -> Tensor:
    """Return the matrix exponential of ``input``, a square matrix or a batch of them.

    >>> import retrograd as torch
    >>> torch.linalg.matrix_exp(torch.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    result: Tensor = matrix_exp_block(input)
    return result


@exported("linalg")
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return a view of the diagonals of the matrices in the dimensions ``dim1`` and ``dim2`` of ``A``.

    ``offset`` selects the diagonal: 0 is the main diagonal, positive numbers are above it, negative numbers below.
    """
    result: Tensor = FUNCTIONS["diagonal"](A, offset, dim1, dim2)
    return result
