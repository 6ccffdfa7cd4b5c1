"""``torch.ao.quantization``: the parts of models of floats that can be quantized, and base classes for ``isinstance``.

Quantized tensors do not exist, so that a model stays one of floats: a stub returns its input, and nothing is observed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

from ..core.dtypes import uint8
from ..nn import Module
from ..operations.creation.from_data import tensor


class QConfig(NamedTuple):
    """Functions that create the observers of a module's results and of its weights."""

    activation: Any
    weight: Any


class _Boundary(Module):
    """Module that returns its input, and has the attribute ``qconfig`` if that is given."""

    def __init__(self, qconfig: Any = None) -> None:
        super().__init__()
        if qconfig:
            self.qconfig = qconfig

    def forward(self, x: Any) -> Any:
        """Return ``x``."""
        return x


class QuantStub(_Boundary):
    """Module that returns its input: the place at which a model would be quantized."""


class DeQuantStub(_Boundary):
    """Module that returns its input: the place at which a model would return to floats."""


class QuantWrapper(Module):
    """Module that calls ``module`` between a :class:`QuantStub` and a :class:`DeQuantStub`.

    >>> import retrograd as torch
    >>> torch.ao.quantization.QuantWrapper(torch.nn.ReLU())(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    def __init__(self, module: Module) -> None:
        super().__init__()
        qconfig = getattr(module, "qconfig", None)
        self.quant, self.dequant, self.module = QuantStub(qconfig), DeQuantStub(qconfig), module
        self.train(module.training)

    def forward(self, X: Any) -> Any:
        """Return the result of the module for ``X``."""
        return self.dequant(self.module(self.quant(X)))


class _Quantizer(ABC, Module):
    """Base class of modules that compute a scale and a zero point."""

    @abstractmethod
    def calculate_qparams(self, **kwargs: Any) -> Any:
        """Return the scale and the zero point."""

    @classmethod
    def with_args(cls, **kwargs: Any) -> Any:
        """Return a function that creates a module with the arguments ``kwargs``."""
        return partial(cls, **kwargs)


class ObserverBase(_Quantizer):
    """Base class of modules that observe tensors to choose how they are quantized."""

    def __init__(self, dtype: Any, is_dynamic: bool = False) -> None:
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Observe ``x``."""


class FakeQuantizeBase(_Quantizer):
    """Base class of modules that round tensors of floats as quantization would."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("fake_quant_enabled", tensor([1], dtype=uint8))
        self.register_buffer("observer_enabled", tensor([1], dtype=uint8))

    @abstractmethod
    def forward(self, x: Any) -> Any:
        """Return ``x`` rounded."""

    def enable_fake_quant(self, enabled: bool = True) -> None:
        """Switch rounding on or off."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self) -> None:
        """Switch rounding off."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled: bool = True) -> None:
        """Switch observing on or off."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self) -> None:
        """Switch observing off."""
        self.enable_observer(False)


__all__ = ["DeQuantStub", "FakeQuantizeBase", "ObserverBase", "QConfig", "QuantStub", "QuantWrapper"]
