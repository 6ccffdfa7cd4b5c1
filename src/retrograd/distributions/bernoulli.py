"""The Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor
from retrograd.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .exp_family import ExponentialFamily
from .probability_utils import ProbsOrLogits
from .utils import SINGLE_SAMPLE, broadcast_all


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """Bernoulli distribution: 1 with probability ``probs``, else 0.

    >>> Bernoulli(0.25).variance
    tensor(0.1875)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameter(probs, logits).size(), validate_args=validate_args)

    mean = property(lambda self: self.probs)

    @property
    def mode(self) -> Tensor:
        mode = (self.probs >= 0.5).to(self.probs)
        mode[self.probs == 0.5] = math.nan
        return mode

    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._as_enumeration(torch.arange(2, dtype=self._param.dtype, device=self._param.device), expand)

    _natural_params = property(lambda self: (torch.logit(self.probs),))

    def _log_normalizer(self, x: Tensor) -> Tensor:  # type: ignore[override]
        return torch.log1p(torch.exp(x))


__all__ = ["Bernoulli"]
