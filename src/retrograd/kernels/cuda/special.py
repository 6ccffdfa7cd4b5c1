"""Special functions whose values at large arguments, infinities or nan differ from SciPy's in CuPy.

CuPy computes ``i0e`` as ``exp(-abs(x)) * i0(x)`` and ``k0e`` as ``exp(x) * k0(x)``. One factor overflows and the other
becomes 0 from 89 (float32) or 710 (float64) on, and the product is nan. Here these functions are computed so up to
:data:`FAR`, and beyond it by their asymptotic series, whose first 17 terms give all digits of float64 there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cupy

#: From this absolute value on the scaled Bessel functions are computed by series.
FAR = 30.0
TERMS = 17


def _coefficients(order: int) -> list[float]:
    """Return the coefficients of powers of ``1 / x`` in ``sqrt(2 pi x) exp(-x) I(x)`` for the Bessel function I."""
    found = [1.0]
    for k in range(1, TERMS):
        found.append(found[-1] * ((2 * k - 1) ** 2 - 4 * order**2) / (8 * k))
    return found


#: Coefficients by order. Those of ``sqrt(2 x / pi) exp(x) K(x)`` have alternating signs.
SERIES = {order: _coefficients(order) for order in (0, 1)}


def _series(order: int, inverse: Any) -> Any:
    """Return the sum of the series for ``inverse``, which is ``1 / x``, or ``-1 / x`` for K."""
    total = inverse * 0.0
    for each in reversed(SERIES[order]):
        total = total * inverse + each
    return total


def _library() -> Any:
    from cupyx.scipy import special

    return special


def _scaled_i(order: int) -> Callable[[Any], Any]:
    def scaled(x: Any) -> Any:
        size = cupy.abs(x)
        large = cupy.maximum(size, FAR)
        far = cupy.copysign(_series(order, 1 / large) / cupy.sqrt(2 * math.pi * large), x if order else size)
        return cupy.where(size > FAR, far, cupy.exp(-size) * getattr(_library(), f"i{order}")(x) + 0.0)

    return scaled


def _scaled_k(order: int) -> Callable[[Any], Any]:
    def scaled(x: Any) -> Any:
        large = cupy.maximum(x, FAR)
        far = _series(order, -1 / large) * cupy.sqrt(math.pi / 2 / large)
        return cupy.where(x > FAR, far, cupy.exp(x) * getattr(_library(), f"k{order}")(x))

    return scaled


def _nan_at_infinity(name: str) -> Callable[[Any], Any]:
    """Return the function ``name`` with nan at infinity and 0 instead of -0, as SciPy computes it."""
    return lambda x: cupy.where(cupy.isinf(x), math.nan, getattr(_library(), name)(x) + 0.0)


def _j1(x: Any) -> Any:
    return cupy.where(cupy.isinf(x), math.nan, _library().j1(x))  # j1(-0.) is -0., unlike i1(-0.)


def _xlog1py(x: Any, y: Any) -> Any:
    return cupy.where(cupy.isnan(y), math.nan, _library().xlog1py(x, y))  # CuPy returns 0 for 0 and nan


#: The functions by SciPy's names.
SPECIAL: dict[str, Callable[..., Any]] = {
    **{name: _nan_at_infinity(name) for name in ("i0", "i1", "j0", "y0", "y1")},
    "j1": _j1, "i0e": _scaled_i(0), "i1e": _scaled_i(1), "k0e": _scaled_k(0), "k1e": _scaled_k(1),
    "xlog1py": _xlog1py,
}  # fmt: skip
