"""Elementwise rounding, maxima, limits: ``floor``, ``round``, ``maximum``, ``clamp``, ``copysign``, ``heaviside``."""

from __future__ import annotations

from typing import Any

import numpy

from ...core import dtypes, promotion
from ...core.tensor import Tensor
from ...dispatch.declare import exported, op, pointwise, public
from ...dispatch.generic_path import check_cast, modify
from ...dispatch.operand_promotion import NUMBERS
from ...kernels import elementwise
from ..rule_helpers import check_first, kind_of, no_complex, operand_dtypes, real_only, zero_grad_rule

# -- Rounding ----------------------------------------------------------------------------------------------------------


@pointwise(zero_grad_rule, check=no_complex("floor"), refuses=("floor_vml_cpu", "b"))
def floor(np: Any, self: Any, /) -> Any:
    """Return each element of ``self`` rounded down to an integer, in the dtype of ``self``."""
    return np.floor(self) if self.dtype.kind in "fV" else self.copy("K")


@pointwise(zero_grad_rule, check=no_complex("ceil"), refuses=("ceil_vml_cpu", "b"))
def ceil(np: Any, self: Any, /) -> Any:
    """Return each element of ``self`` rounded up to an integer, in the dtype of ``self``."""
    return np.ceil(self) if self.dtype.kind in "fV" else self.copy("K")


@pointwise(zero_grad_rule, aliases=("fix",), check=no_complex("trunc"), refuses=("trunc_vml_cpu", "b"))
def trunc(np: Any, self: Any, /) -> Any:
    """Return each element of ``self`` rounded towards zero to an integer, in the dtype of ``self``."""
    return np.trunc(self) if self.dtype.kind in "fV" else self.copy("K")


@pointwise(1, refuses=("frac_cpu", "bic"))
def frac(np: Any, self: Any, /) -> Any:
    """Return the fractional part ``self - trunc(self)`` elementwise. The result has the sign of ``self``."""
    return self - np.trunc(self)


@pointwise(
    zero_grad_rule, name="round_whole", backward="RoundBackward0", function=False, method=False, in_place=False,
    refuses=("round_vml_cpu", "bc"),
)  # fmt: skip
def round_whole(np: Any, self: Any, /) -> Any:
    """Return each element of ``self`` rounded to the nearest integer. Ties are rounded to the even integer."""
    return np.rint(self) if self.dtype.kind in "fV" else self.copy("K")


@pointwise(
    zero_grad_rule, name="round_decimals", backward="RoundBackward1", function=False, method=False, in_place=False,

)  # fmt: skip
def round_decimals(np: Any, self: Any, /, decimals: int) -> Any:
    """Return each element of ``self`` rounded to ``decimals`` decimal places.

    A negative ``decimals`` rounds to tens, hundreds and so on.
    """
    if self.dtype.kind not in "fV":
        raise dtypes.unsupported("round_cpu" if decimals else "round_vml_cpu", self.dtype)
    scale = self.dtype.type(10.0 ** (decimals if decimals > 0 else -decimals))
    return np.rint(self * scale) / scale if decimals > 0 else np.rint(self / scale) * scale


@public()
def round(input: Tensor, *, decimals: int | None = None, out: Tensor | None = None) -> Any:
    """Return each element of ``input`` rounded to ``decimals`` decimal places.

    By default, elements are rounded to the nearest integer. Ties are rounded to the even digit.

    >>> import retrograd as torch
    >>> torch.round(torch.tensor([0.5, 1.5, 2.25]), decimals=1)
    tensor([0.5000, 1.5000, 2.2000])
    """
    return round_whole(input) if decimals is None else round_decimals(input, decimals)


@exported("special", "round")
def special_round(input: Tensor, *, decimals: int = 0, out: Tensor | None = None) -> Any:
    """Return ``input`` rounded to ``decimals`` decimal places; ties are rounded to even."""
    return round(input, decimals=decimals)


@public()
def round_(input: Tensor, *, decimals: int | None = None) -> Tensor:
    """In-place version of :func:`round`."""
    return (
        modify(round_whole.op, (input,), ()) if decimals is None else modify(round_decimals.op, (input,), (decimals,))
    )


# -- Maximum, minimum and clamping -------------------------------------------------------------------------------------


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self < other, 0),
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self > other, 0),
    in_place=False, check=real_only("maximum not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def maximum(np: Any, self: Any, other: Any, /) -> Any:
    """Return the maximum of ``self`` and ``other`` elementwise. The result is nan where an operand is nan.

    >>> import retrograd as torch
    >>> torch.maximum(torch.tensor([1, 5]), torch.tensor([3, 2]))
    tensor([3, 5])
    """
    return np.maximum(self, other)


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self > other, 0),
    lambda F, g, self, other: F.masked_fill_scalar(F.where_half(g, self, other), self < other, 0),
    in_place=False, check=real_only("minimum not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def minimum(np: Any, self: Any, other: Any, /) -> Any:
    """Return the minimum of ``self`` and ``other`` elementwise. The result is nan where an operand is nan."""
    return np.minimum(self, other)


@op(function=False, method=False, vmap="elementwise")
def where_half(np: Any, g: Any, self: Any, other: Any, /) -> Any:
    """Return ``g / 2`` where ``self`` equals ``other``, and ``g`` elsewhere.

    ``g`` is the gradient of a maximum or minimum of ``self`` and ``other``. Two equal operands get half of the gradient
    each.
    """
    return np.where(self == other, g / 2, g)


where_half.derivative(g=lambda F, g, self, other: F.where_half(g, self, other))


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(g, ~((self >= other) | (other != other)), 0),
    lambda F, g, self, other: F.masked_fill_scalar(g, (self >= other) | (other != other), 0),
    in_place=False, check=real_only("fmax not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def fmax(np: Any, self: Any, other: Any, /) -> Any:
    """Return the maximum of ``self`` and ``other`` elementwise, ignoring nan.

    The result is nan only where both operands are nan.
    """
    return np.fmax(other, self)  # in this order, the first of 0.0 and -0.0 is returned


@pointwise(
    lambda F, g, self, other: F.masked_fill_scalar(g, ~((self <= other) | (other != other)), 0),
    lambda F, g, self, other: F.masked_fill_scalar(g, (self <= other) | (other != other), 0),
    in_place=False, check=real_only("fmin not implemented for complex tensors."), numbers=False,
)  # fmt: skip
def fmin(np: Any, self: Any, other: Any, /) -> Any:
    """Return the minimum of ``self`` and ``other`` elementwise, ignoring nan.

    The result is nan only where both operands are nan.
    """
    return np.fmin(other, self)  # in this order, the first of 0.0 and -0.0 is returned


@op(function=False, method=False, backward="WhereBackward0", vmap="elementwise")
def clamp_backward(np: Any, grad_output: Any, self: Any, /, min: Any, max: Any) -> Any:
    """Return the gradient of ``clamp`` with respect to its input ``self``.

    The gradient is ``grad_output``, the gradient of the result, where ``min <= self <= max``, and 0 elsewhere. A bound
    of None is ignored.
    """
    return elementwise.clamp_gradient(np, grad_output, self, min, max)


clamp_backward.derivative(grad_output=lambda F, g, self, min, max: F.clamp_backward(g, self, min, max))


def _clamp_over(x: Any, low: Any, high: Any) -> None:
    """Clamp the floating-point array ``x`` to the range from ``low`` to ``high`` in place.

    A bound of None is ignored.
    """
    raised = x
    if low is not None:
        low = numpy.asarray(low, x.dtype) if -65504 <= low <= 65504 else elementwise.bound_of(numpy, low, x.dtype)
        raised = numpy.maximum(x, low, out=x if high is None else None)
    if high is not None:
        high = numpy.asarray(high, x.dtype) if -65504 <= high <= 65504 else elementwise.bound_of(numpy, high, x.dtype)
        numpy.minimum(raised, high, out=x)


@pointwise(
    lambda F, g, self, min, max: F.clamp_backward(g, self, min, max),
    name="clamp_scalar", backward="ClampBackward1", function=False, method=False, in_place=False,
    write=(None, lambda self, min, max: _clamp_over(self, min, max)),
)  # fmt: skip
def clamp_scalar(np: Any, self: Any, /, min: Any, max: Any) -> Any:
    """Return ``self`` with each element clamped to the range from ``min`` to ``max``, which are numbers.

    A bound of None is ignored.
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return elementwise.clamp(np, self, min, max)


@pointwise(
    lambda F, g, self, min, max: F.where_else((self >= min) & (self <= max), g),
    lambda F, g, self, min, max: F.where_else((self < min) & (min < max), g),
    lambda F, g, self, min, max: F.where_else((self > max) | (max < min), g),
    name="clamp_tensor", backward="ClampBackward0", refuses=("clamp_cpu", "b"), function=False, method=False, in_place=False,
)  # fmt: skip
def clamp_tensor(np: Any, self: Any, min: Any, max: Any, /) -> Any:
    """Return ``self`` clamped elementwise to the range from ``min`` to ``max``, which are tensors."""
    return np.minimum(np.maximum(self, min), max)


# One bound, a tensor or a number. PyTorch's nodes have different names for clamp and clamp_min.
def _bound_of_tensor(name: str, backward: str, kernel: Any) -> Any:
    """Define the internal operation that clamps a tensor to one bound, which is also a tensor, and return it.

    ``name`` is the name of the operation, and ``backward`` is the name of its node in the autograd graph. ``kernel`` is
    the function that computes the result from arrays: ``_at_least`` for a lower bound, ``_at_most`` for an upper bound.
    """
    inside, outside = (_not_below, _below) if kernel is _at_least else (_not_above, _above)
    return pointwise(
        inside, outside, name=name, backward=backward, function=False, method=False, in_place=False
    )(kernel)  # fmt: skip


def _not_below(F: Any, g: Any, self: Any, bound: Any) -> Any:
    return F.where_else(self >= bound, g)


def _below(F: Any, g: Any, self: Any, bound: Any) -> Any:
    return F.where_else(self < bound, g)


def _not_above(F: Any, g: Any, self: Any, bound: Any) -> Any:
    return F.where_else(self <= bound, g)


def _above(F: Any, g: Any, self: Any, bound: Any) -> Any:
    return F.where_else(self > bound, g)


def _at_least(np: Any, self: Any, bound: Any, /) -> Any:
    """Return the maximum of ``self`` and the tensor ``bound`` elementwise: ``self`` clamped to a lower bound."""
    return np.maximum(self, bound)


def _at_most(np: Any, self: Any, bound: Any, /) -> Any:
    """Return the minimum of ``self`` and the tensor ``bound`` elementwise: ``self`` clamped to an upper bound."""
    return np.minimum(self, bound)


_clamp_low = _bound_of_tensor("clamp_low_tensor", "ClampBackward0", _at_least)
_clamp_high = _bound_of_tensor("clamp_high_tensor", "ClampBackward0", _at_most)
_clamp_min_tensor = _bound_of_tensor("clamp_min_tensor", "ClampMinBackward1", _at_least)
_clamp_max_tensor = _bound_of_tensor("clamp_max_tensor", "ClampMaxBackward1", _at_most)


@pointwise(_not_below, backward="ClampMinBackward0", function=False, method=False, in_place=False)
def clamp_min_scalar(np: Any, self: Any, /, bound: Any) -> Any:
    """Return ``self`` with each element clamped to be at least the number ``bound``."""
    return np.maximum(self, elementwise.bound_of(np, bound, self.dtype))


@pointwise(_not_above, backward="ClampMaxBackward0", function=False, method=False, in_place=False)
def clamp_max_scalar(np: Any, self: Any, /, bound: Any) -> Any:
    """Return ``self`` with each element clamped to be at most the number ``bound``."""
    return np.minimum(self, elementwise.bound_of(np, bound, self.dtype))


#: An operation, its tensors and its parameters.
_Call = tuple[Any, tuple[Any, ...], tuple[Any, ...]]


def _is_plain_number(x: Any) -> bool:
    """Return whether ``x`` is a 0-d tensor that does not require gradients.

    If one bound of ``clamp`` is a number and the other is such a tensor, ``clamp`` treats the tensor as a number.
    """
    return isinstance(x, Tensor) and not x._array.ndim and not x.requires_grad


def _clamp_call(input: Tensor, low: Any, high: Any) -> _Call:
    """Return the operation that computes ``clamp(input, low, high)``, together with its arguments.

    The result is the tuple (operation, tensors, numbers). Calling ``operation(*tensors, *numbers)`` computes the
    clamped tensor. One of ``low`` and ``high`` may be None. Raise TypeError if one bound is a number and the other is a
    tensor. A 0-d tensor that does not require gradients is an exception: it is used as a number.
    """
    if low is None and high is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    tensors = [isinstance(each, Tensor) for each in (low, high) if each is not None]
    if any(tensors) != all(tensors):  # beside a number, a 0-d tensor counts as a number
        low, high = (each.item() if _is_plain_number(each) else each for each in (low, high))
        tensors = [isinstance(each, Tensor) for each in (low, high)]
    if any(tensors) != all(tensors) or any(isinstance(each, str) for each in (low, high)):
        given = ", ".join(type(each).__name__ for each in (input, low, high) if each is not None)
        raise TypeError(
            f"clamp() received an invalid combination of arguments - got ({given}), but expected one of:\n"
            " * (Tensor input, Tensor min = None, Tensor max = None, *, Tensor out = None)\n"
            " * (Tensor input, Number min = None, Number max = None, *, Tensor out = None)\n"
        )
    if any(_is_complex(each) for each in (input, low, high)):
        raise NotImplementedError("clamp is not supported for complex types")
    if not any(tensors):
        return clamp_scalar, (input,), (low, high)
    if low is None:
        return _clamp_high, (input, high), ()
    return (_clamp_low, (input, low), ()) if high is None else (clamp_tensor, (input, low, high), ())


def _is_complex(x: Any) -> bool:
    return x.is_complex() if isinstance(x, Tensor) else isinstance(x, complex)


def _bound_call(name: str, input: Tensor, bound: Any, of_tensor: Any, of_number: Any) -> _Call:
    """Return the operation that computes ``clamp_min`` or ``clamp_max``, together with its arguments.

    The result is the tuple (operation, tensors, numbers). Calling ``operation(*tensors, *numbers)`` computes the
    clamped tensor. If ``bound`` is a tensor, the operation is ``of_tensor``. If ``bound`` is a number, it is
    ``of_number``. ``name`` is the name of the function, for error messages.
    """
    if not (isinstance(input, Tensor) and isinstance(bound, (Tensor, bool, int, float, complex))):
        argument, given = name[-3:], f"{type(input).__name__}, {type(bound).__name__}"
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({given}), but expected "
            f"one of:\n * (Tensor input, Tensor {argument}, *, Tensor out = None)\n * (Tensor input, Number {argument}, *, "
            "Tensor out = None)\n"
        )
    if _is_complex(input) or _is_complex(bound):
        if isinstance(bound, Tensor):
            kernel = "maximum_cpu" if name == "clamp_min" else "minimum_cpu"
            raise dtypes.unsupported(kernel, promotion.promote_types(input.dtype, bound.dtype).numpy)
        raise NotImplementedError("clamp is not supported for complex types")
    return (of_tensor, (input, bound), ()) if isinstance(bound, Tensor) else (of_number, (input,), (bound,))


def _promoted(input: Tensor, bounds: tuple[Any, ...]) -> Tensor:
    """Return the tensor ``input``, converted to the dtype to which ``input`` and the numbers ``bounds`` promote.

    A bound of None is ignored.
    """
    for each in bounds:
        if each is not None:
            target = promotion.promoted_dtype(*operand_dtypes(input), promotion.dtype_of_number(each))
            if target is not input.dtype:
                input = input.to(target)
    return input


def _clamped(call: _Call) -> Tensor:
    """Return the result of a clamp operation.

    ``call`` is the tuple (operation, tensors, numbers) that :func:`_clamp_call` or :func:`_bound_call` returned. The
    tensor is first converted to the dtype to which it and the numbers promote.
    """
    block, tensors, params = call
    if params:
        tensors = (_promoted(tensors[0], params),)
    return block(*tensors, *params)


def _clamp_in_place(call: _Call) -> Tensor:
    """Overwrite the tensor to clamp with the result of a clamp operation, and return the tensor.

    ``call`` is the tuple (operation, tensors, numbers) that :func:`_clamp_call` or :func:`_bound_call` returned. The
    first of its tensors is overwritten. Raise RuntimeError if the dtype of the result cannot be cast to the dtype of
    this tensor.
    """
    block, tensors, params = call
    if params:
        check_cast(_promoted(tensors[0], params).dtype, tensors[0].dtype)
    return modify(block.op, tensors, params)


#: The condition for the fast path of ``clamp``: the bounds are numbers or None, but not both None.
_BOUNDS: dict[str, Any] = {
    "when": lambda min, max: (
        (min is None or min.__class__ in NUMBERS) and (max is None or max.__class__ in NUMBERS) and min is not max
    )
}


@public(aliases=("clip",), fast_path=clamp_scalar, **_BOUNDS)
def clamp(input: Tensor, min: Any = None, max: Any = None, *, out: Tensor | None = None) -> Tensor:
    """Return ``input`` with each element clamped to the range from ``min`` to ``max``.

    ``min`` and ``max`` are numbers or tensors that broadcast with ``input``. A bound of None is ignored.

    >>> import retrograd as torch
    >>> torch.clamp(torch.tensor([-1.0, 0.5, 2.0]), 0, 1)
    tensor([0.0000, 0.5000, 1.0000])
    """
    return _clamped(_clamp_call(input, min, max))


@public(aliases=("clip_",), fast_path=clamp_scalar, **_BOUNDS, in_place=True)
def clamp_(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """In-place version of :func:`clamp`."""
    return _clamp_in_place(_clamp_call(input, min, max))


@public(fast_path=clamp_min_scalar, when=lambda min: min.__class__ in NUMBERS, bound="min")
def clamp_min(input: Tensor, min: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``input`` with each element clamped to be at least ``min``, which is a number or a tensor."""
    return _clamped(_bound_call("clamp_min", input, min, _clamp_min_tensor, clamp_min_scalar))


@public(fast_path=clamp_max_scalar, when=lambda max: max.__class__ in NUMBERS, bound="max")
def clamp_max(input: Tensor, max: Any, *, out: Tensor | None = None) -> Tensor:
    """Return ``input`` with each element clamped to be at most ``max``, which is a number or a tensor."""
    return _clamped(_bound_call("clamp_max", input, max, _clamp_max_tensor, clamp_max_scalar))


@public(fast_path=clamp_min_scalar, when=lambda min: min.__class__ in NUMBERS, in_place=True, bound="min")
def clamp_min_(input: Tensor, min: Any) -> Tensor:
    """In-place version of :func:`clamp_min`."""
    return _clamp_in_place(_bound_call("clamp_min", input, min, _clamp_min_tensor, clamp_min_scalar))


@public(fast_path=clamp_max_scalar, when=lambda max: max.__class__ in NUMBERS, in_place=True, bound="max")
def clamp_max_(input: Tensor, max: Any) -> Tensor:
    """In-place version of :func:`clamp_max`."""
    return _clamp_in_place(_bound_call("clamp_max", input, max, _clamp_max_tensor, clamp_max_scalar))


# -- Signs and steps -------------------------------------------------------------------------------------------------


def _ratio(F: Any, g: Any, self: Any, out: Any) -> Any:
    return g * F.where_else(self != 0, out / self)


@pointwise(
    _ratio, zero_grad_rule, name="copysign_tensor", floats=True, refuses=("copysign_cpu", "c"),
    function=False, method=False, in_place=False, backward="CopysignBackward0",
)  # fmt: skip
def copysign_tensor(np: Any, self: Any, other: Any, /) -> Any:
    """Return the absolute value of ``self`` with the sign of the tensor ``other``, elementwise."""
    return np.copysign(self, other)


@pointwise(
    _ratio, None, name="copysign_number", floats=True, refuses=("copysign_cpu", "c"),
    function=False, method=False, in_place=False, backward="CopysignBackward1",
)  # fmt: skip
def copysign_number(np: Any, self: Any, other: Any, /) -> Any:
    """Return the absolute value of ``self`` with the sign of the number ``other``, elementwise."""
    return np.copysign(self, other)


def _copysign_call(input: Any, other: Any) -> Any:
    check_first("copysign", input, other)
    return copysign_tensor if isinstance(other, Tensor) else copysign_number


@public()
def copysign(input: Tensor, other: Any, *, out: Tensor | None = None) -> Any:
    """Return the absolute value of ``input`` with the sign of ``other``, elementwise.

    ``other`` is a tensor or a number.
    """
    return _copysign_call(input, other)(input, other)


@public(function=False)
def copysign_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`copysign`."""
    return modify(_copysign_call(input, other).op, (input, other), ())


def _check_step(input: Any, values: Any) -> None:
    if kind_of(input) == "c" or kind_of(values) == "c":
        raise RuntimeError("heaviside is not yet implemented for complex tensors.")
    if input.dtype != values.dtype:
        raise RuntimeError("heaviside is not yet implemented for tensors with different dtypes.")


@pointwise(
    zero_grad_rule, lambda F, g, self: F.where_else(self == 0, g), backward="NotImplemented", check=_check_step, numbers=False,
)  # fmt: skip
def heaviside(np: Any, self: Any, values: Any, /) -> Any:
    """Return the Heaviside step function of each element of ``self``.

    The result is 0 where ``self`` is negative, 1 where ``self`` is positive, and ``values`` where ``self`` is 0.
    """
    return np.where(self == 0, values, (self > 0).astype(self.dtype))


@pointwise(
    lambda F, g, self, other: F.where_else(self != other, g), zero_grad_rule, refuses=("nextafter_cpu", "bic"), numbers=False,
)  # fmt: skip
def nextafter(np: Any, self: Any, other: Any, /) -> Any:
    """Return the next representable number after ``self`` in the direction of ``other``, elementwise.

    The result depends on the floating-point dtype of the operands.
    """
    return np.where(self == other, other, np.nextafter(self, other))


def _replace_nonfinite(np: Any, x: Any, nan: Any, posinf: Any, neginf: Any) -> Any:
    """Return ``x`` with nan, infinity and minus infinity replaced by the numbers ``nan``, ``posinf`` and ``neginf``."""
    finite = np.where(x != x, np.asarray(nan).astype(x.dtype), x)
    finite = np.where(x == np.inf, np.asarray(posinf).astype(x.dtype), finite)
    return np.where(x == -np.inf, np.asarray(neginf).astype(x.dtype), finite)


@pointwise(lambda F, g, self: g * F.isfinite(self))
def nan_to_num(np: Any, self: Any, /, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Any:
    """Return ``self`` with nan, infinity and minus infinity replaced by ``nan``, ``posinf`` and ``neginf``.

    By default, nan is replaced by 0, infinity by the largest finite number of the dtype, and minus infinity by the
    lowest finite number.

    >>> import retrograd as torch
    >>> torch.nan_to_num(torch.tensor([1.0, torch.nan]))
    tensor([1., 0.])
    """
    if self.dtype.kind in "biu":
        return self.copy()
    limits = dtypes.finfo(dtypes.dtype_of(self.dtype))
    values = (0 if nan is None else nan, limits.max if posinf is None else posinf,
              limits.min if neginf is None else neginf)  # fmt: skip
    if self.dtype.kind != "c":
        return _replace_nonfinite(np, self, *values)
    out = np.empty_like(self)
    out.real, out.imag = (_replace_nonfinite(np, part, *values) for part in (self.real, self.imag))
    return out


for _exact in (nextafter, nan_to_num):
    _exact.op.opmath = False  # the next and the largest number depend on the dtype
