"""Activations and probabilities: softmax and its kin, and the losses that stand on them."""

from __future__ import annotations

import math
import warnings
from functools import partial
from typing import Any

import numpy

from ..core.dtypes import unsupported
from ..core.tensor import Tensor, dimension
from .table import op as declared
from .table import pointwise, surface

op = partial(declared, in_order=True)  # NumPy would lay results out as the operand is


@op(name="softmax_block", backward="SoftmaxBackward0", opmath=True, function=False, method=False)
def softmax_block(np: Any, self: Any, /, dim: int) -> Any:
    """``exp(x) / sum(exp(x))`` along a dimension, without overflow."""
    _floats("softmax", self)
    if not self.ndim:
        return np.ones_like(self)
    raised = np.exp(self - np.amax(self, axis=dim, keepdims=True)) if self.size else self
    return raised / np.add.reduce(raised, axis=dim, keepdims=True)


def _floats(name: str, x: Any) -> None:
    if x.dtype.kind in "biu":
        raise unsupported(f"{name}_lastdim_kernel_impl", x.dtype)


@op(name="log_softmax_block", backward="LogSoftmaxBackward0", opmath=True, function=False, method=False)
def log_softmax_block(np: Any, self: Any, /, dim: int) -> Any:
    """The logarithm of softmax, without overflow."""
    _floats("log_softmax", self)
    if not self.ndim:
        return np.zeros_like(self)
    if not self.size:
        return self.copy()
    shifted = self - np.amax(self, axis=dim, keepdims=True)
    return shifted - np.log(np.add.reduce(np.exp(shifted), axis=dim, keepdims=True))


def _log_softmax_rule(F: Any, g: Any, out: Any, out_shape: Any, dim: int) -> Any:
    if not out_shape:
        return F.zeros_as(g)
    return g - F.exp(out) * F.sum_dim(g, dim, True)


log_softmax_block.derivative(self=_log_softmax_rule)


def _softmax_rule(F: Any, g: Any, out: Any, out_shape: Any, dim: int) -> Any:
    if not out_shape:
        return F.zeros_as(g)
    slope = g * out
    return slope - out * F.sum_dim(slope, dim, True)


softmax_block.derivative(self=_softmax_rule)


def _along(input: Tensor, dim: int | None, dtype: Any) -> tuple[Tensor, int]:
    if dim is None:
        warnings.warn(
            "Implicit dimension choice for softmax has been deprecated. Change the call to include dim=X as an argument.",
            UserWarning,
            stacklevel=3,
        )
        dim = 0 if input._array.ndim in (0, 1, 3) else 1
    source = input if dtype is None else input.to(dtype)
    return source, dimension(dim, source._array.ndim)


@surface()
def softmax(input: Tensor, dim: int | None = None, dtype: Any = None, *, _stacklevel: int = 3) -> Tensor:
    """``exp(x) / sum(exp(x))`` along ``dim``: positive numbers that add up to 1."""
    return softmax_block(*_along(input, dim, dtype))


@surface()
def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None, *, _stacklevel: int = 3) -> Tensor:
    """The logarithm of :func:`softmax` along ``dim``, calculated without overflow."""
    return log_softmax_block(*_along(input, dim, dtype))


# -- Element by element ----------------------------------------------------------------------------------------------


def _hidden(*rules: Any, **options: Any) -> Any:
    """An operation that only ``nn.functional`` shows."""
    return pointwise(*rules, function=False, method=False, in_place=False, **options)


@_hidden(lambda F, g, self, negative_slope: F.where_slope(g, self, negative_slope))
def leaky_relu(np: Any, self: Any, /, negative_slope: float = 0.01, inplace: bool = False) -> Any:
    """Each element where it is positive, else ``negative_slope`` times it."""
    return np.where(self > 0, self, self * self.dtype.type(negative_slope))


@op(function=False, method=False)
def where_slope(np: Any, g: Any, self: Any, /, slope: float) -> Any:
    """``g`` where ``self`` is positive, else ``slope * g``."""
    return np.where(self > 0, g, g * g.dtype.type(slope))


where_slope.derivative(g=lambda F, g, self, slope: F.where_slope(g, self, slope))


@_hidden(
    lambda F, g, self, alpha: (
        F.where_else(self > 0, g) + F.where_else(self <= 0, g * (F.exp(F.minimum_zero(self)) * alpha))
    )
)
def elu(np: Any, self: Any, /, alpha: float = 1.0, inplace: bool = False) -> Any:
    """Each element where it is positive, else ``alpha * (exp(x) - 1)``."""
    return np.where(self > 0, self, self.dtype.type(alpha) * np.expm1(np.minimum(self, 0)))


@_hidden(lambda F, g, self: F.where_else(self < 0, g))
def minimum_zero(np: Any, self: Any, /) -> Any:
    """Each element where it is negative, else 0."""
    return np.minimum(self, 0)


@_hidden(lambda F, g, self: g * (F.sigmoid(self) * (1 + self * (1 - F.sigmoid(self)))))
def silu(np: Any, self: Any, /, inplace: bool = False) -> Any:
    """``x * sigmoid(x)``."""
    return self / (1 + np.exp(-self))


@_hidden(lambda F, g, self, beta, threshold: F.where_else(self * beta > threshold, g)
         + F.where_else(self * beta <= threshold, g * F.sigmoid(self * beta)))  # fmt: skip
def softplus(np: Any, self: Any, /, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """``log(1 + exp(beta * x)) / beta``, and x itself where ``beta * x`` is above ``threshold``."""
    scaled = self * self.dtype.type(beta)
    return np.where(scaled > threshold, self, np.log1p(np.exp(np.minimum(scaled, threshold))) / self.dtype.type(beta))


@_hidden(lambda F, g, self: g * F.sigmoid(-self), backward="LogSigmoidBackward0")
def logsigmoid(np: Any, self: Any, /) -> Any:
    """``log(sigmoid(x))`` without overflow."""
    return np.minimum(self, 0) - np.log1p(np.exp(-np.absolute(self)))


@_hidden(lambda F, g, self, min_val, max_val: F.where_else((self > min_val) & (self < max_val), g))
def hardtanh(np: Any, self: Any, /, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Any:
    """Each element, cut off below ``min_val`` and above ``max_val``."""
    return np.minimum(np.maximum(self, self.dtype.type(min_val)), self.dtype.type(max_val))


def _gelu_slope(F: Any, g: Any, self: Any, approximate: str) -> Any:
    if approximate == "tanh":
        inner = math.sqrt(2 / math.pi) * (self + 0.044715 * (self * self * self))
        t = F.tanh(inner)
        slope = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * (self * self))
        return g * (0.5 * (1 + t) + 0.5 * self * (1 - t * t) * slope)
    density = F.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi))
    return g * (F.normal_cdf(self) + self * density)


@_hidden(_gelu_slope)
def gelu(np: Any, self: Any, /, *, approximate: str = "none") -> Any:
    """``x`` times the probability that a normal variable is below it; ``approximate="tanh"``: a formula near it."""
    if approximate == "tanh":
        return 0.5 * self * (1 + np.tanh(math.sqrt(2 / math.pi) * (self + 0.044715 * self * self * self)))
    return self * _cdf(np, self)


def _cdf(np: Any, x: Any) -> Any:
    if np.__name__ == "numpy":
        from scipy.special import ndtr
    else:
        from cupyx.scipy.special import ndtr
    return ndtr(x).astype(x.dtype)


@_hidden(lambda F, g, self: g * (F.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi))))
def normal_cdf(np: Any, self: Any, /) -> Any:
    """The probability that a normal variable is below each element."""
    return _cdf(np, self)


# -- Losses ----------------------------------------------------------------------------------------------------------


def _reduced(np: Any, each: Any, reduction: str) -> Any:
    if reduction == "none":
        return each
    total = np.add.reduce(each, None)
    return total / each.dtype.type(each.size) if reduction == "mean" else total


@op(backward="MseLossBackward0", name="mse_loss_block", opmath=True, function=False, method=False)
def mse_loss_block(np: Any, self: Any, target: Any, /, reduction: str) -> Any:
    """Squares of differences, their mean or their sum."""
    gap = self - target
    return _reduced(np, gap * gap, reduction)


def _mse_slope(F: Any, g: Any, self: Any, target: Any, self_shape: Any, target_shape: Any, reduction: str) -> Any:
    count = math.prod(numpy.broadcast_shapes(self_shape, target_shape)) if reduction == "mean" else 1
    return g * ((self - target) * (2.0 / count))


mse_loss_block.derivative(
    self=_mse_slope,
    target=lambda F, g, self, target, self_shape, target_shape, reduction: (
        -_mse_slope(F, g, self, target, self_shape, target_shape, reduction)
    ),
)


@op(backward="NllLossBackward0", name="nll_loss_block", opmath=True, function=False, method=False)
def nll_loss_block(np: Any, self: Any, target: Any, /, reduction: str) -> Any:
    """``-self[i, target[i]]``, their mean or their sum."""
    if target.size and (int(target.min()) < 0 or int(target.max()) >= self.shape[1]):
        bad = int(target[(target < 0) | (target >= self.shape[1])][0])
        raise IndexError(f"Target {bad} is out of bounds.")
    return _reduced(np, -self[np.arange(target.shape[0]), target], reduction)


@op(name="nll_loss_backward", function=False, method=False, linear=True)
def nll_loss_backward(np: Any, self: Any, target: Any, /, shape: tuple[int, ...], reduction: str) -> Any:
    """The gradient of ``nll_loss``: one number in each row."""
    out = np.zeros(shape, self.dtype)
    out[np.arange(target.shape[0]), target] = -self / self.dtype.type(target.shape[0] if reduction == "mean" else 1)
    return out


nll_loss_block.derivative(
    self=lambda F, g, self_shape, target, reduction: F.nll_loss_backward(g, target, self_shape, reduction)
)
nll_loss_backward.derivative(self=lambda F, g, target, reduction: F.nll_loss_block(g, target, reduction))
