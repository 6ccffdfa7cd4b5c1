"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, broadcast_all


class Cauchy(Distribution):
    """Cauchy distribution with median ``loc`` and half width at half maximum ``scale``; the mean does not exist.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.Cauchy(0.0, 1.0)
    >>> distribution.log_prob(torch.tensor([0.0, 1.0]))
    tensor([-1.1447, -1.8379])
    >>> distribution.cdf(torch.tensor(1.0))
    tensor(0.7500)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.size(), validate_args=validate_args)

    mean = property(lambda self: self.loc.new_full(self._extended_shape(), math.nan))
    mode = property(lambda self: self.loc)
    variance = property(lambda self: self.loc.new_full(self._extended_shape(), math.inf))

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        drawn = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Tensor:
        return math.log(4 * math.pi) + self.scale.log()


__all__ = ["Cauchy"]
