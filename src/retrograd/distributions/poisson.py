"""The Poisson distribution."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .exp_family import ExponentialFamily
from .utils import SINGLE_SAMPLE, broadcast_all


class Poisson(ExponentialFamily):
    """Poisson distribution of mean ``rate``.

    >>> Poisson(4.0).log_prob(torch.tensor(0.0))
    tensor(-4.)
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Any, validate_args: bool | None = None) -> None:
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.size(), validate_args=validate_args)

    mean = property(lambda self: self.rate)
    mode = property(lambda self: self.rate.floor())
    variance = property(lambda self: self.rate)

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = property(lambda self: (torch.log(self.rate),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return torch.exp(x)


__all__ = ["Poisson"]
