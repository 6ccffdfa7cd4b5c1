"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any

import retrograd as torch
from retrograd import Tensor
from retrograd.nn.functional import binary_cross_entropy_with_logits

from . import constraints
from .exp_family import ExponentialFamily
from .probability_utils import ProbsOrLogits
from .utils import SINGLE_SAMPLE, broadcast_all, clamp_probs, uniform


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Continuous Bernoulli distribution on [0, 1].

    The density is proportional to ``probs ** x * (1 - probs) ** (1 - x)``. The formulas of the mean and of other
    properties are undefined (0 / 0) for ``probs = 1/2``. Therefore, power series are used instead if ``probs`` is in
    the interval ``lims``.

    Source: Loaiza-Ganem and Cunningham, "The continuous Bernoulli", 2019.

    >>> ContinuousBernoulli(torch.tensor(0.5)).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _kept = ("_lims",)

    def __init__(
        self, probs: Any = None, logits: Any = None, lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:  # fmt: skip
        given = self._set_parameter(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(given.size(), validate_args=validate_args)

    def _outside_limits(self) -> Tensor:
        """Return a boolean tensor that is true where ``probs`` is outside of the interval ``lims``."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _safe_probs(self) -> Tensor:
        """Return ``probs``, in which elements close to 1/2 are replaced by ``lims[0]``.

        These are the elements in the interval ``lims``. The general formulas divide by zero at 1/2; the replacement
        avoids this division.
        """
        return torch.where(self._outside_limits(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _log_norm(self) -> Tensor:
        """Return the logarithm of the factor that normalises the density."""
        cut = self._safe_probs()
        low = torch.where(cut <= 0.5, cut, torch.zeros_like(cut))
        high = torch.where(cut >= 0.5, cut, torch.ones_like(cut))
        width = torch.where(cut <= 0.5, torch.log1p(-2.0 * low), torch.log(2.0 * high - 1.0))
        far = torch.log(torch.abs(torch.log1p(-cut) - torch.log(cut))) - width
        square = (self.probs - 0.5).pow(2)
        near = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square
        return torch.where(self._outside_limits(), far, near)

    @property
    def mean(self) -> Tensor:
        cut, middle = self._safe_probs(), self.probs - 0.5
        far = cut / (2.0 * cut - 1.0) + 1.0 / (torch.log1p(-cut) - torch.log(cut))
        near = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * middle.pow(2)) * middle
        return torch.where(self._outside_limits(), far, near)

    @property
    def variance(self) -> Tensor:
        cut, square = self._safe_probs(), (self.probs - 0.5).pow(2)
        far = cut * (cut - 1.0) / (1.0 - 2.0 * cut).pow(2) + 1.0 / (torch.log1p(-cut) - torch.log(cut)).pow(2)
        near = 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square
        return torch.where(self._outside_limits(), far, near)

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        return self.icdf(uniform(self._extended_shape(sample_shape), self.probs))

    def log_prob(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        self._check_sample(value)
        cut = self._safe_probs()
        far = (torch.pow(cut, value) * torch.pow(1.0 - cut, 1.0 - value) + cut - 1.0) / (2.0 * cut - 1.0)
        result = torch.where(self._outside_limits(), far, value)
        inside = torch.where(value >= 1.0, torch.ones_like(result), result)
        return torch.where(value <= 0.0, torch.zeros_like(result), inside)

    def icdf(self, value: Tensor) -> Tensor:
        cut = self._safe_probs()
        rest = torch.log1p(-cut)
        far = (torch.log1p(-cut + value * (2.0 * cut - 1.0)) - rest) / (torch.log(cut) - rest)
        return torch.where(self._outside_limits(), far, value)

    def entropy(self) -> Tensor:
        no, yes = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (no - yes) - self._log_norm() - no

    _natural_params = property(lambda self: (self.logits,))

    def _log_normalizer(self, x: Any) -> Tensor:  # type: ignore[override]
        low, high = (each - 0.5 for each in self._lims)
        far = (x <= low) | (x > high)
        cut = torch.where(far, x, low * torch.ones_like(x))
        result = torch.log(torch.abs(torch.special.expm1(cut))) - torch.log(torch.abs(cut))
        return torch.where(far, result, 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0)


__all__ = ["ContinuousBernoulli"]
