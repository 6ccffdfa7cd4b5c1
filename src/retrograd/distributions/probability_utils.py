"""``ProbsOrLogits``: base class of distributions with the parameters ``probs`` and ``logits``.

Only one of these parameters is passed; the other is computed on first access.
"""

from __future__ import annotations

from typing import Any

from retrograd import Tensor

from .distribution import Distribution
from .utils import broadcast_all, given_one_of, lazy_property, logits_to_probs, probs_to_logits


class ProbsOrLogits(Distribution):
    """Base class of ``Bernoulli`` and other distributions whose parameter is either ``probs`` or ``logits``."""

    #: True for the probability of one event, False for classes along the last dimension.
    _is_binary = True
    _pickled_attributes = ("_param",)

    @lazy_property
    def logits(self) -> Tensor:
        """Return the logits: the log-odds or, for several classes, unnormalised logarithms of the probabilities."""
        return probs_to_logits(self.probs, self._is_binary)

    @lazy_property
    def probs(self) -> Tensor:
        """Return the probabilities, computed from ``logits`` if only ``logits`` was passed."""
        return logits_to_probs(self.logits, self._is_binary)

    _param = property(lambda self: self.__dict__["logits" if "logits" in self.__dict__ else "probs"])
    param_shape = property(lambda self: self._param.size(), doc="Return the shape of ``probs`` and ``logits``.")

    def _set_parameter(self, probs: Any, logits: Any) -> Tensor:
        """Store the one of ``probs`` and ``logits`` that is not None as an attribute, and return it as a tensor.

        Raise ValueError unless exactly one of them is None.
        """
        if given_one_of(probs, logits):
            (self.probs,) = broadcast_all(probs)
        else:
            (self.logits,) = broadcast_all(logits)
        return self._param

    def _set_parameter_and_count(self, total_count: Any, probs: Any, logits: Any) -> Tensor:
        """Store ``total_count`` and the one of ``probs`` and ``logits`` that is not None as attributes.

        They are broadcast to the same shape, and ``total_count`` gets the dtype of the other one, which is returned.
        Raise ValueError unless exactly one of ``probs`` and ``logits`` is None.
        """
        if given_one_of(probs, logits):
            count, self.probs = broadcast_all(total_count, probs)
        else:
            count, self.logits = broadcast_all(total_count, logits)
        self.total_count = count.type_as(self._param)
        return self._param


__all__ = ["ProbsOrLogits"]
