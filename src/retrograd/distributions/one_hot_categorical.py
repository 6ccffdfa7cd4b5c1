"""The categorical distribution over one-hot vectors."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Size, Tensor
from retrograd.nn.functional import one_hot

from . import constraints
from .categorical import CategoricalBased
from .utils import SINGLE_SAMPLE


class OneHotCategorical(CategoricalBased):
    """Categorical distribution whose samples are one-hot vectors; ``probs`` are the probabilities of the classes.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.OneHotCategorical(torch.tensor([0.2, 0.3, 0.5]))
    >>> distribution.sample().sum()
    tensor(1.)
    >>> distribution.log_prob(torch.tensor([0.0, 0.0, 1.0]))
    tensor(-0.6931)
    """

    support = constraints.one_hot
    has_enumerate_support = True

    mean = property(lambda self: self.probs)
    mode = property(lambda self: one_hot(self.probs.argmax(dim=-1), num_classes=self.probs.shape[-1]).to(self.probs))
    variance = property(lambda self: self.probs * (1 - self.probs))

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        drawn = self._categorical.sample(Size(sample_shape))
        return one_hot(drawn, self._categorical._num_events).to(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        count = self.event_shape[0]
        values = torch.eye(count, dtype=self.probs.dtype, device=self.probs.device)
        values = values.view(count, *(1,) * len(self.batch_shape), count)
        return values.expand(count, *self.batch_shape, count) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """:class:`OneHotCategorical` with the straight-through estimator of gradients.

    The gradient of a sample is passed unchanged to ``probs``.

    Source: Bengio, Léonard and Courville, "Estimating or propagating gradients through stochastic neurons", 2013.

    >>> import retrograd as torch
    >>> probs = torch.tensor([0.2, 0.8], requires_grad=True)
    >>> sample = torch.distributions.OneHotCategoricalStraightThrough(probs).rsample()
    >>> (sample * torch.tensor([1.0, 3.0])).sum().backward()
    >>> probs.grad.shape
    torch.Size([2])
    """

    has_rsample = True

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        drawn, probs = self.sample(sample_shape), self._categorical.probs
        return drawn + (probs - probs.detach())


__all__ = ["OneHotCategorical", "OneHotCategoricalStraightThrough"]
