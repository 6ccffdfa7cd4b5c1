"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any

from retrograd import Tensor

from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """Logistic-normal distribution of vectors with positive elements that sum to 1.

    A sample is a vector of normal variables transformed by :class:`StickBreakingTransform`, which adds one element.
    ``loc`` are the means and ``scale`` the standard deviations of the normal variables.
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None) -> None:
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """Return the means of the normal variables before the transform."""
        return self.base_dist.base_dist.loc  # type: ignore[attr-defined]

    @property
    def scale(self) -> Tensor:
        """Return the standard deviations of the normal variables before the transform."""
        return self.base_dist.base_dist.scale  # type: ignore[attr-defined]


__all__ = ["LogisticNormal"]
