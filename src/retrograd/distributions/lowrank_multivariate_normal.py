"""The multivariate normal distribution whose covariance is a low-rank matrix plus a diagonal."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .multivariate_normal import log_diagonal, mahalanobis, times_vectors
from .utils import SINGLE_SAMPLE, lazy_property, standard_normal


def tril_of_identity_plus(matrix: Tensor) -> Tensor:
    """Return the Cholesky factor of ``I + matrix``, where ``I`` is the identity matrix.

    The sum is computed in place to save memory, so ``matrix`` must not be used afterwards.
    """
    size = matrix.shape[-1]
    matrix = matrix.contiguous()
    matrix.view(-1, size * size)[:, :: size + 1] += 1
    return torch.linalg.cholesky(matrix)


def capacitance_tril(factor: Tensor, diagonal: Tensor) -> Tensor:
    """Return the Cholesky factor of ``I + W.mT @ D^-1 @ W``, the capacitance matrix of the covariance ``W @ W.mT + D``.

    ``W`` is ``factor``, of shape (size, rank), and ``D`` is the matrix with the diagonal ``diagonal``, of shape (size).
    The result has the shape (rank, rank).
    """
    return tril_of_identity_plus(torch.matmul(factor.mT / diagonal.unsqueeze(-2), factor))


def lowrank_logdet(diagonal: Tensor, capacitance: Tensor) -> Tensor:
    """Return the logarithm of the determinant of ``W @ W.mT + D``, by the matrix determinant lemma.

    ``D`` is the matrix with the diagonal ``diagonal``. ``W`` is not passed; instead, ``capacitance`` is the result of
    :func:`capacitance_tril` for ``W`` and ``D``.
    """
    return 2 * log_diagonal(capacitance) + diagonal.log().sum(-1)


def lowrank_mahalanobis(factor: Tensor, diagonal: Tensor, vectors: Tensor, capacitance: Tensor) -> Tensor:
    """Return ``x @ (W @ W.mT + D)^-1 @ x`` for each vector ``x`` in ``vectors``, by Woodbury's formula.

    ``W`` is ``factor``, and ``D`` is the matrix with the diagonal ``diagonal``. ``capacitance`` is the result of
    :func:`capacitance_tril` for ``W`` and ``D``.
    """
    projected = times_vectors(factor.mT / diagonal.unsqueeze(-2), vectors)
    return (vectors.pow(2) / diagonal).sum(-1) - mahalanobis(capacitance, projected)


class LowRankMultivariateNormal(Distribution):
    """Multivariate normal distribution of mean ``loc`` and covariance ``cov_factor @ cov_factor.mT + diag(cov_diag)``.

    >>> LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(2)).covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None) -> None:
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        event_shape = loc.shape[-1:]
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            batch_shape = torch.broadcast_shapes(loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1])
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = (each.unsqueeze(-1).expand(*batch_shape, -1, 1)[..., 0] for each in (loc, cov_diag))
        self.cov_factor = cov_factor.expand(*batch_shape, -1, -1)
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag

    def _full(self, matrices: Tensor) -> Tensor:
        return matrices.expand(self._batch_shape + self._event_shape + self._event_shape)

    mean = property(lambda self: self.loc)
    mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        result = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return result.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """Return the Cholesky factor of the covariance matrix."""
        # Factoring out D^1/2 on both sides leaves I + (D^-1/2 W) (D^-1/2 W)^T, which is well conditioned.
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._full(root * tril_of_identity_plus(torch.matmul(scaled, scaled.mT)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """Return the covariance matrix."""
        factor = self._unbroadcasted_cov_factor
        return self._full(torch.matmul(factor, factor.mT) + torch.diag_embed(self._unbroadcasted_cov_diag))

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Return the inverse of the covariance matrix."""
        diagonal = self._unbroadcasted_cov_diag
        scaled = self._unbroadcasted_cov_factor.mT / diagonal.unsqueeze(-2)
        solved = torch.linalg.solve_triangular(self._capacitance_tril, scaled, upper=False)
        return self._full(torch.diag_embed(diagonal.reciprocal()) - torch.matmul(solved.mT, solved))

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        of_rank = standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc)
        of_each = standard_normal(shape, self.loc)
        return (
            self.loc + times_vectors(self._unbroadcasted_cov_factor, of_rank)
            + self._unbroadcasted_cov_diag.sqrt() * of_each
        )  # fmt: skip

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        factor, diagonal = self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag
        distance = lowrank_mahalanobis(factor, diagonal, value - self.loc, self._capacitance_tril)
        log_det = lowrank_logdet(diagonal, self._capacitance_tril)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + log_det + distance)

    def entropy(self) -> Tensor:
        log_det = lowrank_logdet(self._unbroadcasted_cov_diag, self._capacitance_tril)
        result = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + log_det)
        return result.expand(self._batch_shape) if self._batch_shape else result


__all__ = ["LowRankMultivariateNormal"]
