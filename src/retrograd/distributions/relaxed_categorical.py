"""Classes made continuous, so that gradients go through draws."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from ..core.absent import absent, listed
from . import constraints
from .categorical import Categorical
from .distribution import ONE, Distribution
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform
from .utils import broadcast_all, clamp_probs, uniform


class ExpRelaxedCategorical(Distribution):
    """The logarithms of :class:`RelaxedOneHotCategorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.real_vector
    has_rsample = True
    _kept = ("temperature",)
    _stretched = ("_categorical",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        shape = self._categorical.param_shape
        super().__init__(self._categorical.batch_shape, shape[-1:], validate_args=validate_args)

    @property
    def param_shape(self) -> torch.Size:
        """The shape of the probabilities."""
        return self._categorical.param_shape

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self._categorical.probs

    def rsample(self, sample_shape: Any = ONE) -> Tensor:
        noise = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        gumbels = -((-(noise.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        count = self._categorical._num_events
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        norm = torch.full_like(self.temperature, float(count)).lgamma() - self.temperature.log().mul(-(count - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + norm


class RelaxedOneHotCategorical(TransformedDistribution):
    """Shares of a whole, the closer to a single one the smaller ``temperature`` is (Gumbel-softmax).

    Sources: Jang, Gu and Poole, "Categorical reparameterization with Gumbel-softmax", 2017; Maddison, Mnih and Teh, "The
    concrete distribution", 2017.
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """How far from a single one the shares are."""
        return self.base_dist.temperature  # type: ignore[attr-defined]

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self.base_dist.logits  # type: ignore[attr-defined]

    @property
    def probs(self) -> Tensor:
        """The probabilities of the classes."""
        return self.base_dist.probs  # type: ignore[attr-defined]


__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]
__getattr__, __dir__ = absent(__name__), listed(globals())
