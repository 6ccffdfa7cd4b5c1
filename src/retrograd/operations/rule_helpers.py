"""Functions that many operations use: common derivative rules, parts of derivative rules, and checks of operands.

A derivative rule is a function that computes the gradient of an operation with respect to one of its operands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..core import dtypes
from ..core.devices import on_gpu
from ..core.tensor import Tensor
from ..dispatch.declare import op, pointwise
from ..kernels import elementwise

# -- Rules -----------------------------------------------------------------------------------------------------------


def zero_grad_rule(F: Any, g: Any) -> Any:
    """Return zeros in the shape of ``g``: the gradient of a piecewise constant function.

    ``g`` is the gradient of the result of the function. ``F`` is a namespace of operations (``F.matmul``, …) on tensors
    or on arrays.
    """
    return F.zeros_as(g)


def not_implemented(what: str) -> Callable[..., Any]:
    """Return a derivative rule (a function that computes a gradient) that always raises NotImplementedError.

    The message is that of PyTorch. ``what`` is the name of the operation in the message.
    """

    def refuse(F: Any, g: Any) -> None:
        raise NotImplementedError(f"the derivative for '{what}' is not implemented.")

    return refuse


@pointwise(lambda F, g: F.zeros_as(g), function=False, method=False, in_place=False)
def zeros_as(np: Any, self: Any, /) -> Any:
    """Return zeros with the shape and dtype of ``self``."""
    return np.zeros_like(self)


@op(function=False, method=False, backward="MaskedFillBackward0", vmap="elementwise")
def masked_fill_scalar(np: Any, self: Any, mask: Any, /, value: Any) -> Any:
    """Return a copy of ``self`` whose elements are replaced by the number ``value`` where ``mask`` is true."""
    return elementwise.fill_where(np, self, mask, value)


masked_fill_scalar.derivative(self=lambda F, g, mask: F.masked_fill_scalar(g, mask, 0))


@op(function=False, method=False, backward="WhereBackward0", linear=True, vmap="elementwise")
def where_else(np: Any, condition: Any, self: Any, /) -> Any:
    """Return ``self`` where ``condition`` is true, and 0 elsewhere."""
    return elementwise.keep(np, self, condition)


where_else.derivative(self=lambda F, g, condition: F.where_else(condition, g))


@pointwise(
    lambda F, g, other: F.masked_product(g, other), "self",
    function=False, method=False, in_place=False, event="mul",
)  # fmt: skip
def masked_product(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self * other`` elementwise, but 0 where ``other`` is 0.

    The result is 0 even for an infinite or nan element of ``self``, for which the product would be nan.
    """
    product = self * other
    if np is numpy and not self.ndim and self - self == 0:  # finite: this takes a quarter of the time of isfinite
        return product
    return np.where(other == 0, product.dtype.type(0), product)


# -- Operands --------------------------------------------------------------------------------------------------------


def kind_of(x: Any) -> str:
    """Return ``x.dtype.kind``, NumPy's letter for the kind of a dtype, or an empty string if ``x`` is a number."""
    return x.dtype.kind if hasattr(x, "dtype") else ""


def operand_dtypes(x: Tensor) -> tuple[Any, Any]:
    """Return the dtype of ``x`` as (dtype, None), or as (None, dtype) if ``x`` is 0-d.

    These are the first two arguments of ``promotion.promoted_dtype``. They are separate because 0-d tensors and other
    tensors have different effects in type promotion.
    """
    return (x.dtype, None) if x._array.ndim else (None, x.dtype)


def check_divisor(np: Any, dividend: Any, divisor: Any) -> None:
    """Raise PyTorch's RuntimeError if the integer array ``divisor`` contains 0 and ``dividend`` is not empty.

    On a GPU the divisor is not read, and the quotient by 0 is undefined, as in PyTorch.
    """
    if (np is numpy or not on_gpu(divisor)) and np.any(divisor == 0) and np.size(dividend):
        raise RuntimeError("ZeroDivisionError")


def check_first(name: str, input: Any, other: Any) -> None:
    """Raise TypeError if ``input``, the first operand of the function ``name``, is not a tensor.

    As in PyTorch, only ``other`` may be a number.
    """
    if not isinstance(input, Tensor):
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({type(input).__name__}, "
            f"{type(other).__name__}), but expected one of:\n * (Tensor input, Tensor other, *, Tensor out = None)\n * "
            "(Tensor input, Number other, *, Tensor out = None)\n"
        )


def no_complex(name: str) -> Callable[..., None]:
    """Return a function that checks the operands of an operation, which must not be complex.

    The returned function raises NotImplementedError if its first argument is complex. ``name`` is the name of the
    operation in the message.
    """

    def check(x: Any, *others: Any) -> None:
        if kind_of(x) == "c":
            raise NotImplementedError(f"{name} is not supported for complex inputs")

    return check


def real_only(message: str, error: type[Exception] = RuntimeError) -> Callable[..., None]:
    """Return a function that checks the operands of an operation, which must be real.

    The returned function raises ``error(message)`` if one of its arguments is complex.
    """

    def check(*operands: Any) -> None:
        if any(kind_of(each) == "c" or each.__class__ is complex for each in operands):
            raise error(message)

    return check


def check_complex_parts(name: str, names: tuple[str, str], parts: tuple[Any, Any]) -> None:
    """Raise an error unless both ``parts`` are tensors of the same dtype: float16, float32 or float64.

    ``parts`` are the two arguments of the function ``name``, and ``names`` are the names of these arguments in the
    message. The error is TypeError if an argument is not a tensor, else RuntimeError.
    """
    for position, each in enumerate(parts):
        if not isinstance(each, Tensor):
            raise TypeError(
                f"{name}(): argument '{names[position]}' (position {position + 1}) must be Tensor, not "
                f"{type(each).__name__}"
            )
    first, second = (each.dtype for each in parts)
    given = [dtypes.scalar_name(each) for each in (first, second)]
    if any(each not in (dtypes.float16, dtypes.float32, dtypes.float64) for each in (first, second)):
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {' and '.join(given)}")
    if first is not second:
        raise RuntimeError(
            f"Expected object of scalar type {given[0]} but got scalar type {given[1]} for second argument"
        )
