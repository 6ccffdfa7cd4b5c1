"""What stands behind an operator and is no function: ``~``, ``+x``, and operators with a number on the left."""

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
    """The tensor itself."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


def invert(input: Tensor) -> Tensor:
    """The operator ``~``."""
    if input._array.dtype.kind not in "biu":
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return cast(Tensor, bitwise_not(input))


@public(function=False, name="__array_wrap__")
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
