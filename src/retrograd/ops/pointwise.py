"""Element-by-element operations: arithmetic, powers, exponentials, trigonometry, rounding, clamping, bits."""

from __future__ import annotations

import cmath
import math
from typing import Any, cast

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, wrap
from .calls import check_cast, modify
from .table import ARRAYS, TENSORS, op, pointwise, surface

F: Any = TENSORS


# -- Arithmetic ------------------------------------------------------------------------------------------------------


@pointwise(
    1,
    lambda F, g, alpha: g if alpha == 1 else g * alpha,
)
def add(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """Sum, element by element, of broadcastable tensors; ``other`` is multiplied by ``alpha`` first."""
    return np.add(self, other) if alpha == 1 else np.add(self, _scaled(np, other, alpha))


def _scaled(np: Any, x: Any, alpha: Any) -> Any:
    """``x * alpha`` in the dtype of ``x``; torch's errors for an ``alpha`` that does not fit it."""
    kind = getattr(x, "dtype", np.dtype(type(x))).kind
    if isinstance(alpha, Tensor):
        alpha = alpha.item()
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind in "biu":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return np.multiply(x, np.asarray(alpha).astype(x.dtype)) if hasattr(x, "dtype") else x * alpha


def _no_booleans(*operands: Any) -> None:
    found = [_kind(each) == "b" or each.__class__ is bool for each in operands]
    if any(found):
        raise RuntimeError(_BOOL_MINUS if all(found) else _ONE_BOOL_MINUS)


@pointwise(1, lambda F, g, alpha: -g if alpha == 1 else g * -alpha, aliases=("subtract",), check=_no_booleans)
def sub(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """Difference, element by element, of broadcastable tensors; ``other`` is multiplied by ``alpha`` first."""
    return np.subtract(self, other) if alpha == 1 else np.subtract(self, _scaled(np, other, alpha))


def _kind(x: Any) -> str:
    return x.dtype.kind if hasattr(x, "dtype") else ""


_ONE_BOOL_MINUS = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead."
)
_BOOL_MINUS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)


@pointwise(
    lambda F, g, alpha: -g if alpha == 1 else g * -alpha,
    1,
    backward="RsubBackward1",
    in_place=False,
    name="rsub_number",
    function=False,
    method=False,
    check=_no_booleans,
)
def rsub_number(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """``other - alpha * self``, element by element."""
    return np.subtract(other, self) if alpha == 1 else np.subtract(other, _scaled(np, self, alpha))


@pointwise(
    lambda F, g, alpha: -g if alpha == 1 else g * -alpha, 1,
    name="rsub_tensor", backward="RsubBackward0", in_place=False, function=False, method=False, check=_no_booleans,
)  # fmt: skip
def rsub_tensor(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """``other - alpha * self``, element by element."""
    return np.subtract(other, self) if alpha == 1 else np.subtract(other, _scaled(np, self, alpha))


@surface()
def rsub(input: Tensor, other: Any, *, alpha: Any = 1) -> Any:
    """``other - alpha * input``, element by element."""
    return (rsub_tensor if isinstance(other, Tensor) else rsub_number)(input, other, alpha=alpha)


@pointwise(lambda F, other: other, lambda F, self: self, aliases=("multiply",))
def mul(np: Any, self: Any, other: Any, /) -> Any:
    """Product, element by element, of broadcastable tensors."""
    return np.multiply(self, other)


@pointwise(
    lambda F, g, other: g / other,
    lambda F, g, self, other: -g * ((self / other) / other),
    name="div_true", backward="DivBackward0", floats=True, function=False, method=False, in_place=False,
)  # fmt: skip
def div_true(np: Any, self: Any, other: Any, /) -> Any:
    """Quotient, element by element, of broadcastable tensors; integers are divided as floats."""
    return np.divide(self, other)


def _nothing(F: Any, g: Any) -> Any:
    """The gradient of a piecewise constant function."""
    return F.zeros_as(g)


@pointwise(
    _nothing, _nothing, name="div_floor", backward="DivBackward2", function=False, method=False, in_place=False,
    refuses=("div_floor_cpu", "bc"),
)  # fmt: skip
def div_floor(np: Any, self: Any, other: Any, /) -> Any:
    """Quotient rounded towards minus infinity."""
    return _floor_divide(np, self, other)


@pointwise(
    _nothing, _nothing, name="div_trunc", backward="DivBackward2", function=False, method=False, in_place=False,
    refuses=("div_trunc_cpu", "bc"),
)  # fmt: skip
def div_trunc(np: Any, self: Any, other: Any, /) -> Any:
    """Quotient rounded towards zero."""
    if self.dtype.kind in "iu":
        _check_zero(np, other)
        whole = np.floor_divide(self, other)
        return whole + ((whole < 0) & (whole * other != self)).astype(self.dtype)
    return np.trunc(np.divide(self, other))


def _check_zero(np: Any, divisor: Any) -> None:
    if np.any(divisor == 0):
        raise RuntimeError("ZeroDivisionError")


def _floor_divide(np: Any, a: Any, b: Any) -> Any:
    if a.dtype.kind in "iu":
        _check_zero(np, b)
        return np.floor_divide(a, b)
    # As C's fmod gives it: NumPy's floor_divide answers nan where torch says inf.
    quotient = np.floor_divide(a, b)
    return np.where(b == 0, np.divide(a, b), quotient)


@surface(aliases=("divide",))
def div(input: Any, other: Any, *, rounding_mode: str | None = None, out: Tensor | None = None) -> Any:
    """Quotient, element by element; ``rounding_mode`` is None (true division), ``"trunc"`` or ``"floor"``."""
    if rounding_mode is None:
        return div_true(input, other, out=out)
    return _rounding(rounding_mode)(input, other, out=out)


def _rounding(mode: str) -> Any:
    if mode == "floor":
        return div_floor
    if mode == "trunc":
        return div_trunc
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")


@surface(aliases=("divide_",), function=False)
def div_(input: Tensor, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """In-place version of :func:`div`."""
    kind = div_true if rounding_mode is None else _rounding(rounding_mode)
    return modify(kind.op, (input, other), ())


@surface()
def true_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Quotient, element by element; integers are divided as floats."""
    return div_true(input, other, out=out)


@surface(function=False)
def true_divide_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`true_divide`."""
    return div_(input, other)


def _no_derivative(name: str) -> Any:
    def refuse(F: Any, g: Any) -> None:
        raise RuntimeError(f"derivative for aten::{name} is not implemented")

    return refuse


@pointwise(
    _no_derivative("floor_divide"), _no_derivative("floor_divide"), backward="NotImplemented",
    refuses=("div_floor_cpu", "bc"),
)  # fmt: skip
def floor_divide(np: Any, self: Any, other: Any, /) -> Any:
    """Quotient rounded towards minus infinity."""
    return _floor_divide(np, self, other)


@pointwise(
    1, lambda F, g, self, other: -g * F.div_floor(self, other),
    name="remainder_tensor", backward="RemainderBackward1", function=False, method=False, in_place=False,
    refuses=("remainder_cpu", "bc"),
)  # fmt: skip
def remainder_tensor(np: Any, self: Any, other: Any, /) -> Any:
    """Remainder of the division, with the sign of the divisor (Python's ``%``)."""
    if getattr(self, "dtype", other).kind in "biu":
        _check_zero(np, other)
    return np.remainder(self, other)


@pointwise(
    1, _nothing, name="remainder_number", backward="RemainderBackward0", function=False, method=False, in_place=False,
    refuses=("remainder_cpu", "bc"),
)  # fmt: skip
def remainder_number(np: Any, self: Any, other: Any, /) -> Any:
    """Remainder of the division, with the sign of the divisor (Python's ``%``)."""
    if getattr(self, "dtype", other).kind in "biu":
        _check_zero(np, other)
    return np.remainder(self, other)


@pointwise(
    None, _no_derivative("remainder"), name="remainder_of_number", backward="NotImplemented",
    function=False, method=False, in_place=False, refuses=("remainder_cpu", "bc"),
)  # fmt: skip
def remainder_of_number(np: Any, self: Any, other: Any, /) -> Any:
    """A number's remainder of the division by each element."""
    return remainder_tensor.op.kernel(np, self, other)


@surface()
def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Remainder of the division, with the sign of the divisor (Python's ``%``)."""
    if not isinstance(input, Tensor):
        return remainder_of_number(input, other, out=out)
    return (remainder_tensor if isinstance(other, Tensor) else remainder_number)(input, other, out=out)


@surface()
def remainder_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`remainder`."""
    return modify((remainder_tensor if isinstance(other, Tensor) else remainder_number).op, (input, other), ())


@pointwise(
    1, lambda F, g, self, other: -g * F.div_trunc(self, other),
    name="fmod_tensor", backward="FmodBackward1", function=False, method=False, in_place=False,
    refuses=("fmod_cpu", "bc"),
)  # fmt: skip
def fmod_tensor(np: Any, self: Any, other: Any, /) -> Any:
    """Remainder of the division, with the sign of the dividend (C's ``fmod``)."""
    if getattr(self, "dtype", other).kind in "biu":
        _check_zero(np, other)
    return np.fmod(self, other)


@pointwise(
    1, _nothing, name="fmod_number", backward="FmodBackward0", function=False, method=False, in_place=False,
    refuses=("fmod_cpu", "bc"),
)  # fmt: skip
def fmod_number(np: Any, self: Any, other: Any, /) -> Any:
    """Remainder of the division, with the sign of the dividend (C's ``fmod``)."""
    if getattr(self, "dtype", other).kind in "biu":
        _check_zero(np, other)
    return np.fmod(self, other)


@surface()
def fmod(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Remainder of the division, with the sign of the dividend (C's ``fmod``)."""
    return (fmod_tensor if isinstance(other, Tensor) else fmod_number)(input, other, out=out)


@surface()
def fmod_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`fmod`."""
    return modify((fmod_tensor if isinstance(other, Tensor) else fmod_number).op, (input, other), ())


@pointwise(lambda F, g: -g, aliases=("negative",))
def neg(np: Any, self: Any, /) -> Any:
    """The negative, element by element."""
    if self.dtype == bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
            "`~` or `logical_not()` operator instead."
        )
    return np.negative(self)


@pointwise(
    lambda F, g, self: g * F.sgn(self), holomorphic=False, aliases=("absolute",), in_place=False,
    refuses=("abs_cpu", "b"), numbers=False,
)  # fmt: skip
def abs(np: Any, self: Any, /) -> Any:
    """Absolute value, element by element (of a complex number its length)."""
    return np.absolute(self)


def _abs_in_place(input: Tensor) -> Tensor:
    """In-place version of :func:`abs`."""
    if input.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return modify(abs.op, (input,), ())


for _name in ("abs_", "absolute_"):
    surface(name=_name)(_abs_in_place)


@pointwise(_nothing)
def sign(np: Any, self: Any, /) -> Any:
    """-1, 0 or 1 by the sign of each element."""
    if self.dtype.kind == "c":
        raise RuntimeError(
            "Unlike NumPy, torch.sign doesn't compute the sign of complex tensors. Use torch.sgn instead."
        )
    if self.dtype == bool:
        return self.copy()
    found = np.sign(self)
    return np.where(np.isnan(self), 0, found).astype(self.dtype) if self.dtype.kind == "f" else found


def _sgn_rule(F: Any, g: Any, self: Any, out: Any) -> Any:
    # Across the direction only: for real numbers out * out is 1 and nothing is left.
    return F.where_else(self != 0, (g - out * out * F.conj_physical(g)) / (2 * F.abs(self)))


@pointwise(_sgn_rule, holomorphic=False)
def sgn(np: Any, self: Any, /) -> Any:
    """The sign of each element; of a complex number the direction (0 for 0)."""
    if self.dtype.kind == "b":
        return self.copy()
    if self.dtype.kind != "c":
        return np.where(self != self, 0, np.sign(self)).astype(self.dtype) if self.dtype.kind == "f" else np.sign(self)
    size = np.absolute(self)
    return np.where(size == 0, 0, self / np.where(size == 0, 1, size)).astype(self.dtype)


# -- Powers and roots ------------------------------------------------------------------------------------------------


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


@pointwise(lambda F, g: F.zeros_as(g), function=False, method=False, in_place=False)
def zeros_as(np: Any, self: Any, /) -> Any:
    """Zeros in the shape of ``self``."""
    return np.zeros_like(self)


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
        target = dtypes.result_of(*_kinds(exponent), dtypes.of_number(input))
        return pow_of_number(exponent.to(target), input, out=out)
    if not isinstance(input, Tensor):
        raise TypeError(f"pow(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    target = dtypes.result_of(*_kinds(input), dtypes.of_number(exponent))
    return pow_scalar(input.to(target), exponent, out=out)


def _kinds(x: Tensor) -> tuple[Any, Any]:
    return (x.dtype, None) if x._array.ndim else (None, x.dtype)


@surface()
def pow_(input: Tensor, exponent: Any) -> Tensor:
    """In-place version of :func:`pow`."""
    if isinstance(exponent, Tensor):
        return modify(pow_tensor.op, (input, exponent), ())
    target = dtypes.result_of(*_kinds(input), dtypes.of_number(exponent))
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


# -- Exponentials and logarithms -------------------------------------------------------------------------------------


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


# -- Trigonometry ----------------------------------------------------------------------------------------------------


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


@op(function=False, method=False, opmath=True)
def threshold_backward(np: Any, grad_output: Any, self: Any, /, threshold: float) -> Any:
    """``grad_output`` where ``self`` is above ``threshold``, else 0."""
    return np.where(self <= threshold, np.zeros((), grad_output.dtype), grad_output)


threshold_backward.derivative(
    grad_output=lambda F, g, self, threshold: F.threshold_backward(g, self, threshold), self=_nothing
)


@pointwise(lambda F, g, out: F.threshold_backward(g, out, 0))
def relu(np: Any, self: Any, /) -> Any:
    """Each element where it is positive, else 0."""
    if self.dtype == bool:
        raise RuntimeError("Boolean inputs not supported for relu")
    if self.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    return np.maximum(self, 0)


# -- Rounding --------------------------------------------------------------------------------------------------------


def _no_complex(name: str) -> Any:
    def check(x: Any, *others: Any) -> None:
        if _kind(x) == "c":
            raise NotImplementedError(f"{name} is not supported for complex inputs")

    return check


@pointwise(_nothing, check=_no_complex("floor"), refuses=("floor_vml_cpu", "b"))
def floor(np: Any, self: Any, /) -> Any:
    """The largest whole number not above each element."""
    return np.floor(self) if self.dtype.kind == "f" else self.copy()


@pointwise(_nothing, check=_no_complex("ceil"), refuses=("ceil_vml_cpu", "b"))
def ceil(np: Any, self: Any, /) -> Any:
    """The smallest whole number not below each element."""
    return np.ceil(self) if self.dtype.kind == "f" else self.copy()


@pointwise(_nothing, aliases=("fix",), check=_no_complex("trunc"), refuses=("trunc_vml_cpu", "b"))
def trunc(np: Any, self: Any, /) -> Any:
    """Each element without its fraction."""
    return np.trunc(self) if self.dtype.kind == "f" else self.copy()


@pointwise(1, refuses=("frac_cpu", "bic"))
def frac(np: Any, self: Any, /) -> Any:
    """The fraction of each element, with its sign."""
    return self - np.trunc(self)


@pointwise(
    _nothing, name="round_whole", backward="RoundBackward0", function=False, method=False, in_place=False,
    check=_no_complex("round"), refuses=("round_vml_cpu", "b"),
)  # fmt: skip
def round_whole(np: Any, self: Any, /) -> Any:
    """The nearest whole number, ties to even."""
    return np.rint(self) if self.dtype.kind == "f" else self.copy()


@pointwise(
    _nothing, name="round_decimals", backward="RoundBackward1", function=False, method=False, in_place=False,
    check=_no_complex("round"), refuses=("round_cpu", "bi"),
)  # fmt: skip
def round_decimals(np: Any, self: Any, /, decimals: int) -> Any:
    """The nearest number with so many decimals."""
    scale = self.dtype.type(10.0 ** (decimals if decimals > 0 else -decimals))
    return np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale


@surface()
def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Any:
    """The nearest whole number (ties to even), or the nearest with so many ``decimals``."""
    return round_whole(input, out=out) if decimals is None else round_decimals(input, decimals, out=out)


@surface()
def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """In-place version of :func:`round`."""
    return (
        modify(round_whole.op, (input,), ()) if decimals is None else modify(round_decimals.op, (input,), (decimals,))
    )


# -- Choosing --------------------------------------------------------------------------------------------------------


def _real_only(name: str) -> Any:
    def check(*operands: Any) -> None:
        if any(_kind(each) == "c" for each in operands):
            raise RuntimeError(f"{name} not implemented for complex tensors.")

    return check


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self < other, 0),
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self > other, 0),
    in_place=False, check=_real_only("maximum"), numbers=False,
)  # fmt: skip
def maximum(np: Any, self: Any, other: Any, /) -> Any:
    """The larger of two elements; nan if either is."""
    return np.maximum(self, other)


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self > other, 0),
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self < other, 0),
    in_place=False, check=_real_only("minimum"), numbers=False,
)  # fmt: skip
def minimum(np: Any, self: Any, other: Any, /) -> Any:
    """The smaller of two elements; nan if either is."""
    return np.minimum(self, other)


@op(function=False, method=False)
def where_half(np: Any, g: Any, self: Any, other: Any, /) -> Any:
    """``g``, halved where ``self`` and ``other`` are equal."""
    return np.where(self == other, g / 2, g)


where_half.derivative(g=lambda F, g, self, other: F.where_half(g, self, other))


@op(function=False, method=False)
def masked_fill_scalar(np: Any, self: Any, mask: Any, /, value: Any) -> Any:
    """``self`` with ``value`` where ``mask`` is true."""
    return np.where(mask, np.asarray(value).astype(self.dtype), self)


masked_fill_scalar.op.backward = "MaskedFillBackward0"
masked_fill_scalar.derivative(self=lambda F, g, mask: F.masked_fill_scalar(g, mask, 0))


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(g, ~((self >= other) | (other != other)), 0),
    lambda F, g, self, other: F.masked_fill_scalar(g, (self >= other) | (other != other), 0),
    in_place=False, check=_real_only("fmax"), numbers=False,
)  # fmt: skip
def fmax(np: Any, self: Any, other: Any, /) -> Any:
    """The larger of two elements; of a nan and a number the number."""
    return np.fmax(self, other)


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(g, ~((self <= other) | (other != other)), 0),
    lambda F, g, self, other: F.masked_fill_scalar(g, (self <= other) | (other != other), 0),
    in_place=False, check=_real_only("fmin"), numbers=False,
)  # fmt: skip
def fmin(np: Any, self: Any, other: Any, /) -> Any:
    """The smaller of two elements; of a nan and a number the number."""
    return np.fmin(self, other)


def _in_bounds(x: Any, low: Any, high: Any) -> Any:
    if low is None:
        return x <= high
    return (x >= low) if high is None else (x >= low) & (x <= high)


@pointwise(
    lambda F, g, self, min, max: F.where_else(_in_bounds(self, min, max), g),
    name="clamp_scalar", backward="ClampBackward1", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_scalar(np: Any, self: Any, /, min: Any, max: Any) -> Any:
    """Each element, or the number ``min`` or ``max`` where it is beyond."""
    if min is not None:
        self = np.maximum(self, np.asarray(min).astype(self.dtype))
    return self if max is None else np.minimum(self, np.asarray(max).astype(self.dtype))


@op(function=False, method=False, backward="WhereBackward0")
def where_else(np: Any, condition: Any, self: Any, /) -> Any:
    """``self`` where ``condition`` is true, else 0."""
    return np.where(condition, self, np.zeros((), self.dtype))


where_else.derivative(self=lambda F, g, condition: F.where_else(condition, g))


@pointwise(
    lambda F, g, self, min, max: F.where_else((self >= min) & (self <= max), g),
    lambda F, g, self, min, max: F.where_else((self < min) & (min < max), g),
    lambda F, g, self, min, max: F.where_else((self > max) | (max < min), g),
    name="clamp_tensor", backward="ClampBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_tensor(np: Any, self: Any, min: Any, max: Any, /) -> Any:
    """Each element, or that of ``min`` or ``max`` where it is beyond."""
    return np.minimum(np.maximum(self, min), max)


@pointwise(
    lambda F, g, self, min: F.where_else(self >= min, g),
    lambda F, g, self, min: F.where_else(self < min, g),
    name="clamp_min_tensor", backward="ClampBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_min_tensor(np: Any, self: Any, min: Any, /) -> Any:
    """Each element, or that of ``min`` where it is below."""
    return np.maximum(self, min)


@pointwise(
    lambda F, g, self, max: F.where_else(self <= max, g),
    lambda F, g, self, max: F.where_else(self > max, g),
    name="clamp_max_tensor", backward="ClampBackward0", function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_max_tensor(np: Any, self: Any, max: Any, /) -> Any:
    """Each element, or that of ``max`` where it is above."""
    return np.minimum(self, max)


def _clamp_call(input: Tensor, low: Any, high: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """The block, its tensors and its parameters for a call of ``clamp``."""
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if isinstance(low, Tensor) or isinstance(high, Tensor):
        if low is None:
            return clamp_max_tensor, (input, high), ()
        if high is None:
            return clamp_min_tensor, (input, low), ()
        return clamp_tensor, (input, low, high), ()
    if input.is_complex():
        raise RuntimeError("clamp is not supported for complex types")
    return clamp_scalar, (input,), (low, high)


def _clamp_input(input: Tensor, low: Any, high: Any) -> Tensor:
    numbers = [dtypes.of_number(each) for each in (low, high) if isinstance(each, (int, float))]
    for each in numbers:
        target = dtypes.result_of(*_kinds(input), each)
        if target is not input.dtype:
            input = input.to(target)
    return input


@surface(aliases=("clip",))
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Each element, or the bound where it is below ``min`` or above ``max`` (numbers or tensors; None: no bound)."""
    call, tensors, params = _clamp_call(input, min, max)
    if params:
        return call(_clamp_input(input, min, max), *params, out=out)
    return call(*tensors, out=out)


@surface(aliases=("clip_",))
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place version of :func:`clamp`."""
    call, tensors, params = _clamp_call(input, min, max)
    if params:
        check_cast(_clamp_input(input, min, max).dtype, input.dtype)
    return modify(call.op, tensors, params)


@surface()
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Each element, or ``min`` where it is below."""
    return clamp(input, min=min, out=out)


@surface()
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Each element, or ``max`` where it is above."""
    return clamp(input, max=max, out=out)


@surface()
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place version of :func:`clamp_min`."""
    return clamp_(input, min=min)


@surface()
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place version of :func:`clamp_max`."""
    return clamp_(input, max=max)


@pointwise(
    lambda F, g, weight: g * (1 - weight),
    lambda F, g, weight: g * weight,
    name="lerp_number", backward="LerpBackward0", function=False, method=False, in_place=False,
    refuses=("lerp_kernel_scalar", "bi"), numbers=False,
)  # fmt: skip
def lerp_number(np: Any, self: Any, end: Any, /, weight: Any) -> Any:
    """``self + weight * (end - self)`` with a number."""
    return lerp_tensor.op.kernel(np, self, end, weight)


@pointwise(
    lambda F, g, weight: g * (1 - weight),
    lambda F, g, weight: g * weight,
    lambda F, g, self, end: g * (end - self),
    name="lerp_tensor", backward="LerpBackward1", function=False, method=False, in_place=False,
    refuses=("lerp_kernel_tensor", "bi"), numbers=False,
)  # fmt: skip
def lerp_tensor(np: Any, self: Any, end: Any, weight: Any, /) -> Any:
    """``self + weight * (end - self)``, element by element."""
    small = np.absolute(weight) < 0.5
    return np.where(small, self + weight * (end - self), end - (end - self) * (1 - weight))


def _same_dtype(input: Any, *others: Any) -> None:
    for each in others:
        if isinstance(each, Tensor) and isinstance(input, Tensor) and each.dtype is not input.dtype:
            name = "`end`" if each is others[0] else "`weight`"
            raise RuntimeError(f"expected dtype {_c_name(input)} for {name} but got dtype {_c_name(each)}")


def _c_name(x: Tensor) -> str:
    names = {"float32": "float", "float64": "double", "int64": "long int", "int32": "int", "float16": "c10::Half",
             "bfloat16": "c10::BFloat16", "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
             "int16": "short int", "int8": "signed char", "uint8": "unsigned char"}  # fmt: skip
    return names.get(x.dtype.name, x.dtype.name)


@surface()
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Any:
    """``input + weight * (end - input)``: from ``input`` to ``end`` as ``weight`` goes from 0 to 1."""
    _same_dtype(input, end, weight)
    return (lerp_tensor if isinstance(weight, Tensor) else lerp_number)(input, end, weight, out=out)


@surface()
def lerp_(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """In-place version of :func:`lerp`."""
    _same_dtype(input, end, weight)
    if isinstance(weight, Tensor):
        return modify(lerp_tensor.op, (input, end, weight), ())
    return modify(lerp_number.op, (input, end), (weight,))


@pointwise(
    1,
    lambda F, g, tensor2, value: g * (tensor2 * value),
    lambda F, g, tensor1, value: g * (tensor1 * value),
)
def addcmul(np: Any, self: Any, tensor1: Any, tensor2: Any, /, *, value: Any = 1) -> Any:
    """``self + value * tensor1 * tensor2``, element by element."""
    if value == 1:
        return self + tensor1 * tensor2
    return self + (int(value) if self.dtype.kind in "iu" else value) * tensor1 * tensor2


@pointwise(
    1,
    lambda F, g, tensor2, value: g * (value / tensor2),
    lambda F, g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
)
def addcdiv(np: Any, self: Any, tensor1: Any, tensor2: Any, /, *, value: Any = 1) -> Any:
    """``self + value * tensor1 / tensor2``, element by element."""
    if tensor1.dtype.kind in "biu" and tensor2.dtype.kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
            "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * "
            "tensor1 / tensor2), for all dtypes."
        )
    return self + value * (tensor1 / tensor2)


@pointwise(
    lambda F, g, self, out: g * (self / out), lambda F, g, other, out: g * (other / out),
    refuses=("hypot_cpu", "bic"), numbers=False,
)  # fmt: skip
def hypot(np: Any, self: Any, other: Any, /) -> Any:
    """The length of the hypotenuse, element by element."""
    return np.hypot(self, other)


@pointwise(lambda F, g, self, out: g * F.where_else(self != 0, out / self), _nothing, floats=True)
def copysign(np: Any, self: Any, other: Any, /) -> Any:
    """The size of ``self`` with the sign of ``other``."""
    return np.copysign(self, other)


# -- Bits ------------------------------------------------------------------------------------------------------------


@pointwise(refuses=("bitwise_and_cpu", "fc"))
def bitwise_and(np: Any, self: Any, other: Any, /) -> Any:
    """And of the bits of integers, or of booleans."""
    return np.bitwise_and(self, other)


@pointwise(refuses=("bitwise_or_cpu", "fc"))
def bitwise_or(np: Any, self: Any, other: Any, /) -> Any:
    """Or of the bits of integers, or of booleans."""
    return np.bitwise_or(self, other)


@pointwise(refuses=("bitwise_xor_cpu", "fc"))
def bitwise_xor(np: Any, self: Any, other: Any, /) -> Any:
    """Exclusive or of the bits of integers, or of booleans."""
    return np.bitwise_xor(self, other)


@pointwise(refuses=("bitwise_not_cpu", "fc"))
def bitwise_not(np: Any, self: Any, /) -> Any:
    """The bits of integers, or booleans, turned over."""
    return np.invert(self)


@pointwise(refuses=("lshift_cpu", "bfc"))
def bitwise_left_shift(np: Any, self: Any, other: Any, /) -> Any:
    """The bits of integers moved left by ``other`` places."""
    return np.left_shift(self, other)


@pointwise(refuses=("rshift_cpu", "bfc"))
def bitwise_right_shift(np: Any, self: Any, other: Any, /) -> Any:
    """The bits of integers moved right by ``other`` places, keeping the sign."""
    return np.right_shift(self, other)


# -- Operators that are no functions ---------------------------------------------------------------------------------


@surface()
def positive(input: Tensor) -> Tensor:
    """The tensor itself."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def invert(input: Tensor) -> Tensor:
    """The operator ``~``."""
    if input._array.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return cast(Tensor, bitwise_not(input))


@surface(function=False, name="__array_wrap__")
def array_wrap(input: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """What NumPy's functions give for a tensor: a tensor."""
    return wrap(numpy.asarray(array))


def _reversed(function: Any) -> Any:
    """The operator of which ``function`` gets the operands in the other order."""

    def reflected(input: Tensor, other: Any) -> Any:
        return function(other, input)

    reflected.__name__, reflected.__doc__ = function.__name__, function.__doc__
    return reflected


def _divided(input: Tensor, other: Any) -> Any:
    """``other / input``, as PyTorch computes it."""
    return reciprocal(input) * (wrap(other) if isinstance(other, numpy.ndarray) else other)


#: What stands on the right of a number.
OPERATORS = {
    "__rsub__": rsub_number, "__rtruediv__": _divided, "__rpow__": _reversed(pow),
    "__rfloordiv__": _reversed(floor_divide), "__rmod__": _reversed(remainder),
    "__rlshift__": _reversed(bitwise_left_shift), "__rrshift__": _reversed(bitwise_right_shift),
}  # fmt: skip
