"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution, base_parameter
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Logistic-normal distribution of vectors with positive elements that sum to 1.

    A sample is a vector of normal variables transformed by :class:`StickBreakingTransform`, which adds one element.
    ``loc`` are the means and ``scale`` the standard deviations of the normal variables.

    >>> import retrograd as torch
    >>> distribution = torch.distributions.LogisticNormal(torch.zeros(2), torch.ones(2))
    >>> distribution.sample().shape
    torch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    loc = base_parameter("base_dist.loc", "Return the means of the normal variables.")
    scale = base_parameter("base_dist.scale", "Return the standard deviations of the normal variables.")


__all__ = ["LogisticNormal"]
