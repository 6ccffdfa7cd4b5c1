"""Inverses, determinants and linear systems: ``inv``, ``solve``, ``det``, ``slogdet``, ``pinv``, ``lstsq``, …."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...core.devices import on_gpu
from ...core.tensor import Tensor
from ...dispatch.declare import TENSORS, exported, public, rule_function, shared
from ...dispatch.operand_promotion import broadcast_mismatch
from ...dispatch.return_types import named
from ...dispatch.transform_tensor import check_elements
from ...kernels import lapack
from ..reductions.scan import product_of_others
from ..shape.join import where_
from ..shape.views import permute_block, reshape
from .checks import (
    LinAlgError,
    add_gradients,
    array_of,
    as_columns,
    as_rows,
    check_compatible,
    check_floating,
    check_implemented,
    check_matrix,
    check_square,
    check_tensors,
    codes_on_cpu,
    first_failure,
    linalg_op,
    scalar_type_name,
    shape_of,
    triangle,
)
from .matmul import matmul

F: Any = TENSORS
rule_function("matmul", numpy.matmul, matmul)


# -- Inverses --------------------------------------------------------------------------------------------------------


def _check_not_singular(name: str, info: Any) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[0]}The diagonal element {failed[1]} is zero, the inversion could not be completed because "
            "the input matrix is singular."
        )


def _check_inverse(x: Any) -> None:
    check_square("linalg.inv", x)
    check_floating("linalg.inv", x, short=False)


@linalg_op("inv", "LinalgInvExBackward0")
def inv_block(np: Any, self: Any, /, name: str = "linalg.inv") -> Any:
    """Return the inverse of each square matrix of ``self``. Raise LinAlgError if a matrix is singular.

    ``name`` is the name of the function in the error message.
    """
    _check_inverse(self)
    result, info = lapack.inverse(np, self)
    _check_not_singular(name, info)
    return result


@linalg_op("inv_loose", "LinalgInvExBackward0")
def inv_loose(np: Any, self: Any, /) -> Any:
    """Return the inverse of each square matrix of ``self``, without an error for a singular matrix.

    The result for a singular matrix has infinite or nan elements.
    """
    return lapack.inverse(np, self)[0]


@linalg_op("inv_ex_block", "LinalgInvExBackward0", outputs=("inverse", "info"), differentiable=1)
def inv_ex_block(np: Any, self: Any, /) -> Any:
    """Return the inverse of each square matrix of ``self``, and ``info``.

    ``info`` has one integer per matrix: the position of the first zero pivot in the LU factorization, counted from 1,
    or 0 if no pivot is zero.
    """
    _check_inverse(self)
    return lapack.inverse(np, self)


def _inverse_rule(F: Any, g: Any, inverse: Any) -> Any:
    turned = F.turned_fast(inverse)
    return -F.matmul(turned, F.matmul(g, turned))


for _block in (inv_block, inv_loose):
    _block.derivative(self=lambda F, g, out: _inverse_rule(F, g, out))
inv_ex_block.derivative(self=_inverse_rule)
_InvEx = named("linalg_inv_ex", ("inverse", "info"))


@exported("linalg")
def inv(A: Tensor, *, out: Any = None) -> Tensor:
    """Return the inverse of ``A``, a square matrix or a batch of them. Raise LinAlgError if a matrix is singular.

    >>> import retrograd as torch
    >>> torch.linalg.inv(torch.tensor([[1.0, 2.0], [0.0, 4.0]]))
    tensor([[ 1.0000, -0.5000],
            [ 0.0000,  0.2500]])
    """
    return inv_block(A)


@public(name="inverse")
def inverse(input: Tensor, *, out: Any = None) -> Tensor:
    """Return the inverse of ``input``, a square matrix or a batch of them.

    Raise LinAlgError if a matrix is singular.
    """
    return inv(input)


@exported("linalg")
def inv_ex(A: Tensor, *, check_errors: bool = False, out: Any = None) -> Any:
    """Return the inverse of ``A``, a square matrix or a batch of them, and ``info``.

    ``info`` is the position of the first zero pivot in the LU factorization, counted from 1, or 0 if no pivot is zero.
    If ``check_errors`` is true, raise LinAlgError instead of returning a nonzero ``info``.

    >>> import retrograd as torch
    >>> inverse, info = torch.linalg.inv_ex(torch.tensor([[1.0, 2.0], [0.0, 0.0]]))
    >>> info  # U[1, 1] of the LU factorization is 0
    tensor(2, dtype=torch.int32)
    """
    result = _InvEx(inv_ex_block(A))
    if check_errors:
        check_elements(codes_on_cpu(result.info), _check_not_singular, "linalg.inv_ex")
    return result


# -- Linear systems --------------------------------------------------------------------------------------------------


def _solution(np: Any, a: Any, b: Any, left: bool, vector: bool) -> tuple[Any, ...]:
    right = b[..., None] if vector else b
    result, factors, pivots, info = lapack.solve_system(np, a, right if left else right.swapaxes(-1, -2), not left)
    return _with_pytorch_strides(np, result, left, vector), factors, pivots, info


def _with_pytorch_strides(np: Any, found: Any, left: bool, vector: bool) -> Any:
    """Return ``found``, the solution of a linear system, in the shape and memory layout of PyTorch's result.

    If ``vector`` is true, ``found`` has one column, and this column is returned as a vector. Otherwise, if ``left`` is
    false, ``found`` is the transpose of the solution, and is transposed back.
    """
    if vector:
        found = found[..., 0]
        return lapack.column_major(np, found) if found.ndim > 1 else found
    return found if left else found.swapaxes(-1, -2).copy()


def _check_solvable(name: str, info: Any) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(f"torch.{name}: {failed[0]}The solver failed because the input matrix is singular.")


@linalg_op(
    "solve_block", "LinalgSolveExBackward0", outputs=("result", "LU", "pivots", "info"), differentiable=1, vmap=(2, 2),
)  # fmt: skip
def solve_block(np: Any, self: Any, B: Any, /, left: bool, vector: bool) -> Any:
    """Return the tuple (X, LU, pivots, info): the solution X of ``self @ X = B``, and the LU factorization of ``self``.

    If ``left`` is false, the equation is ``X @ self = B``. If ``vector`` is true, ``B`` is a vector or a batch of
    vectors. For a singular matrix, X has infinite or nan elements, and ``info`` is the position of the first zero
    pivot, counted from 1. Otherwise ``info`` is 0.
    """
    check_square("linalg.solve", self)
    check_floating("linalg.solve", self)
    if self.dtype != B.dtype:
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {scalar_type_name(self)} and B of type "
            f"{scalar_type_name(B)} instead"
        )
    check_implemented("lu_cpu", self)
    return _solution(np, self, B, left, vector)


@shared
def _solve_rule(F: Any, g: Any, self: Any, result: Any, LU: Any, pivots: Any, left: bool, vector: bool) -> Any:
    if vector:
        g, result = as_columns(F, g), as_columns(F, result)
    if F is not TENSORS and LU.size:
        slope = F.lu_solve_block(LU, pivots, g, left, True)
    else:  # the factors have no derivative with respect to the matrix
        slope = F.solve_block(F.turned_fast(self), g, left, False)[0]
    turned = F.turned_fast(result)
    by_matrix = -(F.matmul(slope, turned) if left else F.matmul(turned, slope))
    return by_matrix, F.reshape(slope, shape_of(slope)[:-1]) if vector else slope


solve_block.derivative(self=_solve_rule, B=_solve_rule)
_SolveEx = named("linalg_solve_ex", ("result", "info"))


def is_vector(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Return whether B, the right-hand side of ``A X = B``, is a vector or a batch of vectors.

    ``a`` and ``b`` are the shapes of A and B. The result is true if B has one dimension. It is also true if the shape
    of B is that of A without the last dimension.
    """
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])


def _check_right_side(A: Tensor, B: Tensor, left: bool) -> bool:
    """Return whether ``B``, the right-hand side of a linear system, is a vector or a batch of vectors.

    Raise RuntimeError if the shapes of ``A`` and ``B`` do not fit in the system ``A @ X = B``, or ``X @ A = B`` if
    ``left`` is false.
    """
    check_tensors("linalg_solve", A=A, B=B)
    a, b = A._array.shape, B._array.shape
    if A._array.dtype != B._array.dtype or len(a) < 2 or a[-1] != a[-2]:
        return is_vector(a, b)  # the kernel raises the error
    vector = is_vector(a, b)
    shape = (*b, 1) if vector else b
    check_compatible("linalg.solve", a, shape, left)
    return vector


@exported("linalg")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Any = None) -> Tensor:
    """Return the solution X of ``A @ X = B``, or ``X @ A = B`` if ``left`` is false.

    ``A`` has the shape (…, n, n). ``B`` is a matrix (…, n, k), a vector (n,) or a batch of vectors (…, n). Raises
    LinAlgError if ``A`` is singular.

    >>> import retrograd as torch
    >>> torch.linalg.solve(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    tensor([1.0000, 0.5000])
    """
    result, _, _, info = solve_block(A, B, left, _check_right_side(A, B, left))
    check_elements(info, _check_solvable, "linalg.solve")
    return result


@exported("linalg")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Return the solution ``solve(A, B)`` of a linear system, and ``info``.

    ``info`` is the position of the first zero pivot of ``A``, counted from 1, or 0 if no pivot is zero. If
    ``check_errors`` is true, raise LinAlgError instead of returning a nonzero ``info``. The system is ``A @ X = B``, or
    ``X @ A = B`` if ``left`` is false.

    >>> import retrograd as torch
    >>> result, info = torch.linalg.solve_ex(torch.tensor([[2.0, 0.0], [0.0, 4.0]]), torch.tensor([2.0, 2.0]))
    >>> result, info
    (tensor([1.0000, 0.5000]), tensor(0, dtype=torch.int32))
    """
    result, _, _, info = solve_block(A, B, left, _check_right_side(A, B, left))
    named_result = _SolveEx((result, info))
    if check_errors:
        check_elements(codes_on_cpu(named_result.info), _check_solvable, "linalg.solve_ex")
    return named_result


# -- Triangular matrices ---------------------------------------------------------------------------------------------


@linalg_op("solve_triangular_block", "LinalgSolveTriangularBackward0", vmap=(2, 2))
def solve_triangular_block(np: Any, self: Any, B: Any, /, upper: bool, left: bool, unit: bool) -> Any:
    """Return the solution X of ``self @ X = B``, or ``X @ self = B`` if ``left`` is false, for triangular ``self``.

    If ``upper`` is true, only the upper triangle of ``self`` is read, otherwise only the lower triangle. If ``unit`` is
    true, the diagonal is not read, and its elements count as 1.
    """
    common = np.result_type(self.dtype, B.dtype)
    a, b = self.astype(common, copy=False), B.astype(common, copy=False)
    check_implemented("triangular_solve_cpu", a)
    return lapack.solve_triangular(np, a, b, upper, left, unit)


def _triangular_right(F: Any, g: Any, self: Any, upper: bool, left: bool, unit: bool) -> Any:
    return F.solve_triangular_block(F.turned_fast(self), g, not upper, left, unit)


def _triangular_matrix(F: Any, g: Any, self: Any, out: Any, upper: bool, left: bool, unit: bool) -> Any:
    slope = F.solve_triangular_block(F.turned_fast(self), g, not upper, left, unit)
    turned = F.turned_fast(out)
    result = F.matmul(slope, turned) if left else F.matmul(turned, slope)
    return -triangle(F, result, upper, unit)


solve_triangular_block.derivative(self=_triangular_matrix, B=_triangular_right)


@exported("linalg")
def solve_triangular(
    input: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Any = None
) -> Tensor:
    """Return the solution X of ``input @ X = B``, or ``X @ input = B`` if ``left`` is false, for triangular ``input``.

    If ``upper`` is true, only the upper triangle of ``input`` is read, otherwise only the lower triangle. If
    ``unitriangular`` is true, the diagonal is not read, and its elements count as 1.

    >>> import retrograd as torch
    >>> A = torch.tensor([[2.0, 1.0], [0.0, 4.0]])
    >>> torch.linalg.solve_triangular(A, torch.tensor([[5.0], [4.0]]), upper=True)
    tensor([[2.],
            [1.]])
    """
    check_tensors("linalg_solve_triangular", input=input, B=B)
    a, b = input._array, B._array
    check_matrix("linalg.solve_triangular", a)
    check_matrix("linalg.solve_triangular", b, "B")
    check_square("linalg.solve_triangular", a)
    check_compatible("linalg.solve_triangular", a.shape, b.shape, left)
    return solve_triangular_block(input, B, upper, left, unitriangular)


@linalg_op(
    "triangular_solve_block", "TriangularSolveBackward0", outputs=("solution", "cloned_coefficient"), vmap=(2, 2),
)  # fmt: skip
def triangular_solve_block(np: Any, self: Any, A: Any, /, upper: bool, transpose: bool, unit: bool) -> Any:
    """Return the solution X of ``A @ X = self`` for triangular ``A``, and a copy of ``A``.

    PyTorch returns this copy as ``cloned_coefficient``. If ``transpose`` is true, the equation is ``Aᵀ @ X = self``. If
    ``upper`` is true, only the upper triangle of ``A`` is read, otherwise only the lower triangle. If ``unit`` is true,
    the diagonal is not read, and its elements count as 1.
    """
    check_implemented("triangular_solve_cpu", self)
    turned = A.swapaxes(-1, -2) if transpose else A
    result = lapack.solve_triangular(np, turned, self, upper != transpose, True, unit)
    return result, lapack.column_major(np, np.broadcast_to(A, (*result.shape[:-2], *A.shape[-2:])).copy())


def _old_triangular_right(F: Any, g: Any, A: Any, upper: bool, transpose: bool, unit: bool) -> Any:
    slope, _ = g
    if slope is None:
        return None
    matrix = F.conj_physical(A) if transpose else F.turned_fast(A)
    return F.solve_triangular_block(matrix, slope, upper == transpose, True, unit)


def _old_triangular_matrix(F: Any, g: Any, A: Any, solution: Any, upper: bool, transpose: bool, unit: bool) -> Any:
    slope, copied = g
    if slope is None:
        return copied
    slope = _old_triangular_right(F, g, A, upper, transpose, unit)
    if transpose:
        result = F.matmul(F.conj_physical(solution), F.conj_physical(F.turned_fast(slope)))
    else:
        result = F.matmul(slope, F.turned_fast(solution))
    return add_gradients(-triangle(F, result, upper, unit), copied)


triangular_solve_block.derivative(self=_old_triangular_right, A=_old_triangular_matrix)
_TriangularSolve = named("triangular_solve", ("solution", "cloned_coefficient"))


def _old_sizes(name: str, a: Any, b: Any) -> None:
    check_square("", a)
    if a.shape[-1] != b.shape[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {a.shape[-1]} by {a.shape[-1]} but each b matrix is "
            f"{b.shape[-2]} by {b.shape[-1]}"
        )


@public()
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: Any = None,
) -> Any:
    """Return the solution X of ``A @ X = input`` for triangular ``A``, and a copy of ``A``.

    PyTorch returns this copy as ``cloned_coefficient``. If ``transpose`` is true, the equation is ``Aᵀ @ X = input``.
    If ``upper`` is true, only the upper triangle of ``A`` is read, otherwise only the lower triangle. If
    ``unitriangular`` is true, the diagonal is not read, and its elements count as 1.
    """
    for name, x in (("b", input._array), ("A", A._array)):
        if x.ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.ndim} dimensions "
                "instead"
            )
    _old_sizes("triangular_solve", A._array, input._array)
    return _TriangularSolve(triangular_solve_block(input, A, upper, transpose, unitriangular))


# -- From a Cholesky factor ------------------------------------------------------------------------------------------


@linalg_op("cholesky_solve_block", "CholeskySolveBackward0", vmap=(2, 2))
def cholesky_solve_block(np: Any, self: Any, factor: Any, /, upper: bool) -> Any:
    """Return the solution X of ``L Lᴴ X = self``, where ``factor`` is the lower triangular Cholesky factor L.

    If ``upper`` is true, ``factor`` is the upper triangular Cholesky factor U, and the equation is ``Uᴴ U X = self``.
    """
    check_implemented("cholesky_solve_cpu", self)
    return lapack.cholesky_solve(np, self, factor, upper)


def _cholesky_solve_factor(F: Any, g: Any, factor: Any, out: Any, upper: bool) -> Any:
    product = F.matmul(F.cholesky_solve_block(g, factor, upper), F.turned_fast(out))
    product = product + F.turned_fast(product)
    return -F.matmul(factor, product) if upper else -F.matmul(product, factor)


cholesky_solve_block.derivative(
    self=lambda F, g, factor, upper: F.cholesky_solve_block(g, factor, upper), factor=_cholesky_solve_factor
)


@public()
def cholesky_solve(input: Tensor, input2: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """Return the solution X of ``A @ X = input``, where ``input2`` is the Cholesky factor of A.

    If ``upper`` is true, the Cholesky factor is upper triangular, otherwise lower triangular.
    """
    b, factor = input._array, input2._array
    for name, x in (("b", b), ("u", factor)):
        if x.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead")
    if b.dtype != factor.dtype:
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {scalar_type_name(b)} and "
            f"A of type {scalar_type_name(factor)} "
            "instead."
        )
    _old_sizes("cholesky_solve", factor, b)
    return cholesky_solve_block(input, input2, upper)


@linalg_op("cholesky_inverse_block", "CholeskyInverseBackward0")
def cholesky_inverse_block(np: Any, self: Any, /, upper: bool) -> Any:
    """Return the inverse of the matrix whose Cholesky factor is ``self``.

    If ``upper`` is true, the factor is upper triangular, otherwise lower triangular.
    """
    check_square("cholesky_inverse", self)
    check_implemented("cholesky_inverse_out_cpu", self)
    identity = np.broadcast_to(np.eye(self.shape[-1], dtype=self.dtype), self.shape)
    return lapack.cholesky_solve(np, identity, self, upper)


def _cholesky_inverse_rule(F: Any, g: Any, self: Any, out: Any, upper: bool) -> Any:
    product = F.matmul(out, F.matmul(g + F.turned_fast(g), out))
    return -F.matmul(self, product) if upper else -F.matmul(product, self)


cholesky_inverse_block.derivative(self=_cholesky_inverse_rule)


@public()
def cholesky_inverse(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """Return the inverse of the matrix whose Cholesky factor is ``input``.

    If ``upper`` is true, the factor is upper triangular, otherwise lower triangular.
    """
    return cholesky_inverse_block(input, upper)


# -- Determinants ----------------------------------------------------------------------------------------------------


@linalg_op("det_block", "LinalgDetBackward0")
def det_block(np: Any, self: Any, /) -> Any:
    """Return the determinant of each square matrix of ``self``."""
    check_square("linalg.det", self)
    check_floating("linalg.det", self)
    check_implemented("lu_cpu", self)
    return lapack.determinant(np, self)


det_block.derivative(self=lambda F, g, self: F.per_matrix(g) * F.cofactors(self))


@linalg_op("cofactors", opmath=True)
def cofactors(np: Any, self: Any, /) -> Any:
    """Return the conjugated cofactors of each square matrix of ``self``: the gradient of the determinant of the matrix.

    If all matrices are invertible, the cofactors are computed from the inverses. Otherwise, and on a GPU, they are
    computed from the singular value decomposition, with the products of all singular values except one.
    """
    determinant = None if on_gpu(self) else lapack.determinant(np, self)
    if determinant is not None and bool(
        ((determinant != 0) & np.isfinite(determinant)).all()
    ):  # both from one LU factorization: a small pivot cancels
        return np.conj(determinant)[..., None, None] * lapack.adjoint_of(lapack.inverse(np, self)[0])
    finite = np.isfinite(self).all(axis=(-2, -1))
    if determinant is not None and not finite.all():  # the decomposition does not converge
        found = np.full(self.shape, np.nan, self.dtype)
        found[finite] = cofactors.op.kernel(np, self[finite])
        return found
    u, s, vh = np.linalg.svd(self)
    others = product_of_others.op.kernel(np, s, s.ndim - 1)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return np.conj(phase)[..., None, None] * np.matmul(u * others[..., None, :], vh)


cofactors.derivative(self=lambda F, g, self: F.cofactors_backward(g, self))


@linalg_op("cofactors_backward", opmath=True, event="retrograd::cofactors_backward")
def cofactors_backward(np: Any, slope: Any, self: Any, /) -> Any:
    """Return the gradient of ``cofactors`` with respect to its input ``self``.

    ``slope`` is the gradient of the result of ``cofactors``. The gradient is computed from the singular vectors, and
    from the products of all singular values except two.
    """
    finite = np.isfinite(self).all(axis=(-2, -1))
    if not on_gpu(self) and not finite.all():
        found = np.full(self.shape, np.nan, self.dtype)
        found[finite] = cofactors_backward.op.kernel(np, slope[finite], self[finite])
        return found
    u, s, vh = np.linalg.svd(self)
    size = s.shape[-1]
    apart = ~np.eye(size, dtype=bool)
    others = product_of_others.op.kernel(np, np.where(apart, s[..., None, :], 1), s.ndim) * apart
    turned = lapack.adjoint_of(np.matmul(lapack.adjoint_of(u), np.matmul(slope, lapack.adjoint_of(vh))))
    inner = -others * turned
    sums = np.matmul(others, np.einsum("...ii->...i", turned)[..., None])[..., 0]
    np.einsum("...ii->...i", inner)[...] = sums
    phase = np.conj(np.linalg.det(u) * np.linalg.det(vh))
    return phase[..., None, None] * np.matmul(u, np.matmul(inner, vh))


def _third_derivative(F: Any, h: Any, g: Any, self: Any) -> Any:
    """Return the gradient of ``cofactors_backward(g, self)`` with respect to ``self``.

    This is the third derivative of the determinant. ``h`` is the gradient of the result of ``cofactors_backward``. The
    matrices ``self`` must be invertible. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    inverse = F.inv_loose(self)
    turned = F.turned_fast(inverse)
    first, second = F.matmul(inverse, g), F.matmul(inverse, h)
    trace = F.per_matrix(F.trace_of_product(turned, g))
    other = F.per_matrix(F.trace_of_product(turned, h))
    both = F.per_matrix(F.trace_of_product(F.turned_fast(first), second))
    pairs = F.matmul(first, second) + F.matmul(second, first) - trace * second - other * first
    result = F.matmul(pairs, inverse) + (trace * other - both) * inverse
    return F.turned_fast(F.per_matrix(F.det_block(self)) * result)


cofactors_backward.derivative(
    slope=lambda F, g, self: F.cofactors_backward(g, self),
    self=lambda F, g, slope, self: _third_derivative(F, g, slope, self),
)


@public()
def det(input: Tensor, *, out: Any = None) -> Tensor:
    """Return the determinant of ``input``, a square matrix or a batch of them."""
    return det_block(input)


@exported("linalg", "det")
def linalg_det(A: Tensor, *, out: Any = None) -> Tensor:
    """Return the determinant of ``A``, a square matrix or a batch of them."""
    return det(A)


@linalg_op("slogdet_block", "LinalgSlogdetBackward0", outputs=("sign", "logabsdet", "LU", "pivots"), differentiable=2)
def slogdet_block(np: Any, self: Any, /) -> Any:
    """Return the sign of the determinant, the logarithm of its absolute value, and the LU factorization.

    The result is the tuple (sign, logarithm, LU, pivots) for the square matrices ``self``. LU holds L and U in one
    matrix, and the pivots are LAPACK's.
    """
    check_square("linalg.slogdet", self)
    check_floating("linalg.slogdet", self, short=False)
    return lapack.log_determinant(np, self)


def _slogdet_rule(F: Any, g: Any, self: Any, sign: Any, LU: Any, pivots: Any) -> Any:
    # A real sign is piecewise constant; the phase of a complex one changes with the imaginary part of tr(A⁻¹ dA).
    by_sign, by_log = g[:2]
    turning = None
    if by_sign is not None and array_of(by_sign).dtype.kind == "c":
        turning = F.imag_of(F.conj_physical(by_sign) * sign) * -1j
    slope = add_gradients(by_log, turning)
    if slope is None:
        return None
    if F is not TENSORS and LU.size:
        n = shape_of(self)[-1]
        return F.lu_solve_block(LU, pivots, F.per_matrix(slope) * F.identity_like(self, n, n), True, True)
    return F.per_matrix(slope) * F.turned_fast(F.inv_loose(self))


slogdet_block.derivative(self=_slogdet_rule)
_LinalgSlogdet = named("linalg_slogdet", ("sign", "logabsdet"))
_Slogdet = named("slogdet", ("sign", "logabsdet"))


@public()
def slogdet(input: Tensor, *, out: Any = None) -> Any:
    """Return the sign of the determinant of ``input``, and the logarithm of its absolute value.

    ``input`` is a square matrix or a batch of them.
    """
    return _Slogdet(slogdet_block(input)[:2])


@exported("linalg", "slogdet")
def linalg_slogdet(A: Tensor, *, out: Any = None) -> Any:
    """Return the sign of the determinant of ``A``, and the logarithm of its absolute value.

    ``A`` is a square matrix or a batch of them.
    """
    return _LinalgSlogdet(slogdet_block(A)[:2])


@public()
def logdet(input: Tensor) -> Tensor:
    """Return the logarithm of the determinant of ``input``, a square matrix or a batch of them.

    For a real matrix with a negative determinant, the result is nan.
    """
    check_square("logdet", input._array)
    check_floating("logdet", input._array)
    sign, log = slogdet_block(input)[:2]
    result: Tensor = sign.log() + log if input.is_complex() else where_(sign == -1, math.nan, log)
    return result


# -- Pseudoinverses and least squares --------------------------------------------------------------------------------


def singular_value_tolerance(np: Any, values: Any, size: int, atol: Any, rtol: Any) -> Any:
    """Return, for each matrix, the tolerance up to which its singular values count as zero.

    ``values`` (…, k) are the singular values, and the result has the shape (…, 1). The tolerance is
    ``max(atol, rtol * s)``, where s is the largest singular value. ``size`` is the larger of the numbers of rows and
    columns of a matrix.

    If ``atol`` is None, it is 0. If ``rtol`` is None, it is 0 where ``atol`` is positive, otherwise the machine epsilon
    times ``size``.
    """
    if rtol is None:
        relative = float(np.finfo(values.dtype).eps) * size
        rtol = relative if atol is None else np.where(np.asarray(atol) > 0, 0.0, relative)
    top = np.amax(values, axis=-1) if values.shape[-1] else np.zeros(values.shape[:-1], values.dtype)
    return np.maximum(np.asarray(0.0 if atol is None else atol), np.asarray(rtol) * top)[..., None]


@linalg_op("pinv_block", "LinalgPinvBackward0")
def pinv_block(np: Any, self: Any, /, atol: Any, rtol: Any, hermitian: bool) -> Any:
    """Return the Moore-Penrose pseudoinverse of each matrix of ``self``.

    Singular values up to a tolerance count as zero. ``singular_value_tolerance`` computes the tolerance from ``atol``
    and ``rtol``. If ``hermitian`` is true, eigenvalues are used instead of singular values.
    """
    if not self.size:
        return np.zeros((*self.shape[:-2], self.shape[-1], self.shape[-2]), self.dtype)
    if hermitian:
        check_square("linalg.eigh", self)
        values, vectors = np.linalg.eigh(self)
        left, right, sizes = vectors, lapack.adjoint_of(vectors), np.abs(values)
    else:
        u, values, vh = np.linalg.svd(self, full_matrices=False)
        left, right, sizes = lapack.adjoint_of(vh), lapack.adjoint_of(u), values
    keep = sizes > singular_value_tolerance(np, sizes, max(self.shape[-2:]), atol, rtol)
    inverse = np.where(keep, 1 / np.where(keep, values, 1), 0).astype(values.dtype)
    return np.matmul(left * inverse[..., None, :], right)


def _pinv_gradient(F: Any, g: Any, self: Any, found: Any) -> Any:
    """Return the gradient of the pseudoinverse of each matrix with respect to the matrices ``self``.

    ``found`` holds the pseudoinverses, and ``g`` is the gradient of ``found``. The formula is that of Golub and Pereyra
    (1973). ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    turned = F.turned_fast(found)
    slope = F.turned_fast(g)
    first = F.matmul(slope, found)
    second = F.matmul(found, slope)
    beside = F.matmul(first - F.matmul(self, F.matmul(found, first)), turned)
    below = F.matmul(turned, second - F.matmul(F.matmul(second, found), self))
    return beside + below - F.matmul(turned, F.matmul(g, turned))


pinv_block.derivative(self=lambda F, g, self, out: _pinv_gradient(F, g, self, out))


def _array_or_number(x: Any) -> Any:
    return x._array if isinstance(x, Tensor) else x


@exported("linalg")
def pinv(
    input: Tensor, rcond: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None, out: Any = None
) -> Tensor:
    """Return the Moore-Penrose pseudoinverse of ``input``, a matrix or a batch of them.

    Singular values up to a tolerance count as zero. The tolerance is ``max(atol, rtol * s)``, where s is the largest
    singular value. If ``atol`` and ``rtol`` are both None, ``rtol`` is the machine epsilon times the larger of the
    numbers of rows and columns. ``rcond`` is an older name of ``rtol``. If ``hermitian`` is true, eigenvalues are used
    instead of singular values, and only the lower triangle of ``input`` is read.

    >>> import retrograd as torch
    >>> torch.linalg.pinv(torch.tensor([[2.0, 0.0], [0.0, 0.0]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    check_tensors("linalg_pinv", input=input)
    x = input._array
    if x.ndim < 2 or x.dtype.kind not in "fc":
        raise RuntimeError(
            f"linalg.pinv({scalar_type_name(x)}{{{list(x.shape)}}}): expected a tensor with 2 or more dimensions of "
            "float, double, "
            "cfloat or cdouble types"
        )
    return pinv_block(input, _array_or_number(atol), _array_or_number(rcond if rtol is None else rtol), hermitian)


@public()
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """Return the Moore-Penrose pseudoinverse of ``input``, a matrix or a batch of them.

    Singular values up to ``rcond`` times the largest singular value count as zero.
    """
    return pinv(input, rcond)


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


@linalg_op("lstsq_block", "LinalgLstsqBackward0", outputs=("solution", "residuals", "rank", "singular_values"),
       differentiable=2, vmap="slices")  # fmt: skip
def lstsq_block(np: Any, self: Any, B: Any, /, rcond: float, driver: str, vector: bool) -> Any:
    """Return ``(X, residuals, rank, singular values)`` for the X that minimizes ``|self @ X - B|``.

    The residuals are squared. Singular values up to ``rcond`` times the largest one count as zero. ``driver`` is the
    name of the LAPACK routine. If ``vector`` is true, ``B`` is a vector or a batch of vectors. Some results are empty,
    depending on ``driver``: see ``lstsq``.
    """
    right = B[..., None] if vector else B
    result, rank, values = lapack.least_squares(np, self, right, rcond, driver)
    n, m = self.shape[-2:]
    nothing = np.zeros(0, values.dtype)
    left = nothing
    if n > m and driver != "gelsy" and bool((rank == m).all() or driver == "gels"):
        off = np.matmul(self, result[..., :m, :]) - right
        left = np.add.reduce((off * off.conj()).real, axis=-2)
        left = left[..., 0] if vector and left.ndim > 1 else left
    solution = result[..., :m, :]
    return (
        solution[..., 0] if vector else solution,
        left,
        np.zeros(0, np.int64) if driver == "gels" else rank,
        values if driver in ("gelsd", "gelss") else nothing,
    )


def _lstsq_rule(which: str) -> Callable[..., Any]:
    def rule(F: Any, g: Any, self: Any, B: Any, solution: Any, vector: bool) -> Any:
        slope, left = g[0], g[1]
        if vector:
            B, solution = as_columns(F, B), as_columns(F, solution)
            slope = None if slope is None else as_columns(F, slope)
        result = None
        if slope is not None:
            inverse = F.pinv_block(self, None, None, False)
            if which == "self":
                result = _pinv_gradient(F, F.matmul(slope, F.turned_fast(B)), self, inverse)
            else:
                result = F.matmul(F.turned_fast(inverse), slope)
        if left is not None and shape_of(left) != (0,):
            off = (F.matmul(self, solution) - B) * as_rows(F, left) * 2
            result = add_gradients(result, F.matmul(off, F.turned_fast(solution)) if which == "self" else -off)
        return F.reshape(result, shape_of(result)[:-1]) if which == "B" and vector and result is not None else result

    return rule


lstsq_block.derivative(self=_lstsq_rule("self"), B=_lstsq_rule("B"))
_Lstsq = named("linalg_lstsq", ("solution", "residuals", "rank", "singular_values"))


@exported("linalg")
def lstsq(input: Tensor, b: Tensor, rcond: Any = None, *, driver: str | None = None, out: Any = None) -> Any:
    """Return the X that minimizes ``|input @ X - b|``, the squared residuals, the rank and the singular values.

    ``driver`` is the LAPACK routine: "gelsy" (default), "gels" (for full rank), "gelsd" or "gelss" (by singular
    values). Singular values up to ``rcond`` times the largest one count as zero. The residuals are empty if ``driver``
    is "gelsy", if ``input`` does not have full rank, or if ``input`` has no more rows than columns. The rank is empty
    if ``driver`` is "gels". The singular values are empty unless ``driver`` is "gelsd" or "gelss".

    >>> import retrograd as torch
    >>> A = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]])
    >>> torch.linalg.lstsq(A, torch.tensor([[1.0], [3.0], [5.0]])).solution.round(decimals=4)
    tensor([[1.],
            [2.]])
    """
    check_tensors("linalg_lstsq", input=input, b=b)
    a, right = input._array, b._array
    if a.ndim < 2:
        raise RuntimeError("torch.linalg.lstsq: input must have at least 2 dimensions.")
    if right.ndim < 1:
        raise RuntimeError("torch.linalg.lstsq: other must have at least 1 dimension.")
    if a.dtype != right.dtype:
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{scalar_type_name(a)} and other's dtype {scalar_type_name(right)}"
        )
    if a.ndim - right.ndim not in (0, 1):
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    vector = a.ndim - right.ndim == 1
    error = broadcast_mismatch(a.shape[:-2], right.shape[: -1 if vector else -2])
    if error is not None:
        raise error
    if a.shape[-2] != right.shape[-1 if vector else -2]:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2})")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    if a.dtype.kind not in "fc":
        raise RuntimeError("This function doesn't handle types other than float and double")
    check_implemented("linalg_lstsq_cpu", a)
    if rcond is None:
        rcond = float(numpy.finfo(a.dtype).eps) * max(a.shape[-2:])
    return _Lstsq(lstsq_block(input, b, rcond, driver or "gelsy", vector))


# -- Tensors as matrices ---------------------------------------------------------------------------------------------


@exported("linalg")
def tensorinv(input: Tensor, ind: int = 2, *, out: Any = None) -> Tensor:
    """Return the inverse of the linear map ``x -> tensordot(input, x, x.ndim)``.

    ``input`` is reshaped to a matrix whose rows are its first ``ind`` dimensions, and this matrix is inverted. The
    result has the shape (*input.shape[ind:], *input.shape[:ind]).

    >>> import retrograd as torch
    >>> A = torch.eye(6).reshape(2, 3, 6)
    >>> torch.linalg.tensorinv(A, ind=2).shape
    torch.Size([6, 2, 3])
    """
    shape = input._array.shape
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    before, after = math.prod(shape[:ind]), math.prod(shape[ind:])
    if before != after:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{after} != {before}"
        )
    result = reshape(inv_block(reshape(input, (after, before)), "inv"), (*shape[ind:], *shape[:ind]))
    return result


@exported("linalg")
def tensorsolve(input: Tensor, other: Tensor, dims: Any = None, *, out: Any = None) -> Tensor:
    """Return the tensor X with ``tensordot(input, X, X.ndim) = other``.

    If ``dims`` is not None, the dimensions ``dims`` of ``input`` are first moved to its end.

    >>> import retrograd as torch
    >>> A = 2 * torch.eye(4).reshape(2, 2, 4)
    >>> torch.linalg.tensorsolve(A, torch.ones(2, 2))
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    """
    ndim = input._array.ndim
    if dims is not None:
        moved = [dim % ndim for dim in dims]
        input = permute_block(input, (*(i for i in range(ndim) if i not in moved), *moved))
    shape = input._array.shape
    known = other._array.ndim
    before, after = other._array.size, math.prod(shape[known:])
    if before != after:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {after} != {before}"
        )
    result = reshape(solve(reshape(input, (after, after)), reshape(other, (-1,))), shape[known:])
    return result
