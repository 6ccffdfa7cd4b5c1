"""Student's t-distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .chi2 import Chi2
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, broadcast_all, standard_normal


class StudentT(Distribution):
    """Student's t-distribution with ``df`` degrees of freedom, shifted by ``loc`` and scaled by ``scale``.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.StudentT(torch.tensor(3.0))
    >>> distribution.variance, distribution.log_prob(torch.tensor(0.0))
    (tensor(3.), tensor(-1.0009))
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _stretched = ("_chi2",)

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        self._chi2 = Chi2(self.df)
        super().__init__(self.df.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        mean = self.loc.clone(memory_format=torch.contiguous_format)
        mean[self.df <= 1] = math.nan
        return mean

    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.df > 2
        result = torch.full_like(self.df, math.inf)
        result[finite] = self.scale[finite].pow(2) * self.df[finite] / (self.df[finite] - 2)
        result[self.df <= 1] = math.nan
        return result

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        normal = standard_normal(self._extended_shape(sample_shape), self.df)
        return self.loc + self.scale * (normal * torch.rsqrt(self._chi2.rsample(sample_shape) / self.df))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y, half = (value - self.loc) / self.scale, 0.5 * (self.df + 1.0)
        norm = (
            self.scale.log() + 0.5 * self.df.log() + 0.5 * math.log(math.pi)
            + torch.lgamma(0.5 * self.df) - torch.lgamma(half)
        )  # fmt: skip
        return -half * torch.log1p(y**2.0 / self.df) - norm

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        beta = torch.lgamma(0.5 * self.df) + math.lgamma(0.5) - torch.lgamma(half)
        return (
            self.scale.log() + half * (torch.digamma(half) - torch.digamma(0.5 * self.df)) + 0.5 * self.df.log() + beta
        )


__all__ = ["StudentT"]
