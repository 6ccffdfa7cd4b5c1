"""Predefined parametrizations: orthogonal, weight_norm and spectral_norm."""

from __future__ import annotations

from typing import Any

from ...core.dtypes import finfo
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...operations.creation.factory import eye, zeros_like
from ...operations.linalg.factorizations import geqrf, householder_product
from ...operations.linalg.matmul import dot, mv
from ...operations.linalg.norms import matrix_exp
from ...operations.linalg.solve import solve
from ...operations.shape.join import cat
from .. import functional as F
from ..modules.module import Module
from . import parametrize
from .spectral_norm import TRANSPOSED, as_matrix, power_iteration
from .weight_norm import norm_except_dim, weight_from_norm

MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module: Any, name: str) -> Tensor:
    result = getattr(module, name, None)
    if not isinstance(result, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return result


def _like_eye(size: int, other: Tensor) -> Tensor:
    return eye(size, dtype=other.dtype, device=other.device)


def _is_orthogonal(Q: Tensor) -> bool:
    rows, columns = Q.shape[-2:]
    tolerance = 10 * rows * finfo(Q.dtype).eps
    return Q.mH.matmul(Q).allclose(_like_eye(columns, Q), atol=tolerance)


def _orthogonal_factor(A: Tensor) -> Tensor:
    """Return the factor Q of the QR decomposition ``A = Q R``, where the diagonal of R is positive."""
    X, tau = geqrf(A)
    return householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


class _Orthogonal(Module):
    """Module that maps any matrix to an orthogonal matrix; the parametrization that :func:`orthogonal` registers."""

    base: Any

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool = True) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """Return an orthogonal matrix of the shape of ``X``, computed from ``X``.

        The rows of the result are orthonormal if ``X`` has more columns than rows. Otherwise the columns are
        orthonormal.
        """
        wide = X.size(-2) < X.size(-1)
        X = X.mT if wide else X
        Q = self._householder_product(X) if self.orthogonal_map == "householder" else self._exponential_map(X)
        if hasattr(self, "base"):
            Q = self.base.matmul(Q)
        return Q.mT if wide else Q

    def _exponential_map(self, X: Tensor) -> Tensor:
        """Return the orthogonal matrix that is computed from ``A = L - L.mH``, where L is the lower triangle of ``X``.

        It is the matrix exponential of ``A`` or, if the attribute ``orthogonal_map`` is ``"cayley"``, the Cayley
        transform of ``A``. If ``X`` has fewer columns than rows, L is padded with zeros to a square matrix, and only
        the first columns of the orthogonal matrix are returned.
        """
        rows, columns = X.shape[-2:]
        X = X.tril()
        if rows != columns:
            X = cat([X, X.new_zeros(rows, rows - columns).expand(*X.shape[:-2], -1, -1)], -1)
        A = X - X.mH
        if self.orthogonal_map == "matrix_exp":
            Q = matrix_exp(A)
        else:
            one = _like_eye(rows, A)
            Q = solve(one - A / 2, one + A / 2)
        return Q[..., :columns]

    def _householder_product(self, X: Tensor) -> Tensor:
        """Return the product of the Householder reflections whose vectors are the columns of ``X`` below the diagonal.

        The columns of the product are multiplied by the diagonal elements of ``X``, which are 1 or -1.
        """
        A = X.tril(diagonal=-1)
        tau = 2.0 / (A * A).sum(dim=-2).add(1.0)
        return householder_product(A, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    def right_inverse(self, Q: Tensor) -> Tensor:
        """Return a matrix ``X`` such that ``forward(X)`` is the orthogonal matrix ``Q``.

        This method is called when a value is assigned to the parametrized tensor.

        If the module was constructed with ``use_trivialization=True``, ``Q`` may be any matrix: it is first made
        orthogonal by a QR decomposition. The orthogonal matrix is then stored as ``base``, by which ``forward``
        multiplies its result.

        With ``use_trivialization=False``, NotImplementedError is raised unless ``orthogonal_map`` is ``"householder"``.
        """
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        given = Q
        wide = Q.size(-2) < Q.size(-1)
        Q = Q.mT if wide else Q
        rows, columns = Q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, tau = geqrf(Q)
            diagonal = A.diagonal(dim1=-2, dim2=-1)
            diagonal.sign_()
            diagonal[tau.eq(0.0)] *= -1  # LAPACK omits identity reflections (tau == 0), forward applies all
            return A.mT if wide else A
        if rows == columns:
            Q = Q.clone() if _is_orthogonal(Q) else _orthogonal_factor(Q)
        else:
            more = Q.new_empty((*Q.shape[:-2], rows, rows - columns)).normal_()
            Q = _orthogonal_factor(cat([Q, more], -1))
        self.base = Q
        start = zeros_like(given)
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Any, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Any:
    """Constrain the matrix (or the batch of matrices) ``name`` of ``module`` to be orthogonal; return ``module``.

    ``orthogonal_map`` is ``"matrix_exp"`` (default for square matrices), ``"cayley"`` or ``"householder"`` (default for
    other matrices). If ``use_trivialization`` is true, any orthogonal matrix can be assigned to the parameter: it is
    stored as the buffer ``base``, by which the computed matrix is multiplied.

    >>> import retrograd as torch
    >>> layer = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(2, 4))
    >>> torch.dist(layer.weight.mT @ layer.weight, torch.eye(2)) < 1e-5
    tensor(True)
    """
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return parametrize.register_parametrization(module, name, made, unsafe=True)


class _WeightNorm(Module):
    """Module that computes a weight from its norm and direction; the parametrization of :func:`weight_norm`."""

    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        """Return the weight with the norm ``weight_g`` and the direction of ``weight_v``."""
        return weight_from_norm(weight_v, weight_g, self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        """Return the pair ``(norm, weight)``, from which ``forward`` computes ``weight``."""
        return norm_except_dim(weight, self.dim), weight


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Parametrize the parameter ``name`` of ``module`` by its norm and its direction (Salimans and Kingma 2016).

    The norm is computed for each index along ``dim``, or over the whole parameter if ``dim`` is None. Returns
    ``module``. A ``state_dict`` that was saved with ``torch.nn.utils.weight_norm`` can be loaded.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 4))
    >>> [name for name, _ in layer.named_parameters()]
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    parametrize.register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def take_old_names(state_dict: Any, prefix: str, *rest: Any) -> None:
        g, v = (f"{prefix}{name}_{end}" for end in "gv")
        if g in state_dict and v in state_dict:
            for place, old in enumerate((g, v)):
                state_dict[f"{prefix}parametrizations.{name}.original{place}"] = state_dict.pop(old)

    module._register_load_state_dict_pre_hook(take_old_names)
    return module


class _SpectralNorm(Module):
    """Module that divides a weight by its largest singular value; the parametrization of :func:`spectral_norm`."""

    _u: Any
    _v: Any

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            rows, columns = matrix.size()
            for name, size in (("_u", rows), ("_v", columns)):
                start = matrix.new_empty(size).normal_(0, 1)
                self.register_buffer(name, F.normalize(start, dim=0, eps=eps).detach())
            power_iteration(matrix, self._u, self._v, 15, eps, v_first=False)

    def forward(self, weight: Tensor) -> Tensor:
        """Return ``weight`` divided by the estimate of its largest singular value.

        In training mode, the estimate is first improved by power iterations.
        """
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            power_iteration(matrix, self._u, self._v, self.n_power_iterations, self.eps, v_first=False)
        return weight / dot(self._u.clone(), mv(matrix, self._v.clone()))

    def right_inverse(self, value: Tensor) -> Tensor:
        """Return ``value`` unchanged, because the singular value before the division is not known."""
        return value


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Divide the parameter ``name`` of ``module`` by its largest singular value (Miyato et al. 2018).

    The quotient is computed by a parametrization. In training mode, each computation first improves the estimate of the
    singular value by ``n_power_iterations`` power iterations. The norms by which the power iterations divide vectors
    are at least ``eps``. ``dim`` is the dimension of the output channels: by default 1 for transposed convolutions,
    otherwise 0. Returns ``module``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.parametrizations.spectral_norm(nn.Linear(3, 4), n_power_iterations=100)
    >>> round(torch.linalg.matrix_norm(layer.weight, 2).item(), 3)
    1.0
    """
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if isinstance(module, TRANSPOSED) else 0
    with no_grad():
        made = _SpectralNorm(weight, n_power_iterations, dim, eps)
    return parametrize.register_parametrization(module, name, made)


__all__ = ["orthogonal", "spectral_norm", "weight_norm"]
