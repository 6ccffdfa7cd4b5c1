"""The von Mises distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .utils import SINGLE_SAMPLE, broadcast_all, lazy_property


class VonMises(Distribution):
    """Von Mises distribution of angles around ``loc``; the greater ``concentration`` is, the narrower the distribution.

    >>> VonMises(torch.tensor(0.0), torch.tensor(1.0)).variance
    tensor(0.5536)
    """

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None) -> None:
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        norm = torch.log(torch.special.i0e(self.concentration)) + self.concentration
        return self.concentration * torch.cos(value - self.loc) - math.log(2 * math.pi) - norm

    @torch.no_grad()
    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        """Return samples of shape ``sample_shape + batch_shape``, computed in float64.

        The algorithm is rejection sampling; the proposals are samples of a wrapped Cauchy distribution.

        Source: Best and Fisher, "Efficient simulation of the von Mises distribution", 1979.
        """
        shape = self._extended_shape(sample_shape)
        loc, concentration = self.loc.double(), self.concentration.double()
        ratio = _proposal_parameter(concentration).expand(shape)
        x = torch.zeros(shape, dtype=torch.float64, device=loc.device)
        done = torch.zeros(shape, dtype=torch.bool, device=loc.device)
        while not done.all():
            u1, u2, u3 = torch.rand((3, *shape), dtype=torch.float64, device=loc.device).unbind()
            z = torch.cos(math.pi * u1)
            f = (1 + ratio * z) / (ratio + z)
            c = concentration * (ratio - f)
            accept = ((c * (2 - c) - u2) > 0) | ((c / u2).log() + 1 - c >= 0)
            if accept.any():
                x = torch.where(accept, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accept
        return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = property(lambda self: self.loc, doc="Return the mean direction, ``loc``.")
    mode = property(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Tensor:
        """Return the circular variance ``1 - abs(E[exp(i * x)])``, where ``x`` is a sample."""
        return 1 - torch.special.i1e(self.concentration) / torch.special.i0e(self.concentration)


def _proposal_parameter(concentration: Tensor) -> Tensor:
    """Return the parameter ``r`` of the proposal distribution in Best and Fisher's rejection sampling.

    The proposal distribution is a wrapped Cauchy distribution; ``r`` depends on ``concentration`` of the von Mises
    distribution.
    """
    tau = 1 + (1 + 4 * concentration**2).sqrt()
    rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
    return torch.where(concentration < 1e-5, 1 / concentration + concentration, (1 + rho**2) / (2 * rho))


__all__ = ["VonMises"]
