"""Activation layers, elementwise or along a dimension."""

from __future__ import annotations

from typing import Any

from ...core.tensor import Tensor
from ...operations.creation.factory import empty
from ...runtime.user_frame import warn
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .attention import MultiheadAttention
from .declarative import declares_layer
from .module import Module


@declares_layer(F.threshold, "threshold={threshold}, value={value}")
class Threshold(Module):
    """``x`` where it is greater than ``threshold``, else ``value``."""

    threshold: float
    value: float
    inplace: bool = False


@declares_layer(F.relu)
class ReLU(Module):
    """``max(x, 0)``.

    >>> import retrograd as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False


@declares_layer(F.rrelu, "lower={lower}, upper={upper}", training="self.training")
class RReLU(Module):
    """``x`` where it is positive, else ``x`` times a random slope in [``lower``, ``upper``] (in evaluation, its mean)."""

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


@declares_layer(F.hardtanh, "min_val={min_val}, max_val={max_val}")
class Hardtanh(Module):
    """``x`` clamped to [``min_val``, ``max_val``]."""

    min_val: float = -1.0
    max_val: float = 1.0
    inplace: bool = False
    min_value: float | None = None
    max_value: float | None = None

    def _settle(self) -> None:
        for old, new in (("min_value", "min_val"), ("max_value", "max_val")):
            value = self.__dict__.pop(old)
            if value is not None:
                warn(f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning)
                setattr(self, new, value)
        if not self.max_val > self.min_val:
            raise AssertionError(f"max_val ({self.max_val}) must be greater than min_val ({self.min_val})")

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` clamped to the bounds."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """``min(max(x, 0), 6)``."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Return the text of the ``inplace`` flag."""
        return "inplace=True" if self.inplace else ""


@declares_layer(F.sigmoid)
class Sigmoid(Module):
    """``1 / (1 + exp(-x))``."""


@declares_layer(F.hardsigmoid)
class Hardsigmoid(Module):
    """Piecewise linear :class:`Sigmoid`: 0 below -3, 1 above 3, linear between."""

    inplace: bool = False


@declares_layer(F.tanh)
class Tanh(Module):
    """Hyperbolic tangent."""


@declares_layer(F.silu)
class SiLU(Module):
    """``x * sigmoid(x)``."""

    inplace: bool = False


@declares_layer(F.mish)
class Mish(Module):
    """``x * tanh(softplus(x))``."""

    inplace: bool = False


@declares_layer(F.hardswish)
class Hardswish(Module):
    """``x * hardsigmoid(x)``."""

    inplace: bool = False


@declares_layer(F.elu, "alpha={alpha}")
class ELU(Module):
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``."""

    alpha: float = 1.0
    inplace: bool = False


@declares_layer(F.celu, "alpha={alpha}")
class CELU(Module):
    """``max(0, x) + min(0, alpha * (exp(x / alpha) - 1))``."""

    alpha: float = 1.0
    inplace: bool = False


@declares_layer(F.selu)
class SELU(Module):
    """Scaled :class:`ELU` that preserves mean 0 and variance 1 (Klambauer et al. 2017)."""

    inplace: bool = False


@declares_layer(F.glu, "dim={dim}")
class GLU(Module):
    """Gated linear unit: the first half of the input along ``dim`` times the sigmoid of the second half."""

    dim: int = -1


@declares_layer(F.gelu, "approximate={approximate!r}")
class GELU(Module):
    """``x`` times the normal distribution function of ``x``, exact (``"none"``) or approximated (``"tanh"``)."""

    approximate: str = "none"


@declares_layer(F.hardshrink, "{lambd}")
class Hardshrink(Module):
    """``x`` where ``abs(x) > lambd``, else 0."""

    lambd: float = 0.5


@declares_layer(F.leaky_relu, "negative_slope={negative_slope}")
class LeakyReLU(Module):
    """``x`` where it is positive, else ``negative_slope * x``."""

    negative_slope: float = 1e-2
    inplace: bool = False


@declares_layer(F.logsigmoid)
class LogSigmoid(Module):
    """``log(sigmoid(x))``."""


@declares_layer(F.softplus, "beta={beta}, threshold={threshold}")
class Softplus(Module):
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` exceeds ``threshold``."""

    beta: float = 1.0
    threshold: float = 20.0


@declares_layer(F.softshrink, "{lambd}")
class Softshrink(Module):
    """``x`` moved by ``lambd`` towards 0; 0 where ``abs(x) <= lambd``."""

    lambd: float = 0.5


class PReLU(Module):
    """``x`` where it is positive, else ``weight * x``; the weight (a single one, or one per channel) is a parameter."""

    weight: Any

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the weight to its initial value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with the negative elements multiplied by the weight."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the number of weights as text."""
        return f"num_parameters={self.num_parameters}"


@declares_layer(F.softsign)
class Softsign(Module):
    """``x / (1 + abs(x))``."""


@declares_layer(F.tanhshrink)
class Tanhshrink(Module):
    """``x - tanh(x)``."""


@declares_layer(F.softmin, "dim={dim}")
class Softmin(Module):
    """:class:`Softmax` of ``-x``."""

    dim: int | None = None


@declares_layer(F.softmax, "dim={dim}")
class Softmax(Module):
    """``exp(x)`` divided by its sum along ``dim``.

    >>> import retrograd as torch
    >>> torch.nn.Softmax(dim=0)(torch.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None


class Softmax2d(Module):
    """:class:`Softmax` over the channels of images."""

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax along the channels, the third dimension from the end."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


@declares_layer(F.log_softmax, "dim={dim}")
class LogSoftmax(Module):
    """Logarithm of :class:`Softmax`."""

    dim: int | None = None


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip
