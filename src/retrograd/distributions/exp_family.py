"""Exponential families: densities ``exp(<t(x), θ> - F(θ) + k(x))``; entropies and divergences follow from ``F``."""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from .distribution import NOT_EXPANDED, Distribution


class ExponentialFamily(Distribution):
    """A distribution that says its natural parameters ``θ`` and its log normaliser ``F``."""

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """The natural parameters."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """The logarithm of what the density is divided by."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """The expected value of ``k(x)``."""
        raise NotImplementedError

    def _slopes(self) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The log normaliser, the natural parameters, and its gradients by them: the expected ``t(x)``."""
        params = tuple(each.detach().requires_grad_() for each in self._natural_params)
        normaliser = self._log_normalizer(*params)
        return normaliser, params, torch.autograd.grad(normaliser.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        """Minus the expected logarithm of the density: the Bregman divergence of the log normaliser."""
        normaliser, params, slopes = self._slopes()
        result = -self._mean_carrier_measure + normaliser
        for param, slope in zip(params, slopes, strict=True):
            inner = param * slope
            result = result - inner.reshape(*self._batch_shape, -1).sum(-1)
        return result


NOT_EXPANDED.append(ExponentialFamily)

__all__ = ["ExponentialFamily"]
