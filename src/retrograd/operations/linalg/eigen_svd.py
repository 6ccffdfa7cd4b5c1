"""Eigenvalues and singular values: ``eigh``, ``eig``, ``svd``, ``svd_lowrank``, ``pca_lowrank``, ``lobpcg``.

Complex eigenvectors and singular vectors are only defined up to a factor of modulus 1, their phase. If a loss depends
on the phase, the derivative rules raise an error, as PyTorch does.
"""

from __future__ import annotations

from typing import Any

from ...core import dtypes
from ...core.devices import on_gpu
from ...core.grad_mode import recording
from ...core.tensor import Tensor
from ...dispatch.declare import FUNCTIONS, exported, public
from ...dispatch.intercept import GO_ON, HANDLERS, intercept_locals
from ...dispatch.return_types import named
from ...dispatch.transform_tensor import TransformTensor
from ...kernels import lapack
from ..shape.rearrange import flip
from ..shape.slicing import narrow
from ..shape.views import transpose
from .checks import (
    LinAlgError,
    add_gradients,
    array_of,
    as_columns,
    as_rows,
    check_floating,
    check_implemented,
    check_matrix,
    check_square,
    check_tensors,
    diagonal_of,
    linalg_op,
    real_part,
    shape_of,
    slice_matrix,
    with_diagonal,
)
from .factorizations import cholesky, qr
from .matmul import matmul
from .solve import solve_triangular

PHASE_TOLERANCE = (
    1e-2  # PyTorch's tolerance for imaginary parts that are 0 if the gradient does not depend on the factors
)


def _check_phase_invariant(F: Any, products: Any, message: str) -> None:
    """Raise RuntimeError with ``message`` if the loss depends on the phases of eigenvectors or singular vectors.

    ``products`` is computed from the matrices ``Vᴴ G``, where the columns of V are the vectors and G is the gradient
    with respect to V. For singular vectors, the matrices for U and for V are added. If a diagonal element of
    ``products`` has an imaginary part above ``PHASE_TOLERANCE``, the loss depends on a phase. ``F`` is a namespace of
    operations (``F.matmul``, …) on tensors or on arrays.
    """
    result = array_of(diagonal_of(F, products))
    if result.dtype.kind == "c" and not on_gpu(result) and not bool((abs(result.imag) <= PHASE_TOLERANCE).all()):
        raise RuntimeError(message)


def _gaps(F: Any, values: Any) -> Any:
    """Return the matrices of differences of ``values``: element (i, j) is ``values[j] - values[i]``.

    ``values`` are eigenvalues or squared singular values. Derivative rules divide by these matrices. The diagonal
    elements are therefore 1 instead of 0. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    size = shape_of(values)[-1]
    return as_rows(F, values) - as_columns(F, values) + F.identity_like(values, size, size)


def _off_diagonal(F: Any, x: Any) -> Any:
    return F.tril(x, -1) + F.triu(x, 1)


def _may_need_gradient(x: Tensor) -> bool | str | None:
    """Return a true value if a gradient with respect to ``x`` may be computed later.

    Functions such as ``eigvalsh`` then compute the eigenvectors in addition to the eigenvalues, because the derivative
    rule uses the eigenvectors.
    """
    return isinstance(x, TransformTensor) or (recording() and x.requires_grad)


# -- Eigenvalues of Hermitian matrices -------------------------------------------------------------------------------


def _lower(UPLO: str) -> str:
    if UPLO not in ("L", "U", "l", "u"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()


@linalg_op("eigh_block", "LinalgEighBackward0", outputs=("eigenvalues", "eigenvectors"))
def eigh_block(np: Any, self: Any, /, UPLO: str) -> Any:
    """Return the eigenvalues, in ascending order, and the eigenvectors of the Hermitian matrices ``self``.

    Only the lower triangle of each matrix is read if ``UPLO`` is "L", and only the upper triangle if ``UPLO`` is "U".
    """
    check_square("linalg.eigh", self)
    check_implemented("linalg_eigh_cpu", self)
    if not self.size:
        return np.zeros(self.shape[:-1], self.real.dtype), lapack.column_major(np, self)
    try:
        return lapack.eigh(np, self, UPLO == "L", True)
    except np.linalg.LinAlgError:
        raise _convergence_error(self, "linalg.eigh") from None


def _convergence_error(x: Any, name: str) -> LinAlgError:
    code = x.shape[-1] - 1
    batch = "(Batch element 0): " if x.ndim > 2 else ""
    return LinAlgError(
        f"{name}: {batch}The algorithm failed to converge because the input matrix is ill-conditioned or has too many "
        f"repeated eigenvalues (error code: {code})."
    )


def _eigh_rule(F: Any, g: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    by_values, by_vectors = g
    turned = F.turned_fast(eigenvectors)
    if by_vectors is None:
        return F.matmul(eigenvectors * as_rows(F, by_values), turned)
    products = _skew(F, F.matmul(turned, by_vectors)) * 0.5  # changes that keep the vectors orthonormal
    _check_phase_invariant(F, products, EIGENVECTOR_PHASE_ERROR.format("linalg_eigh"))
    inner = _off_diagonal(F, products) / _gaps(F, eigenvalues)
    if by_values is not None:
        inner = inner + with_diagonal(F, by_values)
    return F.matmul(eigenvectors, F.matmul(inner, turned))


EIGENVECTOR_PHASE_ERROR = (
    "{}_backward: The eigenvectors in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
    "loss function depends on this quantity, so it is ill-defined."
)
eigh_block.derivative(self=_eigh_rule)
_Eigh = named("linalg_eigh", ("eigenvalues", "eigenvectors"))


@exported("linalg")
def eigh(input: Tensor, UPLO: str = "L", *, out: Any = None) -> Any:
    """Return the eigenvalues L, in ascending order, and the eigenvectors V of a Hermitian matrix or a batch.

    The result satisfies ``input = V diag(L) Vᴴ``. Only the lower triangle of ``input`` is read, or only the upper
    triangle if ``UPLO`` is "U".

    >>> import retrograd as torch
    >>> torch.linalg.eigh(torch.tensor([[2.0, 0.0], [0.0, 1.0]])).eigenvalues
    tensor([1., 2.])
    """
    return _Eigh(eigh_block(input, _lower(UPLO)))


@linalg_op("eigvalsh_block")
def eigvalsh_block(np: Any, self: Any, /, UPLO: str) -> Any:
    """Return the eigenvalues of the Hermitian matrices ``self`` in ascending order.

    Only the lower triangle of each matrix is read if ``UPLO`` is "L", and only the upper triangle if ``UPLO`` is "U".
    """
    check_square("linalg.eigh", self)
    check_implemented("linalg_eigh_cpu", self)
    if not self.size:
        return np.zeros(self.shape[:-1], self.real.dtype)
    try:
        return lapack.eigh(np, self, UPLO == "L", False)[0]
    except np.linalg.LinAlgError:
        raise _convergence_error(self, "linalg.eigh") from None


@exported("linalg")
def eigvalsh(input: Tensor, UPLO: str = "L", *, out: Any = None) -> Tensor:
    """Return the eigenvalues, in ascending order, of ``input``, a Hermitian matrix or a batch of them.

    Only the lower triangle of ``input`` is read, or only the upper triangle if ``UPLO`` is "U".

    >>> import retrograd as torch
    >>> torch.linalg.eigvalsh(torch.tensor([[2.0, 1.0], [1.0, 2.0]]))
    tensor([1., 3.])
    """
    result: Tensor
    if _may_need_gradient(input):
        result = eigh_block(input, _lower(UPLO))[0]
    else:
        result = eigvalsh_block(input, _lower(UPLO))
    return result


# -- Eigenvalues of general matrices ---------------------------------------------------------------------------------


def _check_eig(np: Any, x: Any) -> None:
    check_square("linalg.eig", x)
    if x.dtype.kind not in "fc":
        raise RuntimeError(f"Unknown Complex ScalarType for {dtypes.scalar_name(dtypes.dtype_of(x.dtype))}")
    if not on_gpu(x) and not bool(np.isfinite(x).all()):
        raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    check_implemented("linalg_eig_out_cpu", x)


def _complex(np: Any, x: Any, like: Any) -> Any:
    return x.astype(np.result_type(like.dtype, np.complex64), copy=False)


@linalg_op("eig_block", "LinalgEigBackward0", outputs=("eigenvalues", "eigenvectors"))
def eig_block(np: Any, self: Any, /) -> Any:
    """Return the eigenvalues and the eigenvectors of the square matrices ``self``, in a complex dtype."""
    _check_eig(np, self)
    if not self.size:
        return _complex(np, self[..., 0] if self.shape[-1] else np.zeros(self.shape[:-1]), self), _complex(
            np, self, self
        )
    values, vectors = np.linalg.eig(self)
    return _complex(np, values, self), lapack.column_major(np, _complex(np, vectors, self))


def _eig_rule(F: Any, g: Any, eigenvalues: Any, eigenvectors: Any) -> Any:
    by_values, by_vectors = g
    turned = F.turned_fast(eigenvectors)
    if by_vectors is None:
        return F.solve_block(turned, as_columns(F, by_values) * turned, True, False)[0]
    products = F.matmul(turned, by_vectors)
    _check_phase_invariant(F, products, EIGENVECTOR_PHASE_ERROR.format("linalg_eig"))
    lengths = real_part(F, diagonal_of(F, products))
    inner = products - F.matmul(turned, eigenvectors * as_rows(F, lengths))
    inner = _off_diagonal(F, inner) / _gaps(F, F.conj_physical(eigenvalues))
    if by_values is not None:
        inner = inner + with_diagonal(F, by_values)
    return F.solve_block(turned, F.matmul(inner, turned), True, False)[0]


eig_block.derivative(self=_eig_rule)
_Eig = named("linalg_eig", ("eigenvalues", "eigenvectors"))


@exported("linalg")
def eig(input: Tensor, *, out: Any = None) -> Any:
    """Return the eigenvalues and the eigenvectors of ``input``, a square matrix or a batch, in a complex dtype.

    The eigenvectors are columns of norm 1.

    >>> import retrograd as torch
    >>> eigenvalues, eigenvectors = torch.linalg.eig(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    >>> eigenvalues
    tensor([0.+1.j, 0.-1.j])
    """
    return _Eig(eig_block(input))


@linalg_op("eigvals_block")
def eigvals_block(np: Any, self: Any, /) -> Any:
    """Return the eigenvalues of the square matrices ``self`` in a complex dtype."""
    _check_eig(np, self)
    return _complex(np, np.linalg.eigvals(self) if self.size else np.zeros(self.shape[:-1]), self)


@exported("linalg")
def eigvals(input: Tensor, *, out: Any = None) -> Tensor:
    """Return the eigenvalues of ``input``, a square matrix or a batch of them, in a complex dtype.

    >>> import retrograd as torch
    >>> torch.linalg.eigvals(torch.tensor([[0.0, -1.0], [1.0, 0.0]]))
    tensor([0.+1.j, 0.-1.j])
    """
    return eig_block(input)[0] if _may_need_gradient(input) else eigvals_block(input)


# -- Singular values -------------------------------------------------------------------------------------------------


def _check_svd(np: Any, x: Any) -> None:
    check_matrix("linalg.svd", x)
    check_floating("linalg.svd", x)
    check_implemented("linalg_svd_cpu", x)
    if not on_gpu(x) and not bool(np.isfinite(x).all()):
        finite = np.isfinite(x).all((-2, -1))
        batch = f"(Batch element {int(np.argmin(finite.reshape(-1)))}): " if x.ndim > 2 else ""
        raise LinAlgError(
            f"linalg.svd: {batch}The algorithm failed to converge because the input matrix contained non-finite values."
        )


@linalg_op("svd_block", "LinalgSvdBackward0", outputs=("U", "S", "Vh"))
def svd_block(np: Any, self: Any, /, full: bool) -> Any:
    """Return ``(U, S, Vh)`` with ``self = U diag(S) Vh`` and the singular values S in descending order.

    If ``full`` is true, U and Vh are square. Otherwise, for k singular values, U has k columns and Vh has k rows.
    """
    _check_svd(np, self)
    if not self.size:
        return _empty_svd(np, self, full)
    return lapack.svd(np, self, full, True)


def _empty_svd(np: Any, x: Any, full: bool) -> Any:
    """Return the singular value decomposition ``(U, S, Vh)`` of matrices ``x`` without elements.

    Such matrices have no rows, no columns or an empty batch. S has no elements. If ``full`` is true, U and Vh are
    square identity matrices. Otherwise U and Vh have no elements.
    """
    *batch, n, m = x.shape
    sizes = (n, m) if full else (0, 0)
    shapes = ((*batch, n, sizes[0]), (*batch, sizes[1], m))
    u, vh = (np.broadcast_to(np.eye(*shape[-2:], dtype=x.dtype), shape) for shape in shapes)
    if not full and 0 in batch:
        u, vh = np.zeros((*batch, n, min(n, m)), x.dtype), np.zeros((*batch, min(n, m), m), x.dtype)
    return lapack.column_major(np, u), np.zeros((*batch, min(n, m)), x.real.dtype), lapack.column_major(np, vh)


def _svd_rule(F: Any, g: Any, U: Any, S: Any, Vh: Any) -> Any:
    by_u, by_s, by_vh = g
    k = shape_of(S)[-1]
    U, Vh = slice_matrix(F, U, -1, 0, k), slice_matrix(F, Vh, -2, 0, k)
    if by_u is None and by_vh is None:
        return F.matmul(U * as_rows(F, by_s), Vh)
    by_u = None if by_u is None else slice_matrix(F, by_u, -1, 0, k)
    by_vh = None if by_vh is None else slice_matrix(F, by_vh, -2, 0, k)
    left = None if by_u is None else _skew(F, F.matmul(F.turned_fast(U), by_u))
    right = None if by_vh is None else _skew(F, F.matmul(Vh, F.turned_fast(by_vh)))
    _check_phase_invariant(F, add_gradients(left, right), SINGULAR_VECTOR_PHASE_ERROR)
    gaps = _gaps(F, S * S)
    inner = add_gradients(
        None if left is None else left / gaps * as_rows(F, S),
        None if right is None else right / gaps * as_columns(F, S),
    )
    if by_s is not None:
        inner = inner + with_diagonal(F, by_s)
    if left is not None and right is not None and array_of(left).dtype.kind == "c":
        inner = inner + with_diagonal(F, diagonal_of(F, left) / (S * 2))
    result = F.matmul(U, F.matmul(inner, Vh))
    if by_u is not None and shape_of(U)[-2] > k:
        beyond = by_u / as_rows(F, S)
        result = result + F.matmul(beyond - F.matmul(U, F.matmul(F.turned_fast(U), beyond)), Vh)
    if by_vh is not None and shape_of(Vh)[-1] > k:
        beyond = by_vh / as_columns(F, S)
        result = result + F.matmul(U, beyond - F.matmul(F.matmul(beyond, F.turned_fast(Vh)), Vh))
    return result


def _skew(F: Any, x: Any) -> Any:
    return x - F.turned_fast(x)


SINGULAR_VECTOR_PHASE_ERROR = (
    "svd_backward: The singular vectors in the complex case are specified up to multiplication by e^{i phi}. The "
    "specified loss function depends on this phase term, making it ill-defined."
)
svd_block.derivative(self=_svd_rule)
_Svd = named("linalg_svd", ("U", "S", "Vh"))


def _check_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


@exported("linalg")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Any = None) -> Any:
    """Return ``(U, S, Vh)`` with ``A = U diag(S) Vh`` and the singular values S in descending order.

    ``A`` is a matrix or a batch of them. If ``full_matrices`` is true, U and Vh are square. Otherwise, for k singular
    values, U has k columns and Vh has k rows. ``driver`` must be None, because PyTorch supports other values only for
    CUDA tensors.

    >>> import retrograd as torch
    >>> torch.linalg.svd(torch.tensor([[3.0, 0.0], [0.0, 4.0]])).S
    tensor([4., 3.])
    """
    _check_driver(driver)
    return _Svd(svd_block(A, full_matrices))


@linalg_op("svdvals_block")
def svdvals_block(np: Any, self: Any, /) -> Any:
    """Return the singular values of the matrices ``self`` in descending order."""
    _check_svd(np, self)
    if not self.size:
        return np.zeros((*self.shape[:-2], min(self.shape[-2:])), self.real.dtype)
    return lapack.svd(np, self, False, False)[0]


@exported("linalg")
def svdvals(A: Tensor, *, driver: str | None = None, out: Any = None) -> Tensor:
    """Return the singular values, in descending order, of ``A``, a matrix or a batch of them.

    ``driver`` must be None, because PyTorch supports other values only for CUDA tensors.

    >>> import retrograd as torch
    >>> torch.linalg.svdvals(torch.tensor([[3.0, 0.0], [0.0, -5.0]]))
    tensor([5., 3.])
    """
    if HANDLERS and (answer := intercept_locals(svdvals, locals())) is not GO_ON:
        return answer
    _check_driver(driver)
    check_tensors("linalg_svdvals", A=A)
    return svd_block(A, False)[1] if _may_need_gradient(A) else svdvals_block(A)


_OldSvd = named("svd", ("U", "S", "V"))


@public(name="svd")
def old_svd(input: Tensor, some: bool = True, compute_uv: bool = True, *, out: Any = None) -> Any:
    """Return ``(U, S, V)`` with ``input = U diag(S) Vᴴ`` and the singular values S in descending order.

    If ``some`` is true, U and V have k columns for k singular values. Otherwise U and V are square. If ``compute_uv``
    is false, U and V are zeros.
    """
    if input._array.ndim < 2:
        raise RuntimeError(
            f"linalg.svd: input should have at least 2 dimensions, but has {input._array.ndim} dimensions instead"
        )
    if compute_uv:
        u, s, vh = svd_block(input, not some)
        result = u, s, transpose(vh, -2, -1).conj()
    else:
        s = svdvals(input)
        *batch, n, m = input._array.shape
        u = input.new_zeros((*batch, n, n))
        v = transpose(input.new_zeros((*batch, m, m)), -2, -1)
        result = u, s, v
    return _OldSvd(result)


# -- Low rank, with random matrices (Halko, Martinsson and Tropp, 2009) -----------------------------------------------


def _basis(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Return a matrix of ``q`` orthonormal columns whose span approximates the range of ``A - M``.

    If ``M`` is None, the range of ``A`` is approximated. The algorithm is the randomized subspace iteration with
    ``niter`` iterations: Halko, Martinsson and Tropp, 2009, algorithm 4.4.
    """
    start = FUNCTIONS["randn"](A._array.shape[-1], q, dtype=A.dtype, device=A.device)

    def times(x: Tensor, turned: bool) -> Tensor:
        pair = [transpose(each, -2, -1).conj() if turned else each for each in (A, M) if each is not None]
        result = matmul(pair[0], x)
        return result if M is None else result - matmul(pair[1], x)

    result: Tensor = qr(times(start, False))[0]
    for _ in range(niter):
        result = qr(times(qr(times(result, True))[0], False))[0]
    return result


@public(method=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> Any:
    """Return ``(U, S, V)``, an approximate singular value decomposition of ``A - M`` of rank ``q``.

    S approximates the ``q`` largest singular values, and ``U diag(S) Vᴴ`` approximates ``A - M``. If ``M`` is None,
    ``A`` is decomposed. ``niter`` is the number of subspace iterations.
    """
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    wide = A._array.shape[-2] < A._array.shape[-1]
    if M is not None:
        M = FUNCTIONS["broadcast_to"](M, A._array.shape)
    if wide:
        A = transpose(A, -2, -1).conj()
        M = None if M is None else transpose(M, -2, -1).conj()
    basis = _basis(A, q, niter, M)
    turned = transpose(basis, -2, -1).conj()
    small = matmul(turned, A)
    if M is not None:
        small = small - matmul(turned, M)
    u, s, vh = svd_block(small, False)
    u, v = matmul(basis, u), transpose(vh, -2, -1).conj()
    return (v, s, u) if wide else (u, s, v)


@public(method=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """Return the principal component analysis of the rows of ``A``: ``(U, S, V)`` as in ``svd_lowrank``.

    The ``q`` columns of V are the first principal directions. If ``center`` is true, the mean of each column of ``A``
    is subtracted first. ``niter`` is the number of subspace iterations.
    """
    n, m = A._array.shape[-2:]
    if q is None:
        q = min(6, n, m)
    elif not 0 <= q <= min(n, m):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(n, m)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = A - A.mean(dim=(-2,), keepdim=True)
    return svd_lowrank(A, q, niter)


@public(method=False)
def lobpcg(
    A: Tensor,
    k: int | None = None,
    B: Tensor | None = None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Any = None,
    ortho_iparams: Any = None,
    ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:
    """Return the ``k`` largest eigenvalues of the symmetric matrix ``A`` and their eigenvectors.

    If ``largest`` is false, the smallest eigenvalues are returned. If ``B`` is not None, the generalized eigenvalue
    problem ``A V = B V diag(E)`` is solved, with eigenvalues E and eigenvectors V. If ``k`` is None, it is the number
    of columns of ``X``. If ``X`` is None, too, ``k`` is 1.

    PyTorch computes the eigenvalues by an iteration that starts at ``X``. Here, they are computed by a full
    decomposition of the matrix. Therefore the elements of ``X`` and the parameters of the iteration, such as ``iK``,
    ``niter`` and ``tol``, have no effect.

    >>> import retrograd as torch
    >>> values, vectors = torch.lobpcg(torch.diag(torch.arange(1.0, 11.0)), k=2)
    >>> values.round(decimals=2)
    tensor([10.,  9.])
    """
    size = A._array.shape[-1]
    k = k if k is not None else (1 if X is None else X._array.shape[-1])
    if size < 3 * (n or k):
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={size}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n or k})"
        )
    if B is None:
        values, vectors = eigh_block(A, "L")
    else:
        root = cholesky(B)
        half = solve_triangular(root, A, upper=False)
        turned = transpose(root, -2, -1).conj()
        values, vectors = eigh_block(solve_triangular(turned, half, upper=True, left=False), "L")
        vectors = solve_triangular(turned, vectors, upper=True)
    if largest is None or largest:
        values, vectors = flip(values, (-1,)), flip(vectors, (-1,))
    return narrow(values, -1, 0, k), narrow(vectors, -1, 0, k)
