"""The multinomial distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Size, Tensor

from . import constraints
from .binomial import Binomial
from .categorical import CategoricalBased
from .utils import SINGLE_SAMPLE, broadcast_all


class Multinomial(CategoricalBased):
    """Multinomial distribution: the counts of the classes in ``total_count`` samples of a :class:`Categorical`.

    >>> Multinomial(4, torch.tensor([1.0, 3.0])).mean
    tensor([1., 3.])
    """

    _kept = ("total_count",)
    _pickled_attributes = ("_binomial",)
    _binomial = property(lambda self: Binomial(self.total_count, self.probs))

    def __init__(
        self, total_count: int = 1, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        super().__init__(probs, logits, validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> Any:
        return constraints.multinomial(self.total_count)

    mean = property(lambda self: self.probs * self.total_count)
    variance = property(lambda self: self.total_count * self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        sample_shape = Size(sample_shape)
        drawn = self._categorical.sample(Size((self.total_count,)) + sample_shape)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        drawn = drawn.movedim(0, -1)
        counts.scatter_add_(-1, drawn, torch.ones_like(drawn).type_as(counts))
        return counts.type_as(self.probs)

    def entropy(self) -> Tensor:
        n = torch.tensor(self.total_count)
        of_one = self._categorical.entropy()
        number = Binomial(self.total_count, probs=self.probs)
        counts = number.enumerate_support(expand=False)[1:]
        arrangements = (torch.exp(number.log_prob(counts)) * torch.lgamma(counts + 1)).sum([0, -1])
        return n * of_one - torch.lgamma(n + 1) + arrangements

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        ways = torch.lgamma(value.sum(-1) + 1) - torch.lgamma(value + 1).sum(-1)
        return ways + (value * logits.masked_fill(value.eq(0) & logits.eq(-math.inf), 0)).sum(-1)


__all__ = ["Multinomial"]
