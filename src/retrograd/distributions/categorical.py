"""``Categorical`` distribution, and the base class ``CategoricalBased`` of distributions derived from it."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .probability_utils import ProbsOrLogits
from .utils import SINGLE_SAMPLE, given_one_of


class Categorical(ProbsOrLogits):
    """Categorical distribution over the classes 0 to n-1, where n is the size of the last dimension of ``probs``.

    ``probs`` contains the probabilities of the classes; they are normalised to sum to 1.

    >>> Categorical(torch.tensor([1.0, 3.0])).probs
    tensor([0.2500, 0.7500])
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _is_binary = False
    _kept = ("_num_events",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        of_probs = given_one_of(probs, logits)
        given = probs if of_probs else logits
        if given.dim() < 1:
            raise ValueError(f"`{'probs' if of_probs else 'logits'}` parameter must be at least one-dimensional.")
        if of_probs:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(dim=-1, keepdim=True)
        self._num_events = given.size(-1)
        super().__init__(given.size()[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self._num_events - 1)

    mean = property(lambda self: self.probs.new_full(self._extended_shape(), math.nan))
    variance = property(lambda self: self.probs.new_full(self._extended_shape(), math.nan))

    mode = property(lambda self: self.probs.argmax(dim=-1))

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        rows = self.probs.reshape(-1, self._num_events)
        drawn = torch.multinomial(rows, math.prod(sample_shape), True)
        return drawn.T.reshape(shape)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        places, logits = torch.broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, places[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        logits = torch.clamp(self.logits, min=torch.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._as_enumeration(torch.arange(self._num_events, dtype=torch.long, device=self._param.device), expand)


class CategoricalBased(Distribution):
    """Base class of ``Multinomial`` and other distributions that are derived from a :class:`Categorical`.

    A sample of such a distribution is a vector that has one element for each class. The last dimension of ``probs`` and
    ``logits`` is the dimension of the classes.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    _stretched = ("_categorical",)

    def __init__(self, probs: Any = None, logits: Any = None, validate_args: bool | None = None) -> None:
        self._categorical = Categorical(probs, logits)
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    probs = property(lambda self: self._categorical.probs, doc="Return the probabilities of the classes.")
    logits = property(lambda self: self._categorical.logits, doc="Return the log-probabilities of the classes.")
    param_shape = property(lambda self: self._categorical.param_shape, doc="Return the shape of ``probs``.")


__all__ = ["Categorical"]
