"""``ExponentialFamily``: base class of distributions with densities ``exp(<t(x), θ> - F(θ) + k(x))``.

``t(x)`` are the sufficient statistics, ``θ`` the natural parameters, ``F`` the log normaliser and ``k`` the carrier
measure. Entropies and divergences are computed from the gradients of ``F``.
"""

from __future__ import annotations

from typing import Any

import retrograd as torch
from retrograd import Tensor

from .distribution import REQUIRE_OWN_EXPAND, Distribution


class ExponentialFamily(Distribution):
    """Base class of distributions that define natural parameters ``θ`` and a log normaliser ``F``.

    The density is ``exp(<t(x), θ> - F(θ) + k(x))``, with sufficient statistics ``t(x)`` and carrier measure ``k``.

    >>> import retrograd as torch
    >>> normal = torch.distributions.Normal(torch.tensor(0.0), torch.tensor(2.0))
    >>> isinstance(normal, torch.distributions.ExponentialFamily)
    True
    >>> normal.entropy()
    tensor(2.1121)
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        """Return the natural parameters ``θ``, a tuple of tensors."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        """Return the log normaliser ``F`` at the natural parameters ``natural_params``."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> Any:
        """Return the expected value of the carrier measure ``k(x)``.

        This is the term of the log density that does not depend on ``θ``.
        """
        raise NotImplementedError

    def _log_normalizer_grads(self) -> tuple[Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Return ``F(θ)``, the tuple of natural parameters ``θ``, and the tuple of gradients of ``F``.

        The gradients are the expected values of the sufficient statistics ``t(x)``.
        """
        params = tuple(each.detach().requires_grad_() for each in self._natural_params)
        normaliser = self._log_normalizer(*params)
        return normaliser, params, torch.autograd.grad(normaliser.sum(), params, create_graph=True)

    def entropy(self) -> Tensor:
        """Return the entropy, computed from the gradients of the log normaliser ``F``."""
        normaliser, params, slopes = self._log_normalizer_grads()
        result = -self._mean_carrier_measure + normaliser
        for param, slope in zip(params, slopes, strict=True):
            inner = param * slope
            result = result - inner.reshape(*self._batch_shape, -1).sum(-1)
        return result


REQUIRE_OWN_EXPAND.append(ExponentialFamily)

__all__ = ["ExponentialFamily"]
