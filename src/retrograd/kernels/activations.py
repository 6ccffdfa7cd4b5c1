"""Kernels of leaky_relu, hardswish, elu, silu, mish, softplus, logsigmoid, gelu and of their gradients.

A gradient kernel computes the gradient of the input from ``grad``, the gradient of the result, and ``x``, the input.
Large arrays use the Numba loop of the same name in ``kernels/numba/elementwise.py``.
"""

from __future__ import annotations

import math
from typing import Any

from .elementwise import choose, keep
from .select import elementwise_loop, kernel
from .thresholds import BRANCHES, LARGE_ERF

SQRT_2_OVER_PI = math.sqrt(2 / math.pi)
CUBIC = 0.044715
#: Constants of the loops of gelu's approximation.
_BY_TANH = 2 * SQRT_2_OVER_PI, 2 * SQRT_2_OVER_PI * CUBIC


def logistic(np: Any, x: Any) -> Any:
    """Return ``1 / (1 + exp(-x))`` elementwise."""
    return 1 / (1 + np.exp(-x))


# -- Piecewise linear ------------------------------------------------------------------------------------------------


@kernel(elementwise_loop("leaky_relu"))
def leaky_relu(np: Any, x: Any, negative_slope: float) -> Any:
    """Return each element of ``x`` that is positive, and ``negative_slope`` times each other element."""
    if 0 < negative_slope <= 1:
        return np.maximum(x, x * negative_slope)
    return choose(np, x, x * negative_slope, x > 0)


@kernel(elementwise_loop("leaky_relu_backward", 2, least=BRANCHES))
def leaky_relu_gradient(np: Any, grad: Any, x: Any, negative_slope: float) -> Any:
    """Return ``grad`` where ``x`` is positive, and ``negative_slope * grad`` elsewhere."""
    return choose(np, grad, grad * negative_slope, x > 0)


# -- Smooth and piecewise smooth -------------------------------------------------------------------------------------


@kernel(elementwise_loop("hardswish"))
def hardswish(np: Any, x: Any) -> Any:
    """Return ``x * hardsigmoid(x)`` elementwise."""
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6


@kernel(elementwise_loop("hardswish_backward", 2, least=BRANCHES))
def hardswish_gradient(np: Any, grad: Any, x: Any) -> Any:
    """Return 0 where ``x <= -3``, ``grad`` where ``x >= 3``, and ``grad * (x / 3 + 1 / 2)`` elsewhere."""
    inner = choose(np, grad * (x / 3 + 0.5), grad, x < 3)
    return keep(np, inner, np.logical_not(x <= -3))


@kernel(elementwise_loop("elu", least=BRANCHES))
def elu(np: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    """Return ``scale * x`` where ``x`` is positive, and ``scale * alpha * (exp(input_scale * x) - 1)`` elsewhere."""
    negative = np.expm1(np.minimum(x, 0) * input_scale) * (alpha * scale)
    return choose(np, x if scale == 1 else x * scale, negative, x > 0)


@kernel(elementwise_loop("elu_backward", 2, least=BRANCHES))
def elu_gradient(np: Any, grad: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    """Return the gradient of the input ``x`` of :func:`elu`, given ``grad``, the gradient of the result."""
    negative = np.exp(np.minimum(x, 0) * input_scale) * (alpha * scale * input_scale)
    return grad * np.where(x <= 0, negative, np.asarray(scale, negative.dtype))


@kernel(elementwise_loop("silu"))
def silu(np: Any, x: Any) -> Any:
    """Return ``x * sigmoid(x)`` elementwise."""
    return x / (1 + np.exp(-x))


@kernel(elementwise_loop("silu_backward", 2))
def silu_gradient(np: Any, grad: Any, x: Any) -> Any:
    """Return the gradient of the input ``x`` of :func:`silu`, given ``grad``, the gradient of the result."""
    share = logistic(np, x)
    return grad * (share * (1 + x * (1 - share)))


@kernel(elementwise_loop("mish"))
def mish(np: Any, x: Any) -> Any:
    """Return ``x * tanh(softplus(x))`` elementwise."""
    return x * np.tanh(np.logaddexp(x, np.zeros((), x.dtype)))


@kernel(elementwise_loop("mish_backward", 2))
def mish_gradient(np: Any, grad: Any, x: Any) -> Any:
    """Return the gradient of the input ``x`` of :func:`mish`, given ``grad``, the gradient of the result."""
    share = np.tanh(np.logaddexp(x, np.zeros((), x.dtype)))
    return grad * (share + x * logistic(np, x) * (1 - share * share))


@kernel(elementwise_loop("softplus", least=BRANCHES))
def softplus(np: Any, x: Any, beta: float, threshold: float) -> Any:
    """Return ``log(1 + exp(beta * x)) / beta`` elementwise, and ``x`` where ``beta * x > threshold``."""
    scaled = x if beta == 1 else x * beta
    result = np.log1p(np.exp(np.minimum(scaled, threshold)))
    return choose(np, x, result if beta == 1 else result / beta, scaled > threshold)


@kernel(elementwise_loop("softplus_backward", 2, least=BRANCHES))
def softplus_gradient(np: Any, grad: Any, x: Any, beta: float, threshold: float) -> Any:
    """Return the gradient of the input ``x`` of :func:`softplus`, given ``grad``, the gradient of the result."""
    scaled = x * beta
    return choose(np, grad, grad * logistic(np, scaled), scaled > threshold)


@kernel(elementwise_loop("logsigmoid"))
def logsigmoid(np: Any, x: Any) -> Any:
    """Return ``log(sigmoid(x))`` elementwise, computed without overflow."""
    out = np.negative(np.absolute(x), out=np.empty(x.shape, x.dtype))  # contiguous, as in PyTorch
    np.log1p(np.exp(out, out=out), out=out)
    return np.subtract(np.minimum(x, 0), out, out=out)


# -- gelu ------------------------------------------------------------------------------------------------------------


def _cdf(np: Any, x: Any) -> Any:
    if np.__name__ != "cupy":
        from scipy.special import ndtr
    else:
        from cupyx.scipy.special import ndtr
    return ndtr(x).astype(x.dtype, copy=False)


@kernel(elementwise_loop("gelu", least=LARGE_ERF))
def gelu(np: Any, x: Any) -> Any:
    """Return ``x * P(x)`` elementwise, where P is the standard normal distribution function."""
    return x * _cdf(np, x)


@kernel(elementwise_loop("gelu_backward", 2, least=LARGE_ERF))
def gelu_gradient(np: Any, grad: Any, x: Any) -> Any:
    """Return the gradient of the input ``x`` of :func:`gelu`, given ``grad``, the gradient of the result."""
    density = np.exp(x * x * -0.5) * (1 / math.sqrt(2 * math.pi))
    return grad * (_cdf(np, x) + x * density)


@kernel(elementwise_loop("gelu_by_tanh", 1, *_BY_TANH))
def gelu_by_tanh(np: Any, x: Any) -> Any:
    """Return ``0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))`` elementwise, an approximation of gelu."""
    return 0.5 * x * (1 + np.tanh(SQRT_2_OVER_PI * x * (1 + CUBIC * x * x)))


@kernel(elementwise_loop("gelu_by_tanh_backward", 2, *_BY_TANH))
def gelu_by_tanh_gradient(np: Any, grad: Any, x: Any) -> Any:
    """Return the gradient of the input ``x`` of :func:`gelu_by_tanh`, given ``grad``, the gradient of the result."""
    square = x * x
    t = np.tanh(SQRT_2_OVER_PI * x * (1 + CUBIC * square))
    return grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * (SQRT_2_OVER_PI * (1 + 3 * CUBIC * square)))
