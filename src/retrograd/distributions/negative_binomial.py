"""The negative binomial distribution."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor
from retrograd.nn.functional import logsigmoid

from . import constraints
from .gamma import Gamma
from .probability_utils import ProbsOrLogits
from .utils import SINGLE_SAMPLE, lazy_property


class NegativeBinomial(ProbsOrLogits):
    """Negative binomial distribution: the number of successes before ``total_count`` failures.

    ``probs`` is the probability of a success.

    >>> NegativeBinomial(3.0, torch.tensor(0.5)).mean
    tensor(3.)
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self, total_count: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._set_parameter_and_count(total_count, probs, logits).size(), validate_args=validate_args)

    mean = property(lambda self: self.total_count * torch.exp(self.logits))
    mode = property(lambda self: ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0))
    variance = property(lambda self: self.mean / torch.sigmoid(-self.logits))

    @lazy_property
    def _gamma(self) -> Gamma:
        # Not validated: with a total count of 0 the rate of the Poisson distribution is 0.
        return Gamma(self.total_count, torch.exp(-self.logits), validate_args=False)

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        with torch.no_grad():
            return torch.poisson(self._gamma.sample(sample_shape=sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        chance = self.total_count * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        ways = -torch.lgamma(self.total_count + value) + torch.lgamma(1.0 + value) + torch.lgamma(self.total_count)
        return chance - ways.masked_fill(self.total_count + value == 0.0, 0.0)


__all__ = ["NegativeBinomial"]
