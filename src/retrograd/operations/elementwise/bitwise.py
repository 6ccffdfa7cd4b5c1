"""Elementwise bitwise operations, greatest common divisors and least common multiples of integers."""

from __future__ import annotations

from typing import Any

from ...dispatch.declare import pointwise


@pointwise(refuses=("bitwise_and_cpu", "fc"))
def bitwise_and(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise bitwise AND of integers; logical AND of booleans."""
    return np.bitwise_and(self, other)


@pointwise(refuses=("bitwise_or_cpu", "fc"))
def bitwise_or(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise bitwise OR of integers; logical OR of booleans."""
    return np.bitwise_or(self, other)


@pointwise(refuses=("bitwise_xor_cpu", "fc"))
def bitwise_xor(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise bitwise XOR of integers; logical XOR of booleans."""
    return np.bitwise_xor(self, other)


@pointwise(refuses=("bitwise_not_cpu", "fc"), in_place="method")
def bitwise_not(np: Any, self: Any, /) -> Any:
    """Elementwise bitwise complement of integers; logical NOT of booleans."""
    return np.invert(self)


@pointwise(refuses=("lshift_cpu", "bfc"))
def bitwise_left_shift(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise shift of integers to the left by ``other`` bits."""
    return np.left_shift(self, other)


@pointwise(refuses=("rshift_cpu", "bfc"))
def bitwise_right_shift(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise arithmetic shift of integers to the right by ``other`` bits; the sign is preserved."""
    return np.right_shift(self, other)


# -- Divisors --------------------------------------------------------------------------------------------------------


@pointwise(refuses=("gcd_cpu", "bfc"), numbers=False, in_place="function")
def gcd(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise greatest common divisor of integers."""
    return np.gcd(self, other)


@pointwise(refuses=("lcm_cpu", "bfc"), numbers=False, in_place="function")
def lcm(np: Any, self: Any, other: Any, /) -> Any:
    """Elementwise least common multiple of integers."""
    return np.lcm(self, other)
