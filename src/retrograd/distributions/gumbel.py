"""The Gumbel distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor

from . import constraints
from .transformed_distribution import TransformedDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


class Gumbel(TransformedDistribution):
    """Gumbel distribution, whose cumulative distribution function is ``exp(-exp(-(x - loc) / scale))``.

    >>> Gumbel(0.0, 1.0).mean
    tensor(0.5772)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        self.loc, self.scale = broadcast_all(loc, scale)
        limits = torch.finfo(self.loc.dtype)
        low, high = torch.full_like(self.loc, limits.tiny), torch.full_like(self.loc, 1 - limits.eps)
        steps = [
            ExpTransform().inv, AffineTransform(loc=0, scale=-torch.ones_like(self.scale)),
            ExpTransform().inv, AffineTransform(loc=self.loc, scale=-self.scale),
        ]  # fmt: skip
        super().__init__(Uniform(low, high, validate_args=validate_args), steps, validate_args=validate_args)

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    mean = property(lambda self: self.loc + self.scale * euler_constant)
    mode = property(lambda self: self.loc)
    stddev = property(lambda self: math.pi / math.sqrt(6) * self.scale)
    variance = property(lambda self: self.stddev.pow(2))

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


__all__ = ["Gumbel"]
