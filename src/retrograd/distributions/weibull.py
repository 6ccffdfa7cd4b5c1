"""The Weibull distribution."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .exponential import Exponential
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant


class Weibull(TransformedDistribution):
    """Weibull distribution of failure times with scale ``scale`` and shape ``concentration``.

    The failure rate increases with time if ``concentration`` is above 1, and decreases if ``concentration`` is below 1.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.Weibull(2.0, 1.0)
    >>> distribution.mean, distribution.log_prob(torch.tensor(1.0))
    (tensor(2.), tensor(-1.1931))
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    _pickled_attributes = ("concentration_reciprocal",)
    concentration_reciprocal = property(lambda self: self.concentration.reciprocal())

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        steps = [PowerTransform(exponent=self.concentration.reciprocal()), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, steps, validate_args=validate_args)

    mean = property(lambda self: self.scale * torch.exp(torch.lgamma(1 + self.concentration.reciprocal())))

    @property
    def mode(self) -> Tensor:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration.reciprocal()

    @property
    def variance(self) -> Tensor:
        power = self.concentration.reciprocal()
        return self.scale.pow(2) * (torch.exp(torch.lgamma(1 + 2 * power)) - torch.exp(2 * torch.lgamma(1 + power)))

    def entropy(self) -> Tensor:
        power = self.concentration.reciprocal()
        return euler_constant * (1 - power) + torch.log(self.scale * power) + 1


__all__ = ["Weibull"]
