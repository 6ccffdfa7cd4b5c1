"""The bits of whole numbers, and their divisors."""

from __future__ import annotations

from typing import Any

from ...dispatch.declare import pointwise


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


@pointwise(refuses=("bitwise_not_cpu", "fc"), in_place="method")
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


# -- Divisors --------------------------------------------------------------------------------------------------------


@pointwise(refuses=("gcd_cpu", "bfc"), numbers=False, in_place="function")
def gcd(np: Any, self: Any, other: Any, /) -> Any:
    """The greatest common divisor of whole numbers."""
    return np.gcd(self, other)


@pointwise(refuses=("lcm_cpu", "bfc"), numbers=False, in_place="function")
def lcm(np: Any, self: Any, other: Any, /) -> Any:
    """The least common multiple of whole numbers."""
    return np.lcm(self, other)
