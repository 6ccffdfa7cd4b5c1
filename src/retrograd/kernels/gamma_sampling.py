"""Kernels of _standard_gamma, _sample_dirichlet and of the gradients of their samples with respect to the parameters.

The samples are the same as PyTorch's for the same seed. The gradients are computed by implicit reparameterisation: the
derivative of a sample with respect to a parameter while the value of the distribution function at the sample stays
constant. The gradients are approximations with about three correct digits, by different formulas in different ranges.
The ranges and the coefficients in the tables are PyTorch's, so that the results agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy

from .random import Draws, Stream
from .scipy_backend import special

Array = Any
Regime = tuple[Array, Callable[..., Array]]

_THIRD, _SQUEEZE = numpy.float32(1) / numpy.float32(3), float(numpy.float32(0.0331))


# -- Sampling --------------------------------------------------------------------------------------------------------


def gamma(stream: Stream, alpha: Array) -> Array:
    """Return samples of gamma distributions with shape parameters ``alpha`` and rate 1, as float64.

    The samples are computed by rejection (Marsaglia and Tsang, "A simple method for generating gamma variables", 2000).
    For ``alpha`` < 1 the sample is drawn with ``alpha + 1`` and multiplied by a power of a uniform number. Values that
    PyTorch rounds to the dtype of ``alpha`` are rounded here too.
    """
    one = alpha.dtype.type(1)
    low = alpha < 1
    powers = numpy.where(low, one / alpha, one).astype(float).ravel().tolist()
    middles = (numpy.where(low, alpha + one, alpha) - alpha.dtype.type(_THIRD)).astype(float).ravel().tolist()
    elements = zip(alpha.ravel().tolist(), middles, powers, low.ravel().tolist(), strict=True)
    with stream.lock, closing(stream.one_by_one()) as draws, closing(_normals(stream, draws)) as normals:
        values = [
            math.nan if shape != shape else shape and _one_gamma(draws, normals, middle, power, below)
            for shape, middle, power, below in elements
        ]
    return numpy.asarray(values, float).reshape(alpha.shape)


def _normals(stream: Stream, draws: Draws) -> Draws:
    """Yield standard normal numbers, computed in pairs from the uniform numbers ``draws`` by the Box-Muller method.

    ``stream.kept`` holds the second number of a pair until it is yielded.
    """
    while True:
        if stream.kept is None:
            angle, radius = 2 * math.pi * next(draws), math.sqrt(-2 * math.log1p(-next(draws)))
            stream.kept = radius * math.sin(angle)
            yield radius * math.cos(angle)
        else:
            normal, stream.kept = stream.kept, None
            yield normal


def _one_gamma(draws: Draws, normals: Draws, middle: float, power: float, below: bool) -> float:
    """Return one sample of a gamma distribution, by Marsaglia and Tsang's rejection method.

    The shape parameter of the distribution is ``middle + 1/3``. If ``below`` is true, the sample is multiplied by a
    uniform random number to the power ``power``, which gives a sample for a shape parameter below 1. ``draws`` yields
    uniform random numbers, and ``normals`` yields standard normal numbers.
    """
    scale = (1 - next(draws)) ** power if below else 1.0
    spread = 1 / math.sqrt(9 * middle)
    while True:
        root = 0.0
        while root <= 0:
            normal = next(normals)
            root = 1 + spread * normal
        cube, square = root * root * root, normal * normal
        height = 1 - next(draws)
        if height < 1 - _SQUEEZE * square * square:
            return scale * middle * cube
        if math.log(height) < 0.5 * square + middle * (1 - cube + math.log(cube)):
            return scale * middle * cube


def standard_gamma(stream: Stream, alpha: Array) -> Array:
    """Return positive samples of gamma distributions with shape parameters ``alpha`` and rate 1.

    The samples have the dtype of ``alpha``. A sample of 0 is replaced by the smallest positive normal number.
    """
    return numpy.maximum(gamma(stream, alpha).astype(alpha.dtype), numpy.finfo(alpha.dtype).tiny)


def dirichlet(stream: Stream, alpha: Array) -> Array:
    """Return samples of Dirichlet distributions whose parameters are the vectors of ``alpha`` along the last axis.

    A sample is a vector of gamma samples divided by the sum of the vector.
    """
    drawn = gamma(stream, alpha.astype(float))
    shares = (drawn / drawn.sum(-1, keepdims=True)).astype(alpha.dtype)
    one = alpha.dtype.type(1)
    return numpy.clip(shares, numpy.finfo(alpha.dtype).tiny, numpy.nextafter(one, alpha.dtype.type(0)))


# -- Gradients of the draws by the parameters ------------------------------------------------------------------------


def _piecewise(np: Any, regimes: list[Regime], *operands: Array) -> Array:
    """Return for each element of ``operands`` the value of the first formula whose condition holds for that element.

    ``regimes`` is a list of pairs (condition, formula). A condition is a boolean array; a formula is called with ``np``
    and the elements of ``operands`` that the condition selects.
    """
    out, left = np.zeros(operands[0].shape), np.ones(operands[0].shape, bool)
    for condition, formula in regimes:
        chosen = left & condition
        if chosen.any():
            out[chosen] = formula(np, *(each[chosen] for each in operands))
        left &= ~condition
    return out


def _power_series(table: Any, *variables: Array) -> Array:
    """Return the polynomial of ``variables`` with the coefficients ``table``, which has one axis for each variable."""
    first, *rest = variables
    total: Array = 0.0
    for each in reversed(table):
        total = total * first + (_power_series(each, *rest) if rest else each)
    return total


# Numerator and denominator: coefficients by powers of log(alpha), then of log(x / alpha).
_GAMMA_TABLES = tuple(
    tuple(zip(*rows, strict=True))
    for rows in (
        (
            (0.16009398, -0.094634809, 0.025146376, -0.0030648343),
            (0.53487893, 0.1298071, 0.065735949, -0.0015649758),
            (0.040121004, -0.0065914022, -0.0026286047, -0.0013441777),
        ),
        (
            (1, 0.32668115, 0.10406089, 0.0014179084),
            (0.16639465, 0.020070113, -0.0035938915, -0.00058392623),
            (0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07),
        ),
    )
)


def standard_gamma_grad(np: Any, alpha: Array, x: Array) -> Array:
    """Return the derivative of ``x``, samples of gamma distributions with rate 1, with respect to the shape ``alpha``.

    The result has the dtype float64.
    """
    alpha, x = (each.astype(float) for each in np.broadcast_arrays(alpha, x))
    near = abs(x - alpha) <= 0.1 * alpha
    regimes: list[Regime] = [
        (x < 0.8, _gamma_near_zero),
        ((alpha > 8) & near, _gamma_near_mean),
        (alpha > 8, _gamma_saddle),
        (np.ones(x.shape, bool), _gamma_between),
    ]
    return _piecewise(np, regimes, alpha, x)


def _gamma_near_zero(np: Any, alpha: Array, x: Array) -> Array:
    """Return the derivative of gamma samples ``x`` with respect to ``alpha`` for small ``x``, by a power series."""
    weight, plain, squared = np.ones_like(x), 0.0, 0.0
    for k in range(6):
        weight = weight * -x / k if k else weight
        plain, squared = plain + weight / (alpha + k), squared + weight / (alpha + k) ** 2
    result = x * np.exp(x) * (squared - (np.log(x) - special(np, "psi", alpha)) * plain)
    return np.where(np.isnan(result), 0.0, result)


def _gamma_near_mean(np: Any, alpha: Array, x: Array) -> Array:
    """Return the derivative of gamma samples ``x`` with respect to ``alpha`` for ``x`` near the mean.

    Near the mean the saddle point expansion of :func:`_gamma_saddle` cannot be used, because it divides 0 by 0.
    """
    first = 1 + 24 * alpha + 288 * alpha**2
    second = 1440 * alpha**2 + 318 * x - 720 * x**2 - 65 * x**2 / alpha + 107 * alpha + 3600 * alpha * x
    return first * second / (1244160 * alpha**4)


def _gamma_saddle(np: Any, alpha: Array, x: Array) -> Array:
    """Return the derivative of gamma samples ``x`` with respect to ``alpha``, by Rice's saddle point expansion.

    The expansion is accurate for large ``alpha``.
    """
    gap, ratio, root = alpha - x, np.log(x / alpha), np.sqrt(8 * alpha)
    hump = np.sign(gap) * (-gap - alpha * ratio) ** -1.5
    slope = ratio * (root / gap - hump) - np.sqrt(2 / alpha) * (alpha + x) / gap**2
    return -(1 + 1 / (12 * alpha) + 1 / (288 * alpha**2)) * x * slope / root


def _gamma_between(np: Any, alpha: Array, x: Array) -> Array:
    """Return the derivative of gamma samples ``x`` with respect to ``alpha``, by a rational approximation.

    The approximation is for arguments outside of the ranges of the series and the saddle point expansion.
    """
    above, below = (_power_series(table, np.log(alpha), np.log(x / alpha)) for table in _GAMMA_TABLES)
    return np.exp(above / below)


# Numerator and denominator: coefficients by powers of log(x), log(alpha / x) and log(total) - log(alpha / x).
_BETA_TABLES = (
    (
        (
            (1.003668233, -0.01061107488, -0.0657888334, 0.01201642863),
            (0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033),
            (-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013),
        ),
        (
            (0.221950385, -0.3187676331, 0.01799915743, 0.01074823814),
            (-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057),
            (0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05),
        ),
        (
            (-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565),
            (0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181),
            (0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05),
        ),
    ),
    (
        (
            (1, -0.02924021934, -0.04438342661, 0.007285809825),
            (0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521),
            (-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149),
        ),
        (
            (0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273),
            (0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956),
            (-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05),
        ),
        (
            (0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05),
            (0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05),
            (-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06),
        ),
    ),
)


def dirichlet_grad(np: Any, x: Array, alpha: Array) -> Array:
    """Return the result of PyTorch's ``_dirichlet_grad``, from which the gradient of Dirichlet samples is computed.

    A sample is a vector along the last axis of ``x``. Each of its components has a beta distribution. The result for a
    component is the derivative of a sample of this beta distribution with respect to the same element of ``alpha``,
    divided by ``1 - x``. The dtype is float64.
    """
    alpha, x = (each.astype(float) for each in np.broadcast_arrays(alpha, x))
    total = np.broadcast_to(alpha.sum(-1, keepdims=True), alpha.shape)
    beta, edge = total - alpha, total * x * (1 - x)
    mean, spread = alpha / total, np.sqrt(alpha * beta / (total + 1)) / total
    both = (alpha > 6) & (beta > 6)
    regimes: list[Regime] = [
        ((x <= 0.5) & (edge < 2.5), _beta_near_zero),
        ((x >= 0.5) & (edge < 0.75), _beta_near_one),
        (both & (abs(x - mean) <= 0.1 * spread), _beta_near_mean),
        (both, _beta_saddle),
        (np.ones(x.shape, bool), _beta_between),
    ]
    return _piecewise(np, regimes, x, alpha, beta)


def _beta_near_zero(np: Any, x: Array, alpha: Array, beta: Array) -> Array:
    """Return the derivative of beta samples ``x`` with respect to ``alpha``, divided by ``1 - x``, for small ``x``.

    Helper of :func:`dirichlet_grad`, which selects one of five formulas for each element. ``alpha`` and ``beta`` are
    the parameters of the beta distributions. The formula is the power series of the distribution function.
    """
    slope = special(np, "psi", alpha) - special(np, "psi", alpha + beta) - np.log(x)
    weight, total = np.ones_like(x), 0.0
    for k in range(11):
        weight = weight * (k - beta) * x / k if k else weight
        total = total + weight / (alpha + k) * (slope + 1 / (alpha + k))
    result = x * (1 - x) ** -beta * total
    return np.where(np.isnan(result), 0.0, result)


def _beta_near_one(np: Any, x: Array, alpha: Array, beta: Array) -> Array:
    """Return the derivative of beta samples ``x`` with respect to ``alpha``, divided by ``1 - x``, for ``x`` near 1.

    Helper of :func:`dirichlet_grad`, which selects one of five formulas for each element. ``alpha`` and ``beta`` are
    the parameters of the beta distributions. The formula is the power series of the distribution function in ``1 - x``.
    """
    rest = 1 - x
    slope = special(np, "psi", alpha + beta) - special(np, "psi", alpha)
    weight, factor, moved = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    total = slope / beta
    for k in range(1, 9):
        weight = weight * -rest / k
        moved, factor = moved * (alpha - k) + factor, factor * (alpha - k)
        total = total + weight / (beta + k) * (moved + slope * factor)
    result = x ** (1 - alpha) * total
    return np.where(np.isnan(result), 0.0, result)


def _beta_near_mean(np: Any, x: Array, alpha: Array, beta: Array) -> Array:
    """Return the derivative of beta samples ``x`` with respect to ``alpha``, divided by ``1 - x``, near their means.

    Helper of :func:`dirichlet_grad`, which selects one of five formulas for each element. ``alpha`` and ``beta`` are
    the parameters of the beta distributions. The formula is used where the saddle point expansion of
    :func:`_beta_saddle` divides 0 by 0.
    """
    total, rest = alpha + beta, 1 - x
    powers = (
        47 * x * beta**4,
        (43 + 320 * x + 540 * beta * x) * beta**3,
        (177 + 540 * beta - 270 * x) * beta**2,
        (453 + 1620 * beta * rest - 455 * x) * beta,
        8 * rest * (135 * beta - 11),
    )
    above = (1 + 12 * alpha) * (1 + 12 * beta) * _power_series(powers, alpha)
    return above / (rest * total**2 * 12960 * alpha**3 * beta**2 * (1 + 12 * total))


def _stirling(x: Array) -> Array:
    """Return ``1 + 1 / (12 * x) + 1 / (288 * x**2)``, the first terms of Stirling's series of the gamma function."""
    return 1 + 1 / (12 * x) + 1 / (288 * x**2)


def _beta_saddle(np: Any, x: Array, alpha: Array, beta: Array) -> Array:
    """Return the derivative of beta samples ``x`` with respect to ``alpha``, divided by ``1 - x``.

    Helper of :func:`dirichlet_grad`, which selects one of five formulas for each element. ``alpha`` and ``beta`` are
    the parameters of the beta distributions. The formula is Rice's saddle point expansion, for large parameters.
    """
    total, rest = alpha + beta, 1 - x
    gap = beta * x - alpha * rest  # zero at the mean
    over, under = np.log(alpha / (total * x)), np.log(beta / (total * rest))
    slope = -(2 * alpha**2 * rest + alpha * beta * rest + x * beta**2) / (
        np.sqrt(2 * alpha / beta) * total**1.5 * gap**2
    )
    hump = np.sqrt(8 * alpha * beta / total) / gap - np.sign(gap) * (beta * under + alpha * over) ** -1.5
    corrected = _stirling(alpha) * _stirling(beta) / _stirling(total)
    return -corrected * x / np.sqrt(2 * alpha * beta / total) * (slope + 0.5 * over * hump)


def _beta_between(np: Any, x: Array, alpha: Array, beta: Array) -> Array:
    """Return the derivative of beta samples ``x`` with respect to ``alpha``, divided by ``1 - x``.

    Helper of :func:`dirichlet_grad`, which selects one of five formulas for each element. ``alpha`` and ``beta`` are
    the parameters of the beta distributions. The formula is a rational approximation, for arguments outside of the
    ranges of the other formulas.
    """
    u, total = np.log(x), alpha + beta
    a = np.log(alpha) - u
    above, below = (_power_series(table, u, a, np.log(total) - a) for table in _BETA_TABLES)
    return above / below * x * (special(np, "psi", total) - special(np, "psi", alpha)) / beta


__all__ = ["dirichlet", "dirichlet_grad", "gamma", "standard_gamma", "standard_gamma_grad"]
