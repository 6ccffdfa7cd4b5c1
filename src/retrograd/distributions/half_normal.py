"""``HalfNormal`` distribution, and ``HalfDistribution``, the base class for absolute values."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution, base_parameter
from .transforms import AbsTransform


class HalfDistribution(TransformedDistribution):
    """Base class of distributions of the absolute value of a variable that is symmetric around 0."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    #: The symmetric distribution.
    _whole: ClassVar[Any]

    def __init__(self, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(self._whole(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    scale = base_parameter("scale", "Return the scale of the symmetric variable whose absolute value is the sample.")

    mode = property(lambda self: torch.zeros_like(self.scale))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return torch.where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, value: Tensor) -> Tensor:
        return self.base_dist.icdf((value + 1) / 2)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(HalfDistribution):
    """Half-normal distribution: the absolute value of a normal variable of mean 0 and standard deviation ``scale``.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.HalfNormal(1.0)
    >>> distribution.mean, distribution.log_prob(torch.tensor(1.0))
    (tensor(0.7979), tensor(-0.7258))
    """

    _whole = Normal

    mean = property(lambda self: self.scale * math.sqrt(2 / math.pi))
    variance = property(lambda self: self.scale.pow(2) * (1 - 2 / math.pi))


__all__ = ["HalfNormal"]
