"""``MultivariateNormal`` distribution, and functions of Cholesky factors."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, lazy_property, standard_normal


def times_vectors(matrices: Tensor, vectors: Tensor) -> Tensor:
    """Return the products of ``matrices`` (…, m, n) and ``vectors`` (…, n), of shape (…, m)."""
    return torch.matmul(matrices, vectors.unsqueeze(-1)).squeeze(-1)


def log_diagonal(triangular: Tensor) -> Tensor:
    """Return the sum of the logarithms of the diagonal elements of ``triangular``, for each matrix.

    For a Cholesky factor ``L`` the result is half of the logarithm of the determinant of ``L @ L.mT``.
    """
    return triangular.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def mahalanobis(triangular: Tensor, vectors: Tensor) -> Tensor:
    """Return ``x @ (L @ L.mT)^-1 @ x`` for each vector ``x`` in ``vectors``, where ``L`` is ``triangular``.

    Vectors with the same matrix ``L`` are combined to the columns of a matrix, so that a single triangular system is
    solved.
    """
    more = vectors.dim() + 1 - triangular.dim()
    if more <= 0:
        solved = torch.linalg.solve_triangular(triangular, vectors.unsqueeze(-1), upper=False)
        return solved.pow(2).sum((-2, -1))
    sample, batch = vectors.shape[:more], vectors.shape[more:-1]
    columns = vectors.reshape(-1, *vectors.shape[more:]).movedim(0, -1)
    result = torch.linalg.solve_triangular(triangular, columns, upper=False).pow(2).sum(-2)
    return result.movedim(-1, 0).reshape(*sample, *torch.broadcast_shapes(batch, triangular.shape[:-2]))


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """Return the Cholesky factor of the inverse of ``precision``, without computing this inverse.

    The rows and columns of ``precision`` are put in reverse order. The result is the inverse of the Cholesky factor of
    this matrix, put in reverse order and transposed.
    """
    factor = torch.linalg.cholesky(torch.flip(precision, (-2, -1)))
    inverse = torch.transpose(torch.flip(factor, (-2, -1)), -2, -1)
    identity = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return torch.linalg.solve_triangular(inverse, identity, upper=False)


# Names that packages import.
_batch_mv, _batch_mahalanobis, _precision_to_scale_tril = times_vectors, mahalanobis, precision_to_scale_tril

#: The three arguments that specify a covariance, with their names in errors.
MATRICES = {
    "covariance_matrix": "covariance_matrix", "precision_matrix": "precision_matrix", "scale_tril": "scale_tril matrix"
}  # fmt: skip


class CovarianceBased(Distribution):
    """Base class of distributions with a covariance matrix, its inverse and its Cholesky factor.

    Only one of the three matrices is passed. The Cholesky factor is computed at once. Any other matrix that was not
    passed is computed from it on first access.
    """

    _unbroadcasted_scale_tril: Tensor
    _kept = ("_unbroadcasted_scale_tril",)

    @staticmethod
    def _given_matrix(matrices: tuple[Tensor | None, ...], error: type[Exception]) -> tuple[str, Tensor]:
        """Return the name and the value of the matrix that has been passed to the constructor.

        ``matrices`` are the values of the parameters named in :data:`MATRICES`. ``error`` is raised unless exactly one
        of them is not None.
        """
        given = [(name, each) for name, each in zip(MATRICES, matrices, strict=True) if each is not None]
        if len(given) != 1:
            raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        return given[0]

    def _set_scale_tril(self, name: str, matrix: Tensor) -> None:
        """Compute and store the Cholesky factor of the covariance matrix.

        ``matrix`` is the matrix that has been passed as the parameter ``name``, such as ``precision_matrix``.
        """
        if name == "precision_matrix":
            matrix = precision_to_scale_tril(matrix)
        elif name == "covariance_matrix":
            matrix = torch.linalg.cholesky(matrix)
        self._unbroadcasted_scale_tril = matrix

    def _full(self, matrices: Tensor) -> Tensor:
        """Return ``matrices`` expanded to the batch shape."""
        return matrices.expand(*self._batch_shape, -1, -1)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of ``covariance_matrix``."""
        return self._full(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance matrix of the normal vectors (in ``Wishart``, whose outer products are summed)."""
        return self._full(torch.matmul(self._unbroadcasted_scale_tril, self._unbroadcasted_scale_tril.mT))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Return the inverse of ``covariance_matrix``."""
        return self._full(torch.cholesky_inverse(self._unbroadcasted_scale_tril))


class MultivariateNormal(CovarianceBased):
    """Multivariate normal distribution of mean ``loc``.

    The covariance is specified by exactly one of ``covariance_matrix``, its inverse ``precision_matrix``, and its
    Cholesky factor ``scale_tril``. ``scale_tril`` is the fastest, because the other two are converted to it.

    >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
    tensor(-1.8379)
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self, loc: Tensor, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = self._given_matrix((covariance_matrix, precision_matrix, scale_tril), ValueError)
        if matrix.dim() < 2:
            raise ValueError(
                f"{MATRICES[name]} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(*batch_shape, -1, -1))
        self.loc = loc.expand(*batch_shape, -1)
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._set_scale_tril(name, matrix)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        noise = standard_normal(self._extended_shape(sample_shape), self.loc)
        return self.loc + times_vectors(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        factor = self._unbroadcasted_scale_tril
        distance = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + distance) - log_diagonal(factor)

    def entropy(self) -> Tensor:
        log_det = log_diagonal(self._unbroadcasted_scale_tril)
        result = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det
        return result.expand(self._batch_shape) if self._batch_shape else result


__all__ = ["MultivariateNormal"]
