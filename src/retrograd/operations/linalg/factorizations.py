"""Matrix factorizations: ``cholesky``, ``qr``, ``householder_product``, ``ormqr``, ``lu``, ``ldl_factor``."""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.devices import on_gpu
from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import exported, public, shared
from ...dispatch.return_types import named
from ...dispatch.transform_tensor import check_elements
from ...kernels import lapack
from .checks import (
    LinAlgError,
    add_gradients,
    as_columns,
    check_compatible,
    check_floating,
    check_implemented,
    check_matrix,
    check_square,
    check_tensors,
    codes_on_cpu,
    diagonal_of,
    first_failure,
    leading_block,
    linalg_op,
    pad_matrix,
    real_part,
    scalar_type_name,
    shape_of,
    slice_matrix,
    with_diagonal,
)
from .derivative_programs import geqrf_program, ldl_factor_program, ldl_product_program, vjp_by_autograd

# -- Cholesky --------------------------------------------------------------------------------------------------------


def _check_positive(name: str, info: Any) -> None:
    failed = first_failure(info)
    if failed:
        raise LinAlgError(
            f"{name}: {failed[0]}The factorization could not be completed because the input is not positive-definite (the "
            f"leading minor of order {failed[1]} is not positive-definite)."
        )


@linalg_op("cholesky_ex_block", "LinalgCholeskyExBackward0", outputs=("L", "info"), differentiable=1)
def cholesky_ex_block(np: Any, self: Any, /, upper: bool) -> Any:
    """Return the triangular Cholesky factors of the matrices ``self``, and ``info``.

    If ``upper`` is true, the factors are upper triangular, otherwise lower triangular. ``info`` has one integer per
    matrix. It is 0 if the matrix is positive definite, otherwise the order of the first leading minor that is not
    positive definite.
    """
    check_square("linalg.cholesky", self)
    check_floating("linalg.cholesky", self)
    check_implemented("cholesky_cpu", self)
    return lapack.cholesky(np, self, upper)


@linalg_op("cholesky_block", "CholeskyBackward0")
def cholesky_block(np: Any, self: Any, /, upper: bool) -> Any:
    """Return the triangular Cholesky factors of the positive definite matrices ``self``.

    If ``upper`` is true, the factors are upper triangular, otherwise lower triangular.
    """
    if not self.size and self.ndim > 1:
        return self.copy()
    check_square("cholesky", self)
    check_implemented("cholesky_cpu", self)
    result, info = lapack.cholesky(np, self, upper)
    _check_positive("cholesky", info)
    return result


def _cholesky_rule(F: Any, g: Any, L: Any, upper: bool) -> Any:
    low, slope = (F.turned_fast(L), F.turned_fast(g)) if upper else (L, g)
    turned = F.turned_fast(low)
    inner = F.tril(F.matmul(turned, slope), 0)
    inner = (inner + F.turned_fast(F.tril(inner, -1))) * 0.5
    inner = F.solve_triangular_block(turned, inner, True, True, False)
    return F.solve_triangular_block(low, inner, False, False, False)


cholesky_ex_block.derivative(self=_cholesky_rule)
cholesky_block.derivative(self=lambda F, g, out, upper: _cholesky_rule(F, g, out, upper))
_CholeskyEx = named("linalg_cholesky_ex", ("L", "info"))


@exported("linalg")
def cholesky(input: Tensor, *, upper: bool = False, out: Any = None) -> Tensor:
    """Return the Cholesky factor of ``input``, a positive definite matrix or a batch of them.

    The Cholesky factor is the lower triangular L with ``input = L Lᴴ``, or the upper triangular U with ``input = Uᴴ U``
    if ``upper`` is true. Raises LinAlgError if ``input`` is not positive definite.

    >>> import retrograd as torch
    >>> torch.linalg.cholesky(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    result, info = cholesky_ex_block(input, upper)
    check_elements(info, _check_positive, "linalg.cholesky")
    return result


@exported("linalg")
def cholesky_ex(input: Tensor, *, upper: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Return the Cholesky factor of ``input`` and ``info``, an int32 tensor.

    The factor is lower triangular, or upper triangular if ``upper`` is true. ``info`` is 0 for a positive definite
    matrix, otherwise the order of the first leading minor that is not positive definite. If ``check_errors`` is true, a
    nonzero ``info`` raises LinAlgError.

    >>> import retrograd as torch
    >>> L, info = torch.linalg.cholesky_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> L
    tensor([[2., 0.],
            [1., 2.]])
    >>> info
    tensor(0, dtype=torch.int32)
    """
    result = _CholeskyEx(cholesky_ex_block(input, upper))
    if check_errors:
        check_elements(codes_on_cpu(result.info), _check_positive, "linalg.cholesky_ex")
    return result


@public(name="cholesky")
def old_cholesky(input: Tensor, upper: bool = False, *, out: Any = None) -> Tensor:
    """Return the Cholesky factor of ``input``, a positive definite matrix or a batch; see ``linalg.cholesky``.

    If ``upper`` is true, the factor is upper triangular, otherwise lower triangular.
    """
    return cholesky_block(input, upper)


# -- QR --------------------------------------------------------------------------------------------------------------


@linalg_op(
    "qr_block", "LinalgQrBackward0", outputs=("Q", "R"), vmap=lambda mode: "slices" if mode == "r" else "leading",
)  # fmt: skip
def qr_block(np: Any, self: Any, /, mode: str) -> Any:
    """Return Q with orthonormal columns and the upper triangular R with ``self = Q R``.

    The matrices ``self`` have the shape (n, m). ``mode`` is "reduced" (Q has min(n, m) columns), "complete" (Q is
    square), or "r" (Q is empty).
    """
    check_matrix("linalg.qr", self)
    check_floating("linalg.qr", self)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    check_implemented("geqrf_cpu", self)
    *batch, n, m = self.shape
    if not self.size:
        k = n if mode == "complete" else min(n, m)
        q = np.zeros(0, self.dtype) if mode == "r" else np.broadcast_to(np.eye(n, k, dtype=self.dtype), (*batch, n, k))
        return q if mode == "r" else lapack.column_major(np, q), lapack.column_major(
            np, np.zeros((*batch, k, m), self.dtype)
        )
    return lapack.qr(np, self, mode)


def _qr_rule(F: Any, g: Any, self_shape: Any, Q: Any, R: Any, mode: str) -> Any:
    by_q, by_r = g
    n, m = self_shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, "
            "mode='reduced') if you are going to differentiate through linalg.qr."
        )
    if mode == "complete" and n > m:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    if n >= m:
        return _tall_qr(F, by_q, by_r, Q, R)
    # A = [A1 A2]: Q and the square R1 depend on A1 alone, and R2 = Qᴴ A2.
    square_r, rest_r = slice_matrix(F, R, -1, 0, n), slice_matrix(F, R, -1, n, m)
    by_rest = None if by_r is None else slice_matrix(F, by_r, -1, n, m)
    if by_rest is not None:
        by_q = add_gradients(by_q, F.matmul(F.matmul(Q, rest_r), F.turned_fast(by_rest)))
    first = _tall_qr(F, by_q, None if by_r is None else slice_matrix(F, by_r, -1, 0, n), Q, square_r)
    result = pad_matrix(F, first, n, m)
    if by_rest is None:
        return result
    return result + F.slice_backward(F.matmul(Q, by_rest), self_shape, len(self_shape) - 1, n, m, 1)


def _tall_qr(F: Any, by_q: Any, by_r: Any, Q: Any, R: Any) -> Any:
    inner = None if by_r is None else F.matmul(by_r, F.turned_fast(R))
    if by_q is not None:
        inner = add_gradients(inner, -F.matmul(F.turned_fast(Q), by_q))
    upper = F.triu(inner, 0)
    both = upper + F.turned_fast(upper) - with_diagonal(F, real_part(F, diagonal_of(F, upper)))
    slope = add_gradients(by_q, F.matmul(Q, both))
    return F.solve_triangular_block(F.turned_fast(R), slope, False, False, False)


qr_block.derivative(self=_qr_rule)
_LinalgQr, _Qr = named("linalg_qr", ("Q", "R")), named("qr", ("Q", "R"))


@exported("linalg")
def qr(A: Tensor, mode: str = "reduced", *, out: Any = None) -> Any:
    """Return Q with orthonormal columns and the upper triangular R with ``A = Q R``, for a matrix or a batch.

    ``A`` has the shape (…, n, m). If ``mode`` is "reduced", Q has min(n, m) columns. If ``mode`` is "complete", Q is
    square. If ``mode`` is "r", Q is empty.
    """
    return _LinalgQr(qr_block(A, mode))


@public(name="qr")
def old_qr(input: Tensor, some: bool = True, *, out: Any = None) -> Any:
    """Return Q with orthonormal columns and the upper triangular R with ``input = Q R``.

    If ``some`` is true, Q has min(n, m) columns for ``input`` of shape (…, n, m). Otherwise Q is square.
    """
    return _Qr(qr_block(input, "reduced" if some else "complete"))


@linalg_op("geqrf_block", "GeqrfBackward0", outputs=("a", "tau"))
def geqrf_block(np: Any, self: Any, /) -> Any:
    """Return the QR factorization of the matrices ``self`` in LAPACK's format: ``a`` and ``tau``.

    The upper triangle of ``a`` is R. The columns of ``a`` below the diagonal are the Householder vectors. ``tau`` holds
    the scalar factor of each Householder reflector.
    """
    if self.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_implemented("geqrf_cpu", self)
    return lapack.geqrf(np, self)


geqrf_block.derivative(self=lambda F, g, self: vjp_by_autograd(F, geqrf_program, [self], g)[0])
_Geqrf = named("geqrf", ("a", "tau"))


@public()
def geqrf(input: Tensor, *, out: Any = None) -> Any:
    """Return the QR factorization of ``input`` in LAPACK's format: the named tuple ``(a, tau)``.

    The upper triangle of ``a`` is R. The columns of ``a`` below the diagonal are the Householder vectors, and ``tau``
    holds the scalar factor of each Householder reflector. ``householder_product(a, tau)`` returns Q.
    """
    return _Geqrf(geqrf_block(input))


# -- Products of reflectors ------------------------------------------------------------------------------------------


def _reflect(F: Any, vector: Any, factor: Any, x: Any) -> Any:
    """Return ``(1 - factor v vᴴ) x``, a Householder reflection of ``x``, where v is ``vector``.

    ``vector`` is a matrix with one column. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on
    arrays.
    """
    return x - factor * F.matmul(vector, F.matmul(F.turned_fast(vector), x))


def _reflectors(F: Any, self: Any, tau: Any) -> list[tuple[Any, Any]]:
    """Return the Householder reflectors whose product is Q, as a list of pairs (vector, factor).

    ``self`` and ``tau`` are the two results of ``geqrf``. A vector is a matrix with one column. A factor is a 1 × 1
    matrix. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    n, k = shape_of(self)[-2], shape_of(tau)[-1]
    below = F.tril(leading_block(F, self, n, k), -1) + F.identity_like(self, n, k)
    last = len(shape_of(tau)) - 1
    return [(slice_matrix(F, below, -1, i, i + 1), as_columns(F, F.slice(tau, last, i, i + 1, 1))) for i in range(k)]


def _reflect_gradients(F: Any, g: Any, self: Any, tau: Any, x: Any, adjoint: bool) -> tuple[Any, Any, Any]:
    """Return the gradients with respect to ``self``, ``tau`` and ``x`` of the product ``Q x``.

    Q is a product of Householder reflectors. ``self`` and ``tau``, the two results of ``geqrf``, hold the vectors and
    the factors of the reflectors. ``g`` is the gradient of ``Q x``. If ``adjoint`` is true, Q is replaced by its
    conjugate transpose Qᴴ. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    reflectors = _reflectors(F, self, tau)
    factors = [F.conj_physical(factor) if adjoint else factor for _, factor in reflectors]
    order = list(range(len(reflectors)))
    applied = order if adjoint else order[::-1]
    before = {}
    for i in applied:  # the operand of each reflector
        before[i] = x
        x = _reflect(F, reflectors[i][0], factors[i], x)
    by_self, by_tau = None, None
    for i in applied[::-1]:
        vector, factor = reflectors[i][0], factors[i]
        turned = F.turned_fast(before[i])
        # With H = 1 - t v vᴴ and G = g xᴴ, the gradient with respect to H:
        forth = F.matmul(g, F.matmul(turned, vector))  # G v
        back = F.matmul(before[i], F.matmul(F.turned_fast(g), vector))  # Gᴴ v
        by_factor = -F.matmul(F.turned_fast(vector), forth)
        by_vector = -(F.conj_physical(factor) * forth + factor * back)
        by_self = add_gradients(by_self, _column(F, by_vector, shape_of(self), i))
        by_tau = add_gradients(
            by_tau, _entry(F, F.conj_physical(by_factor) if adjoint else by_factor, shape_of(tau), i)
        )
        g = _reflect(F, vector, F.conj_physical(factor), g)
    return (None if by_self is None else F.tril(by_self, -1)), by_tau, g


def _column(F: Any, x: Any, shape: tuple[int, ...], i: int) -> Any:
    """Return zeros of ``shape`` with ``x``, a matrix with one column, written to column ``i``.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    return F.slice_backward(x, shape, len(shape) - 1, i, i + 1, 1)


def _entry(F: Any, x: Any, shape: tuple[int, ...], i: int) -> Any:
    """Return zeros of ``shape`` with ``x``, a 1 × 1 matrix, written to index ``i`` of the last dimension.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    x = F.reshape(x, (*shape[:-1], 1))
    return F.slice_backward(x, shape, len(shape) - 1, i, i + 1, 1)


@linalg_op("householder_block", "LinalgHouseholderProductBackward0")
def householder_block(np: Any, self: Any, tau: Any, /) -> Any:
    """Return the first m columns of the product Q of Householder reflectors, where ``self`` has m columns.

    The vectors of the reflectors are the columns of ``self`` below the diagonal. ``tau`` holds their scalar factors.
    """
    name = "torch.linalg.householder_product"
    _check_reflectors(name, self, tau)
    if self.shape[-2] < self.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if self.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    _check_same_dtype(name, self, ("tau", tau))
    check_implemented("orgqr_cpu", self)
    return lapack.householder_product(np, self, tau)


def _check_reflectors(name: str, x: Any, tau: Any) -> None:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if x.ndim - tau.ndim != 1 and not (name.endswith("ormqr") and x.shape[-1] < tau.shape[-1]):
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {x.ndim}"
        )


def _check_same_dtype(name: str, x: Any, *others: tuple[str, Any]) -> None:
    for what, other in others:
        if other.dtype != x.dtype:
            raise RuntimeError(
                f"{name}: {what} dtype {scalar_type_name(other)} does not match input dtype {scalar_type_name(x)}"
            )


def _householder_rule(which: int) -> Any:
    def rule(F: Any, g: Any, self: Any, tau: Any) -> Any:
        n, m = shape_of(self)[-2:]
        return _reflect_gradients(F, g, self, tau, F.identity_like(self, n, m), False)[which]

    return rule


householder_block.derivative(self=_householder_rule(0), tau=_householder_rule(1))


@exported("linalg")
def householder_product(input: Tensor, tau: Tensor, *, out: Any = None) -> Tensor:
    """Return the first m columns of the product Q of Householder reflectors, where ``input`` has m columns.

    ``input`` and ``tau`` are the two results of ``torch.geqrf``. The vectors of the reflectors are the columns of
    ``input`` below the diagonal. ``tau`` holds their scalar factors.
    """
    return householder_block(input, tau)


@public()
def orgqr(input: Tensor, input2: Tensor, *, out: Any = None) -> Tensor:
    """Return the first columns of Q, the orthogonal or unitary factor in the QR factorization of a matrix A.

    ``input`` and ``input2`` are the results of ``torch.geqrf(A)``. This function is the same as
    ``householder_product``.
    """
    return householder_product(input, input2)


@linalg_op("ormqr_block", "OrmqrBackward0")
def ormqr_block(np: Any, self: Any, tau: Any, other: Any, /, left: bool, transpose: bool) -> Any:
    """Return ``Q other``, or ``other Q`` if ``left`` is false, where Q is a product of Householder reflectors.

    ``self`` and ``tau`` are the two results of ``geqrf``, which hold the reflectors of the square matrix Q. If
    ``transpose`` is true, Q is replaced by its conjugate transpose Qᴴ.
    """
    if self.ndim < 2 or other.ndim < 2:
        raise RuntimeError(f"torch.ormqr: {'input' if self.ndim < 2 else 'other'} must have at least 2 dimensions.")
    size = other.shape[-2 if left else -1]
    side = -2 if left else -1
    if size < tau.shape[-1]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if size != self.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(size, self.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    _check_reflectors("torch.ormqr", self, tau)
    _check_same_dtype("torch.ormqr", self, ("tau", tau), ("other", other))
    check_implemented("ormqr_cpu", self)
    return lapack.multiply_q(np, self, tau, other, left, transpose)


def _ormqr_rule(which: int) -> Any:
    def rule(F: Any, g: Any, self: Any, tau: Any, other: Any, left: bool, transpose: bool) -> Any:
        if left:
            return _reflect_gradients(F, g, self, tau, other, transpose)[which]
        # other Q is the adjoint of Qᴴ otherᴴ
        result = _reflect_gradients(F, F.turned_fast(g), self, tau, F.turned_fast(other), not transpose)[which]
        return F.turned_fast(result) if which == 2 else result

    return rule


ormqr_block.derivative(self=_ormqr_rule(0), tau=_ormqr_rule(1), other=_ormqr_rule(2))


@public()
def ormqr(
    input: Tensor, input2: Tensor, input3: Tensor, left: bool = True, transpose: bool = False, *, out: Any = None
) -> Tensor:
    """Return ``Q @ input3``, or ``input3 @ Q`` if ``left`` is false.

    Q is the square matrix of the QR factorization ``input, input2 = torch.geqrf(A)``. If ``transpose`` is true, Q is
    replaced by its conjugate transpose Qᴴ.
    """
    return ormqr_block(input, input2, input3, left, transpose)


# -- LU --------------------------------------------------------------------------------------------------------------


def _check_pivoting(pivot: bool) -> None:
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _check_lu(name: str, x: Any) -> None:
    if x.ndim < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(x.shape)} instead")
    check_implemented("lu_cpu", x)


@linalg_op("lu_factor_block", "LinalgLuFactorExBackward0", outputs=("LU", "pivots", "info"), differentiable=1)
def lu_factor_block(np: Any, self: Any, /) -> Any:
    """Return the LU factorization of the matrices ``self``: L and U in one matrix, LAPACK's pivots, and ``info``.

    ``info`` has one integer per matrix: the position of the first zero pivot, counted from 1, or 0 if no pivot is zero.
    """
    _check_lu("torch.lu_factor", self)
    return lapack.lu(np, self)


def _triangles(F: Any, x: Any) -> tuple[Any, Any]:
    """Return the unit lower triangular L and the upper triangular U of an LU factorization.

    ``x`` is a matrix, or a batch of matrices, that holds L below the diagonal and U on and above it. ``F`` is a
    namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    n, m = shape_of(x)[-2:]
    k = min(n, m)
    low = F.tril(leading_block(F, x, n, k), -1) + F.identity_like(x, n, k)
    return low, F.triu(leading_block(F, x, k, m), 0)


def _lu_gradient(F: Any, by_l: Any, by_u: Any, L: Any, U: Any) -> Any:
    """Return the gradient with respect to the matrix ``L U``, from the gradients with respect to L and U.

    ``by_l`` and ``by_u`` are the gradients with respect to L and U. One of them may be None. ``L U`` is the factorized
    matrix after LAPACK's row exchanges. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    n, m = shape_of(L)[-2], shape_of(U)[-1]
    k = min(n, m)
    square_l, square_u = leading_block(F, L, k, k), leading_block(F, U, k, k)
    low = None if by_l is None else F.matmul(F.turned_fast(square_l), leading_block(F, by_l, k, k))
    high = None if by_u is None else F.matmul(leading_block(F, by_u, k, k), F.turned_fast(square_u))
    beside = below = None
    if m > k and by_u is not None:  # U = [U1 U2] with U2 = L⁻¹ A2
        rest = slice_matrix(F, by_u, -1, k, m)
        low = add_gradients(low, -F.matmul(rest, F.turned_fast(slice_matrix(F, U, -1, k, m))))
        beside = F.solve_triangular_block(F.turned_fast(square_l), rest, True, True, True)
    if n > k and by_l is not None:  # L = [L1; L2] with L2 = A2 U⁻¹
        rest = slice_matrix(F, by_l, -2, k, n)
        high = add_gradients(high, -F.matmul(F.turned_fast(slice_matrix(F, L, -2, k, n)), rest))
        below = F.solve_triangular_block(F.turned_fast(square_u), rest, False, False, False)
    inner = add_gradients(None if low is None else F.tril(low, -1), None if high is None else F.triu(high, 0))
    inner = F.solve_triangular_block(F.turned_fast(square_l), inner, True, True, True)
    inner = F.solve_triangular_block(F.turned_fast(square_u), inner, False, False, False)
    shape = (*shape_of(inner)[:-2], n, m)
    result = pad_matrix(F, inner, n, m)
    if beside is not None:
        result = result + F.slice_backward(beside, shape, len(shape) - 1, k, m, 1)
    if below is not None:
        result = result + F.slice_backward(below, shape, len(shape) - 2, k, n, 1)
    return result


def _lu_factor_rule(F: Any, g: Any, LU: Any, pivots: Any) -> Any:
    n, m = shape_of(LU)[-2:]
    k = min(n, m)
    low, high = _triangles(F, LU)
    slope = _lu_gradient(F, F.tril(leading_block(F, g, n, k), -1), F.triu(leading_block(F, g, k, m), 0), low, high)
    return F.swap_rows(slope, pivots, True)


@linalg_op("swap_rows", vmap=(2, 1))
def swap_rows(np: Any, self: Any, pivots: Any, /, back: bool) -> Any:
    """Return ``self`` with its rows permuted by LAPACK's ``pivots``.

    For one row i after the other, row i is exchanged with row ``pivots[i]``, both counted from 1. If ``back`` is true,
    the inverse permutation is applied.
    """
    return lapack.swap_rows(np, self, pivots, back)


swap_rows.derivative(self=lambda F, g, pivots, back: F.swap_rows(g, pivots, not back))
lu_factor_block.derivative(self=_lu_factor_rule)
_LuFactor = named("linalg_lu_factor", ("LU", "pivots"))
_LuFactorEx = named("linalg_lu_factor_ex", ("LU", "pivots", "info"))


def _check_regular(name: str, info: Any) -> None:
    failed = first_failure(info)
    if failed:
        raise RuntimeError(
            f"torch.{name}: {failed[0]}U[{failed[1]},{failed[1]}] is zero and using it on lu_solve would result in a "
            "division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
            "linalg.lu_factor_ex(A, pivot)"
        )


@exported("linalg")
def lu_factor(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Return the LU factorization of ``A``, a matrix or a batch of them: L and U in one matrix, and the pivots.

    The pivots are LAPACK's (int32): row i was exchanged with row ``pivots[i]``, both counted from 1. Raises
    RuntimeError if a pivot is zero. ``pivot`` must be true, because PyTorch does not implement LU without pivoting on
    the CPU.

    >>> import retrograd as torch
    >>> LU, pivots = torch.linalg.lu_factor(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> LU
    tensor([[4.0000, 4.0000],
            [0.2500, 1.0000]])
    >>> pivots
    tensor([2, 2], dtype=torch.int32)
    """
    _check_pivoting(pivot)
    factors, pivots, info = lu_factor_block(A)
    check_elements(info, _check_regular, "linalg.lu_factor")
    result = (factors, pivots)
    return _LuFactor(result)


@exported("linalg")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Any = None) -> Any:
    """Return the results of ``lu_factor(A)``, followed by ``info``.

    ``info`` is the position of the first zero pivot, counted from 1, or 0 if no pivot is zero. If ``check_errors`` is
    true, raise RuntimeError instead of returning a nonzero ``info``. ``pivot`` must be true.

    >>> import retrograd as torch
    >>> LU, pivots, info = torch.linalg.lu_factor_ex(torch.tensor([[1.0, 2.0], [4.0, 4.0]]))
    >>> pivots, info
    (tensor([2, 2], dtype=torch.int32), tensor(0, dtype=torch.int32))
    """
    _check_pivoting(pivot)
    result = _LuFactorEx(lu_factor_block(A))
    if check_errors:
        check_elements(codes_on_cpu(result.info), _check_regular, "linalg.lu_factor_ex")
    return result


def _is_outside(pivots: Any, rows: int) -> bool:
    """Return whether one of ``pivots`` is no number of a row, from 1 to ``rows``."""
    return not on_gpu(pivots) and bool(((pivots < 1) | (pivots > rows)).any())


def _unpacked(np: Any, factors: Any, pivots: Any) -> tuple[Any, Any, Any]:
    """Return L, U and the permutation matrix P of an LU factorization.

    ``factors`` holds L below the diagonal and U on and above it. ``pivots`` are LAPACK's pivots.
    """
    n, m = factors.shape[-2:]
    k = min(n, m)
    low = np.tril(factors[..., :k], -1)
    np.einsum("...ii->...i", low[..., :k, :])[...] = 1
    identity = np.broadcast_to(np.eye(n, dtype=factors.dtype), (*factors.shape[:-2], n, n))
    exchanged = lapack.swap_rows(np, identity, pivots, False).swapaxes(-1, -2)
    return low, np.triu(factors[..., :k, :]), np.ascontiguousarray(exchanged)


@linalg_op("lu_block", "LinalgLuBackward0", outputs=("L", "U", "P", "pivots"), differentiable=2)
def lu_block(np: Any, self: Any, /) -> Any:
    """Return L, U and the permutation matrix P with ``self = P L U``, and LAPACK's pivots."""
    _check_lu("linalg.lu", self)
    factors, pivots, _ = lapack.lu(np, self)
    return (*_unpacked(np, factors, pivots), pivots)


def _lu_rule(F: Any, g: Any, L: Any, U: Any, pivots: Any) -> Any:
    by_l, by_u = g[0], g[1]
    return F.swap_rows(_lu_gradient(F, by_l, by_u, L, U), pivots, True)


lu_block.derivative(self=_lu_rule)
_LinalgLu = named("linalg_lu", ("P", "L", "U"))


@exported("linalg")
def lu(A: Tensor, *, pivot: bool = True, out: Any = None) -> Any:
    """Return the permutation matrix P, the unit lower triangular L and the upper triangular U with ``A = P L U``.

    ``pivot`` must be true, because PyTorch does not implement LU without pivoting on the CPU.
    """
    _check_pivoting(pivot)
    low, high, exchanged, _ = lu_block(A)
    result = (exchanged, low, high)
    return _LinalgLu(result)


@linalg_op("lu_unpack_block", "LuUnpackBackward0", outputs=("L", "U", "P"), differentiable=2)
def lu_unpack_block(np: Any, self: Any, pivots: Any, /, data: bool, exchanges: bool) -> Any:
    """Return L, U and the permutation matrix P of the LU factorization ``self``, ``pivots``.

    ``self`` holds L and U in one matrix, and ``pivots`` are LAPACK's pivots. If ``data`` is false, L and U are empty.
    If ``exchanges`` is false, P is empty.
    """
    low, high, exchanged = _unpacked(np, self, pivots)
    nothing = np.zeros(0, self.dtype)
    return low if data else nothing, high if data else nothing, exchanged if exchanges else nothing


def _unpack_rule(F: Any, g: Any, self_shape: Any) -> Any:
    by_l, by_u = g[0], g[1]
    n, m = self_shape[-2:]
    low = None if by_l is None or len(shape_of(by_l)) < 2 else pad_matrix(F, F.tril(by_l, -1), n, m)
    high = None if by_u is None or len(shape_of(by_u)) < 2 else pad_matrix(F, F.triu(by_u, 0), n, m)
    return add_gradients(low, high)


lu_unpack_block.derivative(self=_unpack_rule)
_LuUnpack = named("lu_unpack", ("P", "L", "U"))


@public(method=False)
def lu_unpack(
    LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True, *, out: Any = None
) -> Any:
    """Return the permutation matrix P, L and U from the results ``LU_data`` and ``LU_pivots`` of ``lu_factor``.

    If ``unpack_data`` is false, L and U are empty. If ``unpack_pivots`` is false, P is empty.
    """
    if unpack_pivots and str(LU_pivots._array.dtype) != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\nNote: this function "
            "is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    pivots, (n, m) = LU_pivots._array, LU_data._array.shape[-2:]
    if unpack_pivots and (pivots.shape[-1] != min(n, m) or _is_outside(pivots, n)):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive.Did you properly pass the result of "
            "lu_factor?"
        )
    low, high, exchanged = lu_unpack_block(LU_data, LU_pivots, unpack_data, unpack_pivots)
    result = (exchanged, low, high)
    return _LuUnpack(result)


_LuWithInfo = named("_lu_with_info", ("LU", "pivots", "info"))


@public(name="lu", method=False)
def old_lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """Return the LU factorization of ``A``: L and U in one matrix, and LAPACK's pivots.

    If ``get_infos`` is true, also return the position of the first zero pivot, counted from 1, or 0 if no pivot is
    zero. ``pivot`` must be true.
    """
    result = lu_factor_ex(A, pivot=pivot)
    given = tuple(result) if get_infos else tuple(result)[:2]
    return _LuWithInfo(given) if get_infos else given


@public(name="lu", function=False)
def lu_method(input: Tensor, pivot: bool = True, get_infos: bool = False) -> Any:
    """Return the LU factorization of ``input``: L and U in one matrix, and LAPACK's pivots.

    If ``get_infos`` is true, also return the position of the first zero pivot, counted from 1, or 0 if no pivot is
    zero. ``pivot`` must be true.
    """
    return tuple(old_lu(input, pivot, get_infos))


@linalg_op("lu_solve_block", "LinalgLuSolveBackward0", vmap=(2, 1, 2))
def lu_solve_block(np: Any, self: Any, pivots: Any, B: Any, /, left: bool, adjoint: bool) -> Any:
    """Return the solution X of ``A X = B``, or ``X A = B`` if ``left`` is false.

    ``self`` and ``pivots`` are the LU factorization of A. If ``adjoint`` is true, A is replaced by its conjugate
    transpose Aᴴ.
    """
    check_implemented("lu_solve_cpu", self)
    if left:
        return lapack.lu_solve(np, self, pivots, B, 2 if adjoint else 0)
    # X A = B is Aᴴ Xᴴ = Bᴴ
    result = lapack.lu_solve(np, self, pivots, lapack.adjoint_of(B), 0 if adjoint else 2)
    return lapack.adjoint_of(result).copy()


def _lu_solve_right(F: Any, g: Any, self: Any, pivots: Any, left: bool, adjoint: bool) -> Any:
    return F.lu_solve_block(self, pivots, g, left, not adjoint)


def _lu_solve_factors(F: Any, g: Any, self: Any, pivots: Any, out: Any, left: bool, adjoint: bool) -> Any:
    slope = F.lu_solve_block(self, pivots, g, left, not adjoint)
    # the gradient with respect to A = P L U, then to L and to U
    product = F.matmul(slope, F.turned_fast(out)) if left else F.matmul(F.turned_fast(out), slope)
    whole = -F.swap_rows(F.turned_fast(product) if adjoint else product, pivots, False)
    low, high = _triangles(F, self)
    by_l, by_u = F.matmul(whole, F.turned_fast(high)), F.matmul(F.turned_fast(low), whole)
    return F.tril(by_l, -1) + F.triu(by_u, 0)


lu_solve_block.derivative(self=_lu_solve_factors, B=_lu_solve_right)


@exported("linalg")
def lu_solve(
    LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Any = None
) -> Tensor:
    """Return the solution X of ``A @ X = B``, or of ``X @ A = B`` if ``left`` is false.

    ``LU`` and ``pivots`` are the results of ``lu_factor(A)``. If ``adjoint`` is true, A is replaced by its conjugate
    transpose Aᴴ.
    """
    check_tensors("linalg_lu_solve", LU=LU, pivots=pivots, B=B)
    factors, exchanged, b = LU._array, pivots._array, B._array
    check_floating("linalg.lu_solve", factors)
    if factors.dtype != b.dtype:
        raise RuntimeError(
            f"linalg.lu_solve: Expected LU and B to have the same dtype, but found LU of type "
            f"{scalar_type_name(factors)} and B of "
            f"type {scalar_type_name(b)} instead"
        )
    if str(exchanged.dtype) != "int32":
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_square("torch.linalg.lu_solve", factors)
    check_matrix("linalg.lu_solve", b, "B")
    check_compatible("linalg.lu_solve", factors.shape, b.shape, left)
    if exchanged.shape[-1] != factors.shape[-1]:
        raise RuntimeError("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix")
    if _is_outside(exchanged, factors.shape[-1]):
        bound = "greater or equal to 1" if (exchanged < 1).any() else "smaller or equal to LU.size(-2)"
        raise RuntimeError(
            f"Pivots given to lu_solve must all be {bound}. Did you properly pass the result of lu_factor?"
        )
    if exchanged.shape[:-1] != factors.shape[:-2]:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(exchanged.shape)} instead"
        )
    return lu_solve_block(LU, pivots, B, left, adjoint)


@public(name="lu_solve")
def old_lu_solve(input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Any = None) -> Tensor:
    """Return the solution X of ``A @ X = input``, from ``LU_data, LU_pivots = lu_factor(A)``."""
    return lu_solve(LU_data, LU_pivots, input)


# -- LDL -------------------------------------------------------------------------------------------------------------


@linalg_op("ldl_factor_block", "NotImplemented", outputs=("LD", "pivots", "info"), differentiable=1)
def ldl_factor_block(np: Any, self: Any, /, hermitian: bool) -> Any:
    """Return the LDL factorization of ``self``: L and D in one matrix, LAPACK's pivots, and ``info``.

    If ``hermitian`` is true, ``self = L D Lᴴ``, otherwise ``self = L D Lᵀ``. ``info`` is the position of the first zero
    block of D, counted from 1, or 0 if no block is zero.
    """
    check_square("torch.linalg.ldl_factor_ex", self)
    check_floating("torch.linalg.ldl_factor_ex", self)
    check_implemented("ldl_factor_cpu", self)
    factors, pivots, info = lapack.ldl(np, self, hermitian)
    return lapack.column_major(np, np.tril(factors)), pivots, info


ldl_factor_block.derivative(
    self=lambda F, g, self, pivots, hermitian: vjp_by_autograd(
        F, lambda a: ldl_factor_program(a, pivots, hermitian), [self], g
    )[0]
)
_LdlFactor = named("linalg_ldl_factor", ("LD", "pivots"))
_LdlFactorEx = named("linalg_ldl_factor_ex", ("LD", "pivots", "info"))


def _check_no_zero_block(name: str, info: Any) -> None:
    failed = first_failure(info)
    if failed:
        raise RuntimeError(f"torch.{name}: {failed[0]}Unknown error code: {failed[1]}.")


@exported("linalg")
def ldl_factor(input: Tensor, *, hermitian: bool = False, out: Any = None) -> Any:
    """Return the LDL factorization of ``input``: L and D in one matrix, and LAPACK's pivots.

    If ``hermitian`` is true, ``input = L D Lᴴ``, otherwise ``input = L D Lᵀ``. D is block diagonal with blocks of size
    1 and 2.

    >>> import retrograd as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> LD
    tensor([[4.0000, 0.0000],
            [0.5000, 4.0000]])
    >>> pivots
    tensor([1, 2], dtype=torch.int32)
    """
    factors, pivots, info = ldl_factor_block(input, hermitian)
    check_elements(info, _check_no_zero_block, "linalg.ldl_factor")
    result = (factors, pivots)
    return _LdlFactor(result)


@exported("linalg")
def ldl_factor_ex(input: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Any = None) -> Any:
    """Return the results of ``ldl_factor``, followed by ``info``.

    ``info`` is the position of the first zero block of D, counted from 1, or 0 if no block is zero. If ``check_errors``
    is true, raise RuntimeError instead of returning a nonzero ``info``. If ``hermitian`` is true, ``input = L D Lᴴ``,
    otherwise ``input = L D Lᵀ``.

    >>> import retrograd as torch
    >>> LD, pivots, info = torch.linalg.ldl_factor_ex(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> pivots, info
    (tensor([1, 2], dtype=torch.int32), tensor(0, dtype=torch.int32))
    """
    result = _LdlFactorEx(ldl_factor_block(input, hermitian))
    if check_errors:
        check_elements(codes_on_cpu(result.info), _check_no_zero_block, "linalg.ldl_factor_ex")
    return result


@linalg_op("ldl_solve_block", "NotImplemented", vmap=(2, 1, 2))
def ldl_solve_block(np: Any, self: Any, pivots: Any, B: Any, /, hermitian: bool) -> Any:
    """Return the solution X of ``A X = B``, where ``self`` and ``pivots`` are the LDL factorization of A.

    If ``hermitian`` is true, the factorization is ``A = L D Lᴴ``, otherwise ``A = L D Lᵀ``.
    """
    if pivots.dtype.kind not in "iu":
        kind = dtypes.scalar_name(dtypes.dtype_of(pivots.dtype))
        raise RuntimeError(f"torch.linalg.ldl_solve: Expected pivots to be integers. Got {kind}")
    if self.shape[:-1] != pivots.shape:
        raise RuntimeError(
            "torch.linalg.ldl_solve: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
            f"{list(pivots.shape)} instead"
        )
    for wrong, bound in ((abs(pivots) > self.shape[-2], "<= LD.size(-2)"), (pivots == 0, ">= 1")):
        if wrong.any():  # LAPACK would write outside the matrix
            raise RuntimeError(
                f"Pivots given to ldl_solve must all satisfy |pivot| {bound}. Did you properly pass the result of "
                "ldl_factor?"
            )
    return lapack.ldl_solve(np, self, pivots, B, hermitian)


def _solved(matrix: Tensor, right: Tensor) -> Tensor:
    factors, pivots = lu_factor(matrix)
    return lu_solve(factors, pivots, right)


@shared
def _ldl_solve_rule(F: Any, g: Any, self: Any, pivots: Any, B: Any, hermitian: bool) -> Any:
    def program(factors: Tensor, right: Tensor) -> Tensor:
        return _solved(ldl_product_program(factors, pivots, hermitian), right)

    return vjp_by_autograd(F, program, [self, B], g)


ldl_solve_block.derivative(self=_ldl_solve_rule, B=_ldl_solve_rule)


@exported("linalg")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Any = None) -> Tensor:
    """Return the solution X of ``A @ X = B``, from ``LD, pivots = ldl_factor(A, hermitian=hermitian)``.

    >>> import retrograd as torch
    >>> LD, pivots = torch.linalg.ldl_factor(torch.tensor([[4.0, 2.0], [2.0, 5.0]]))
    >>> torch.linalg.ldl_solve(LD, pivots, torch.tensor([[8.0], [12.0]]))
    tensor([[1.],
            [2.]])
    """
    check_tensors("linalg_ldl_solve", LD=LD, pivots=pivots, B=B)
    factors, b = LD._array, B._array
    check_square("torch.linalg.ldl_solve", factors)
    normalize_dim(-2, b.ndim)
    if b.shape[-2] != factors.shape[-1]:
        raise RuntimeError(
            f"Incompatible matrix sizes for torch.linalg.ldl_solve: each A matrix is {factors.shape[-1]} by "
            f"{factors.shape[-1]} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    if factors.dtype != b.dtype:
        raise RuntimeError(
            f"torch.linalg.ldl_solve: Expected LD and B to have the same dtype, but found LD of type {scalar_type_name(factors)} "
            f"and B of type {scalar_type_name(b)} instead"
        )
    return ldl_solve_block(LD, pivots, B, hermitian)
