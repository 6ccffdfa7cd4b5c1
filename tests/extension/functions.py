"""Elementwise functions that NumPy has or that are composed of its functions."""

from __future__ import annotations

import math
from typing import Any

from retrograd.extend import pointwise


@pointwise(lambda g, out: g / (3 * out * out), floats=True)
def cbrt(np: Any, self: Any, /) -> Any:
    """Return the cube root of each element of ``self``."""
    return np.cbrt(self)


@pointwise(lambda F, self: self / (2 * F.sqrt(self * self + 1)) + 1, floats=True)
def bent_identity(np: Any, self: Any, /) -> Any:
    """Return ``(sqrt(self**2 + 1) - 1) / 2 + self`` for each element of ``self``."""
    return (np.sqrt(self * self + 1) - 1) / 2 + self


@pointwise(lambda F, g, self: g / F.expm1(self), floats=True)
def log1mexp(np: Any, self: Any, /) -> Any:
    """Return ``log(1 - exp(-self))`` for each element of ``self``, which is positive."""
    return np.where(self < math.log(2), np.log(-np.expm1(-self)), np.log1p(-np.exp(-self)))


@pointwise(lambda F, g, self: g * (math.pi * F.cospi(self)), floats=True)
def sinpi(np: Any, self: Any, /) -> Any:
    """Return ``sin(π * self)`` for each element of ``self``; it is 0 for integers."""
    rest = self - 2 * np.round(self / 2)
    return np.where(rest == np.round(rest), 0, np.sin(math.pi * rest)).astype(self.dtype)


@pointwise(lambda F, g, self: g * (-math.pi * F.sinpi(self)), floats=True)
def cospi(np: Any, self: Any, /) -> Any:
    """Return ``cos(π * self)`` for each element of ``self``."""
    return np.cos(math.pi * (self - 2 * np.round(self / 2)))
