"""Elementwise comparisons and tests: ``eq``, ``lt``, ``logical_and``, ``isnan``, ``isclose`` and others.

The functions return bool tensors and are not differentiable.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...core.devices import NO_ITEM, meta
from ...core.dtypes import STORED_NUMPY, scalar_name, unsupported
from ...core.tensor import Tensor
from ...dispatch.declare import op, pointwise, public, variant
from ...dispatch.device_errors import wrapped_check
from ...dispatch.generic_path import modify
from ..rule_helpers import zero_grad_rule


@pointwise(
    zero_grad_rule, zero_grad_rule, result=bool, numbers="second", in_place=False,
)  # fmt: skip
def eq(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self == other``.

    >>> import retrograd as torch
    >>> torch.eq(torch.tensor([1, 2]), 2)
    tensor([False,  True])
    """
    return np.equal(self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, result=bool, numbers="second", in_place=False, aliases=("not_equal",),
)  # fmt: skip
def ne(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self != other``."""
    return np.not_equal(self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, result=bool, numbers="second", in_place=False, aliases=("less",), refuses=("lt_cpu", "c"),
)  # fmt: skip
def lt(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self < other``."""
    return np.less(self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, result=bool, numbers="second", in_place=False, aliases=("less_equal",),
    refuses=("le_cpu", "c"),
)  # fmt: skip
def le(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self <= other``."""
    return np.less_equal(self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, result=bool, numbers="second", in_place=False, aliases=("greater",), refuses=("gt_cpu", "c"),
)  # fmt: skip
def gt(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self > other``."""
    return np.greater(self, other)


@pointwise(
    zero_grad_rule, zero_grad_rule, result=bool, numbers="second", in_place=False, aliases=("greater_equal",),
    refuses=("ge_cpu", "c"),
)  # fmt: skip
def ge(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self >= other``."""
    return np.greater_equal(self, other)


def _in_place(function: Any, names: tuple[str, ...]) -> None:
    """Define the in-place versions of the comparison ``function``, such as ``Tensor.lt_`` for ``lt``.

    ``names`` are the names of the methods without the final underscore. As in PyTorch, the node in the autograd graph
    has one name if the second operand is a tensor, and another name if it is a number.
    """
    of_number = function.op
    of_tensor = variant(function, in_place_backward=of_number.backward[:-1] + "1")

    def in_place(input: Tensor, other: Any) -> Tensor:
        return modify(of_tensor if isinstance(other, Tensor) else of_number, (input, other), ())

    for name in names:
        in_place.__name__ = in_place.__qualname__ = f"{name}_"
        in_place.__doc__ = f"In-place version of :func:`{name}`: ones and zeros of the dtype of ``input``."
        public(function=False, name=f"{name}_")(in_place)


for _function, _names in (
    (eq, ("eq",)), (ne, ("not_equal", "ne")), (lt, ("less", "lt")), (le, ("less_equal", "le")),
    (gt, ("greater", "gt")), (ge, ("greater_equal", "ge")),
):  # fmt: skip
    _in_place(_function, _names)


@pointwise(result=bool, numbers=False)
def logical_and(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` and ``other`` are both nonzero.

    >>> import retrograd as torch
    >>> torch.logical_and(torch.tensor([True, False]), torch.tensor([True, True]))
    tensor([ True, False])
    """
    return np.logical_and(self, other)


@pointwise(result=bool, numbers=False)
def logical_or(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where at least one of ``self`` and ``other`` is nonzero."""
    return np.logical_or(self, other)


@pointwise(result=bool, numbers=False)
def logical_xor(np: Any, self: Any, other: Any, /) -> Any:
    """Return a bool tensor that is True where exactly one of ``self`` and ``other`` is nonzero."""
    return np.logical_xor(self, other)


@pointwise(result=bool, in_place="method")
def logical_not(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` is zero."""
    return np.logical_not(self)


@pointwise(result=bool, in_place=False)
def isnan(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` is nan."""
    return np.not_equal(self, self)


@pointwise(result=bool, in_place=False)
def isinf(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` is infinite."""
    return np.isinf(self) if self.dtype.kind in "fcVW" else np.zeros(self.shape, bool)


@pointwise(result=bool, in_place=False)
def isposinf(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` is positive infinity."""
    if self.dtype.kind == "c":
        raise RuntimeError("isposinf does not support complex inputs.")
    return np.equal(self, np.inf)


@pointwise(result=bool, in_place=False)
def isneginf(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` is negative infinity."""
    if self.dtype.kind == "c":
        raise RuntimeError("isneginf does not support complex inputs.")
    return np.equal(self, -np.inf)


@pointwise(result=bool, in_place=False)
def isfinite(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where ``self`` is neither infinite nor nan."""
    return np.isfinite(self) if self.dtype.kind in "fcVW" else np.ones(self.shape, bool)


@pointwise(result=bool, in_place=False)
def isreal(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where the imaginary part of ``self`` is zero.

    All elements of a real tensor count as real.
    """
    return np.equal(np.imag(self), 0)


@pointwise(result=bool, in_place=False)
def signbit(np: Any, self: Any, /) -> Any:
    """Return a bool tensor that is True where the sign bit of ``self`` is set: negative numbers and -0.0."""
    if self.dtype.kind == "c":
        raise NotImplementedError("signbit is not implemented for complex tensors.")
    return np.signbit(self) if self.dtype.kind in "fV" else np.less(self, 0)


def _check_close(input: Any, other: Any, rtol: float, atol: float) -> None:
    for each in (input, other):
        if not isinstance(each, Tensor):
            raise TypeError(f"isclose(): argument 'other' (position 2) must be Tensor, not {type(each).__name__}")
    if input.dtype is not other.dtype:
        raise RuntimeError(f"{scalar_name(input.dtype)} did not match {scalar_name(other.dtype)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value:g}")


@op(function=False, method=False, vmap="elementwise")
def isclose_arrays(np: Any, self: Any, other: Any, /, rtol: float, atol: float, equal_nan: bool) -> Any:
    """Return a bool array that is True where ``abs(self - other) <= atol + rtol * abs(other)``.

    Infinities of the same sign are close to each other. If ``equal_nan`` is true, nan is close to nan.
    """
    near = np.equal(self, other)
    if equal_nan and self.dtype.kind in "fcVW":
        near = near | ((self != self) & (other != other))
    if rtol == 0 and atol == 0:
        return near
    if self.dtype.kind not in "fc":
        self, other = self.astype(np.float64), other.astype(np.float64)
    allowed = atol + np.absolute(rtol * other)
    return near | (np.isfinite(self) & np.isfinite(other) & (np.absolute(self - other) <= allowed))


@public()
def isclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
    """Return a bool tensor that is True where ``abs(input - other) <= atol + rtol * abs(other)``.

    Infinities of the same sign are close to each other. If ``equal_nan`` is true, nan is close to nan.

    >>> import retrograd as torch
    >>> torch.isclose(torch.tensor([1.0, 2.0]), torch.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    _check_close(input, other, rtol, atol)
    return isclose_arrays(input, other, rtol, atol, equal_nan)


@public()
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Return whether ``abs(input - other) <= atol + rtol * abs(other)`` holds for all elements.

    Infinities of the same sign are close to each other. If ``equal_nan`` is true, nan is close to nan.

    >>> import retrograd as torch
    >>> torch.allclose(torch.tensor([1.0]), torch.tensor([1.0 + 1e-9]))
    True
    """
    close = isclose(input, other, rtol, atol, equal_nan)
    if close.is_meta:
        raise RuntimeError(NO_ITEM)
    return bool(close._array.all())


@public()
def equal(input: Any, other: Any) -> bool:
    """Return whether ``input`` and ``other`` have the same shape and equal elements; nan is not equal to nan."""
    for position, each in enumerate((input, other)):
        if not isinstance(each, Tensor):
            name = ("input", "other")[position]
            raise TypeError(
                f"equal(): argument '{name}' (position {position + 1}) must be Tensor, not {type(each).__name__}"
            )
    a, b = input._array, other._array
    if a.dtype in STORED_NUMPY:
        raise unsupported("equal_notnan_cpu", a.dtype)
    if isinstance(a, numpy.ndarray) and isinstance(b, numpy.ndarray):
        return bool(a.shape == b.shape and numpy.count_nonzero(a == b) == a.size)
    if input.is_meta or other.is_meta:
        raise meta().no_values("equal")
    if input.device != other.device:
        raise wrapped_check("_equal", "other", other.device, input.device)
    return bool((a == b).all())
