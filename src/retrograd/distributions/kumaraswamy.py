"""The Kumaraswamy distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


class Kumaraswamy(TransformedDistribution):
    """Kumaraswamy distribution on (0, 1), with density proportional to ``x ** (a - 1) * (1 - x ** a) ** (b - 1)``.

    ``a`` is ``concentration1`` and ``b`` is ``concentration0``. The distribution resembles the beta distribution, but
    its quantiles have a closed form.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.Kumaraswamy(torch.tensor(1.0), torch.tensor(2.0))
    >>> distribution.mean, distribution.log_prob(torch.tensor(0.5))
    (tensor(0.3333), tensor(0.))
    """

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None) -> None:
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        zeros, ones = torch.zeros_like(self.concentration0), torch.ones_like(self.concentration0)
        steps = [
            PowerTransform(exponent=self.concentration0.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(Uniform(zeros, ones, validate_args=validate_args), steps, validate_args=validate_args)

    def _moment(self, order: int) -> Tensor:
        """Return the expected value of ``x ** order`` over samples ``x``."""
        a, b = self.concentration1, self.concentration0
        first = 1 + order / a
        return b * torch.exp(torch.lgamma(first) + torch.lgamma(b) - torch.lgamma(first + b))

    mean = property(lambda self: self._moment(1))

    @property
    def mode(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        return log_mode.masked_fill(b.lt(1) | a.lt(1), math.nan).exp()

    variance = property(lambda self: self._moment(2) - self.mean.pow(2))

    def entropy(self) -> Tensor:
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return (1 - b.reciprocal()) + (1 - a.reciprocal()) * harmonic - torch.log(a) - torch.log(b)


__all__ = ["Kumaraswamy"]
