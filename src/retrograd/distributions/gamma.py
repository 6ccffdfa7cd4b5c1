"""The gamma distribution."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from ..operations.creation.gamma_sampling import standard_gamma
from . import constraints
from .exp_family import ExponentialFamily
from .utils import SINGLE_SAMPLE, broadcast_all


class Gamma(ExponentialFamily):
    """Gamma distribution, with density proportional to ``x ** (concentration - 1) * exp(-rate * x)``.

    >>> Gamma(3.0, 2.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None) -> None:
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.size(), validate_args=validate_args)

    mean = property(lambda self: self.concentration / self.rate)
    mode = property(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = property(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        value = standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=torch.finfo(value.dtype).tiny)
        return value

    def log_prob(self, value: Tensor) -> Tensor:
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check_sample(value)
        return (
            torch.xlogy(self.concentration, self.rate) + torch.xlogy(self.concentration - 1, value)
            - self.rate * value - torch.lgamma(self.concentration)
        )  # fmt: skip

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Tensor:
        return (
            self.concentration - torch.log(self.rate) + torch.lgamma(self.concentration)
            + (1.0 - self.concentration) * torch.digamma(self.concentration)
        )  # fmt: skip

    _natural_params = property(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:  # type: ignore[override]
        return torch.lgamma(x + 1) + (x + 1) * torch.log(-y.reciprocal())


__all__ = ["Gamma"]
