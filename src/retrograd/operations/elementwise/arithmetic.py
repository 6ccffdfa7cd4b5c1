"""Elementwise arithmetic: ``add``, ``sub``, ``mul``, ``div``, ``remainder``, ``abs``, ``sign``, ``lerp`` and others."""

from __future__ import annotations

from typing import Any

import numpy

from ...core.dtypes import cpp_name, dtype_of
from ...core.tensor import Tensor
from ...dispatch.declare import pointwise, public
from ...dispatch.generic_path import modify
from ...dispatch.operand_promotion import NUMBERS
from ...kernels import elementwise
from ..rule_helpers import check_divisor, check_first, kind_of, zero_grad_rule

# -- Sums and products -------------------------------------------------------------------------------------------------


@pointwise(
    1,
    lambda g, alpha: g if alpha == 1 else g * alpha,
    write=(
        lambda alpha: alpha.__class__ is float,
        lambda other, alpha, _d: other * numpy.asarray(alpha, _d),
        numpy.add,
        lambda self, other, alpha: elementwise.add_scaled_into(self, other, alpha),
    ),
)
def add(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """Return ``self + alpha * other`` elementwise. The operands are broadcast to a common shape.

    >>> import retrograd as torch
    >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=2)
    tensor([21., 42.])
    """
    if alpha.__class__ is float and other.__class__ is np.ndarray is self.__class__ and _are_floats(self, other):
        return elementwise.add_scaled(np, self, other, alpha)
    return np.add(self, other) if _is_one(alpha) else np.add(self, _scaled(np, other, alpha))


def _is_one(alpha: Any) -> bool:
    """Return whether ``alpha`` is the int 1; PyTorch accepts True and 1.0 only for boolean and floating operands."""
    return alpha.__class__ is int and bool(alpha == 1)


def _are_floats(x: Any, y: Any) -> bool:
    """Return whether ``x`` and ``y`` have the same dtype, and it is float16, float32 or float64."""
    return x.dtype is y.dtype and x.dtype.kind == "f"


def _scaled(np: Any, x: Any, alpha: Any) -> Any:
    """Return ``x * alpha`` in the dtype of ``x``, where ``x`` is an operand of :func:`add` or :func:`sub`.

    Raise RuntimeError if the dtype of ``x`` cannot hold numbers of the type of ``alpha``, for example if ``x`` has an
    integer dtype and ``alpha`` is a float.
    """
    if alpha.__class__ is float and x.__class__ is np.ndarray and x.dtype.kind == "f":  # the common case first
        return np.multiply(x, np.asarray(alpha, x.dtype))
    kind = getattr(x, "dtype", np.dtype(type(x))).kind
    if isinstance(alpha, Tensor):
        raise TypeError("alpha must be a number")  # generic_path.apply converts a 0-d tensor and calls again
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, (float, complex)) and kind in "biu":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return np.multiply(x, np.asarray(alpha).astype(x.dtype)) if hasattr(x, "dtype") else x * alpha


def _no_booleans(*operands: Any) -> None:
    """Raise RuntimeError, with PyTorch's message for ``-``, if one of ``operands`` is boolean."""
    boolean = [kind_of(each) == "b" or each.__class__ is bool for each in operands]
    if any(boolean):
        raise RuntimeError(_BOOL_MINUS if all(boolean) else _ONE_BOOL_MINUS)


@pointwise(1, lambda g, alpha: -g if alpha == 1 else g * -alpha, aliases=("subtract",), check=_no_booleans,
    write=(
        lambda alpha: alpha.__class__ is float,
        lambda other, alpha, _d: other * numpy.asarray(alpha, _d),
        numpy.subtract,
    ),
)  # fmt: skip
def sub(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """Return ``self - alpha * other`` elementwise. The operands are broadcast to a common shape."""
    return np.subtract(self, other) if _is_one(alpha) else np.subtract(self, _scaled(np, other, alpha))


_ONE_BOOL_MINUS = (
    "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, use the "
    "`~` or `logical_not()` operator instead."
)


_BOOL_MINUS = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator "
    "instead."
)


@pointwise(
    lambda g, alpha: -g if alpha == 1 else g * -alpha,
    1,
    backward="RsubBackward1",
    in_place=False,
    name="rsub_number",
    function=False,
    method=False,
    check=_no_booleans,
)
def rsub_number(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """Return ``other - alpha * self`` elementwise for a number ``other``."""
    return np.subtract(other, self) if _is_one(alpha) else np.subtract(other, _scaled(np, self, alpha))


@pointwise(
    lambda g, alpha: -g if alpha == 1 else g * -alpha, 1,
    name="rsub_tensor", backward="RsubBackward0", in_place=False, function=False, method=False, check=_no_booleans,
)  # fmt: skip
def rsub_tensor(np: Any, self: Any, other: Any, /, *, alpha: Any = 1) -> Any:
    """Return ``other - alpha * self`` elementwise for a tensor ``other``."""
    return np.subtract(other, self) if _is_one(alpha) else np.subtract(other, _scaled(np, self, alpha))


@public(method=False)
def rsub(input: Tensor, other: Any, alpha: Any = 1) -> Any:
    """Return ``other - alpha * input`` elementwise (reverse subtraction). ``other`` is a tensor or a number."""
    check_first("rsub", input, other)
    return (rsub_tensor if isinstance(other, Tensor) else rsub_number)(input, other, alpha=alpha)


@pointwise("other", "self", aliases=("multiply",), linear="each")
def mul(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self * other`` elementwise. The operands are broadcast to a common shape.

    >>> import retrograd as torch
    >>> torch.mul(torch.tensor([1.0, 2.0]), 3)
    tensor([3., 6.])
    """
    return np.multiply(self, other)


@pointwise(
    lambda g, other: g / other,
    lambda g, self, other: -g * ((self / other) / other),
    name="div_true", backward="DivBackward0", floats=True, function=False, method=False, in_place=False,
)  # fmt: skip
def div_true(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self / other`` elementwise. Integers are converted to the default floating dtype first."""
    return np.divide(self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, name="div_floor", backward="DivBackward2", function=False, method=False, in_place=False,
    refuses=("div_floor_cpu", "bc"),
)  # fmt: skip
def div_floor(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self / other`` elementwise, rounded towards minus infinity."""
    return _floor_divide(np, self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, name="div_trunc", backward="DivBackward2", function=False, method=False, in_place=False,
    refuses=("div_trunc_cpu", "bc"),
)  # fmt: skip
def div_trunc(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self / other`` elementwise, rounded towards zero."""
    if self.dtype.kind in "iu":
        check_divisor(np, self, other)
        quotient = np.floor_divide(self, other)
        return quotient + ((quotient < 0) & (quotient * other != self)).astype(self.dtype)
    return np.trunc(np.divide(self, other))


div_trunc.op.opmath = False  # the quotient is rounded to its dtype before it is truncated


def _floor_divide(np: Any, a: Any, b: Any) -> Any:
    """Return ``a / b`` elementwise, rounded towards minus infinity.

    Raise RuntimeError for integer arrays if ``b`` contains 0.
    """
    if a.dtype.kind in "iu":
        check_divisor(np, a, b)
        return np.floor_divide(a, b)
    # Division by 0: NumPy's floor_divide returns nan where PyTorch, as a / b, returns an infinity.
    quotient = np.floor_divide(a, b)
    return np.where(b == 0, np.divide(a, b), quotient)


#: The quotient for ``rounding_mode=None``, which has another node in PyTorch than a call without the argument.
_div_mode = pointwise(
    lambda g, other: g / other, lambda g, self, other: -g * ((self / other) / other), name="div_mode_true",
    backward="DivBackward2", floats=True, function=False, method=False, in_place=False,
)(div_true.op.kernel)  # fmt: skip
_NOT_GIVEN: Any = "true"


@public(aliases=("divide",))
def div(input: Any, other: Any, *, rounding_mode: str | None = _NOT_GIVEN, out: Tensor | None = None) -> Any:
    """Return ``input / other`` elementwise.

    ``rounding_mode="trunc"`` rounds the quotient towards zero, and ``rounding_mode="floor"`` towards minus infinity. By
    default and for None, the quotient is not rounded.

    >>> import retrograd as torch
    >>> torch.div(torch.tensor([7, -7]), 2, rounding_mode="floor")
    tensor([ 3, -4])
    """
    if rounding_mode is _NOT_GIVEN:
        return div_true(input, other)
    return _rounding(rounding_mode)(input, other)


def _rounding(mode: str | None) -> Any:
    if mode is None:
        return _div_mode
    if mode == "floor":
        return div_floor
    if mode == "trunc":
        return div_trunc
    raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'")


@public(aliases=("divide_",), function=False, fast_path=div_true, in_place=True)
def div_(input: Tensor, other: Any, *, rounding_mode: str | None = _NOT_GIVEN) -> Tensor:
    """In-place version of :func:`div`."""
    kind = div_true if rounding_mode is _NOT_GIVEN else _rounding(rounding_mode)
    return modify(kind.op, (input, other), ())


@public()
def true_divide(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Return ``input / other`` elementwise. Integers are converted to the default floating dtype first."""
    return div_true(input, other)


@public(function=False)
def true_divide_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`true_divide`."""
    return div_(input, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, backward="NotImplemented", refuses=("div_floor_cpu", "bc")
)  # the name is PyTorch's
def floor_divide(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self / other`` elementwise, rounded towards minus infinity."""
    return _floor_divide(np, self, other)


def _remainder(np: Any, a: Any, b: Any) -> Any:
    """Return ``a % b`` elementwise; the remainder has the sign of ``b``.

    Raise RuntimeError for integer arrays if ``b`` contains 0.
    """
    if getattr(a, "dtype", b).kind in "biu":
        check_divisor(np, a, b)
        return np.remainder(a, b)
    # Computed from fmod, so that a remainder of 0 has the sign of the dividend.
    rest = np.fmod(a, b)
    return np.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@pointwise(
    1, lambda F, g, self, other: -g * F.div_floor(self, other),
    name="remainder_tensor", backward="RemainderBackward1", function=False, method=False, in_place=False,
    refuses=("remainder_cpu", "bc"),
)  # fmt: skip
def remainder_tensor(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self % other`` elementwise for a tensor ``other``; the remainder has the sign of ``other``."""
    return _remainder(np, self, other)


@pointwise(
    1, zero_grad_rule, name="remainder_number", backward="RemainderBackward0", function=False, method=False, in_place=False,
    refuses=("remainder_cpu", "bc"),
)  # fmt: skip
def remainder_number(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self % other`` elementwise for a number ``other``; the remainder has the sign of ``other``."""
    return _remainder(np, self, other)


@pointwise(
    None, lambda F, g, self, other: -g * F.floor(self / other), name="remainder_of_number", backward="NotImplemented",
    function=False, method=False, in_place=False, refuses=("remainder_cpu", "bc"),
)  # fmt: skip
def remainder_of_number(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self % other`` elementwise for a number ``self``; the remainder has the sign of ``other``."""
    return remainder_tensor.op.kernel(np, self, other)


@public()
def remainder(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Return ``input % other`` elementwise; the remainder has the sign of ``other``, as in Python.

    >>> import retrograd as torch
    >>> torch.remainder(torch.tensor([-3, 3]), 2)
    tensor([1, 1])
    """
    if not isinstance(input, Tensor):
        if not isinstance(other, Tensor):
            raise TypeError
        return remainder_of_number(input, other)
    return (remainder_tensor if isinstance(other, Tensor) else remainder_number)(input, other)


@public(function=False)
def remainder_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`remainder`."""
    return modify((remainder_tensor if isinstance(other, Tensor) else remainder_number).op, (input, other), ())


@pointwise(
    1, lambda F, g, self, other: -g * F.div_trunc(self, other),
    name="fmod_tensor", backward="FmodBackward1", function=False, method=False, in_place=False,
    refuses=("fmod_cpu", "bc"),
)  # fmt: skip
def fmod_tensor(np: Any, self: Any, other: Any, /) -> Any:
    """Return the remainder of ``self / other`` elementwise for a tensor ``other``.

    The remainder has the sign of ``self``, as in C.
    """
    if getattr(self, "dtype", other).kind in "biu":
        check_divisor(np, self, other)
    return np.fmod(self, other)


@pointwise(
    1, zero_grad_rule, name="fmod_number", backward="FmodBackward0", function=False, method=False, in_place=False,
    refuses=("fmod_cpu", "bc"),
)  # fmt: skip
def fmod_number(np: Any, self: Any, other: Any, /) -> Any:
    """Return the remainder of ``self / other`` elementwise for a number ``other``.

    The remainder has the sign of ``self``, as in C.
    """
    if getattr(self, "dtype", other).kind in "biu":
        check_divisor(np, self, other)
    return np.fmod(self, other)


@public()
def fmod(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Return the remainder of ``input / other`` elementwise.

    The remainder has the sign of ``input``, as in C's ``fmod``.

    >>> import retrograd as torch
    >>> torch.fmod(torch.tensor([-3, 3]), 2)
    tensor([-1,  1])
    """
    check_first("fmod", input, other)
    return (fmod_tensor if isinstance(other, Tensor) else fmod_number)(input, other)


@public(function=False)
def fmod_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`fmod`."""
    return modify((fmod_tensor if isinstance(other, Tensor) else fmod_number).op, (input, other), ())


# -- Signs -------------------------------------------------------------------------------------------------------------


@pointwise(lambda g: -g, aliases=("negative",))
def neg(np: Any, self: Any, /) -> Any:
    """Return ``-self`` elementwise. Raise RuntimeError for a bool tensor."""
    if self.dtype == bool:
        raise RuntimeError(
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
            "`~` or `logical_not()` operator instead."
        )
    return elementwise.negate(np, self)


@pointwise(
    lambda F, g, self: g * F.sgn(self), holomorphic=False, aliases=("absolute",), in_place=False,
    refuses=("abs_cpu", "b"), numbers=False,
)  # fmt: skip
def abs(np: Any, self: Any, /) -> Any:
    """Return the absolute value of each element of ``self``.

    The result for a complex tensor is a real tensor.

    >>> import retrograd as torch
    >>> torch.abs(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """
    return np.absolute(self)


def _abs_in_place(input: Tensor) -> Tensor:
    """In-place version of :func:`abs`."""
    if input.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return modify(abs.op, (input,), ())


public(name="abs_", fast_path=abs, in_place=True)(_abs_in_place)
public(name="absolute_", function=False, fast_path=abs, in_place=True)(_abs_in_place)


@pointwise(zero_grad_rule, in_place="method")
def sign(np: Any, self: Any, /) -> Any:
    """Return the sign of each element of ``self``: -1, 0 or 1. The sign of nan is 0.

    >>> import retrograd as torch
    >>> torch.sign(torch.tensor([-2.0, 0.0, 3.0]))
    tensor([-1.,  0.,  1.])
    """
    if self.dtype.kind == "c":
        raise NotImplementedError(
            "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
        )
    if self.dtype == bool:
        return self.copy()
    return elementwise.sign(np, self)


def _sgn_rule(F: Any, g: Any, self: Any, out: Any, self_dtype: Any) -> Any:
    # The component of g orthogonal to out; real elements have none.
    if self_dtype.kind != "c":
        return F.zeros_as(g)
    return F.where_else(out != 0, (g - out * out * F.conj_physical(g)) / (2 * F.abs(self)))


@pointwise(_sgn_rule, holomorphic=False, in_place="method")
def sgn(np: Any, self: Any, /) -> Any:
    """Return the sign of each element of ``self``: -1, 0 or 1 for a real element.

    The sign of a complex element x is ``x / abs(x)``, or 0 if x is 0.
    """
    if self.dtype.kind == "b":
        return self.copy()
    if self.dtype.kind != "c":
        return elementwise.sign(np, self)
    size = np.absolute(self)
    safe = np.where(size == 0, 1, size)
    out = np.empty_like(self)
    out.real, out.imag = (np.where(size == 0, 0, part / safe) for part in (self.real, self.imag))
    return out


# -- Three tensors -----------------------------------------------------------------------------------------------------


def _same_dtype(input: Any, *others: Any) -> None:
    for each, name in zip(others, ("end", "weight"), strict=False):
        if each.dtype != input.dtype:
            wanted, given = (cpp_name(dtype_of(array.dtype)) for array in (input, each))
            raise RuntimeError(f"expected dtype {wanted} for `{name}` but got dtype {given}")


@pointwise(
    lambda g, weight: g * (1 - weight),
    lambda g, weight: g * weight,
    name="lerp_number", backward="LerpBackward0", function=False, method=False, in_place=False,
    refuses=("lerp_kernel_scalar", "bi"), numbers=False, check=_same_dtype,
    write=(
        lambda weight: weight.__class__ is float and -0.5 < weight < 0.5,
        lambda self, end, weight, _d: numpy.asarray(weight, _d) * (end - self),
        numpy.add,
    ),
)  # fmt: skip
def lerp_number(np: Any, self: Any, end: Any, /, weight: Any) -> Any:
    """Return ``self + weight * (end - self)`` elementwise for a number ``weight``."""
    if weight.__class__ is complex or not -0.5 < weight < 0.5:
        return lerp_tensor.op.kernel(np, self, end, weight)
    return elementwise.lerp(np, self, end, weight)


@pointwise(
    lambda g, weight: g * (1 - weight),
    lambda g, weight: g * weight,
    lambda g, self, end: g * (end - self),
    name="lerp_tensor", backward="LerpBackward1", function=False, method=False, in_place=False,
    refuses=("lerp_kernel_tensor", "bi"), numbers=False, check=_same_dtype,
)  # fmt: skip
def lerp_tensor(np: Any, self: Any, end: Any, weight: Any, /) -> Any:
    """Return ``self + weight * (end - self)`` elementwise for a tensor ``weight``."""
    small = np.absolute(weight) < 0.5
    return np.where(small, self + weight * (end - self), end - (end - self) * (1 - weight))


def _weight(input: Tensor, weight: Any) -> Any:
    """Return ``weight``, the argument of ``lerp(input, end, weight)``, as a tensor or a number.

    A 0-d tensor whose dtype is not that of ``input`` is converted to a Python number. A tensor that requires gradients
    or is complex is never converted.
    """
    if not isinstance(weight, Tensor) or weight._array.ndim or weight.dtype is input.dtype:
        return weight
    return weight if weight.requires_grad or weight.is_complex() else weight.item()


@public(fast_path=lerp_number, when=lambda weight: weight.__class__ in NUMBERS)
def lerp(input: Tensor, end: Tensor, weight: Any, *, out: Tensor | None = None) -> Any:
    """Return the linear interpolation ``input + weight * (end - input)`` elementwise.

    ``weight`` is a number or a tensor.

    >>> import retrograd as torch
    >>> torch.lerp(torch.tensor([0.0, 10.0]), torch.tensor([1.0, 20.0]), 0.5)
    tensor([ 0.5000, 15.0000])
    """
    weight = _weight(input, weight)
    return (lerp_tensor if isinstance(weight, Tensor) else lerp_number)(input, end, weight)


@public(function=False, fast_path=lerp_number, when=lambda weight: weight.__class__ in NUMBERS, in_place=True)
def lerp_(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """In-place version of :func:`lerp`."""
    weight = _weight(input, weight)
    if isinstance(weight, Tensor):
        return modify(lerp_tensor.op, (input, end, weight), ())
    return modify(lerp_number.op, (input, end), (weight,))


@pointwise(
    1,
    lambda g, tensor2, value: g * (tensor2 * value),
    lambda g, tensor1, value: g * (tensor1 * value),
    refuses=("addcmul_cpu_out", "b"),
    numbers=False,
    write=(
        lambda value: value.__class__ is float,
        lambda tensor1, tensor2, value, _d: numpy.asarray(value, _d) * tensor1 * tensor2,
        numpy.add,
    ),
)
def addcmul(np: Any, self: Any, tensor1: Any, tensor2: Any, /, *, value: Any = 1) -> Any:
    """Return ``self + value * tensor1 * tensor2`` elementwise."""
    return elementwise.addcmul(np, self, tensor1, tensor2, value)


def _check_quotient(self: Any, tensor1: Any, tensor2: Any) -> None:
    """Raise RuntimeError if ``tensor1`` and ``tensor2`` both have integer or bool dtypes."""
    if tensor1.dtype.kind in "biu" and tensor2.dtype.kind in "biu":
        raise RuntimeError(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a true "
            "division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value * "
            "torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / "
            "tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value * "
            "tensor1 / tensor2), for all dtypes."
        )


@pointwise(
    1,
    lambda g, tensor2, value: g * (value / tensor2),
    lambda g, tensor1, tensor2, value: -g * (value * tensor1 / (tensor2 * tensor2)),
    numbers=False,
    check=_check_quotient,
    write=(
        lambda value: value.__class__ is float,
        lambda tensor1, tensor2, value, _d: numpy.asarray(value, _d) * tensor1 / tensor2,
        numpy.add,
    ),
)
def addcdiv(np: Any, self: Any, tensor1: Any, tensor2: Any, /, *, value: Any = 1) -> Any:
    """Return ``self + value * tensor1 / tensor2`` elementwise."""
    return self + (tensor1 if value == 1 else value * tensor1) / tensor2
