"""``TransformedDistribution``: distribution of a transformed random variable."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .distribution import Distribution
from .independent import Independent
from .transforms import ComposeTransform, Transform
from .utils import SINGLE_SAMPLE, sum_rightmost


def base_parameter(path: str, doc: str) -> property:
    """Return a property whose value is the attribute ``path`` of ``base_dist``, with the docstring ``doc``.

    The parameters of ``LogNormal``, for example, are those of its base distribution, ``Normal``.
    """
    return property(attrgetter(f"base_dist.{path}"), doc=doc)


class TransformedDistribution(Distribution):
    """Distribution of samples of ``base_distribution`` to which ``transforms`` are applied in order.

    >>> from retrograd.distributions import ExpTransform, Normal
    >>> TransformedDistribution(Normal(0.0, 1.0), ExpTransform()).log_prob(torch.tensor(1.0))
    tensor(-0.9189)
    """

    arg_constraints = {}

    def __init__(
        self, base_distribution: Distribution, transforms: Transform | list[Transform],
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        if isinstance(transforms, Transform):
            self.transforms = [transforms]
        elif not isinstance(transforms, list):
            raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
        elif not all(isinstance(each, Transform) for each in transforms):
            raise ValueError("transforms must be a Transform or a list of Transforms")
        else:
            self.transforms = transforms
        whole = ComposeTransform(self.transforms)
        self.base_dist, shape, event_dim = _expand_base(base_distribution, whole)
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_into(self, new: Any, batch_shape: Any) -> None:
        shape = ComposeTransform(self.transforms).inverse_shape(batch_shape + self.event_shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        super()._expand_into(new, batch_shape)

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        return constraints.with_event_dim(self.transforms[-1].codomain, len(self.event_shape))

    has_rsample = property(lambda self: self.base_dist.has_rsample)

    def _transformed(self, x: Tensor) -> Tensor:
        for each in self.transforms:
            x = each(x)
        return x

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        with torch.no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        event_dim, y = len(self.event_shape), value
        total: Any = 0.0
        for each in reversed(self.transforms):
            x = each.inv(y)
            event_dim += each.domain.event_dim - each.codomain.event_dim
            total = total - sum_rightmost(each.log_abs_det_jacobian(x, y), event_dim - each.domain.event_dim)
            y = x
        return total + sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonized(self, probability: Tensor) -> Tensor:
        """Return ``probability`` for an increasing transform, and ``1 - probability`` for a decreasing one.

        The transform is the composition of ``transforms``. This function converts between the cumulative probabilities
        of ``base_dist`` and those of this distribution.
        """
        sign: Any = 1
        for each in self.transforms:
            sign = sign * each.sign
        return probability if isinstance(sign, int) and sign == 1 else sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for each in reversed(self.transforms):
            value = each.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._transformed(self.base_dist.icdf(self._monotonized(value)))


def _expand_base(base: Distribution, transform: Transform) -> tuple[Distribution, Any, int]:
    """Prepare ``base`` for samples to which ``transform`` is applied (helper of :class:`TransformedDistribution`).

    The result is the tuple ``(base, shape, event_dim)``:

    The new ``base`` is expanded to the shape that ``transform`` requires, and its last batch dimensions become event
    dimensions if ``transform`` requires more of these. ``shape`` is the shape of the transformed samples. ``event_dim``
    is the number of event dimensions of the transformed samples.

    Raise ValueError if ``base`` has too few dimensions.
    """
    shape, dims = base.batch_shape + base.event_shape, len(base.event_shape)
    wanted = transform.domain.event_dim
    if len(shape) < wanted:
        raise ValueError(f"base_distribution needs to have shape with size at least {wanted}, but got {shape}.")
    created = transform.forward_shape(shape)
    used = transform.inverse_shape(created)
    if shape != used:
        base = base.expand(used[: len(used) - dims])
    if wanted > dims:
        base = Independent(base, wanted - dims)
    return base, created, transform.codomain.event_dim + max(dims - wanted, 0)


__all__ = ["TransformedDistribution"]
