"""Kernels of the derivatives of gammainc, gammaincc and zeta with respect to their first argument, called the order.

Each function belongs to a family that is closed under differentiation. The derivative of the regularized incomplete
gamma function with respect to its order ``a`` is a truncated moment:

    M_n(a, x) = E[(ln T - ψ(a))^n; T < x]  for T of the gamma distribution of order a, with
    ∂M_n/∂a = M_{n+1} - n ψ'(a) M_{n-1},  and M_0 the function itself.

The moments are integrated by Gauss-Legendre quadrature over ln T, from the point where the density vanishes to x, or
from x on if that interval is shorter. For Hurwitz's zeta function the family is Z_n(x, q), the sums of
``ln(q+k)^n (q+k)^-x`` over k from 0, with ``∂Z_n/∂x = -Z_{n+1}`` and ``∂Z_n/∂q = n Z_{n-1}(x+1, q) - x Z_n(x+1, q)``.
These sums are computed by the Euler-Maclaurin formula.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy

from .scipy_backend import special

NODES = 96
NEGLIGIBLE = 46.0  # exp(-46) counts as zero


@cache
def _rule() -> list[tuple[float, float]]:
    """Return the pairs (node, weight) of Gauss-Legendre quadrature on [-1, 1]."""
    nodes, weights = numpy.polynomial.legendre.leggauss(NODES)
    return list(zip(nodes.tolist(), weights.tolist(), strict=True))


def gamma_moment(np: Any, a: Any, x: Any, n: int) -> Any:
    """Return the truncated moment ``M_n(a, x) = E[(ln T - ψ(a))^n; T < x]`` for T of the gamma distribution of order a.

    ψ is the digamma function. The result is 0 at ``x`` = 0, and nan where ``a`` is not positive or ``x`` is negative.
    """
    wide_a, wide_x = (each.astype(np.float64) for each in np.broadcast_arrays(a, x))
    mean, scale = special(np, "digamma", wide_a), special(np, "gammaln", wide_a)
    top, peak = np.log(wide_x), np.log(wide_a)
    below = top <= peak
    start = np.where(below, np.minimum(top, peak), np.maximum(top, peak))
    end = _density_limit(np, wide_a, start, np.where(below, -1.0, 1.0))
    middle, half = (start + end) / 2, np.abs(end - start) / 2
    total = np.zeros_like(wide_a)
    for node, weight in _rule():
        y = middle + half * node
        total += weight * np.exp(wide_a * y - np.exp(y) - scale) * (y - mean) ** n
    moment = np.where(below, total * half, _full_moment(np, wide_a, n) - total * half)
    moment = np.where(wide_x == np.inf, _full_moment(np, wide_a, n), np.where(wide_x == 0, 0.0, moment))
    return np.where((wide_a > 0) & (wide_x >= 0), moment, np.nan).astype(a.dtype)


def _density_limit(np: Any, a: Any, start: Any, side: Any) -> Any:
    """Return the limit of an integral over the density of ln T, beyond which the density is negligible.

    T has the gamma distribution with shape parameter ``a``. The search begins at ``start`` and goes up if ``side`` is
    1, or down if ``side`` is -1.
    """
    height = a * start - np.exp(start)
    near, far = np.zeros_like(a), NEGLIGIBLE * (1 / a + 1 / np.sqrt(a) + 1)
    for _ in range(50):
        middle = (near + far) / 2
        y = start + side * middle
        inside = height - (a * y - np.exp(y)) < NEGLIGIBLE
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    return start + side * far


def _full_moment(np: Any, a: Any, n: int) -> Any:
    """Return the central moment ``E[(ln T - ψ(a))^n]``, where T has the gamma distribution of order ``a``.

    ψ is the digamma function. The moment is computed from the cumulants of ln T, which are polygamma functions at
    ``a``.
    """
    moments = [np.ones_like(a), np.zeros_like(a)]
    for order in range(2, n + 1):
        moment = np.zeros_like(a)
        for k in range(2, order + 1):
            sign = (-1.0) ** k * math.factorial(k - 1)
            moment = (
                moment + math.comb(order - 1, k - 1) * sign * special(np, "zeta", np.float64(k), a) * moments[order - k]
            )
        moments.append(moment)
    return moments[n]


TERMS, CORRECTIONS = 40, 12


@cache
def _bernoulli() -> list[float]:
    """Return the coefficients ``B_2j / (2j)!`` of the Euler-Maclaurin formula for j = 1, 2, ….

    B_2j are the Bernoulli numbers.
    """
    from fractions import Fraction  # imports the decimal module, which few programs need

    numbers = [Fraction(1)]
    for m in range(1, 2 * CORRECTIONS + 1):
        numbers.append(-sum((math.comb(m + 1, k) * numbers[k] for k in range(m)), Fraction(0)) / (m + 1))
    return [float(numbers[2 * j] / math.factorial(2 * j)) for j in range(1, CORRECTIONS + 1)]


def zeta_sum(np: Any, x: Any, q: Any, n: int) -> Any:
    """Return the sum of ``ln(q+k)^n (q+k)^-x`` over k = 0, 1, …, for x > 1 and q > 0, else nan.

    For ``n`` = 0 this is Hurwitz's zeta function.
    """
    wide_x, wide_q = (each.astype(np.float64) for each in np.broadcast_arrays(x, q))
    total = np.zeros_like(wide_x)
    for k in range(TERMS):
        t = wide_q + k
        total += np.log(t) ** n * t**-wide_x
    t = wide_q + TERMS
    log = np.log(t)
    total += log**n * t**-wide_x / 2
    for i in range(n + 1):
        total += math.perm(n, i) * log ** (n - i) * t ** (1 - wide_x) / (wide_x - 1) ** (i + 1)
    # The derivative of order m of the term is t^(-x-m) times a polynomial of the logarithm.
    slopes = [np.zeros_like(wide_x) for _ in range(n)] + [np.ones_like(wide_x)]
    for m in range(2 * CORRECTIONS - 1):
        raised = [(i + 1) * slopes[i + 1] for i in range(n)] + [np.zeros_like(wide_x)]
        slopes = [up - (wide_x + m) * each for up, each in zip(raised, slopes, strict=True)]
        if m % 2 == 0:
            polynomial = sum(each * log**i for i, each in enumerate(slopes))
            total -= _bernoulli()[m // 2] * polynomial * t ** (-wide_x - m - 1)
    return np.where((wide_x > 1) & (wide_q > 0), total, np.nan).astype(x.dtype)


__all__ = ["gamma_moment", "zeta_sum"]
