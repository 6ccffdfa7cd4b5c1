"""``RelaxedOneHotCategorical``: a continuous approximation of the one-hot distribution with differentiable samples."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .categorical import CategoricalBased
from .relaxed_bernoulli import RelaxedDistribution
from .transforms import ExpTransform
from .utils import SINGLE_SAMPLE, broadcast_all, clamp_probs, uniform


class ExpRelaxedCategorical(CategoricalBased):
    """Distribution of the logarithms of the samples of a :class:`RelaxedOneHotCategorical`."""

    support = constraints.real_vector
    has_rsample = True
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(probs, logits, validate_args)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        noise = clamp_probs(uniform(self._extended_shape(sample_shape), self.logits))
        gumbels = -((-(noise.log())).log())
        scores = (self.logits + gumbels) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        count = self._categorical._num_events
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        norm = torch.full_like(self.temperature, float(count)).lgamma() - self.temperature.log().mul(-(count - 1))
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + norm


class RelaxedOneHotCategorical(RelaxedDistribution):
    """Relaxed categorical distribution (Gumbel-softmax) of vectors with positive elements that sum to 1.

    The smaller ``temperature`` is, the closer the samples are to one-hot vectors.

    Sources: Jang, Gu and Poole, "Categorical reparameterization with Gumbel-softmax", 2017; Maddison, Mnih and Teh,
    "The concrete distribution", 2017.

    >>> import retrograd as torch
    >>> temperature, probs = torch.tensor(1.0), torch.tensor([0.2, 0.3, 0.5])
    >>> distribution = torch.distributions.RelaxedOneHotCategorical(temperature, probs)
    >>> distribution.log_prob(torch.tensor([0.25, 0.25, 0.5]))
    tensor(0.8222)
    """

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)


__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]
