"""Activations: relu, leaky_relu, elu, gelu, silu, softplus, prelu, rrelu, glu and others.

The gradients of most activations are computed by operations named ``…_backward``. These operations are differentiable,
so that second derivatives are exact. Softmax is in ``operations/nn/softmax.py``.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NoReturn

import numpy

from ...core import devices
from ...core.dtypes import scalar_name, unsupported
from ...core.graph import AccumulateGrad
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import in_place_form, op, pointwise, public
from ...dispatch.generic_path import modify
from ...dispatch.transform_tensor import innermost_batch
from ...kernels import activations, elementwise
from ...kernels.activations import CUBIC, SQRT_2_OVER_PI, logistic
from ...kernels.half_precision import upcast_all_half
from ..creation.conversion import numpy_array_of
from ..creation.random import Generator, _stream
from ..elementwise.arithmetic import abs as absolute
from ..elementwise.arithmetic import div_true
from ..elementwise.elementary import relu as relu_block
from ..elementwise.elementary import tanh
from ..shape.views import reshape


def _functional_op(*rules: Any, **options: Any) -> Any:
    """Return a decorator that makes a differentiable elementwise operation from a function on arrays.

    The operation is called only by functions of ``nn.functional``: it is neither a function of ``torch`` nor a method
    of Tensor. ``rules`` describe the gradients of the operands, one rule for each operand. ``options`` are further
    arguments of ``pointwise``, the general form of this decorator.
    """
    return pointwise(*rules, function=False, method=False, in_place=False, **options)


def _gradient_op(vmap: Any = "elementwise", **options: Any) -> Any:
    """Return a decorator for a function on arrays that computes the gradient of an activation.

    The decorated function becomes an operation on tensors, which is neither a function of ``torch`` nor a method of
    Tensor. ``vmap`` describes the behaviour of the operation inside ``torch.vmap``. ``options`` are further arguments
    of ``op``, the general form of this decorator.
    """
    return op(function=False, method=False, opmath=True, vmap=vmap, **options)


def _call(block: Any, inplace: bool, input: Tensor, *params: Any) -> Tensor:
    result: Tensor = modify(block.op, (input,), params) if inplace else block(input, *params)
    return result


@_functional_op(lambda F, g, self: F.where_else(self < 0, g))
def minimum_zero(np: Any, self: Any, /) -> Any:
    """Return ``min(x, 0)`` for each element x of ``self``."""
    return np.minimum(self, 0)


def _in_place_slope(name: str, result: Tensor, slope: float) -> Tensor:
    """Return ``result`` of an in-place activation; if ``slope`` is negative, its backward pass raises RuntimeError.

    PyTorch's derivative of the in-place form tells the sign of the overwritten input from that of the result.
    """
    edge = result._grad_edge
    if slope < 0 and edge is not None and edge.__class__ is not AccumulateGrad:
        text = (
            f"In-place {name} backward calculation is triggered with a negative slope which is not supported. This is caused "
            "by calling in-place forward function with a negative slope, please call out-of-place version instead."
        )

        def refuse(grads: Any) -> NoReturn:
            raise RuntimeError(text)

        edge.node.register_prehook(refuse)
    return result


_functional = partial(public, function=False, method=False)  # public only in nn.functional


# -- Piecewise linear activations: the second derivative is zero ------------------------------------------------------


def _zero_second_derivative(F: Any, g: Any) -> Any:
    """Return zeros of the shape of ``g``: the second derivative of a piecewise linear function."""
    return F.zeros_as(g)


@_gradient_op()
def leaky_relu_backward(np: Any, grad_output: Any, self: Any, /, negative_slope: float) -> Any:
    """Return ``where(self > 0, grad_output, negative_slope * grad_output)``, the gradient of ``leaky_relu``."""
    return activations.leaky_relu_gradient(np, grad_output, self, negative_slope)


leaky_relu_backward.derivative(
    grad_output=lambda F, g, self, negative_slope: F.leaky_relu_backward(g, self, negative_slope),
    self=_zero_second_derivative,
)


@_functional_op(
    lambda F, g, self, negative_slope: F.leaky_relu_backward(g, self, negative_slope),
    name="leaky_relu", in_place_backward="LeakyReluBackward1", refuses=("leaky_relu_cpu", "bic"),
)  # fmt: skip
def leaky_relu_block(np: Any, self: Any, /, negative_slope: float = 0.01) -> Any:
    """Return each element x of ``self`` where x is positive, and ``negative_slope * x`` elsewhere."""
    return activations.leaky_relu(np, self, negative_slope)


@_functional(fast_path=leaky_relu_block)
def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return each element x of ``input`` where x is positive, and ``negative_slope * x`` elsewhere.

    If ``inplace`` is true, ``input`` is overwritten by the result.

    >>> import retrograd as torch
    >>> torch.nn.functional.leaky_relu(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    result = _call(leaky_relu_block, inplace, input, negative_slope)
    return _in_place_slope("leakyReLu", result, negative_slope) if inplace else result


def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """Overwrite ``input`` with :func:`leaky_relu` of the arguments, and return ``input``.

    >>> import retrograd as torch
    >>> torch.nn.functional.leaky_relu_(torch.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return leaky_relu(input, negative_slope, True)


@_gradient_op()
def hardtanh_backward(np: Any, grad_output: Any, self: Any, /, min_val: float, max_val: float) -> Any:
    """Return ``grad_output * (min_val < self < max_val)``, the gradient of ``hardtanh`` with respect to ``self``."""
    return elementwise.keep(np, grad_output, ~((self <= min_val) | (self >= max_val)))


hardtanh_backward.derivative(
    grad_output=lambda F, g, self, min_val, max_val: F.hardtanh_backward(g, self, min_val, max_val),
    self=_zero_second_derivative,
)


def _check_bounded(x: Any) -> None:
    if x.dtype == bool:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if x.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")


@_functional_op(
    lambda F, g, self, min_val, max_val: F.hardtanh_backward(g, self, min_val, max_val),
    name="hardtanh", check=_check_bounded,
)  # fmt: skip
def hardtanh_block(np: Any, self: Any, /, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    """Return each element of ``self``, clamped to the range from ``min_val`` to ``max_val``."""
    if self.dtype.kind == "u" and min_val < 0:
        raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
    low, high = (np.asarray(each).astype(self.dtype) for each in (min_val, max_val))
    return np.minimum(np.maximum(self, low), high)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return each element of ``input``, clamped to the range from ``min_val`` to ``max_val``.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    return _call(hardtanh_block, inplace, input, min_val, max_val)


hardtanh_ = in_place_form(hardtanh_block.op, "hardtanh_")


@_functional(fast_path=hardtanh_block, min_val=0, max_val=6)
def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return each element of ``input``, clamped to the range from 0 to 6.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(hardtanh_block, inplace, input, 0, 6)


@_gradient_op()
def hardshrink_backward(np: Any, grad_output: Any, self: Any, /, lambd: float) -> Any:
    """Return the gradient of ``hardshrink`` with respect to its input ``self``.

    The gradient is ``grad_output`` where ``abs(self) > lambd``, and 0 elsewhere.
    """
    return elementwise.keep(np, grad_output, ~(np.absolute(self) <= lambd))


hardshrink_backward.derivative(
    grad_output=lambda F, g, self, lambd: F.hardshrink_backward(g, self, lambd), self=_zero_second_derivative
)


@pointwise(
    lambda F, g, self, lambd: F.hardshrink_backward(g, self, lambd),
    in_place=False, refuses=("hardshrink_cpu", "bic"),
)  # fmt: skip
def hardshrink(np: Any, self: Any, /, lambd: float = 0.5) -> Any:
    """Return each element x of ``self`` where ``abs(x) > lambd``, and 0 elsewhere."""
    return elementwise.keep(np, self, ~(np.absolute(self) <= lambd))


@_functional_op(
    lambda F, g, self, lambd: F.hardshrink_backward(g, self, lambd), name="softshrink",
    backward="SoftshrinkBackward0", refuses=("softshrink_check", "bic"),
)  # fmt: skip
def softshrink(np: Any, self: Any, /, lambd: float = 0.5) -> Any:
    """Return each element x of ``self`` with its absolute value reduced by ``lambd``, or 0 if ``abs(x) <= lambd``."""
    if lambd < 0:
        raise RuntimeError(f"lambda must be in range [0, 3.40282e+38] for input dtype Float, but found {lambd:g}")
    low = elementwise.choose(np, self + lambd, self * 0, self < -lambd)
    return elementwise.choose(np, self - lambd, low, self > lambd)


@_functional_op(
    lambda F, g, self, threshold: F.threshold_backward(g, self, threshold),
    name="threshold", in_place_backward="ThresholdBackward1", refuses=("threshold_cpu", "bc"),
)  # fmt: skip
def threshold_block(np: Any, self: Any, /, threshold: float, value: float) -> Any:
    """Return each element x of ``self`` where ``x > threshold``, and ``value`` elsewhere."""
    return elementwise.fill_where(np, self, self <= threshold, value)


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return each element x of ``input`` where ``x > threshold``, and ``value`` elsewhere.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(threshold_block, inplace, input, threshold, value)


public(name="threshold", method=False)(threshold_block)
threshold_ = public(method=False)(in_place_form(threshold_block.op, "threshold_"))


@_functional(fast_path=relu_block)
def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(x, 0)`` for each element x of ``input``.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(relu_block, inplace, input)


relu_ = in_place_form(relu_block.op, "relu_")


@_gradient_op()
def hardsigmoid_backward(np: Any, grad_output: Any, self: Any, /) -> Any:
    """Return the gradient of ``hardsigmoid`` with respect to its input ``self``.

    The gradient is ``grad_output / 6`` where ``self`` is strictly between -3 and 3, and 0 elsewhere.
    """
    return elementwise.keep(np, grad_output / 6, (self > -3) & (self < 3))


hardsigmoid_backward.derivative(
    grad_output=lambda F, g, self: F.hardsigmoid_backward(g, self), self=_zero_second_derivative
)


@_functional_op(
    lambda F, g, self: F.hardsigmoid_backward(g, self), name="hardsigmoid", refuses=("hardsigmoid_cpu", "bic")
)  # fmt: skip
def hardsigmoid_block(np: Any, self: Any, /) -> Any:
    """Return ``(x + 3) / 6``, clamped to the range from 0 to 1, for each element x of ``self``."""
    return np.minimum(np.maximum(self + 3, 0), 6) / 6


@_functional(fast_path=hardsigmoid_block)
def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``(x + 3) / 6``, clamped to the range from 0 to 1, for each element x of ``input``.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(hardsigmoid_block, inplace, input)


# -- Smooth and piecewise smooth activations -------------------------------------------------------------------------


@_gradient_op()
def hardswish_backward(np: Any, grad_output: Any, self: Any, /) -> Any:
    """Return the gradient of ``hardswish`` with respect to its input ``self``.

    For each element x of ``self``, the gradient is 0 if ``x <= -3``, ``grad_output`` if ``x >= 3``, and
    ``grad_output * (x / 3 + 1 / 2)`` otherwise.
    """
    return activations.hardswish_gradient(np, grad_output, self)


hardswish_backward.derivative(
    grad_output=lambda F, g, self: F.hardswish_backward(g, self),
    self=lambda F, g, grad_output, self: F.where_else((self > -3) & (self < 3), g * grad_output / 3),
)


@_functional_op(lambda F, g, self: F.hardswish_backward(g, self), name="hardswish", refuses=("hardswish_cpu", "bic"))
def hardswish_block(np: Any, self: Any, /) -> Any:
    """Return ``x * hardsigmoid(x)`` for each element x of ``self``."""
    return activations.hardswish(np, self)


@_functional(fast_path=hardswish_block)
def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * hardsigmoid(x)`` for each element x of ``input``.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(hardswish_block, inplace, input)


def _elu_slope_by_decay(grad: Any, x: Any, alpha: float, scale: float, input_scale: float) -> Any:
    """Return the gradient of ``elu`` as the loop for large arrays computes it: it is nan where ``x`` is nan."""
    negative = numpy.exp(numpy.minimum(x, 0) * input_scale) * (alpha * scale * input_scale)
    return grad * numpy.where(x > 0, scale, negative)


@_gradient_op(scalar=_elu_slope_by_decay)
def elu_backward(np: Any, grad_output: Any, self: Any, /, alpha: float, scale: float, input_scale: float) -> Any:
    """Return the gradient of ``elu``, ``selu`` or ``celu`` with respect to its input ``self``.

    For an element x of ``self``, all three functions return ``scale * x`` if x is positive, otherwise
    ``scale * alpha * (exp(input_scale * x) - 1)``. They differ in ``alpha``, ``scale`` and ``input_scale``.
    """
    return activations.elu_gradient(np, grad_output, self, alpha, scale, input_scale)


def _elu_backward_self(
    F: Any, g: Any, grad_output: Any, self: Any, alpha: float, scale: float, input_scale: float
) -> Any:
    bend = F.exp(F.minimum_zero(self) * input_scale) * (alpha * scale * input_scale * input_scale)
    return F.where_else(self < 0, g * grad_output * bend)


elu_backward.derivative(
    grad_output=lambda F, g, self, alpha, scale, input_scale: F.elu_backward(g, self, alpha, scale, input_scale),
    self=_elu_backward_self,
)


@_functional_op(
    lambda F, g, self, alpha, scale, input_scale: F.elu_backward(g, self, alpha, scale, input_scale),
    name="elu", in_place_backward="EluBackward1", refuses=("elu_cpu", "bic"),
)  # fmt: skip
def elu_block(np: Any, self: Any, /, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    """Return ``scale * x`` for each positive element x of ``self``.

    For each other element x, return ``scale * alpha * (exp(input_scale * x) - 1)``.
    """
    return activations.elu(np, self, alpha, scale, input_scale)


@_functional(fast_path=elu_block, scale=1.0, input_scale=1.0)
def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return each element x of ``input`` where x is positive, and ``alpha * (exp(x) - 1)`` elsewhere.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    result = _call(elu_block, inplace, input, alpha, 1.0, 1.0)
    return _in_place_slope("elu", result, alpha) if inplace else result


def elu_(input: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """Overwrite ``input`` with ``scale * elu(input_scale * input, alpha)``, and return ``input``.

    >>> import retrograd as torch
    >>> torch.nn.functional.elu_(torch.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _in_place_slope("elu", _call(elu_block, True, input, alpha, scale, input_scale), alpha)


# The constants for which mean 0 and variance 1 are a fixed point of the map between layers (Klambauer et al. 2017).
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805


@_functional(fast_path=elu_block, alpha=SELU_ALPHA, scale=SELU_SCALE, input_scale=1.0)
def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the scaled exponential linear unit: ``1.0507 * elu(input, 1.6733)`` (arXiv 1706.02515).

    The two constants, rounded here, are chosen so that mean 0 and variance 1 are preserved from layer to layer. If
    ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(elu_block, inplace, input, SELU_ALPHA, SELU_SCALE, 1.0)


@public(method=False)
def selu_(input: Tensor) -> Tensor:
    """Overwrite ``input`` with :func:`selu` of ``input``, and return ``input``."""
    return selu(input, inplace=True)


public(method=False)(selu)


@_functional_op(
    lambda F, g, self, alpha: F.elu_backward(g, self, alpha, 1.0, 1.0 / alpha),
    name="celu", in_place_backward="CeluBackward1", refuses=("elu_cpu", "bic"),
)  # fmt: skip
def celu_block(np: Any, self: Any, /, alpha: float = 1.0) -> Any:
    """Return each element x of ``self`` where x is positive, and ``alpha * (exp(x / alpha) - 1)`` elsewhere."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return activations.elu(np, self, alpha, 1.0, 1.0 / alpha)


@_functional(fast_path=celu_block)
def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return each element x of ``input`` where x is positive, and ``alpha * (exp(x / alpha) - 1)`` elsewhere.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(celu_block, inplace, input, alpha)


public(name="celu", method=False)(celu_block)
celu_ = public(method=False)(in_place_form(celu_block.op, "celu_"))


@_gradient_op()
def silu_backward(np: Any, grad_output: Any, self: Any, /) -> Any:
    """Return ``grad_output * sigmoid(self) * (1 + self * (1 - sigmoid(self)))``, the gradient of ``silu``."""
    return activations.silu_gradient(np, grad_output, self)


def _silu_backward_self(F: Any, g: Any, grad_output: Any, self: Any) -> Any:
    share = F.sigmoid(self)
    slope = F.sigmoid_backward(g * grad_output, share)
    return slope * (2 + self * (1 - 2 * share))


silu_backward.derivative(grad_output=lambda F, g, self: F.silu_backward(g, self), self=_silu_backward_self)


@_functional_op(lambda F, g, self: F.silu_backward(g, self), name="silu", refuses=("silu_cpu", "bi"))
def silu_block(np: Any, self: Any, /) -> Any:
    """Return ``x * sigmoid(x)`` for each element x of ``self``."""
    return activations.silu(np, self)


@_functional(fast_path=silu_block)
def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * sigmoid(x)`` for each element x of ``input``.

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(silu_block, inplace, input)


@_gradient_op()
def mish_backward(np: Any, grad_output: Any, self: Any, /) -> Any:
    """Return the gradient of ``mish`` with respect to its input ``self``, where ``mish(x) = x * tanh(softplus(x))``."""
    return activations.mish_gradient(np, grad_output, self)


def _mish_backward_self(F: Any, g: Any, grad_output: Any, self: Any) -> Any:
    # With q = sigmoid(-x), tanh(softplus(x)) is (1 - q²) / (1 + q²), and 1 - tanh² is 4 q² / (1 + q²)² without the
    # cancellation that gives 0 in bfloat16 from 3.5 on.
    inner, other = F.sigmoid(self), F.sigmoid(-self)
    square = other * other
    whole = square + 1
    share = (1 - square) / whole
    rise = 4 * square / (whole * whole) * inner
    return g * grad_output * (2 * rise + self * rise * (other - 2 * share * inner))


mish_backward.derivative(grad_output=lambda F, g, self: F.mish_backward(g, self), self=_mish_backward_self)


@_functional_op(lambda F, g, self: F.mish_backward(g, self), name="mish", refuses=("mish_cpu", "bic"))
def mish_block(np: Any, self: Any, /) -> Any:
    """Return ``x * tanh(softplus(x))`` for each element x of ``self``."""
    return activations.mish(np, self)


@_functional(fast_path=mish_block)
def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``x * tanh(softplus(x))`` for each element x of ``input`` (arXiv 1908.08681).

    If ``inplace`` is true, ``input`` is overwritten by the result.
    """
    return _call(mish_block, inplace, input)


@_gradient_op()
def softplus_backward(np: Any, grad_output: Any, self: Any, /, beta: float, threshold: float) -> Any:
    """Return the gradient of ``softplus`` with respect to its input ``self``.

    The gradient is ``grad_output`` where ``beta * self > threshold``, and ``grad_output * sigmoid(beta * self)``
    elsewhere.
    """
    return activations.softplus_gradient(np, grad_output, self, beta, threshold)


def _softplus_backward_self(F: Any, g: Any, grad_output: Any, self: Any, beta: float, threshold: float) -> Any:
    bend = F.sigmoid_backward(g * grad_output, F.sigmoid(self * beta)) * beta
    return F.where_else(self * beta < threshold, bend)


softplus_backward.derivative(
    grad_output=lambda F, g, self, beta, threshold: F.softplus_backward(g, self, beta, threshold),
    self=_softplus_backward_self,
)


def _softplus_by_decay(self: Any, beta: float, threshold: float) -> Any:
    """Return ``max(x, 0) + log(1 + exp(-abs(x)))``, divided by ``beta``, for ``x = beta * self``.

    This is :func:`softplus` of ``self``, computed in another way: the logarithm is taken only of numbers from 1 to 2,
    which takes 2.6 times less time in float64 than the logarithm of large numbers. If ``x > threshold``, the result is
    ``self``.
    """
    scaled = self * beta
    soft = numpy.maximum(scaled, 0) + numpy.log1p(numpy.exp(-numpy.absolute(scaled)))
    return numpy.where(scaled > threshold, self, soft / beta)


@_functional_op(
    lambda F, g, self, beta, threshold: F.softplus_backward(g, self, beta, threshold),
    refuses=("softplus_cpu", "bic"), scalar=_softplus_by_decay,
)  # fmt: skip
def softplus(np: Any, self: Any, /, beta: float = 1.0, threshold: float = 20.0) -> Any:
    """Return ``log(1 + exp(beta * x)) / beta`` for each element x of ``self``.

    If ``beta * x > threshold``, the result is x, because the formula then differs from x only by rounding.
    """
    return activations.softplus(np, self, beta, threshold)


@_gradient_op()
def log_sigmoid_backward(np: Any, grad_output: Any, self: Any, /) -> Any:
    """Return the gradient of ``logsigmoid`` with respect to its input ``self``: ``grad_output * sigmoid(-self)``."""
    return grad_output * logistic(np, -self)


log_sigmoid_backward.derivative(
    grad_output=lambda F, g, self: F.log_sigmoid_backward(g, self),
    self=lambda F, g, grad_output, self: -F.sigmoid_backward(g * grad_output, F.sigmoid(self)),
)


@_functional_op(
    lambda F, g, self: F.log_sigmoid_backward(g, self), backward="LogSigmoidBackward0",
    refuses=("log_sigmoid_cpu", "bic"),
)  # fmt: skip
def logsigmoid(np: Any, self: Any, /) -> Any:
    """Return ``log(sigmoid(x))`` for each element x of ``self``, computed without overflow."""
    return activations.logsigmoid(np, self)


# -- gelu ------------------------------------------------------------------------------------------------------------


def _is_exact(approximate: str) -> bool:
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return approximate == "none"


@_gradient_op()
def gelu_backward(np: Any, grad_output: Any, self: Any, /, approximate: str) -> Any:
    """Return the gradient of ``gelu`` with respect to its input ``self``.

    ``approximate`` is the parameter of ``gelu``.
    """
    if approximate == "none":
        return activations.gelu_gradient(np, grad_output, self)
    return activations.gelu_by_tanh_gradient(np, grad_output, self)


def _gelu_backward_self(F: Any, g: Any, grad_output: Any, self: Any, approximate: str) -> Any:
    square = self * self
    if approximate == "none":
        return g * grad_output * ((2 - square) * F.exp(square * -0.5) * (1 / math.sqrt(2 * math.pi)))
    t = F.tanh(SQRT_2_OVER_PI * self * (1 + CUBIC * square))
    inner = SQRT_2_OVER_PI * (1 + 3 * CUBIC * square)
    rise = 1 - t * t
    return g * grad_output * (rise * (inner + self * (3 * SQRT_2_OVER_PI * CUBIC * self - t * inner * inner)))


gelu_backward.derivative(
    grad_output=lambda F, g, self, approximate: F.gelu_backward(g, self, approximate), self=_gelu_backward_self
)


@_functional_op(
    lambda F, g, self, approximate: F.gelu_backward(g, self, approximate), refuses=("GeluKernelImpl", "bic")
)
def gelu(np: Any, self: Any, /, *, approximate: str = "none") -> Any:
    """Return ``x * P(x)`` for each element x of ``self``, where P is the standard normal distribution function.

    If ``approximate`` is ``"none"``, P is exact. If ``approximate`` is ``"tanh"``, P is approximated by
    ``0.5 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))``.
    """
    return activations.gelu(np, self) if _is_exact(approximate) else activations.gelu_by_tanh(np, self)


# -- Activations with a weight, noise or a gate ----------------------------------------------------------------------


@_gradient_op()
def prelu_kernel_backward(np: Any, grad_output: Any, self: Any, weight: Any, /) -> Any:
    """Return the gradient of ``prelu_kernel`` with respect to its input ``self``.

    The gradient is ``grad_output`` where ``self`` is positive, and ``weight * grad_output`` elsewhere.
    """
    return elementwise.choose(np, grad_output, weight * grad_output, self > 0)


def _where_not_positive(F: Any, x: Any, value: Any) -> Any:
    return F.where_else(F.logical_not(x > 0), value)


prelu_kernel_backward.derivative(
    grad_output=lambda F, g, self, weight: F.prelu_kernel_backward(g, self, weight),
    self=_zero_second_derivative,
    weight=lambda F, g, grad_output, self: _where_not_positive(F, self, g * grad_output),
)


@_gradient_op(backward="PreluKernelBackward0")
def prelu_kernel(np: Any, self: Any, weight: Any, /) -> Any:
    """Return each element x of ``self`` where x is positive, and ``weight * x`` elsewhere."""
    if self.dtype.kind in "biuc":
        raise unsupported("prelu_cpu", self.dtype)
    return elementwise.choose(np, self, weight * self, self > 0)


prelu_kernel.derivative(
    self=lambda F, g, self, weight: F.prelu_kernel_backward(g, self, weight),
    weight=lambda F, g, self: _where_not_positive(F, self, g * self),
)


@public()
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return each element x of ``input`` where x is positive, and ``weight * x`` elsewhere.

    ``weight`` has one element, or one element for each channel (dimension 1 of ``input``).
    """
    shape, count = input.shape, weight.numel()
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"prelu: Type promoting not supported. Got {scalar_name(input.dtype)} and {scalar_name(weight.dtype)}"
        )
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if count != 1:
        if not shape:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = shape[1] if len(shape) > 1 else 1
        if channels != count:
            raise RuntimeError(
                f"Mismatch of parameter numbers and input channel size. Found parameter numbers = {count} and "
                f"channel size = {channels}."
            )
    size = [1] * len(shape)
    if len(shape) > 1:
        size[1] = count
    return prelu_kernel(input, weight if tuple(size) == weight.shape else reshape(weight, size))


@_functional_op(
    "noise", None, in_place_backward="RreluWithNoiseBackward1", numbers=False
)  # fmt: skip
def rrelu_with_noise(np: Any, self: Any, noise: Any, /) -> Any:
    """Return ``self * noise`` as a contiguous array: ``rrelu`` in training mode.

    ``noise`` holds a factor for each element of ``self``: a random slope, or 1 if the element is positive.
    """
    return np.multiply(self, noise, out=np.empty(self.shape, self.dtype))


@_functional_op(
    lambda F, g, self, negative_slope: F.leaky_relu_backward(g, self, negative_slope),
    name="rrelu_mean", backward="RreluWithNoiseBackward0", in_place_backward="RreluWithNoiseBackward1",
    refuses=("leaky_relu_cpu", "bic"),
)  # fmt: skip
def rrelu_mean(np: Any, self: Any, /, negative_slope: float) -> Any:
    """Return each element x of ``self`` where x is positive, and ``negative_slope * x`` elsewhere.

    This computes ``rrelu`` in evaluation mode, where ``negative_slope`` is the mean of the smallest and the largest
    random slope. The result is contiguous.
    """
    return np.ascontiguousarray(elementwise.choose(np, self, self * negative_slope, self > 0)).reshape(self.shape)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Return each element x of ``input`` where x is positive, and x times a slope elsewhere.

    If ``training`` is true, the slope of each element is drawn from ``generator``, uniformly between ``lower`` and
    ``upper``. Otherwise the slope is ``(lower + upper) / 2``. If ``inplace`` is true, ``input`` is overwritten by the
    result.
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        if not inplace and not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound:g}")
    if not lower <= upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")
    if not math.isfinite(upper - lower):
        raise RuntimeError(
            "Expected to - from <= std::numeric_limits<T>::max() to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )
    if not training:
        result = _call(rrelu_mean, inplace, input, (lower + upper) / 2)
        return _in_place_slope("leakyReLu", result, lower + upper) if inplace else result
    if (special := innermost_batch((input,))) is not None and special._run.differs():
        return special.by_slices(rrelu, (input, lower, upper, True, False, generator), {})
    array = input._array
    if array.dtype.kind not in "fV" or array.dtype == numpy.float16:
        raise unsupported("rrelu_with_noise_out_cpu", array.dtype)
    if input.is_meta:
        slopes = wrap(devices.meta().zeros(array.shape, array.dtype))
        return modify(rrelu_with_noise.op, (input, slopes), ()) if inplace else rrelu_with_noise(input, slopes)
    wide = upcast_all_half(numpy_array_of(input))[0]
    noise = numpy.ones(array.shape, wide.dtype)
    low = wide <= 0
    noise[low] = _stream(generator).doubles(int(low.sum())) * (upper - lower) + lower
    slopes = wrap(devices.to_device(noise.astype(array.dtype, copy=False), input.device))
    return modify(rrelu_with_noise.op, (input, slopes), ()) if inplace else rrelu_with_noise(input, slopes)


@public(method=False, name="rrelu")
def _rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Return ``input`` with its negative elements multiplied by random slopes; see ``nn.functional.rrelu``."""
    return rrelu(input, lower, upper, training, generator=generator)


@public(method=False)
def rrelu_(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False,
    generator: Generator | None = None,
) -> Tensor:  # fmt: skip
    """Overwrite ``input`` with :func:`rrelu` of the arguments, and return ``input``."""
    return rrelu(input, lower, upper, training, True, generator)


def _halves(x: Any, dim: int) -> tuple[Any, Any]:
    middle, lead = x.shape[dim] // 2, (slice(None),) * dim
    return x[(*lead, slice(middle))], x[(*lead, slice(middle, None))]


@_gradient_op(vmap="leading")
def glu_backward(np: Any, grad_output: Any, self: Any, /, dim: int) -> Any:
    """Return the gradient of ``glu`` along ``dim`` with respect to its input ``self``."""
    value, gate = _halves(self, dim)
    out = np.empty(self.shape, grad_output.dtype)
    for_value, for_gate = _halves(out, dim)
    share = logistic(np, gate)
    for_value[...] = grad_output * share
    for_gate[...] = for_value * (1 - share) * value
    return out


def _first(F: Any, x: Any, dim: int, half: int) -> Any:
    return F.slice(x, dim, 0, half, 1)


def _last(F: Any, x: Any, dim: int, half: int) -> Any:
    return F.slice(x, dim, half, 2 * half, 1)


def _glu_backward_grad(F: Any, g: Any, self: Any, self_shape: Any, dim: int) -> Any:
    half = self_shape[dim] // 2
    value, share = _first(F, self, dim, half), F.sigmoid(_last(F, self, dim, half))
    return _first(F, g, dim, half) * share + F.sigmoid_backward(_last(F, g, dim, half) * value, share)


def _glu_backward_self(F: Any, g: Any, grad_output: Any, self: Any, self_shape: Any, dim: int) -> Any:
    half = self_shape[dim] // 2
    value, share = _first(F, self, dim, half), F.sigmoid(_last(F, self, dim, half))
    along, across = _first(F, g, dim, half), _last(F, g, dim, half)
    for_value = F.sigmoid_backward(across * grad_output, share)
    for_gate = F.sigmoid_backward(grad_output * (along + across * value * (1 - 2 * share)), share)
    return F.slice_backward(for_value, self_shape, dim, 0, half, 1) + F.slice_backward(
        for_gate, self_shape, dim, half, 2 * half, 1
    )


glu_backward.derivative(grad_output=_glu_backward_grad, self=_glu_backward_self)


@_gradient_op(backward="GluBackward0", vmap="leading")
def glu_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return the first half of ``self`` along ``dim`` times the sigmoid of the second half."""
    if self.dtype.kind in "biuc":
        raise unsupported("glu_cpu", self.dtype)
    value, gate = _halves(self, dim)
    return value * logistic(np, gate)


glu_block.derivative(self=lambda F, g, self, dim: F.glu_backward(g, self, dim))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of ``input`` along ``dim`` times the sigmoid of the second half."""
    if not input.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    at = normalize_dim(dim, input.ndim)
    if input.shape[at] % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {at} is size {input.shape[at]}")
    return glu_block(input, at)


def softsign(input: Tensor) -> Tensor:
    """Return ``x / (1 + abs(x))`` for each element x of ``input``."""
    return div_true(input, absolute(input) + 1)


def tanhshrink(input: Tensor) -> Tensor:
    """Return ``x - tanh(x)`` for each element x of ``input``."""
    return input - tanh(input)


__all__ = [
    "celu", "celu_", "elu", "elu_", "gelu", "glu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hardtanh_",
    "leaky_relu", "leaky_relu_", "logsigmoid", "mish", "prelu", "relu", "relu6", "relu_", "rrelu", "rrelu_", "selu",
    "selu_", "silu", "softplus", "softshrink", "softsign", "tanhshrink", "threshold", "threshold_",
]  # fmt: skip
