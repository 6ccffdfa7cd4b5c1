"""The chi-squared distribution."""

from __future__ import annotations

from typing import Any

from . import constraints
from .gamma import Gamma


class Chi2(Gamma):
    """Chi-squared distribution: the sum of squares of ``df`` standard normal variables.

    >>> Chi2(3.0).variance
    tensor(6.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Any, validate_args: bool | None = None) -> None:
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    df = property(lambda self: self.concentration * 2, doc="Return the number of degrees of freedom.")

    def _expand_into(self, new: Any, batch_shape: Any) -> None:
        new.concentration, new.rate = (each.expand(batch_shape) for each in (self.concentration, self.rate))


__all__ = ["Chi2"]
