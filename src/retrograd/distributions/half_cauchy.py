"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import retrograd as torch
from retrograd import Tensor

from .cauchy import Cauchy
from .half_normal import HalfDistribution


class HalfCauchy(HalfDistribution):
    """Half-Cauchy distribution: the absolute value of a Cauchy variable with median 0 and scale ``scale``."""

    _whole = Cauchy

    mean = property(lambda self: self.scale.new_full(self._extended_shape(), math.inf))
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return super().log_prob(torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))


__all__ = ["HalfCauchy"]
