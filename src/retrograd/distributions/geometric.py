"""The geometric distribution."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor
from retrograd.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .probability_utils import ProbsOrLogits
from .utils import SINGLE_SAMPLE, broadcast_all


class Geometric(ProbsOrLogits):
    """Geometric distribution: the number of failures before the first success; ``probs`` is the success probability.

    >>> Geometric(0.25).mean
    tensor(3.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        super().__init__(self._set_parameter(probs, logits).size(), validate_args=validate_args)
        if self._validate_args and probs is not None:
            never = self.probs <= 0
            if never.any():
                raise ValueError(
                    f"Expected parameter probs ({type(self.probs).__name__} of shape {tuple(self.probs.shape)}) of "
                    f"distribution {self!r} to be positive but found invalid values:\n{self.probs.detach()[never]}"
                )

    mean = property(lambda self: 1.0 / self.probs - 1.0)
    mode = property(lambda self: torch.zeros_like(self.probs))
    variance = property(lambda self: (1.0 / self.probs - 1.0) / self.probs)

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            u = self.probs.new_empty(shape).uniform_(torch.finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = probs.masked_fill(probs.eq(1) & value.eq(0), 0)  # probs 1 and value 0: 0 * log(0) must be 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


__all__ = ["Geometric"]
