"""The Lewandowski-Kurowicka-Joe (LKJ) distribution of correlation matrices."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Size, Tensor

from . import constraints
from .beta import Beta
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, broadcast_all


class LKJCholesky(Distribution):
    """LKJ distribution of the Cholesky factors of correlation matrices of size ``dim``.

    The density of a correlation matrix is proportional to its determinant to the power ``concentration - 1``. With
    ``concentration=1`` the distribution is uniform.

    Source: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009, section 3 (the onion method).

    >>> import retrograd as torch
    >>> distribution = torch.distributions.LKJCholesky(3, 1.0)
    >>> L = distribution.sample()
    >>> (L @ L.T).diagonal().round(decimals=4)  # of a correlation matrix
    tensor([1., 1., 1.])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _kept = ("dim",)

    def __init__(self, dim: int, concentration: Any = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        steps = torch.arange(dim - 1, dtype=self.concentration.dtype, device=self.concentration.device)
        before = torch.cat([steps.new_zeros((1,)), steps])
        rest = (self.concentration + 0.5 * (dim - 2)).unsqueeze(-1) - 0.5 * before
        self._beta = Beta(before + 0.5, rest)
        super().__init__(self.concentration.size(), (dim, dim), validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Any) -> None:
        super()._expand_into(new, batch_shape)
        new._beta = self._beta.expand((*batch_shape, self.dim))

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        """Return samples of shape ``sample_shape + batch_shape + event_shape``.

        A sample is a lower triangular matrix whose rows have norm 1. The elements to the left of the diagonal are a
        vector with random direction, whose squared norm is a sample of a beta distribution. The diagonal element
        follows from the norm 1 of the row.
        """
        with torch.no_grad():
            y = self._beta.sample(Size(sample_shape)).unsqueeze(-1)
            noise = torch.randn(self._extended_shape(sample_shape), dtype=y.dtype, device=y.device).tril(-1)
            directions = noise / noise.norm(dim=-1, keepdim=True)
            directions[..., 0, :].fill_(0.0)  # the first row has no off-diagonal element
            result = torch.sqrt(y) * directions
            left = torch.clamp(1 - torch.sum(result**2, dim=-1), min=torch.finfo(result.dtype).tiny)
            return result + torch.diag_embed(left.sqrt())

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        diagonal, rest = value.diagonal(dim1=-1, dim2=-2)[..., 1:], self.dim - 1
        order = torch.arange(2, self.dim + 1, device=self.concentration.device)
        order = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - order
        alpha = self.concentration + 0.5 * rest
        norm = 0.5 * rest * math.log(math.pi) + torch.mvlgamma(alpha - 0.5, p=rest) - torch.lgamma(alpha) * rest
        return torch.sum(order * diagonal.log(), dim=-1) - norm


__all__ = ["LKJCholesky"]
