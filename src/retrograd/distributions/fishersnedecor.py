"""The Fisher-Snedecor distribution (F-distribution)."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .gamma import Gamma
from .utils import SINGLE_SAMPLE, broadcast_all


class FisherSnedecor(Distribution):
    """F-distribution: the ratio of two chi-squared variables, each divided by its degrees of freedom.

    ``df1`` is the number of degrees of freedom of the numerator, ``df2`` that of the denominator.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.FisherSnedecor(2.0, 4.0)
    >>> distribution.mean, distribution.log_prob(torch.tensor(1.0))
    (tensor(2.), tensor(-1.2164))
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _stretched = ("_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        self._gamma1, self._gamma2 = Gamma(self.df1 * 0.5, self.df1), Gamma(self.df2 * 0.5, self.df2)
        super().__init__(self.df1.size(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 2, math.nan)
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        mode[self.df1 <= 2] = math.nan
        return mode

    @property
    def variance(self) -> Tensor:
        df2 = self.df2.masked_fill(self.df2 <= 4, math.nan)
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        above, below = (each.rsample(sample_shape).view(shape) for each in (self._gamma1, self._gamma2))
        tiny = torch.finfo(below.dtype).tiny
        below.detach().clamp_(min=tiny)
        return (above / below).clamp_(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        half1, half2, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        norm = (half1 + half2).lgamma() - half1.lgamma() - half2.lgamma()
        power = half1 * ratio.log() + (half1 - 1) * torch.log(value)
        return norm + power - (half1 + half2) * torch.log1p(ratio * value)


__all__ = ["FisherSnedecor"]
