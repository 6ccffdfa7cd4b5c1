"""The Wishart distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Size, Tensor

from ..runtime.user_frame import warn
from . import constraints
from .chi2 import Chi2
from .exp_family import ExponentialFamily
from .multivariate_normal import CovarianceBased, log_diagonal
from .utils import SINGLE_SAMPLE


def mvdigamma(x: Tensor, p: int) -> Tensor:
    """Return the derivative of ``mvlgamma(x, p)``, the multivariate log-gamma function, with respect to ``x``."""
    if not (x > (p - 1) / 2).all():
        raise AssertionError("Wrong domain for multivariate digamma function.")
    steps = torch.arange(p, dtype=x.dtype, device=x.device)
    return torch.digamma(x.unsqueeze(-1) - steps.div(2)).sum(-1)


class Wishart(CovarianceBased, ExponentialFamily):
    """Wishart distribution of positive definite matrices.

    A sample is the sum of ``x x^T`` over ``df`` normal vectors ``x`` of mean 0. The covariance of the vectors is
    specified by ``covariance_matrix``, by its inverse ``precision_matrix``, or by its Cholesky factor ``scale_tril``.

    Source of the sampling algorithm (Bartlett's decomposition): Odell and Feiveson, "A numerical procedure to generate
    a sample covariance matrix", 1966.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.Wishart(torch.tensor(3.0), torch.eye(2))
    >>> distribution.mean
    tensor([[3., 0.],
            [0., 3.]])
    >>> distribution.log_prob(torch.eye(2))
    tensor(-3.5310)
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _pickled_attributes = ("_batch_dims",)
    _batch_dims = property(lambda self: [-1 - axis for axis in range(len(self.batch_shape))])

    def __init__(
        self, df: Any, covariance_matrix: Tensor | None = None, precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None, validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        name, matrix = self._given_matrix((covariance_matrix, precision_matrix, scale_tril), AssertionError)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        df = df if isinstance(df, Tensor) else torch.tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape, event_shape = torch.broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        setattr(self, name, matrix.expand(*batch_shape, -1, -1))
        size = event_shape[-1]
        if self.df.le(size - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        if self.df.lt(size).any():
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        self._set_scale_tril(name, matrix)
        self._dist_chi2 = self._diagonal_squares()

    def _diagonal_squares(self) -> Chi2:
        """Return the distributions of the squared diagonal elements in Bartlett's decomposition.

        They are chi-squared distributions. The batch shape of the result is ``batch_shape + (n,)`` for matrices of size
        n.
        """
        fewer = torch.arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)
        return Chi2(self.df.unsqueeze(-1) - fewer.expand(*self._batch_shape, -1))

    def _expand_into(self, new: Any, batch_shape: Any) -> None:
        super()._expand_into(new, batch_shape)
        new._dist_chi2 = self._dist_chi2.expand((*batch_shape, -1))

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    mean = property(lambda self: self.df.view(*self._batch_shape, 1, 1) * self.covariance_matrix)

    @property
    def mode(self) -> Tensor:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        factor = factor.masked_fill(factor <= 0, math.nan)
        return factor.view(*self._batch_shape, 1, 1) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        diagonal = self.covariance_matrix.diagonal(dim1=-2, dim2=-1)
        products = self.covariance_matrix.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self.df.view(*self._batch_shape, 1, 1) * products

    def _drawn(self, sample_shape: Size) -> Tensor:
        size = self._event_shape[-1]
        factor = self._dist_chi2.rsample(sample_shape).sqrt().diag_embed(dim1=-2, dim2=-1)
        rows, columns = torch.tril_indices(size, size, offset=-1)
        shape = (*sample_shape, *self._batch_shape, size * (size - 1) // 2)
        factor[..., rows, columns] = torch.randn(shape, dtype=self.df.dtype, device=self.df.device)
        factor = self._unbroadcasted_scale_tril @ factor
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE, max_try_correction: int | None = None) -> Tensor:
        """Return reparametrised samples of shape ``sample_shape + batch_shape + event_shape``.

        The samples are differentiable with respect to the parameters. If samples are singular because of rounding, a
        warning is issued, and they are drawn again up to ``max_try_correction - 1`` times (by default 9). Samples that
        are still singular are returned.
        """
        sample_shape, tries = Size(sample_shape), 10 if max_try_correction is None else max_try_correction
        value = self._drawn(sample_shape)
        if tries > 0:  # PyTorch always discards its first samples, and so uses the second ones
            value = self._drawn(sample_shape)
        singular = self._singular(value)
        if singular.any():
            warn("Singular sample detected.")
        for _ in range(tries - 1):
            if not singular.any():
                break
            value[singular] = self._drawn(Size((int(singular.sum()),)))
            singular = self._singular(value)
        return value

    def _singular(self, value: Tensor) -> Tensor:
        """Return a boolean tensor of shape ``sample_shape`` that is true for each sample with a singular matrix.

        ``value`` are the samples, of shape ``sample_shape + batch_shape + event_shape``. A sample has one matrix for
        each element of the batch.
        """
        wrong = self.support.check(value.detach()).logical_not()
        batch = tuple(range(-len(self._batch_shape), 0))
        return wrong.any(batch) if batch else wrong

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        df, size, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = torch.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return (
            -df * (size * math.log(2) / 2 + log_diagonal(factor)) - torch.mvlgamma(df / 2, p=size)
            + (df - size - 1) / 2 * torch.linalg.slogdet(value).logabsdet - trace / 2
        )  # fmt: skip

    def entropy(self) -> Tensor:
        df, size = self.df, self._event_shape[-1]
        return (
            (size + 1) * (size * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril))
            + torch.mvlgamma(df / 2, p=size) - (df - size - 1) / 2 * mvdigamma(df / 2, size) + df * size / 2
        )  # fmt: skip

    _natural_params = property(lambda self: (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        size = self._event_shape[-1]
        half = y + (size + 1) / 2
        return half * (-torch.linalg.slogdet(-2 * x).logabsdet + math.log(2) * size) + torch.mvlgamma(half, p=size)


__all__ = ["Wishart"]
