"""Activation layers: ReLU, LeakyReLU, ELU, GELU, SiLU, Sigmoid, Softmax and others."""

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
    """Layer that returns each element x of its input where ``x > threshold``, and ``value`` elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Threshold(0.5, 9.0)(torch.tensor([0.25, 0.5, 0.75]))
    tensor([9.0000, 9.0000, 0.7500])
    """

    threshold: float
    value: float
    inplace: bool = False


@declares_layer(F.relu)
class ReLU(Module):
    """Layer that returns ``max(x, 0)`` for each element x of its input.

    >>> import retrograd as torch
    >>> torch.nn.ReLU()(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """

    inplace: bool = False


@declares_layer(F.rrelu, "lower={lower}, upper={upper}", training="self.training")
class RReLU(Module):
    """Layer that returns each element x of its input where x is positive, and x times a slope elsewhere.

    In training mode the slope is drawn uniformly between ``lower`` and ``upper`` for each element. In evaluation mode
    the slope is the mean of ``lower`` and ``upper``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.RReLU(0.1, 0.3).eval()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2000,  0.0000,  2.0000])
    """

    lower: float = 1.0 / 8
    upper: float = 1.0 / 3
    inplace: bool = False


@declares_layer(F.hardtanh, "min_val={min_val}, max_val={max_val}")
class Hardtanh(Module):
    """Layer that clamps its input to the range from ``min_val`` to ``max_val``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Hardtanh(-1.0, 2.0)(torch.tensor([-3.0, 0.5, 4.0]))
    tensor([-1.0000,  0.5000,  2.0000])
    """

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
        """Return ``input`` clamped to the range from ``min_val`` to ``max_val``."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """Layer that clamps its input to the range from 0 to 6.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ReLU6()(torch.tensor([-1.0, 3.0, 8.0]))
    tensor([0., 3., 6.])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    def extra_repr(self) -> str:
        """Return the string ``"inplace=True"``, or an empty string if ``inplace`` is false."""
        return "inplace=True" if self.inplace else ""


@declares_layer(F.sigmoid)
class Sigmoid(Module):
    """Layer that returns ``1 / (1 + exp(-x))`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Sigmoid()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.2689, 0.5000, 0.8808])
    """


@declares_layer(F.hardsigmoid)
class Hardsigmoid(Module):
    """Layer that returns a piecewise linear approximation of :class:`Sigmoid`.

    The result is ``clip(x / 6 + 1 / 2, 0, 1)`` for each element x of the input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Hardsigmoid()(torch.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    inplace: bool = False


@declares_layer(F.tanh)
class Tanh(Module):
    """Layer that returns the hyperbolic tangent of each element of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Tanh()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.7616,  0.0000,  0.9640])
    """


@declares_layer(F.silu)
class SiLU(Module):
    """Layer that returns ``x * sigmoid(x)`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.SiLU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2689,  0.0000,  1.7616])
    """

    inplace: bool = False


@declares_layer(F.mish)
class Mish(Module):
    """Layer that returns ``x * tanh(softplus(x))`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Mish()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.3034,  0.0000,  1.9440])
    """

    inplace: bool = False


@declares_layer(F.hardswish)
class Hardswish(Module):
    """Layer that returns ``x * hardsigmoid(x)`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Hardswish()(torch.tensor([-4.0, 1.0, 4.0]))
    tensor([-0.0000, 0.6667, 4.0000])
    """

    inplace: bool = False


@declares_layer(F.elu, "alpha={alpha}")
class ELU(Module):
    """Layer that returns each element x of its input where x is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


@declares_layer(F.celu, "alpha={alpha}")
class CELU(Module):
    """Layer that returns each element x of its input where x > 0, and ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.CELU(alpha=2.0)(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.7869,  0.0000,  2.0000])
    """

    alpha: float = 1.0
    inplace: bool = False


@declares_layer(F.selu)
class SELU(Module):
    """Layer that applies :class:`ELU` to its input and multiplies the result by a constant (Klambauer et al. 2017).

    The constant is 1.0507, and ``alpha`` of the ELU is 1.6733. With these values, a normally distributed input with
    mean 0 and variance 1 has an output with the same mean and variance.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.SELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.1113,  0.0000,  2.1014])
    """

    inplace: bool = False


@declares_layer(F.glu, "dim={dim}")
class GLU(Module):
    """Gated linear unit: layer that returns ``a * sigmoid(b)``.

    a and b are the first half and the second half of the input along ``dim``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.GLU()(torch.tensor([1.0, 2.0, 0.0, 3.0]))
    tensor([0.5000, 1.9051])
    """

    dim: int = -1


@declares_layer(F.gelu, "approximate={approximate!r}")
class GELU(Module):
    """Layer that returns ``x * cdf(x)`` for each element x of its input.

    ``cdf`` is the cumulative distribution function of the standard normal distribution. It is approximated by a formula
    with ``tanh`` if ``approximate`` is ``"tanh"``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.GELU()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    >>> nn.GELU(approximate="tanh")(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1588,  0.0000,  1.9546])
    """

    approximate: str = "none"


@declares_layer(F.hardshrink, "{lambd}")
class Hardshrink(Module):
    """Layer that returns each element x of its input where ``abs(x) > lambd``, and 0 elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Hardshrink()(torch.tensor([-2.0, 0.25, 0.75]))
    tensor([-2.0000,  0.0000,  0.7500])
    """

    lambd: float = 0.5


@declares_layer(F.leaky_relu, "negative_slope={negative_slope}")
class LeakyReLU(Module):
    """Layer that returns each element x of its input where x is positive, and ``negative_slope * x`` elsewhere.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LeakyReLU(0.1)(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1000,  0.0000,  2.0000])
    """

    negative_slope: float = 1e-2
    inplace: bool = False


@declares_layer(F.logsigmoid)
class LogSigmoid(Module):
    """Layer that returns ``log(sigmoid(x))`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LogSigmoid()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.3133, -0.6931, -0.1269])
    """


@declares_layer(F.softplus, "beta={beta}, threshold={threshold}")
class Softplus(Module):
    """Layer that returns ``log(1 + exp(beta * x)) / beta`` for each element x of its input.

    Where ``beta * x > threshold`` the result is x.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Softplus()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3133, 0.6931, 2.1269])
    """

    beta: float = 1.0
    threshold: float = 20.0


@declares_layer(F.softshrink, "{lambd}")
class Softshrink(Module):
    """Layer that returns ``sign(x) * max(abs(x) - lambd, 0)`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Softshrink()(torch.tensor([-2.0, 0.25, 0.75]))
    tensor([-1.5000,  0.0000,  0.2500])
    """

    lambd: float = 0.5


class PReLU(Module):
    """Layer that returns each element x of its input where x is positive, and ``weight * x`` elsewhere.

    ``weight`` is a trained parameter with ``num_parameters`` elements: a single element, or one element for each
    channel.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.PReLU(init=0.25)(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2500,  0.0000,  2.0000], grad_fn=<PreluKernelBackward0>)
    """

    weight: Any

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the elements of ``weight`` to ``init``, the argument of the constructor."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return ``input`` with its negative elements multiplied by ``weight``."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the argument ``num_parameters`` as text for the ``repr`` of the layer."""
        return f"num_parameters={self.num_parameters}"


@declares_layer(F.softsign)
class Softsign(Module):
    """Layer that returns ``x / (1 + abs(x))`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Softsign()(torch.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """


@declares_layer(F.tanhshrink)
class Tanhshrink(Module):
    """Layer that returns ``x - tanh(x)`` for each element x of its input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Tanhshrink()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2384,  0.0000,  1.0360])
    """


@declares_layer(F.softmin, "dim={dim}")
class Softmin(Module):
    """Layer that returns the softmax of ``-x`` along ``dim``, where x is the input.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Softmin(dim=0)(torch.tensor([1.0, 2.0, 3.0]))
    tensor([0.6652, 0.2447, 0.0900])
    """

    dim: int | None = None


@declares_layer(F.softmax, "dim={dim}")
class Softmax(Module):
    """Layer that returns ``exp(x) / sum(exp(x))``, where x is the input and the sum is taken along ``dim``.

    >>> import retrograd as torch
    >>> torch.nn.Softmax(dim=0)(torch.tensor([1.0, 1.0]))
    tensor([0.5000, 0.5000])
    """

    dim: int | None = None


class Softmax2d(Module):
    """Layer that returns the softmax over the channels of images of shape (N, C, H, W) or (C, H, W).

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Softmax2d()(torch.ones(1, 4, 2, 2))[0, :, 0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax over the channels of ``input``, of shape (N, C, H, W) or (C, H, W)."""
        if input.dim() not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead")
        return F.softmax(input, -3)


@declares_layer(F.log_softmax, "dim={dim}")
class LogSoftmax(Module):
    """Layer that returns the logarithm of the softmax of its input along ``dim``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.LogSoftmax(dim=-1)(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[-2.4076, -1.4076, -0.4076]])
    """

    dim: int | None = None


__all__ = [
    "CELU", "ELU", "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "LeakyReLU", "LogSigmoid",
    "LogSoftmax", "Mish", "MultiheadAttention", "PReLU", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid",
    "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip
