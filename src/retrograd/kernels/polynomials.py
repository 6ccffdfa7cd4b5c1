"""Kernels of torch.special's orthogonal polynomials: Chebyshev, Hermite, Laguerre and Legendre.

The degree is given for each element. The three-term recurrence (https://dlmf.nist.gov/18.9) runs for all elements at
once; for each element the value at its degree is kept. Chebyshev polynomials of a high degree are computed from the
cosine and sine of multiples of the angle (https://dlmf.nist.gov/18.5) if the argument is between -1 and 1, as PyTorch
does. At -1 and 1 their values are known.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.devices import is_meta, on_gpu

Step = Callable[[Any, int, Any, Any], Any]


def recurrence(np: Any, x: Any, degree: Any, first: Any, step: Step) -> Any:
    """Return for each element of ``x`` the polynomial of the given ``degree``, by the three-term recurrence.

    The polynomials of degree 0 and 1 are 1 and ``first``. ``step(x, k, p, q)`` returns the polynomial of degree k + 1
    from p, that of degree k, and q, that of degree k - 1.
    """
    before, last = np.ones_like(x), first
    out = np.where(degree < 0, 0, np.where(degree == 0, before, last)).astype(x.dtype)
    most = int(degree.max()) if degree.size and not is_meta(degree) else 0
    k = 1
    while k < most:
        before, last = last, step(x, k, last, before)
        k += 1
        open_ = degree >= k
        # A nan stays nan at every higher degree.
        out = np.where(open_, last, out)
        if k % 64 == 0 and bool(np.all(np.isnan(last) | ~open_)):
            break
    return out


def chebyshev(np: Any, kind: str, x: Any, degree: Any, first_high: int) -> Any:
    """Return the Chebyshev polynomials of the given ``degree`` at ``x``, elementwise.

    ``kind`` is "t", "u", "v" or "w", for polynomials of the first to fourth kind. Polynomials of a degree above
    ``first_high`` are computed from the angle ``arccos(x)``.
    """
    first = {"t": x, "u": x + x, "v": x + x - 1, "w": x + x + 1}[kind]
    size = np.absolute(x)
    high = (degree > first_high) & (size < 1)
    known = high | ((size == 1) & (degree >= 0))
    out = recurrence(np, x, np.where(known, 0, degree), first, lambda x, k, p, q: (x + x) * p - q)
    if on_gpu(x) or np.any(high):
        out = np.where(high, _by_angle(np, kind, np.where(high, x, 0), degree), out)
    ends = np.where(x > 0, _at_one(kind, degree), _at_minus_one(np, kind, degree))
    return np.where((size == 1) & (degree >= 0), ends, out).astype(x.dtype)


def _by_angle(np: Any, kind: str, x: Any, degree: Any) -> Any:
    """Return the Chebyshev polynomials at ``x`` between -1 and 1, computed from the angle ``arccos(x)``.

    The parameters are those of :func:`chebyshev`.
    """
    angle = np.arccos(x)
    n = degree.astype(x.dtype)
    if kind == "t":
        return np.cos(n * angle)
    if kind == "u":
        return np.sin((n + 1) * angle) / np.sin(angle)
    half = x.dtype.type(0.5)
    if kind == "v":
        return np.cos((n + half) * angle) / np.cos(angle * half)
    return np.sin((n + half) * angle) / np.sin(angle * half)


def _at_one(kind: str, degree: Any) -> Any:
    """Return the Chebyshev polynomials of the given ``degree`` at 1; ``kind`` is that of :func:`chebyshev`."""
    return {"t": degree * 0 + 1, "u": degree + 1, "v": degree * 0 + 1, "w": 2 * degree + 1}[kind]


def _at_minus_one(np: Any, kind: str, degree: Any) -> Any:
    """Return the Chebyshev polynomials of the given ``degree`` at -1; ``kind`` is that of :func:`chebyshev`."""
    size = {"t": degree * 0 + 1, "u": degree + 1, "v": 2 * degree + 1, "w": degree * 0 + 1}[kind]
    return np.where(degree % 2 == 0, size, -size)


def hermite_h(np: Any, x: Any, degree: Any) -> Any:
    """Return the physicist's Hermite polynomials of the given ``degree`` at ``x``, elementwise."""
    out = recurrence(np, x, _bounded(np, x, degree), x + x, lambda x, k, p, q: (x + x) * p - (k + k) * q)
    return np.where(degree > _hermite_limit(x), np.nan, out).astype(x.dtype)


def hermite_he(np: Any, x: Any, degree: Any) -> Any:
    """Return the probabilist's Hermite polynomials of the given ``degree`` at ``x``, elementwise."""
    out = recurrence(np, x, _bounded(np, x, degree), x, lambda x, k, p, q: x * p - k * q)
    return np.where(degree > _hermite_limit(x), np.nan, out).astype(x.dtype)


def _hermite_limit(x: Any) -> int:
    """Return the degree above which PyTorch's Hermite polynomials are nan for the dtype of ``x``."""
    return 128 if x.dtype.itemsize == 4 else 512


def _bounded(np: Any, x: Any, degree: Any) -> Any:
    """Return ``degree``, limited to the highest degree at which PyTorch's Hermite polynomials are not nan."""
    return np.minimum(degree, _hermite_limit(x))


def laguerre_l(np: Any, x: Any, degree: Any) -> Any:
    """Return the Laguerre polynomials of the given ``degree`` at ``x``, elementwise."""
    known = (x == 0) & (degree >= 0)
    steps = np.where(known, 0, degree)
    out = recurrence(np, x, steps, 1 - x, lambda x, k, p, q: ((k + k + (1 - x)) * p - k * q) / (k + 1))
    return np.where(known, 1, out).astype(x.dtype)


def legendre_p(np: Any, x: Any, degree: Any) -> Any:
    """Return the Legendre polynomials of the given ``degree`` at ``x``, elementwise."""
    known = (np.absolute(x) == 1) & (degree >= 0)
    steps = np.where(known, 0, degree)
    out = recurrence(np, x, steps, x, lambda x, k, p, q: ((k + k + 1) * x * p - k * q) / (k + 1))
    return np.where(known, np.where((x > 0) | (degree % 2 == 0), 1, -1), out).astype(x.dtype)


def shifted_chebyshev(np: Any, kind: str, x: Any, degree: Any, first_high: int) -> Any:
    """Return the shifted Chebyshev polynomials, the Chebyshev polynomials at ``2 * x - 1``, elementwise.

    They are orthogonal on [0, 1]. The parameters are those of :func:`chebyshev`.
    """
    return chebyshev(np, kind, x + x - 1, degree, first_high)
