"""``RelaxedBernoulli``: a continuous approximation of the Bernoulli distribution with differentiable samples."""

from __future__ import annotations

from typing import Any

from retrograd import Tensor

from . import constraints
from .probability_utils import ProbsOrLogits
from .transformed_distribution import TransformedDistribution, base_parameter
from .transforms import SigmoidTransform
from .utils import SINGLE_SAMPLE, broadcast_all, clamp_probs, uniform


class LogitRelaxedBernoulli(ProbsOrLogits):
    """Distribution of ``log(x / (1 - x))``, the logits, for samples ``x`` of a :class:`RelaxedBernoulli`."""

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    _kept = ("temperature",)

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        self.temperature = temperature
        super().__init__(self._set_parameter(probs, logits).size(), validate_args=validate_args)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        noise = clamp_probs(uniform(shape, probs))
        return (noise.log() - (-noise).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value.mul(self.temperature)
        return self.temperature.log() + away - 2 * away.exp().log1p()


class RelaxedDistribution(TransformedDistribution):
    """Base class of continuous approximations of discrete distributions.

    The smaller ``temperature`` is, the closer the samples are to discrete values.
    """

    has_rsample = True

    temperature = base_parameter("temperature", "Return the temperature: the smaller, the more discrete the samples.")
    logits = base_parameter("logits", "Return the log-odds or, for several classes, unnormalised log-probabilities.")
    probs = base_parameter("probs", "Return the probabilities of the approximated discrete distribution.")


class RelaxedBernoulli(RelaxedDistribution):
    """Relaxed Bernoulli distribution on (0, 1); the smaller ``temperature`` is, the closer the samples are to 0 or 1.

    Source: Maddison, Mnih and Teh, "The concrete distribution", 2017.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.RelaxedBernoulli(torch.tensor(0.5), probs=torch.tensor([0.2, 0.7]))
    >>> distribution.log_prob(torch.tensor([0.5, 0.5]))
    tensor([-1.1394, -0.8675])
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval

    def __init__(
        self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None
    ) -> None:
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]
