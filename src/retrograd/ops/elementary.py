"""Elementary functions, element by element: powers, exponentials, logarithms, trigonometry."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, wrap
from .calls import check_cast, modify
from .rules import operand_kinds
from .table import ARRAYS, TENSORS, op, pointwise, surface

F: Any = TENSORS


# -- Powers and roots --------------------------------------------------------------------------------------------------


@pointwise(
    lambda F, g, self, exponent: g * (exponent * F.pow_scalar(self, exponent - 1)) if exponent else F.zeros_as(g),
    name="pow_scalar", backward="PowBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def pow_scalar(np: Any, self: Any, /, exponent: Any) -> Any:
    """``self`` to the power of a number. Small powers are products: NumPy's power is slow and no more exact."""
    if exponent == 2:
        return np.multiply(self, self)
    if exponent == 3:
        return self * self * self
    kind = self.dtype.kind
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


@pointwise(
    lambda F, g, self, exponent: g * (exponent * F.pow_tensor(self, F.safe_less_one(exponent))),
    lambda F, g, self, exponent, out: g * F.log_power(self, exponent, out),
    name="pow_tensor", backward="PowBackward1", function=False, method=False, in_place=False, refuses=("pow", "b"),
)  # fmt: skip
def pow_tensor(np: Any, self: Any, exponent: Any, /) -> Any:
    """``self`` to the power ``exponent``, element by element."""
    if getattr(self, "dtype", None) is not None and self.dtype.kind in "iu":
        if self.dtype.kind == "i" and np.any(exponent < 0):
            # As C's integer arithmetic has it: 1 and -1 have inverses, what is larger vanishes.
            positive = np.power(self, np.where(exponent < 0, 0, exponent))
            odd = np.where(exponent % 2 == 0, 1, -1)
            return np.where(exponent < 0, np.where(self == 1, 1, np.where(self == -1, odd, 0)), positive).astype(
                self.dtype
            )
        return np.power(self, exponent)
    return np.power(self, exponent)


@pointwise(lambda F, g, out: g, function=False, method=False, in_place=False)
def safe_less_one(np: Any, exponent: Any, /) -> Any:
    """``exponent - 1``, and 0 where ``exponent`` is 0, so that 0 ** -1 does not spoil a product with 0."""
    return np.where(exponent == 0, np.zeros_like(exponent), exponent - 1)


@pointwise(
    lambda F, g, self, exponent: g * F.log_power_base(self, exponent),
    lambda F, g, self, exponent: g * F.log_power_twice(self, exponent),
    None,
    function=False, method=False, in_place=False,
)  # fmt: skip
def log_power(np: Any, self: Any, exponent: Any, power: Any, /) -> Any:
    """``self ** exponent * log(self)``, 0 where a positive power of 0 is."""
    return np.where((self == 0) & (np.real(exponent) >= 0), 0, power * np.log(self)).astype(power.dtype)


@surface(function=False, method=False)
def log_power_base(self: Any, exponent: Any) -> Any:
    """The derivative of ``log_power`` by its base."""
    power = F.pow_tensor(self, F.safe_less_one(exponent))
    return power * (exponent * F.log(self) + 1)


@surface(function=False, method=False)
def log_power_twice(self: Any, exponent: Any) -> Any:
    """The derivative of ``log_power`` by its exponent."""
    out = F.pow_tensor(self, exponent)
    return F.log_power(self, exponent, F.log_power(self, exponent, out))


def _on_arrays(function: Any) -> Any:
    """A function of Tensors for the level of arrays."""

    def on_arrays(*arrays: Any) -> Any:
        return function(*(wrap(numpy.asarray(each)) for each in arrays))._array

    return on_arrays


def _two_levels(function: Any) -> None:
    setattr(TENSORS, function.__name__, function)
    setattr(ARRAYS, function.__name__, _on_arrays(function))


_two_levels(log_power_base)


_two_levels(log_power_twice)


def _power_of_number(F: Any, g: Any, out: Any, base: Any) -> Any:
    return g * (out * (cmath.log(base) if isinstance(base, complex) else math.log(base) if base > 0 else math.nan)) if base \
        else F.zeros_as(g)  # fmt: skip


@pointwise(
    _power_of_number, name="pow_of_number", backward="PowBackward2", function=False, method=False, in_place=False
)
def pow_of_number(np: Any, exponent: Any, /, base: Any) -> Any:
    """A number to the power of each element."""
    return pow_tensor.op.kernel(np, np.asarray(base).astype(exponent.dtype), exponent)


@surface()
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Any:
    """``input`` to the power ``exponent``, element by element; either may be a number."""
    kind = exponent.__class__
    if kind is int or kind is float:
        if isinstance(input, Tensor) and input._array.dtype.kind not in ("biu" if kind is float else "b"):
            return pow_scalar(input, exponent, out=out)
    elif isinstance(exponent, Tensor):
        if isinstance(input, Tensor):
            return pow_tensor(input, exponent, out=out)
        target = dtypes.result_of(*operand_kinds(exponent), dtypes.of_number(input))
        return pow_of_number(exponent.to(target), input, out=out)
    if not isinstance(input, Tensor):
        raise TypeError(f"pow(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    target = dtypes.result_of(*operand_kinds(input), dtypes.of_number(exponent))
    return pow_scalar(input.to(target), exponent, out=out)


@surface(function=False)
def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place version of :func:`pow`."""
    if isinstance(exponent, Tensor):
        return modify(pow_tensor.op, (input, exponent), ())
    target = dtypes.result_of(*operand_kinds(input), dtypes.of_number(exponent))
    if target.category == dtypes.INTEGER and exponent < 0:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    check_cast(target, input.dtype)
    return modify(pow_scalar.op, (input,), (exponent,))


@surface()
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Any:
    """``input`` to the power ``exponent`` in double precision."""
    is_complex = any(
        (isinstance(each, Tensor) and each.is_complex()) or isinstance(each, complex) for each in (input, exponent)
    )
    target = dtypes.complex128 if is_complex else dtypes.float64
    operands = [each.to(target) if isinstance(each, Tensor) else each for each in (input, exponent)]
    return pow(*operands, out=out)


@pointwise(lambda F, g, self: g * (2.0 * self))
def square(np: Any, self: Any, /) -> Any:
    """The square, element by element."""
    return np.multiply(self, self) if self.dtype.kind != "b" else self.astype(np.int64)


square.op.backward = square.op.in_place_backward = "PowBackward0"


@pointwise(lambda F, g, out: g / (2 * out), floats=True)
def sqrt(np: Any, self: Any, /) -> Any:
    """Square root, element by element; nan for negative numbers."""
    return np.sqrt(self)


@pointwise(lambda F, g, out: -0.5 * g * F.pow_scalar(out, 3), floats=True)
def rsqrt(np: Any, self: Any, /) -> Any:
    """One over the square root, element by element."""
    return np.divide(1, np.sqrt(self))


@pointwise(lambda F, g, out: -g * out * out, floats=True)
def reciprocal(np: Any, self: Any, /) -> Any:
    """One over each element."""
    return np.divide(1, self)


# -- Exponentials and logarithms ---------------------------------------------------------------------------------------


@pointwise(lambda F, out: out, floats=True)
def exp(np: Any, self: Any, /) -> Any:
    """e to the power of each element."""
    return np.exp(self)


@pointwise(lambda F, g, out: g * out * math.log(2), floats=True)
def exp2(np: Any, self: Any, /) -> Any:
    """2 to the power of each element."""
    return np.exp2(self)


@pointwise(lambda F, g, out: g * (out + 1), floats=True)
def expm1(np: Any, self: Any, /) -> Any:
    """``exp(x) - 1``, exact for small elements too."""
    return np.expm1(self)


@pointwise(lambda F, g, self: g / self, floats=True)
def log(np: Any, self: Any, /) -> Any:
    """Natural logarithm, element by element."""
    return np.log(self)


@pointwise(lambda F, g, self: g / (self * math.log(2)), floats=True)
def log2(np: Any, self: Any, /) -> Any:
    """Logarithm to base 2, element by element."""
    return np.log2(self)


@pointwise(lambda F, g, self: g / (self * math.log(10)), floats=True)
def log10(np: Any, self: Any, /) -> Any:
    """Logarithm to base 10, element by element."""
    return np.log10(self)


@pointwise(lambda F, g, self: g / (self + 1), floats=True, backward="Log1PBackward0")
def log1p(np: Any, self: Any, /) -> Any:
    """``log(1 + x)``, exact for small elements too."""
    return np.log1p(self)


@pointwise(
    lambda F, g, self, other: g / (1 + F.exp(other - self)),
    lambda F, g, self, other: g / (1 + F.exp(self - other)),
    in_place=False, refuses=("logaddexp_cpu", "bi"), numbers=False,
)  # fmt: skip
def logaddexp(np: Any, self: Any, other: Any, /) -> Any:
    """``log(exp(x) + exp(y))`` without overflow."""
    return np.logaddexp(self, other)


# -- Trigonometry ------------------------------------------------------------------------------------------------------


@pointwise(lambda F, self: F.cos(self), floats=True)
def sin(np: Any, self: Any, /) -> Any:
    """Sine, element by element (radians)."""
    return np.sin(self)


@pointwise(lambda F, g, self: g * -F.sin(self), floats=True)
def cos(np: Any, self: Any, /) -> Any:
    """Cosine, element by element (radians)."""
    return np.cos(self)


@pointwise(lambda F, g, out: g * (1 + out * out), floats=True)
def tan(np: Any, self: Any, /) -> Any:
    """Tangent, element by element (radians)."""
    return np.tan(self)


@pointwise(lambda F, g, self: g * F.rsqrt(1 - self * self), floats=True, aliases=("arcsin",))
def asin(np: Any, self: Any, /) -> Any:
    """Inverse sine, element by element, in radians."""
    return np.arcsin(self)


@pointwise(lambda F, g, self: g * -F.rsqrt(1 - self * self), floats=True, aliases=("arccos",))
def acos(np: Any, self: Any, /) -> Any:
    """Inverse cosine, element by element, in radians."""
    return np.arccos(self)


@pointwise(lambda F, g, self: g / (self * self + 1), floats=True, aliases=("arctan",))
def atan(np: Any, self: Any, /) -> Any:
    """Inverse tangent, element by element, in radians."""
    return np.arctan(self)


@pointwise(
    lambda F, g, self, other: g * (other / (self * self + other * other)),
    lambda F, g, self, other: g * (-self / (self * self + other * other)),
    floats=True, aliases=("arctan2",), refuses=("atan2_cpu", "c"), numbers=False,
)  # fmt: skip
def atan2(np: Any, self: Any, other: Any, /) -> Any:
    """The angle of the point (``other``, ``self``), in radians between -π and π."""
    return np.arctan2(self, other)


@pointwise(lambda F, g, self: g * F.cosh(self), floats=True)
def sinh(np: Any, self: Any, /) -> Any:
    """Hyperbolic sine, element by element."""
    return np.sinh(self)


@pointwise(lambda F, g, self: g * F.sinh(self), floats=True)
def cosh(np: Any, self: Any, /) -> Any:
    """Hyperbolic cosine, element by element."""
    return np.cosh(self)


@op(function=False, method=False)
def tanh_backward(np: Any, slope: Any, value: Any, /) -> Any:
    """``slope * (1 - value * value)``: the gradient of tanh as one operation, for graphs of gradients."""
    return slope * np.subtract(1, np.multiply(value, value))


tanh_backward.derivative(
    slope=lambda F, g, value: F.tanh_backward(g, value),
    value=lambda F, g, slope, value: -2 * (g * slope * value),
)


@pointwise(lambda F, g, out: F.tanh_backward(g, out), floats=True)
def tanh(np: Any, self: Any, /) -> Any:
    """Hyperbolic tangent, element by element."""
    return np.tanh(self)


@pointwise(
    lambda F, g, self: g * F.rsqrt(self * self + 1),
    floats=True,
    aliases=("arcsinh",),
    in_place_backward="AsinhBackward1",
)
def asinh(np: Any, self: Any, /) -> Any:
    """Inverse hyperbolic sine, element by element."""
    return np.arcsinh(self)


@pointwise(
    lambda F, g, self: g * F.rsqrt(self - 1) * F.rsqrt(self + 1),
    floats=True,
    aliases=("arccosh",),
    in_place_backward="AcoshBackward1",
)
def acosh(np: Any, self: Any, /) -> Any:
    """Inverse hyperbolic cosine, element by element."""
    return np.arccosh(self)


@pointwise(
    lambda F, g, self: g / (1 - self * self), floats=True, aliases=("arctanh",), in_place_backward="AtanhBackward1"
)
def atanh(np: Any, self: Any, /) -> Any:
    """Inverse hyperbolic tangent, element by element."""
    return np.arctanh(self)


@op(function=False, method=False)
def sigmoid_backward(np: Any, slope: Any, value: Any, /) -> Any:
    """``slope * (1 - value) * value``: the gradient of sigmoid as one operation, for graphs of gradients."""
    return slope * np.subtract(1, value) * value


sigmoid_backward.derivative(
    slope=lambda F, g, value: F.sigmoid_backward(g, value),
    value=lambda F, g, slope, value: g * slope * (1 - 2 * value),
)


@pointwise(lambda F, g, out: F.sigmoid_backward(g, out), floats=True)
def sigmoid(np: Any, self: Any, /) -> Any:
    """``1 / (1 + exp(-x))``, element by element."""
    return np.divide(1, 1 + np.exp(-self))


@pointwise(lambda F, g, out: g * (out > 0))
def relu(np: Any, self: Any, /) -> Any:
    """Each element where it is positive, else 0."""
    if self.dtype == bool:
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return np.maximum(self, 0)


@pointwise(
    lambda F, g, self, out: g * (self / out), lambda F, g, other, out: g * (other / out),
    refuses=("hypot_cpu", "bic"), numbers=False,
)  # fmt: skip
def hypot(np: Any, self: Any, other: Any, /) -> Any:
    """The length of the hypotenuse, element by element."""
    return np.hypot(self, other)
