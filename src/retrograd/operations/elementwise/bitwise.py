"""Elementwise operations on integers and booleans: ``bitwise_and``, ``bitwise_not``, shifts, ``gcd``, ``lcm``."""

from __future__ import annotations

from typing import Any

from ...dispatch.declare import pointwise


@pointwise(refuses=("bitwise_and_cpu", "fc"))
def bitwise_and(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self & other`` elementwise: the bitwise AND of integers, the logical AND of booleans."""
    return np.bitwise_and(self, other)


@pointwise(refuses=("bitwise_or_cpu", "fc"))
def bitwise_or(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self | other`` elementwise: the bitwise OR of integers, the logical OR of booleans."""
    return np.bitwise_or(self, other)


@pointwise(refuses=("bitwise_xor_cpu", "fc"))
def bitwise_xor(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self ^ other`` elementwise: the bitwise XOR of integers, the logical XOR of booleans."""
    return np.bitwise_xor(self, other)


@pointwise(refuses=("bitwise_not_cpu", "fc"), in_place="method")
def bitwise_not(np: Any, self: Any, /) -> Any:
    """Return ``~self`` elementwise: the bitwise complement of integers, the logical NOT of booleans."""
    return np.invert(self)


@pointwise(refuses=("lshift_cpu", "bfc"))
def bitwise_left_shift(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self << other`` elementwise: the integers ``self`` shifted to the left by ``other`` bits."""
    return np.left_shift(self, other)


@pointwise(refuses=("rshift_cpu", "bfc"))
def bitwise_right_shift(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self >> other`` elementwise: the integers ``self`` shifted to the right by ``other`` bits.

    The shift is arithmetic: it preserves the sign.
    """
    return np.right_shift(self, other)


# -- Divisors --------------------------------------------------------------------------------------------------------


@pointwise(refuses=("gcd_cpu", "bfc"), numbers=False, in_place="function")
def gcd(np: Any, self: Any, other: Any, /) -> Any:
    """Return the greatest common divisor of the integers ``self`` and ``other``, elementwise."""
    return np.gcd(self, other)


@pointwise(refuses=("lcm_cpu", "bfc"), numbers=False, in_place="function")
def lcm(np: Any, self: Any, other: Any, /) -> Any:
    """Return the least common multiple of the integers ``self`` and ``other``, elementwise."""
    return np.lcm(self, other)
