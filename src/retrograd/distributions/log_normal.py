"""The log-normal distribution."""

from __future__ import annotations

from typing import Any

from retrograd import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution, base_parameter
from .transforms import ExpTransform


class LogNormal(TransformedDistribution):
    """Log-normal distribution: the logarithm of a sample is normal, with mean ``loc`` and standard deviation ``scale``.

    >>> LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    loc = base_parameter("loc", "Return the mean of the logarithm of a sample.")
    scale = base_parameter("scale", "Return the standard deviation of the logarithm of a sample.")

    mean = property(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = property(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Tensor:
        square = self.scale.pow(2)
        return square.expm1() * (2 * self.loc + square).exp()

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


__all__ = ["LogNormal"]
