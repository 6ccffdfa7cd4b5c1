"""Operators of Tensor without a function of the same name: ``~``, ``+x``, operators with a number on the left."""

from __future__ import annotations

from typing import Any, cast

import numpy

from ..core.tensor import Tensor, wrap
from ..dispatch.declare import public
from .elementwise.arithmetic import floor_divide, remainder, rsub_number
from .elementwise.bitwise import bitwise_left_shift, bitwise_not, bitwise_right_shift
from .elementwise.elementary import pow, reciprocal


@public()
def positive(input: Tensor) -> Tensor:
    """Return ``input`` itself. Raise RuntimeError for a bool tensor."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def invert(input: Tensor) -> Tensor:
    """Return the bitwise complement of ``input``, or the logical NOT of a bool tensor: the operator ``~``.

    Raise TypeError for dtypes other than integers and bool.
    """
    if input._array.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return cast(Tensor, bitwise_not(input))


@public(function=False, name="__array_wrap__")
def array_wrap(input: Tensor, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
    """Return the NumPy array ``array`` as a tensor.

    NumPy calls this method to convert the result of a NumPy function that was called with the tensor ``input``.
    ``context`` and ``return_scalar`` are parameters of NumPy's protocol that have no effect here.
    """
    return wrap(numpy.asarray(array))


def _reversed(function: Any) -> Any:
    """Return a function of (x, y) that returns ``function(y, x)``, for a reflected operator such as ``__rpow__``."""

    def reflected(input: Tensor, other: Any) -> Any:
        return function(other, input)

    reflected.__name__, reflected.__doc__ = function.__name__, function.__doc__
    return reflected


def _divided(input: Tensor, other: Any) -> Any:
    """Return ``other / input``, computed as ``reciprocal(input) * other``.

    PyTorch computes the reflected division in this way, and the rounding is the same.
    """
    return reciprocal(input) * (wrap(other) if isinstance(other, numpy.ndarray) else other)


#: The operators with a number on the left.
OPERATORS = {
    "__rsub__": rsub_number, "__rtruediv__": _divided, "__rpow__": _reversed(pow),
    "__rfloordiv__": _reversed(floor_divide), "__rmod__": _reversed(remainder),
    "__rlshift__": _reversed(bitwise_left_shift), "__rrshift__": _reversed(bitwise_right_shift),
}  # fmt: skip
