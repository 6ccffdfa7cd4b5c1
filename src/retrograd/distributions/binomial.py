"""The binomial distribution."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .probability_utils import ProbsOrLogits
from .utils import SINGLE_SAMPLE


class Binomial(ProbsOrLogits):
    """Binomial distribution: the number of successes in ``total_count`` trials with success probability ``probs``.

    >>> Binomial(10, torch.tensor(0.25)).mean
    tensor(2.5000)
    """

    arg_constraints = {
        "total_count": constraints.nonnegative_integer, "probs": constraints.unit_interval, "logits": constraints.real
    }  # fmt: skip
    has_enumerate_support = True

    def __init__(
        self, total_count: Any = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        super().__init__(self._set_parameter_and_count(total_count, probs, logits).size(), validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    mean = property(lambda self: self.total_count * self.probs)
    mode = property(lambda self: ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count))
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        # log(1 + exp(logits)) without overflow; the positive part is a mean of two forms, so that 0 has a gradient.
        positive = (self.logits.clamp(min=0) + self.logits - self.logits.clamp(max=0)) / 2
        softplus = self.total_count * positive + self.total_count * torch.log1p(torch.exp(-torch.abs(self.logits)))
        choices = torch.lgamma(value + 1) + torch.lgamma(self.total_count - value + 1)
        return value * self.logits - choices - (softplus - torch.lgamma(self.total_count + 1))

    def entropy(self) -> Tensor:
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(torch.exp(log_prob) * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self._one_count("enumerate_support")
        return self._as_enumeration(torch.arange(1 + count, dtype=self._param.dtype, device=self._param.device), expand)

    def _one_count(self, what: str) -> int:
        """Return the element of ``total_count``, which must be the same for all distributions of the batch.

        Raise NotImplementedError if ``total_count`` has different elements; ``what`` is the name of the method in the
        error.
        """
        count = int(self.total_count.max())
        if not self.total_count.min() == count:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return count


__all__ = ["Binomial"]
