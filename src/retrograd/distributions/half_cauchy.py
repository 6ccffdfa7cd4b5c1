"""The half-Cauchy distribution."""

from __future__ import annotations

import math

import retrograd as torch
from retrograd import Tensor

from .cauchy import Cauchy
from .half_normal import HalfDistribution


class HalfCauchy(HalfDistribution):
    """Half-Cauchy distribution: the absolute value of a Cauchy variable with median 0 and scale ``scale``.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.HalfCauchy(1.0)
    >>> distribution.log_prob(torch.tensor([0.0, 1.0]))
    tensor([-0.4516, -1.1447])
    >>> distribution.cdf(torch.tensor(1.0))
    tensor(0.5000)
    """

    _whole = Cauchy

    mean = property(lambda self: self.scale.new_full(self._extended_shape(), math.inf))
    variance = property(lambda self: self.base_dist.variance)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return super().log_prob(torch.as_tensor(value, dtype=self.scale.dtype, device=self.scale.device))


__all__ = ["HalfCauchy"]
