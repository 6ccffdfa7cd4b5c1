"""``MixtureSameFamily``: mixtures of distributions of one class."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Size, Tensor

from . import constraints
from .categorical import Categorical
from .distribution import Distribution
from .utils import SINGLE_SAMPLE


class MixtureSameFamily(Distribution):
    """Mixture of the distributions along the last batch dimension of ``component_distribution``.

    These distributions are the components. The categorical distribution ``mixture_distribution`` defines the
    probabilities of the components.

    >>> import retrograd as torch
    >>> weights = torch.distributions.Categorical(torch.tensor([0.25, 0.75]))
    >>> components = torch.distributions.Normal(torch.tensor([0.0, 4.0]), torch.tensor([1.0, 2.0]))
    >>> mixture = torch.distributions.MixtureSameFamily(weights, components)
    >>> mixture.mean, mixture.variance
    (tensor(3.), tensor(6.2500))
    """

    arg_constraints = {}
    has_rsample = False
    _pickled_attributes = ("_event_ndims",)
    _event_ndims = property(lambda self: len(self.event_shape))

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ) -> None:
        mixture, components = mixture_distribution, component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(components, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        batch = components.batch_shape[:-1]
        for ours, theirs in zip(reversed(mixture.batch_shape), reversed(batch), strict=False):
            if ours != theirs and 1 not in (ours, theirs):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({mixture.batch_shape}) is not compatible with "
                    f"`component_distribution.batch_shape`({batch})"
                )
        count = mixture.logits.shape[-1]
        if count != components.batch_shape[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components.batch_shape[-1]})"
            )
        self._mixture_distribution, self._component_distribution, self._num_component = mixture, components, count
        super().__init__(batch, components.event_shape, validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Any) -> None:
        new._component_distribution = self._component_distribution.expand((*batch_shape, self._num_component))
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._num_component = self._num_component

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """Return the categorical distribution over the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """Return the batch of the distributions that are mixed, the components, along its last batch dimension."""
        return self._component_distribution

    def _average(self, value: Tensor) -> Tensor:
        """Return the mean of ``value`` over the components, weighted by their probabilities."""
        probs, dims = self.mixture_distribution.probs, len(self.event_shape)
        return (probs.reshape(*probs.shape, *(1,) * dims) * value).sum(-1 - dims)

    def _with_component_dim(self, value: Tensor) -> Tensor:
        """Return ``value`` with a new dimension of size 1 before the event dimensions, for the components."""
        return value.unsqueeze(-1 - len(self.event_shape))

    mean = property(lambda self: self._average(self.component_distribution.mean))

    @property
    def variance(self) -> Tensor:
        within = self._average(self.component_distribution.variance)
        away = self.component_distribution.mean - self._with_component_dim(self.mean)
        return within + self._average(away.pow(2.0))

    def cdf(self, x: Tensor) -> Tensor:
        result = self.component_distribution.cdf(self._with_component_dim(x))
        return torch.sum(result * self.mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Tensor) -> Tensor:
        self._check_sample(x)
        result = self.component_distribution.log_prob(self._with_component_dim(x))
        return torch.logsumexp(result + torch.log_softmax(self.mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        with torch.no_grad():
            chosen = self.mixture_distribution.sample(sample_shape)
            drawn = self.component_distribution.sample(sample_shape)
            dims, axis = len(self.event_shape), len(Size(sample_shape)) + len(self.batch_shape)
            chosen = chosen.reshape(*chosen.shape, *(1,) * (dims + 1))
            chosen = chosen.expand(*chosen.shape[: chosen.dim() - dims], *self.event_shape)
            return torch.gather(drawn, axis, chosen).squeeze(axis)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"


__all__ = ["MixtureSameFamily"]
