"""The generalised Pareto distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, broadcast_all, uniform


class GeneralizedPareto(Distribution):
    """Generalised Pareto distribution of values greater than or equal to ``loc``.

    A sample is greater than ``x`` with probability ``(1 + concentration * (x - loc) / scale) ** (-1 / concentration)``.
    The parameter ``concentration`` is also called the shape.

    >>> GeneralizedPareto(0.0, 1.0, 0.0).cdf(torch.tensor(1.0))
    tensor(0.6321)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive, "concentration": constraints.real}
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        end = self.loc - self.scale / self.concentration
        return constraints.interval(self.loc, torch.where(self.concentration < 0, end, math.inf))

    def _exponential(self) -> tuple[Tensor, Tensor]:
        """Return two tensors: a mask of the zeros of ``concentration``, and ``concentration`` with 1 in their place.

        Where ``concentration`` is 0, the distribution is exponential. The replacement avoids a division by zero in the
        general formulas.
        """
        zero = torch.isclose(self.concentration, self.concentration.new_zeros(()))
        return zero, torch.where(zero, torch.ones_like(self.concentration), self.concentration)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.loc))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        z = (value - self.loc) / self.scale
        zero, concentration = self._exponential()
        power = 1 / concentration + torch.ones_like(z)
        tail = torch.where(power == 0, power, power * torch.log1p(concentration * z))
        return -self.scale.log() - torch.where(zero, z, tail)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of a sample greater than ``value``."""
        self._check_sample(value)
        z = (value - self.loc) / self.scale
        zero, concentration = self._exponential()
        return torch.where(zero, -z, -torch.log1p(concentration * z) / concentration)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of :meth:`cdf` at ``value``."""
        return torch.log1p(-torch.exp(self.log_survival_function(value)))

    def cdf(self, value: Tensor) -> Tensor:
        return torch.exp(self.log_cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        zero, concentration = self._exponential()
        survived = torch.log1p(-value)
        tail = self.scale * torch.expm1(-concentration * survived) / concentration
        return torch.where(zero, self.loc - self.scale * survived, self.loc + tail)

    @property
    def mean(self) -> Tensor:
        finite = self.concentration < 1
        safe = torch.where(finite, self.concentration, 0.5)
        return torch.where(finite, self.loc + self.scale / (1 - safe), math.nan)

    mode = property(lambda self: self.loc)

    @property
    def variance(self) -> Tensor:
        finite = self.concentration < 0.5
        safe = torch.where(finite, self.concentration, 0.25)
        return torch.where(finite, self.scale**2 / ((1 - safe) ** 2 * (1 - 2 * safe)), math.nan)

    def entropy(self) -> Tensor:
        return torch.broadcast_to(torch.log(self.scale) + self.concentration + 1, self._batch_shape)


__all__ = ["GeneralizedPareto"]
