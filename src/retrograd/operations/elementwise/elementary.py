"""Elementwise elementary functions: ``pow``, ``exp``, ``log``, ``sin``, ``tanh``, ``sigmoid``, ``relu``, ``ldexp``."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy

from ...core import dtypes, promotion
from ...core.devices import array_module_of, on_gpu
from ...core.rule_namespace import rule_namespace_of
from ...core.tensor import Tensor, wrap
from ...dispatch.declare import TENSORS, exported, in_place_form, op, pointwise, public, rule_function, variant
from ...dispatch.generic_path import check_cast, modify
from ...dispatch.operand_promotion import F32, F64, NUMBERS, broadcast_mismatch
from ...dispatch.return_types import named
from ...kernels import elementwise
from ...kernels.half_precision import ONE
from ..rule_helpers import check_complex_parts, operand_dtypes, real_only

F: Any = TENSORS


# -- Powers and roots --------------------------------------------------------------------------------------------------


@pointwise(
    lambda F, g, self, exponent: g * F.pow_slope(self, exponent) if exponent else F.zeros_as(g),
    name="pow_scalar", backward="PowBackward0", function=False, method=False, in_place=False,
    inline=lambda self, exponent: numpy.multiply(self, self) if exponent == 2 else None,
)  # fmt: skip
def pow_scalar(np: Any, self: Any, /, exponent: Any) -> Any:
    """Return ``self ** exponent`` elementwise for a number ``exponent``.

    For exponents such as 2, 3, -1 and 0.5, the power is computed by multiplication, division or a square root, which
    is faster than NumPy's ``power`` and as accurate.
    """
    if exponent == 2:
        return elementwise.square(np, self)
    if exponent == 3:
        return elementwise.cube(np, self)
    kind = self.dtype.kind
    if exponent == 0 and kind != "b":
        ones = np.empty_like(self)
        ones.fill(1)
        return ones
    if kind in "iu":
        if exponent < 0:
            raise RuntimeError("Integers to negative integer powers are not allowed.")
        return np.power(self, np.asarray(exponent).astype(self.dtype))
    if exponent == 1:
        return self.copy()
    if exponent == 0.5:
        return np.sqrt(self)
    if exponent == -1:
        return np.divide(1, self)
    if exponent == -2:
        return np.divide(1, self * self)
    if exponent == -0.5:
        return np.divide(1, np.sqrt(self))
    return np.power(self, np.asarray(exponent).astype(self.dtype)) if kind != "b" else np.power(self, exponent)


def _power_derivative_of_array(x: Any, exponent: Any) -> Any:
    """Return ``exponent * x ** (exponent - 1)``, the derivative of ``x ** exponent``, for an array ``x``."""
    if exponent == 2:
        return x + x  # NumPy takes twice as long for 2 * x
    return exponent * rule_namespace_of(x).pow_scalar(x, exponent - 1)


def _power_derivative_of_tensor(x: Tensor, exponent: Any) -> Any:
    """Return ``exponent * x ** (exponent - 1)``, the derivative of ``x ** exponent``, for a Tensor ``x``."""
    return exponent * TENSORS.pow_scalar(x, exponent - 1)


rule_function("pow_slope", _power_derivative_of_array, _power_derivative_of_tensor)


def _base_gradient(F: Any, g: Any, self: Any, exponent: Any) -> Any:
    """Return the gradient of ``self ** exponent`` with respect to ``self``.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays. ``g`` is the gradient of the power.
    The result is 0 where ``exponent`` is 0, even if ``g`` is infinite or nan.
    """
    return F.masked_fill_scalar(g * (exponent * F.pow_tensor(self, F.safe_less_one(exponent))), exponent == 0, 0)


@pointwise(
    lambda F, g, self, exponent: _base_gradient(F, g, self, exponent),
    lambda F, g, self, exponent, out: g * F.log_power(self, exponent, out),
    name="pow_tensor", backward="PowBackward1", function=False, method=False, in_place=False, refuses=("pow", "b"),
)  # fmt: skip
def pow_tensor(np: Any, self: Any, exponent: Any, /) -> Any:
    """Return ``self ** exponent`` elementwise for a tensor ``exponent``."""
    if getattr(self, "dtype", None) is not None and self.dtype.kind in "iu":
        if self.dtype.kind == "i" and ((np is not numpy and on_gpu(self)) or np.any(exponent < 0)):
            # Integer division: 1 and -1 are their own inverses, the inverse of a larger integer is 0.
            positive = np.power(self, np.where(exponent < 0, 0, exponent))
            odd = np.where(exponent % 2 == 0, 1, -1)
            return np.where(exponent < 0, np.where(self == 1, 1, np.where(self == -1, odd, 0)), positive).astype(
                self.dtype
            )
        return np.power(self, exponent)
    return np.power(self, exponent)


@pointwise(1, function=False, method=False, in_place=False)
def safe_less_one(np: Any, exponent: Any, /) -> Any:
    """Return ``exponent - 1`` elementwise, but 0 where ``exponent`` is 0.

    In the derivative ``exponent * x ** (exponent - 1)`` of a power, this avoids ``0 * 0 ** -1``, which is nan.
    """
    return np.where(exponent == 0, np.zeros_like(exponent), exponent - 1)


@pointwise(
    lambda F, g, self, exponent: g * F.log_power_base(self, exponent),
    lambda F, g, self, exponent: g * F.log_power_twice(self, exponent),
    None,
    function=False, method=False, in_place=False,
)  # fmt: skip
def log_power(np: Any, self: Any, exponent: Any, power: Any, /) -> Any:
    """Return ``power * log(self)``, but 0 where ``self`` is 0 and ``exponent`` is not negative.

    If ``power`` is ``self ** exponent``, the result is its derivative with respect to ``exponent``. If ``power`` is the
    n-th derivative, the result is the next one.
    """
    return np.where((self == 0) & (np.real(exponent) >= 0), 0, power * np.log(self)).astype(power.dtype)


@public(function=False, method=False)
def log_power_base(self: Any, exponent: Any) -> Any:
    """Return the derivative of ``self ** exponent * log(self)`` with respect to ``self``.

    The derivative rule of :func:`log_power` calls this function.
    """
    return F.pow_tensor(self, exponent - 1) * (exponent * F.log(self) + 1)


@public(function=False, method=False)
def log_power_twice(self: Any, exponent: Any) -> Any:
    """Return the derivative of ``self ** exponent * log(self)`` with respect to ``exponent``.

    The derivative rule of :func:`log_power` calls this function.
    """
    out = F.pow_tensor(self, exponent)
    return F.log_power(self, exponent, F.log_power(self, exponent, out))


def _on_arrays(function: Any) -> Any:
    """Return a function of arrays that calls ``function``, a function of Tensors.

    The returned function converts its arguments to Tensors, calls ``function``, and returns the array of the result.
    """

    def on_arrays(*arrays: Any) -> Any:
        return function(*(wrap(array_module_of(each).asarray(each)) for each in arrays))._array

    return on_arrays


def _register_for_rules(function: Any) -> None:
    """Make ``function`` available to derivative rules as an attribute of their argument ``F``.

    ``function`` takes and returns Tensors. The argument ``F`` is the namespace ``TENSORS``, whose functions take
    Tensors, or the namespace ``ARRAYS``, whose functions take arrays. ``TENSORS`` gets ``function`` itself. ``ARRAYS``
    gets a version of it that takes and returns arrays.
    """
    rule_function(function.__name__, _on_arrays(function), function)


_register_for_rules(log_power_base)


_register_for_rules(log_power_twice)


def _power_of_number(F: Any, g: Any, out: Any, out_dtype: Any, base: Any) -> Any:
    """Return the gradient of ``out = base ** exponent`` with respect to ``exponent``, for a number ``base``.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays. ``g`` is the gradient of ``out``, and
    ``out_dtype`` is the dtype of ``out``.
    """
    if not base:  # log(0) times the power, but 0 where the power is finite
        log_base = math.nan if out_dtype.kind == "c" else -math.inf
        return g * F.masked_fill_scalar(out * log_base, F.abs(out) <= 1, 0)
    if out_dtype.kind == "c":
        return g * F.conj_physical(out * cmath.log(base))
    return g * (out * (math.log(base) if base > 0 else math.nan))


@pointwise(
    _power_of_number,
    name="pow_of_number",
    backward="PowBackward2",
    function=False,
    method=False,
    in_place=False,
    holomorphic=False,
)
def pow_of_number(np: Any, exponent: Any, /, base: Any) -> Any:
    """Return ``base ** exponent`` elementwise for a number ``base``."""
    if exponent.dtype.kind == "b":
        raise dtypes.unsupported("pow", exponent.dtype)
    if base == 1:
        return np.ones_like(exponent)
    return pow_tensor.op.kernel(np, np.asarray(base).astype(exponent.dtype), exponent)


@public(fast_path=pow_scalar, when=lambda exponent: exponent.__class__ is float or exponent.__class__ is int)
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Any:
    """Return ``input ** exponent`` elementwise. One of ``input`` and ``exponent`` may be a number.

    >>> import retrograd as torch
    >>> torch.pow(2, torch.tensor([1, 2, 3]))
    tensor([2, 4, 8])
    """
    kind = exponent.__class__
    if kind is int or kind is float:
        if isinstance(input, Tensor) and input._array.dtype.kind not in ("biu" if kind is float else "b"):
            return pow_scalar(input, exponent)
    elif isinstance(exponent, Tensor):
        if isinstance(input, Tensor):
            return pow_tensor(input, exponent)
        target = promotion.promoted_dtype(*operand_dtypes(exponent), promotion.dtype_of_number(input))
        return pow_of_number(exponent.to(target), input)
    if not isinstance(input, Tensor):
        raise TypeError(f"pow(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    target = promotion.promoted_dtype(*operand_dtypes(input), promotion.dtype_of_number(exponent))
    return pow_scalar(input.to(target), exponent)


@public(function=False, fast_path=pow_scalar, when=lambda exponent: exponent.__class__ in NUMBERS, in_place=True)
def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place version of :func:`pow`."""
    if isinstance(exponent, Tensor):
        return modify(pow_tensor.op, (input, exponent), ())
    target = promotion.promoted_dtype(*operand_dtypes(input), promotion.dtype_of_number(exponent))
    if target.category == dtypes.INTEGER and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    check_cast(target, input.dtype)
    return modify(pow_scalar.op, (input,), (exponent,))


@public()
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Any:
    """Return ``input ** exponent`` elementwise, computed in float64 or complex128."""
    return pow(*_in_double(input, exponent))


@public(function=False)
def float_power_(input: Tensor, exponent: Any) -> Tensor:
    """In-place version of :func:`float_power`.

    Raise RuntimeError unless ``input`` has the dtype of the result, which is float64 or complex128.
    """
    operands = _in_double(input, exponent)
    if operands[0].dtype is not input.dtype:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {dtypes.scalar_name(input.dtype)} but the operation's result "
            f"requires dtype {dtypes.scalar_name(operands[0].dtype)}"
        )
    return pow_(input, operands[1])


def _in_double(input: Any, exponent: Any) -> list[Any]:
    """Return ``input`` and ``exponent``, the operands of :func:`float_power`, in double precision.

    Tensors are converted to complex128 if ``input`` or ``exponent`` is complex, otherwise to float64. Numbers are
    returned unchanged.
    """
    is_complex = any(
        (isinstance(each, Tensor) and each.is_complex()) or isinstance(each, complex) for each in (input, exponent)
    )
    target = dtypes.complex128 if is_complex else dtypes.float64
    return [each.to(target) if isinstance(each, Tensor) else each for each in (input, exponent)]


@pointwise(
    lambda g, self: g * (2.0 * self), backward="PowBackward0", name="square", function=False, method=False,
    in_place=False,
)  # fmt: skip
def square_block(np: Any, self: Any, /) -> Any:
    """Return the square of each element of ``self``. The dtype of ``self`` must not be bool."""
    return elementwise.square(np, self)


@public()
def square(input: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the square of each element of ``input``. The result for a bool tensor has dtype int64."""
    if not isinstance(input, Tensor) or input._array.dtype.kind != "b":
        return square_block(input)
    return pow(input, 2)


@public()
def square_(input: Tensor) -> Tensor:
    """In-place version of :func:`square`."""
    return pow_(input, 2)


@pointwise(lambda g, out: g / (2 * out), floats=True)
def sqrt(np: Any, self: Any, /) -> Any:
    """Return the square root of each element of ``self``. The square root of a negative real element is nan.

    >>> import retrograd as torch
    >>> torch.sqrt(torch.tensor([4.0, -1.0]))
    tensor([2., nan])
    """
    return np.sqrt(self)


@pointwise(lambda F, g, out: -0.5 * g * F.pow_scalar(out, 3), floats=True)
def rsqrt(np: Any, self: Any, /) -> Any:
    """Return ``1 / sqrt(self)`` elementwise."""
    return elementwise.rsqrt(np, self)


@pointwise(lambda g, out: -g * out * out, floats=True)
def reciprocal(np: Any, self: Any, /) -> Any:
    """Return ``1 / self`` elementwise."""
    return elementwise.reciprocal(np, self)


# -- Exponentials and logarithms ---------------------------------------------------------------------------------------


@pointwise("out", floats=True)
def exp(np: Any, self: Any, /) -> Any:
    """Return the exponential ``e ** self`` elementwise.

    >>> import retrograd as torch
    >>> torch.exp(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """
    return np.exp(self)


@exported("special", "exp2")
@pointwise(lambda g, out: g * out * math.log(2), floats=True)
def exp2(np: Any, self: Any, /) -> Any:
    """Return ``2 ** self`` elementwise."""
    return np.exp2(self)


@exported("special", "expm1")
@pointwise(lambda g, out: g * (out + 1), floats=True)
def expm1(np: Any, self: Any, /) -> Any:
    """Return ``exp(self) - 1`` elementwise, accurate also for elements close to 0."""
    return np.expm1(self)


@pointwise(lambda g, self: g / self, floats=True)
def log(np: Any, self: Any, /) -> Any:
    """Return the natural logarithm of each element of ``self``.

    >>> import retrograd as torch
    >>> torch.log(torch.tensor([1.0, 10.0]))
    tensor([0.0000, 2.3026])
    """
    return np.log(self)


@pointwise(lambda g, self: g / (self * math.log(2)), floats=True)
def log2(np: Any, self: Any, /) -> Any:
    """Return the logarithm to base 2 of each element of ``self``."""
    return np.log2(self)


@pointwise(lambda g, self: g / (self * math.log(10)), floats=True)
def log10(np: Any, self: Any, /) -> Any:
    """Return the logarithm to base 10 of each element of ``self``."""
    return np.log10(self)


@exported("special", "log1p")
@pointwise(lambda g, self: g / (self + 1), floats=True, backward="Log1PBackward0")
def log1p(np: Any, self: Any, /) -> Any:
    """Return ``log(1 + self)`` elementwise, accurate also for elements close to 0."""
    return elementwise.log1p(np, self)


@pointwise(
    lambda F, g, self, other: g / (1 + F.exp(other - self)),
    lambda F, g, self, other: g / (1 + F.exp(self - other)),
    in_place=False, refuses=("logaddexp_cpu", "bi"), numbers=False,
)  # fmt: skip
def logaddexp(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``log(exp(self) + exp(other))`` elementwise, computed without overflow."""
    if self.dtype.kind != "c":
        return np.logaddexp(self, other)
    low = self.real < other.real
    larger, smaller = np.where(low, other, self), np.where(low, self, other)
    return larger + np.log1p(np.exp(smaller - larger))


# -- Trigonometry ------------------------------------------------------------------------------------------------------


@pointwise(lambda F, self: F.cos(self), floats=True)
def sin(np: Any, self: Any, /) -> Any:
    """Return the sine of each element of ``self``, which is in radians.

    >>> import retrograd as torch
    >>> torch.sin(torch.tensor([0.0, torch.pi / 2]))
    tensor([0., 1.])
    """
    return np.sin(self)


@pointwise(lambda F, g, self: g * -F.sin(self), floats=True)
def cos(np: Any, self: Any, /) -> Any:
    """Return the cosine of each element of ``self``, which is in radians."""
    return np.cos(self)


@pointwise(lambda g, out: g * (1 + out * out), floats=True)
def tan(np: Any, self: Any, /) -> Any:
    """Return the tangent of each element of ``self``, which is in radians."""
    return np.tan(self)


@pointwise(lambda F, g, self: g * F.rsqrt(1 - self * self), floats=True, aliases=("arcsin",))
def asin(np: Any, self: Any, /) -> Any:
    """Return the inverse sine of each element of ``self``, in radians."""
    return np.arcsin(self)


@pointwise(lambda F, g, self: g * -F.rsqrt(1 - self * self), floats=True, aliases=("arccos",))
def acos(np: Any, self: Any, /) -> Any:
    """Return the inverse cosine of each element of ``self``, in radians."""
    return np.arccos(self)


@pointwise(lambda g, self: g / (self * self + 1), floats=True, aliases=("arctan",))
def atan(np: Any, self: Any, /) -> Any:
    """Return the inverse tangent of each element of ``self``, in radians."""
    return np.arctan(self)


def _over_square(F: Any, x: Any, self: Any, other: Any) -> Any:
    """Return ``x / (self**2 + other**2)`` elementwise, but 0 where the divisor is 0.

    The gradients of ``atan2(self, other)`` are computed with this function: ``x`` is the gradient of the result times
    ``self`` or ``other``. The gradients are therefore 0 at the origin, where ``atan2`` has no derivative. ``F`` is a
    namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    square = self * self + other * other
    return F.masked_fill_scalar(x / square, square == 0, 0)


@pointwise(
    lambda F, g, self, other: g * _over_square(F, other, self, other),
    lambda F, g, self, other: g * -_over_square(F, self, self, other),
    floats=True, aliases=("arctan2",), refuses=("atan2_cpu", "c"), numbers=False,
)  # fmt: skip
def atan2(np: Any, self: Any, other: Any, /) -> Any:
    """Return the angle of the point with x-coordinate ``other`` and y-coordinate ``self``, elementwise.

    The angles are in radians, from -π to π.

    >>> import retrograd as torch
    >>> torch.atan2(torch.tensor([1.0]), torch.tensor([-1.0]))
    tensor([2.3562])
    """
    return np.arctan2(self, other)


@pointwise(lambda F, g, self: g * F.cosh(self), floats=True)
def sinh(np: Any, self: Any, /) -> Any:
    """Return the hyperbolic sine of each element of ``self``."""
    return np.sinh(self)


@pointwise(lambda F, g, self: g * F.sinh(self), floats=True)
def cosh(np: Any, self: Any, /) -> Any:
    """Return the hyperbolic cosine of each element of ``self``."""
    return np.cosh(self)


@op(function=False, method=False, vmap="elementwise")
def tanh_backward(np: Any, slope: Any, value: Any, /) -> Any:
    """Return ``slope * (1 - value * value)``, the gradient of tanh with respect to its input.

    ``value`` is the result of tanh, and ``slope`` is the gradient of ``value``. The gradient is a single operation.
    With ``create_graph=True``, it therefore adds only one node to the graph.
    """
    return elementwise.tanh_gradient(np, slope, value)


tanh_backward.derivative(
    slope=lambda F, g, value: F.tanh_backward(g, value),
    value=lambda g, slope, value: -2 * (g * slope * value),
)


@pointwise(lambda F, g, out: F.tanh_backward(g, out), floats=True)
def tanh(np: Any, self: Any, /) -> Any:
    """Return the hyperbolic tangent of each element of ``self``.

    >>> import retrograd as torch
    >>> torch.tanh(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([-0.7616,  0.0000,  0.7616])
    """
    return np.tanh(self)


@pointwise(lambda F, g, self: g * F.rsqrt(self * self + 1), floats=True, aliases=("arcsinh",), in_place=False)
def asinh(np: Any, self: Any, /) -> Any:
    """Return the inverse hyperbolic sine of each element of ``self``."""
    return np.arcsinh(self)


def _acosh_rule(F: Any, g: Any, self: Any, self_dtype: Any) -> Any:
    if self_dtype.kind == "c":
        return g * F.rsqrt(self - 1) * F.rsqrt(self + 1)
    return g * F.rsqrt(self * self - 1)


@pointwise(_acosh_rule, floats=True, aliases=("arccosh",), in_place=False)
def acosh(np: Any, self: Any, /) -> Any:
    """Return the inverse hyperbolic cosine of each element of ``self``. The result for real elements below 1 is nan."""
    return np.arccosh(self)


@pointwise(lambda g, self: g / (1 - self * self), floats=True, aliases=("arctanh",), in_place=False)
def atanh(np: Any, self: Any, /) -> Any:
    """Return the inverse hyperbolic tangent of each element of ``self``.

    The result for real elements outside [-1, 1] is nan.
    """
    return np.arctanh(self)


def _in_place_too(function: Any) -> None:
    """Define two in-place methods for ``function``: for ``asinh``, these are ``asinh_`` and its alias ``arcsinh_``.

    As in PyTorch, the node in the autograd graph has a name that ends in 1, for example ``AsinhBackward1``.
    """
    name = function.op.name
    node = function.op.backward[:-1] + "1"
    in_place_op = variant(function, backward=node, in_place_backward=node)
    in_place_op.derivative(self=function.op.rules[0])
    for each in (name, f"arc{name[1:]}"):
        form = in_place_form(in_place_op, f"{each}_")
        public(name=f"{each}_")(form)


for _inverse in (asinh, acosh, atanh):
    _in_place_too(_inverse)


@op(function=False, method=False, vmap="elementwise")
def sigmoid_backward(np: Any, slope: Any, value: Any, /) -> Any:
    """Return ``slope * (1 - value) * value``, the gradient of sigmoid with respect to its input.

    ``value`` is the result of sigmoid, and ``slope`` is the gradient of ``value``.
    """
    return elementwise.sigmoid_gradient(np, slope, value)


sigmoid_backward.derivative(
    slope=lambda F, g, value: F.sigmoid_backward(g, value),
    value=lambda g, slope, value: g * slope * (1 - 2 * value),
)


@exported("special", "expit")
@pointwise(
    lambda F, g, out: F.sigmoid_backward(g, out), floats=True,
    inline=lambda self, _d: elementwise.sigmoid(numpy, self, ONE[_d]) if _d is F32 or _d is F64 else None,
)  # fmt: skip
def sigmoid(np: Any, self: Any, /) -> Any:
    """Return the logistic function ``1 / (1 + exp(-self))`` elementwise.

    >>> import retrograd as torch
    >>> torch.sigmoid(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.2689, 0.5000, 0.7311])
    """
    return elementwise.sigmoid(np, self)


@op(function=False, method=False, opmath=True, vmap="elementwise")
def threshold_backward(np: Any, grad_output: Any, self: Any, /, threshold: float) -> Any:
    """Return ``grad_output * (self > threshold)``, the gradient of ``relu`` or ``threshold`` with respect to ``self``.

    ``grad_output`` is the gradient of the result.
    """
    return elementwise.threshold_gradient(np, grad_output, self, threshold)


threshold_backward.derivative(
    grad_output=lambda F, g, self, threshold: F.threshold_backward(g, self, threshold),
    self=lambda F, g: F.zeros_as(g),
)


@pointwise(lambda F, g, out: F.threshold_backward(g, out, 0))
def relu(np: Any, self: Any, /) -> Any:
    """Return the rectified linear unit ``max(0, self)`` elementwise.

    >>> import retrograd as torch
    >>> torch.relu(torch.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    kind = self.dtype.kind
    if kind == "b":
        raise RuntimeError("Boolean inputs not supported for relu")
    if kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return elementwise.relu(np, self)


@pointwise(
    lambda g, self, out: g * (self / out), lambda g, other, out: g * (other / out),
    refuses=("hypot_cpu", "bic"), numbers=False,
)  # fmt: skip
def hypot(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``sqrt(self ** 2 + other ** 2)`` elementwise, computed without overflow."""
    return np.hypot(self, other)


# -- Angles and waves ------------------------------------------------------------------------------------------------


@pointwise(
    lambda g: g * (math.pi / 180), floats=True, backward="Deg2RadBackward0",
    check=real_only("deg2rad is not supported for complex tensors."),
)  # fmt: skip
def deg2rad(np: Any, self: Any, /) -> Any:
    """Return ``self`` converted from degrees to radians."""
    return self * self.dtype.type(math.pi / 180)


@pointwise(
    lambda g: g * (180 / math.pi), floats=True, backward="Rad2DegBackward0",
    check=real_only("rad2deg is not supported for complex tensors."),
)  # fmt: skip
def rad2deg(np: Any, self: Any, /) -> Any:
    """Return ``self`` converted from radians to degrees."""
    return self * self.dtype.type(180 / math.pi)


def _sinc_rule(F: Any, g: Any, self: Any) -> Any:
    turned = self * math.pi
    slope = (turned * F.cos(turned) - F.sin(turned)) / (self * turned)
    return F.masked_product(g, F.where_else(self * turned != 0, slope))


@exported("special", "sinc")
@pointwise(_sinc_rule, floats=True)
def sinc(np: Any, self: Any, /) -> Any:
    """Return the normalised sinc ``sin(π * self) / (π * self)`` elementwise.

    The result is 1 where ``self`` is 0.
    """
    turned = self * self.dtype.type(math.pi)
    return np.where(turned == 0, 1, np.sin(turned) / np.where(turned == 0, 1, turned)).astype(self.dtype)


def _angle_rule(F: Any, g: Any, self: Any, self_dtype: Any) -> Any:
    if self_dtype.kind != "c":
        return F.zeros_as(g)
    size = F.abs(self)
    return F.where_else(self != 0, g * (self * 1j / (size * size)))


@pointwise(_angle_rule, floats=True, holomorphic=False, in_place=False)
def angle(np: Any, self: Any, /) -> Any:
    """Return the angle (argument) of each element of ``self``, in radians.

    For a real element, the angle is π if the element is negative, nan if it is nan, and 0 otherwise.
    """
    if self.dtype.kind == "c":
        return np.angle(self)
    return np.where(self != self, self, np.where(self < 0, self.dtype.type(np.pi), 0)).astype(self.dtype)


@op(backward="PolarBackward0", function=False, method=False, holomorphic=False, vmap="elementwise")
def polar_block(np: Any, abs: Any, angle: Any, /) -> Any:
    """Return the complex array with the absolute values ``abs`` and the angles ``angle`` in radians."""
    out = np.empty(np.broadcast_shapes(abs.shape, angle.shape), np.complex64 if abs.itemsize == 4 else np.complex128)
    out.real, out.imag = abs * np.cos(angle), abs * np.sin(angle)
    return out


polar_block.derivative(
    abs=lambda F, g, out: F.real(F.conj_physical(g) * F.sgn(out)),
    angle=lambda F, g, out: F.real(F.conj_physical(g) * (out * 1j)),
)


@public(method=False)
def polar(abs: Tensor, angle: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the complex tensor with the absolute values ``abs`` and the angles ``angle`` in radians.

    ``abs`` and ``angle`` must have the same dtype, float32 or float64.
    """
    check_complex_parts("polar", ("abs", "angle"), (abs, angle))
    if abs.dtype is dtypes.float16:
        raise dtypes.unsupported("polar_cpu", abs.dtype.numpy)
    return polar_block(abs, angle)


# -- Powers of two ---------------------------------------------------------------------------------------------------


@pointwise(
    lambda F, g, self, other: g / (1 + F.exp2(other - self)),
    lambda F, g, self, other: g / (1 + F.exp2(self - other)),
    in_place=False, refuses=("logaddexp2_cpu", "bic"), numbers=False,
)  # fmt: skip
def logaddexp2(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``log2(2 ** self + 2 ** other)`` elementwise, computed without overflow."""
    return np.logaddexp2(self, other)


_Frexp = named("frexp", ("mantissa", "exponent"))


@op(
    backward="FrexpBackward0", outputs=("mantissa", "exponent"), differentiable=1,
    function=False, method=False, vmap="leading",
)  # fmt: skip
def frexp_block(np: Any, self: Any, /) -> Any:
    """Return the tuple (mantissas, exponents) of ``self``, such that ``self = mantissa * 2 ** exponent``.

    The exponents have dtype int32. The mantissa of a finite element is 0, or its absolute value is in [0.5, 1). An
    infinite or nan element is its own mantissa, with the exponent 0.
    """
    if self.dtype.kind not in "fV":
        raise RuntimeError("torch.frexp() only supports floating-point dtypes")
    mantissa, exponent = np.frexp(self.astype(np.float32) if self.itemsize == 2 else self)
    return mantissa.astype(self.dtype), np.where(np.isfinite(mantissa), exponent, 0).astype(np.int32)


frexp_block.derivative(self=lambda F, g, exponent: F.ldexp_block(g, -exponent))


@public()
def frexp(input: Tensor, *, out: Any = None) -> Any:
    """Return the named tuple (mantissa, exponent) such that ``input = mantissa * 2 ** exponent`` elementwise.

    The exponents have dtype int32. The mantissa of a finite element is 0, or its absolute value is in [0.5, 1). An
    infinite or nan element is its own mantissa, with the exponent 0.
    """
    return _Frexp(frexp_block(input))


@op(backward="LdexpBackward0", opmath=True, function=False, method=False, vmap="elementwise")
def ldexp_block(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self * 2 ** other`` elementwise for integers ``other``.

    The result is correct even where ``2 ** other`` itself would overflow.
    """
    if other.dtype.kind == "b":
        raise dtypes.unsupported("ldexp_cpu_exp", other.dtype)
    if (error := broadcast_mismatch(self.shape, other.shape)) is not None:
        raise error
    return np.ldexp(self, other.astype(np.int32))


ldexp_block.derivative(self=lambda F, g, other: F.ldexp_block(g, other))


@pointwise(
    lambda F, g, other: g * F.exp2(other), lambda g, out: g * out * math.log(2),
    name="ldexp_power", backward="LdexpBackward0", floats=True, function=False, method=False, in_place=False,
)  # fmt: skip
def ldexp_power(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self * 2 ** other`` elementwise for real numbers ``other``."""
    return self * np.exp2(other)


def _ldexp_call(input: Tensor, other: Tensor) -> Any:
    """Return the operation that computes ``ldexp(input, other)``.

    The operation is ``ldexp_block`` if ``input`` is floating-point and ``other`` holds integers, else ``ldexp_power``.
    Raise TypeError if ``input`` or ``other`` is not a tensor.
    """
    for position, (name, each) in enumerate((("input", input), ("other", other)), 1):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"ldexp(): argument '{name}' (position {position}) must be Tensor, not {type(each).__name__}"
            )
    integer = other._array.dtype.kind in "biu"
    return ldexp_block if integer and input.is_floating_point() else ldexp_power


def _writable_ldexp(target: Any) -> None:
    """Raise RuntimeError if ``target``, the tensor to which ``ldexp`` writes, has an integer or bool dtype."""
    if target is not None and target._array.dtype.kind in "biu":
        raise RuntimeError(f"ldexp can't be cast to the desired output type {dtypes.scalar_name(target.dtype)}")


@public()
def ldexp(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Any:
    """Return ``input * 2 ** other`` elementwise.

    >>> import retrograd as torch
    >>> torch.ldexp(torch.tensor([1.0, 3.0]), torch.tensor([4, -1]))
    tensor([16.0000,  1.5000])
    """
    return _ldexp_call(input, other)(input, other)


@public()
def ldexp_(input: Tensor, other: Tensor) -> Tensor:
    """In-place version of :func:`ldexp`."""
    call = _ldexp_call(input, other)
    _writable_ldexp(input)
    return modify(call.op, (input, other), ())
