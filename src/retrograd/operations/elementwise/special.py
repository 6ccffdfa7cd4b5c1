"""Elementwise special functions: ``lgamma``, ``erf``, ``igamma``, ``xlogy``, Bessel functions, polynomials.

Most functions call SciPy, see ``kernels/scipy_backend.py``. Functions whose names begin with ``special_`` are public
only in ``retrograd.special``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import dtypes
from ...core.tensor import Tensor
from ...dispatch.declare import exported, op, pointwise, public
from ...dispatch.generic_path import modify
from ...kernels import elementwise, polynomials, special_derivatives
from ...kernels import scipy_backend as kernels
from ...kernels.scipy_backend import special

_ROOT_PI = math.sqrt(math.pi)

# -- Gamma functions -------------------------------------------------------------------------------------------------


@exported("special", "gammaln")
@pointwise(lambda F, g, self: g * F.digamma(self), floats=True, in_place="method", refuses=("lgamma_vml_cpu", "c"))
def lgamma(np: Any, self: Any, /) -> Any:
    """Return ``log(abs(Γ(self)))`` elementwise, where Γ is the gamma function.

    >>> import retrograd as torch
    >>> torch.lgamma(torch.tensor([1.0, 5.0]))
    tensor([0.0000, 3.1781])
    """
    return np.where(np.isinf(self), np.inf, special(np, "gammaln", self)).astype(self.dtype)


@exported("special", "digamma", "psi")
@pointwise(lambda F, g, self: g * F.polygamma(self, 1), floats=True, in_place="method", refuses=("digamma", "c"))
def digamma(np: Any, self: Any, /) -> Any:
    """Return the digamma function, the derivative of ``lgamma``, of each element of ``self``.

    >>> import retrograd as torch
    >>> torch.special.psi(torch.tensor([1.0, 2.0]))
    tensor([-0.5772,  0.4228])
    """
    return special(np, "psi", self)


@pointwise(
    lambda F, g, self, n: g * F.polygamma(self, n + 1),
    name="polygamma", floats=True, function=False, method=False, in_place=False,
    in_place_backward="PolygammaBackward1",
)  # fmt: skip
def polygamma_block(np: Any, self: Any, /, n: int) -> Any:
    """Return the ``n``-th derivative of the digamma function at each element of ``self``."""
    if self.dtype.kind == "c":
        raise dtypes.unsupported(("digamma", "trigamma", "polygamma")[min(n, 2)], self.dtype)
    if n == 0:
        return special(np, "psi", self)
    if n == 1:
        return _trigamma(np, self)
    sign = 1 if n % 2 else -1
    return (sign * math.gamma(n + 1.0) if n < 170 else sign * math.inf) * _hurwitz(np, self.dtype.type(n + 1), self)


def _hurwitz(np: Any, x: Any, q: Any) -> Any:
    """Return the Hurwitz zeta function: the sum of ``(k + q) ** -x`` over k from 0 to infinity, elementwise.

    As in PyTorch, the result is nan where ``q`` is infinity and ``x > 1``.
    """
    values = special(np, "zeta", x, q)
    return np.where((q == np.inf) & (x > 1), np.nan, values).astype(values.dtype)


def _trigamma(np: Any, x: Any) -> Any:
    """Return the trigamma function of ``x``, the derivative of the digamma function."""
    # Reflection at 1/2: π² / sin²(πx) = trigamma(x) + trigamma(1 - x).
    low = x < 0.5
    values = special(np, "zeta", x.dtype.type(2), np.where(low, 1 - x, x))
    return np.where(low, (np.pi / np.sin(np.pi * x)) ** 2 - values, values).astype(x.dtype)


def _order(n: Any) -> int:
    """Return ``n``, the order of a polygamma function, as an int.

    Raise TypeError if ``n`` is not an integer, and RuntimeError if ``n`` is negative.
    """
    if isinstance(n, bool) or not isinstance(n, (int, numpy.integer)):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return int(n)


@exported("special")
@public(method=False)
def polygamma(n: int, input: Tensor, *, out: Tensor | None = None) -> Any:
    """Return the ``n``-th derivative of the digamma function at each element of ``input``."""
    return polygamma_block(input, _order(n))


@public(function=False, name="polygamma")
def polygamma_method(input: Tensor, n: int) -> Any:
    """Return the ``n``-th derivative of the digamma function at each element of ``input``."""
    return polygamma_block(input, _order(n))


@public(function=False)
def polygamma_(input: Tensor, n: int) -> Tensor:
    """In-place version of :func:`polygamma`."""
    return modify(polygamma_block.op, (input,), (_order(n),))


def _mvlgamma_rule(F: Any, g: Any, self: Any, p: int) -> Any:
    total = F.digamma(self)
    for j in range(1, p):
        total = total + F.digamma(self - j / 2)
    return g * total


@op(backward="MvlgammaBackward0", opmath=True, function=False, method=False, vmap="leading")
def mvlgamma_block(np: Any, self: Any, /, p: int) -> Any:
    """Return the logarithm of the ``p``-dimensional multivariate gamma function of each element of ``self``.

    For an element a, this is ``p * (p - 1) / 4 * log(π)`` plus the sum of ``lgamma(a - i / 2)`` for i from 0 to
    ``p - 1``.
    """
    if self.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    if p > 2**31:  # PyTorch needs memory for p numbers, this function time
        raise RuntimeError(f"DefaultCPUAllocator: can't allocate memory: you tried to allocate {p * 8} bytes.")
    if self.dtype.kind == "c":
        raise dtypes.unsupported("arange_cpu", self.dtype)
    if self.dtype.kind in "iu":
        self = self.astype(dtypes.default.floating.numpy)
    total = lgamma.op.kernel(np, self)
    for j in range(1, p):
        total = total + lgamma.op.kernel(np, self - self.dtype.type(j / 2))
    return total + self.dtype.type(p * (p - 1) / 4 * math.log(math.pi))


mvlgamma_block.derivative(self=_mvlgamma_rule)


@exported("special", "multigammaln")
@public()
def mvlgamma(input: Tensor, p: int, *, out: Tensor | None = None) -> Any:
    """Return the logarithm of the ``p``-dimensional multivariate gamma function of each element of ``input``.

    For an element a, this is ``p * (p - 1) / 4 * log(π)`` plus the sum of ``lgamma(a - i / 2)`` for i from 0 to
    ``p - 1``.

    >>> import retrograd as torch
    >>> torch.special.multigammaln(torch.tensor([2.0, 3.0]), 2)
    tensor([0.4516, 1.5502])
    """
    return mvlgamma_block(input, p)


@public(function=False)
def mvlgamma_(input: Tensor, p: int) -> Tensor:
    """In-place version of :func:`mvlgamma`."""
    if not input.is_floating_point() and not input.is_complex():
        raise RuntimeError(
            f"mvlgamma: result type {dtypes.scalar_name(input.dtype)} can't be cast to the desired output type "
            f"{dtypes.scalar_name(dtypes.default.floating)}"
        )
    return modify(mvlgamma_block.op, (input,), (p,))


@pointwise(
    lambda F, g, self, other, n: g * _gamma_moment_derivative(F, self, other, n),
    lambda F, g, self, other, n: _igamma_gradient(F, g, self, other) * (F.log(other) - F.digamma(self)) ** n,
    function=False, method=False, in_place=False, numbers=False,
)  # fmt: skip
def gamma_moment(np: Any, self: Any, other: Any, /, n: int) -> Any:
    """Return an expected value from which the derivatives of ``igamma(a, x)`` with respect to a are computed.

    This is the expected value of ``(log(T) - ψ(a)) ** n * I``, elementwise, where a is ``self``, x is ``other``, and ψ
    is the digamma function. T is a random variable that has the gamma distribution with shape a and rate 1. I is 1 if
    ``T < x``, else 0.
    """
    return special_derivatives.gamma_moment(np, self, other, n)


def _gamma_moment_derivative(F: Any, a: Any, x: Any, n: int) -> Any:
    """Return the derivative of ``gamma_moment(a, x, n)`` with respect to ``a``.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    below = 0 if n == 0 else F.igamma(a, x) if n == 1 else F.gamma_moment(a, x, n - 1)
    return F.gamma_moment(a, x, n + 1) - n * F.polygamma(a, 1) * below if n else F.gamma_moment(a, x, 1)


def _igamma_gradient(F: Any, g: Any, self: Any, other: Any) -> Any:
    """Return the gradient of ``igamma(self, other)`` with respect to ``other``.

    This is ``g``, the gradient of the result of ``igamma``, times the probability density at ``other`` of the gamma
    distribution with shape ``self`` and rate 1. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on
    arrays.
    """
    return g * F.exp((self - 1) * F.log(other) - other - F.lgamma(self))


def _at_the_ends(np: Any, order: Any, x: Any, values: Any, at_zero: int, at_infinity: int) -> Any:
    """Return ``values``, the results of ``igamma`` or ``igammac``, with PyTorch's results for operands that are nan.

    ``order`` and ``x`` are the first and the second operand. In three cases, PyTorch's result is not nan although an
    operand is nan. If ``order`` is nan and ``x`` is infinity, the result is ``at_infinity``. If ``order`` is nan and
    ``x`` is 0, it is ``at_zero``. If ``order`` is infinity and ``x`` is nan, it is also ``at_zero``.
    """
    # PyTorch tests for 0 and infinity before it tests for nan.
    no_order = order != order
    values = np.where(no_order & (x == 0), at_zero, np.where(no_order & (x == np.inf), at_infinity, values))
    return np.where((order == np.inf) & (x != x), at_zero, values).astype(order.dtype)


@exported("special", "gammainc")
@pointwise(
    lambda F, g, self, other: g * F.gamma_moment(self, other, 1), _igamma_gradient, refuses=("igamma_cpu", "bic"), numbers=False,
)  # fmt: skip
def igamma(np: Any, self: Any, other: Any, /) -> Any:
    """Return the regularized lower incomplete gamma function P(a, x), where a is ``self`` and x is ``other``.

    P(a, x) is ``1 / Γ(a)`` times the integral of ``t ** (a - 1) * exp(-t)`` over t from 0 to x.

    >>> import retrograd as torch
    >>> torch.special.gammainc(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor([0.6321, 0.2642])
    """
    return _at_the_ends(np, self, other, special(np, "gammainc", self, other), 0, 1)


@exported("special", "gammaincc")
@pointwise(
    lambda F, g, self, other: -g * F.gamma_moment(self, other, 1),
    lambda F, g, self, other: -_igamma_gradient(F, g, self, other),
    refuses=("igammac_cpu", "bic"), numbers=False,
)  # fmt: skip
def igammac(np: Any, self: Any, other: Any, /) -> Any:
    """Return the regularized upper incomplete gamma function Q(a, x), where a is ``self`` and x is ``other``.

    Q(a, x) is ``1 / Γ(a)`` times the integral of ``t ** (a - 1) * exp(-t)`` over t from x to infinity.

    >>> import retrograd as torch
    >>> torch.special.gammaincc(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0]))
    tensor([0.3679, 0.7358])
    """
    return _at_the_ends(np, self, other, special(np, "gammaincc", self, other), 1, 0)


# -- Error functions and normal probabilities ------------------------------------------------------------------------


@exported("special", "erf")
@pointwise(lambda F, g, self: g * (2 / _ROOT_PI * F.exp(-(self * self))), floats=True, refuses=("erf_vml_cpu", "c"))
def erf(np: Any, self: Any, /) -> Any:
    """Return the error function of each element of ``self``.

    The error function of x is ``2 / sqrt(π)`` times the integral of ``exp(-t²)`` over t from 0 to x.
    """
    return elementwise.erf(np, self)


@exported("special", "erfc")
@pointwise(lambda F, g, self: g * (-2 / _ROOT_PI * F.exp(-(self * self))), floats=True, refuses=("erfc_vml_cpu", "c"))
def erfc(np: Any, self: Any, /) -> Any:
    """Return ``1 - erf(self)``, the complementary error function, elementwise, accurate also for results close to 0."""
    return special(np, "erfc", self)


@exported("special", "erfinv")
@pointwise(
    lambda F, g, out: g * (_ROOT_PI / 2 * F.exp(out * out)), floats=True, in_place="method",
    refuses=("erfinv_vml_cpu", "c"),
)  # fmt: skip
def erfinv(np: Any, self: Any, /) -> Any:
    """Return the inverse of the error function at each element of ``self``.

    The result is infinite at -1 and 1, and nan outside [-1, 1].
    """
    return np.where(self == 0, self, special(np, "erfinv", self)).astype(self.dtype)  # preserves -0.0


def _hidden(*rules: Any, refuses: str, kinds: str = "c", **options: Any) -> Any:
    """Return a decorator that makes a function of arrays an elementwise function of ``retrograd.special``.

    ``rules`` are the derivative rules: functions that return the gradient of an operand. ``kinds`` holds the values of
    ``numpy.dtype.kind`` for which PyTorch's error is raised, for example "c" for complex dtypes. ``refuses`` is the
    name of PyTorch's kernel in the error message. ``options`` are further arguments of the decorator ``pointwise``.
    """
    options = {"function": False, "method": False, "in_place": False, **options}

    def declare(kernel: Any) -> Any:
        operation = pointwise(*rules, floats=True, refuses=(refuses, kinds), **options)(kernel)
        return exported("special", operation.op.name.removeprefix("special_"))(operation)

    return declare


@_hidden(lambda g, self, out: g * (2 * self * out - 2 / _ROOT_PI), refuses="erfcx_cpu", kinds="hc")
def special_erfcx(np: Any, self: Any, /) -> Any:
    """Return the scaled complementary error function ``exp(self²) * erfc(self)`` elementwise."""
    return special(np, "erfcx", self)


@_hidden(
    lambda F, g, self: g * (F.exp(self * self * -0.5) * (1 / math.sqrt(2 * math.pi))),
    refuses="erf_vml_cpu", backward="MulBackward1",
)  # fmt: skip
def special_ndtr(np: Any, self: Any, /) -> Any:
    """Return the cumulative distribution function of the standard normal distribution at each element of ``self``."""
    # Computed from 1 + erf as in PyTorch, although that is 0 far below 0.
    return (1 + special(np, "erf", self / self.dtype.type(math.sqrt(2)))) * self.dtype.type(0.5)


@_hidden(lambda F, g, out: g * (math.sqrt(2 * math.pi) * F.exp(out * out * 0.5)), refuses="ndtri_cpu", kinds="hc")
def special_ndtri(np: Any, self: Any, /) -> Any:
    """Return the quantile function of the standard normal distribution at each element of ``self``.

    The quantile function is the inverse of the cumulative distribution function, ``ndtr``.
    """
    return special(np, "ndtri", self)


@_hidden(
    lambda F, g, self: g * (math.sqrt(2 / math.pi) / F.special_erfcx(self * -math.sqrt(0.5))),
    refuses="log_ndtr_cpu", kinds="hc",
)  # fmt: skip
def special_log_ndtr(np: Any, self: Any, /) -> Any:
    """Return the logarithm of the cumulative distribution function of the standard normal distribution.

    The function is evaluated at each element of ``self``.
    """
    return special(np, "log_ndtr", self)


@_hidden(lambda F, g, self: g * (-F.log(self) - 1), refuses="entr_cpu")
def special_entr(np: Any, self: Any, /) -> Any:
    """Return the entropy term ``-self * log(self)`` elementwise.

    The result is 0 for 0, and minus infinity for negative elements.
    """
    inside = np.where(self > 0, self, 1)
    values = np.where(self > 0, -self * np.log(inside), np.where(self == 0, 0, -np.inf))
    return np.where(self != self, self, values).astype(self.dtype)


# -- Bessel functions ------------------------------------------------------------------------------------------------


def _tiny(F: Any, self: Any, dtype: Any) -> tuple[Any, Any]:
    """Return the tuple (mask, divisor) for derivatives that divide by ``self``.

    The mask is true where ``abs(self)`` is at most ``eps``, the machine epsilon of ``dtype``. A quotient would be
    inaccurate there. The mask is also true where ``self`` is nan. The divisor is ``eps`` where the mask is true, and
    ``self`` elsewhere. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    eps = dtypes.finfo(dtypes.dtype_of(dtype)).eps
    near = ~(F.abs(self) > eps)  # nan counts as near, as in PyTorch
    return near, F.masked_fill_scalar(self, near, eps)


def _i1_rule(F: Any, g: Any, self: Any, out: Any, self_dtype: Any) -> Any:
    near, safe = _tiny(F, self, self_dtype)
    return g * F.masked_fill_scalar(F.i0(safe) - out / safe, near, 0.5)


def _i1e_rule(F: Any, g: Any, self: Any, out: Any, self_dtype: Any) -> Any:
    near, safe = _tiny(F, self, self_dtype)
    return g * F.masked_fill_scalar(F.special_i0e(safe) - out * (F.sgn(safe) + F.reciprocal(safe)), near, 0.5)


@exported("special", "i0")
@pointwise(lambda F, g, self: g * F.special_i1(self), floats=True, refuses=("i0_vml_cpu", "c"))
def i0(np: Any, self: Any, /) -> Any:
    """Return the modified Bessel function of the first kind of order 0 of each element of ``self``."""
    return special(np, "i0", self)


@_hidden(
    lambda F, g, self, out: g * (F.special_i1e(self) - F.sgn(self) * out),
    backward="SpecialI0EBackward0", refuses="i0e_cpu",
)  # fmt: skip
def special_i0e(np: Any, self: Any, /) -> Any:
    """Return ``exp(-abs(self)) * i0(self)`` elementwise.

    ``i0`` is the modified Bessel function of the first kind of order 0.
    """
    return special(np, "i0e", self)


@_hidden(_i1_rule, refuses="i1_cpu")
def special_i1(np: Any, self: Any, /) -> Any:
    """Return the modified Bessel function of the first kind of order 1 of each element of ``self``."""
    return special(np, "i1", self)


@_hidden(_i1e_rule, backward="SpecialI1EBackward0", refuses="i1e_cpu")
def special_i1e(np: Any, self: Any, /) -> Any:
    """Return ``exp(-abs(self)) * i1(self)`` elementwise.

    ``i1`` is the modified Bessel function of the first kind of order 1.
    """
    return special(np, "i1e", self)


#: Functions without a derivative in PyTorch: the name, SciPy's name, the name of the argument, and the docstring.
_WITHOUT_DERIVATIVE = {
    "bessel_j0": ("j0", "input", "Elementwise Bessel function of the first kind of order 0."),
    "bessel_j1": ("j1", "input", "Elementwise Bessel function of the first kind of order 1."),
    "bessel_y0": ("y0", "input", "Elementwise Bessel function of the second kind of order 0."),
    "bessel_y1": ("y1", "input", "Elementwise Bessel function of the second kind of order 1."),
    "modified_bessel_i0": ("i0", "input", "Elementwise modified Bessel function of the first kind of order 0."),
    "modified_bessel_i1": ("i1", "input", "Elementwise modified Bessel function of the first kind of order 1."),
    "modified_bessel_k0": ("k0", "input", "Elementwise modified Bessel function of the second kind of order 0."),
    "modified_bessel_k1": ("k1", "input", "Elementwise modified Bessel function of the second kind of order 1."),
    "scaled_modified_bessel_k0": (
        "k0e",
        "x",
        "Elementwise ``exp(x)`` times the modified Bessel function K of order 0.",
    ),
    "scaled_modified_bessel_k1": (
        "k1e",
        "x",
        "Elementwise ``exp(x)`` times the modified Bessel function K of order 1.",
    ),
}


def _bessel(name: str, scipy_name: str, argument: str, doc: str) -> Any:
    """Define a Bessel function of ``retrograd.special``, with the name ``name``, and return it.

    ``scipy_name`` is the name of the function in ``scipy.special`` that computes the result. ``argument`` is the name
    of the parameter, "input" or "x". ``doc`` is the docstring of the function.
    """

    def of_input(np: Any, input: Any, /) -> Any:
        return special(np, scipy_name, input)

    def of_x(np: Any, x: Any, /) -> Any:
        return special(np, scipy_name, x)

    kernel = of_x if argument == "x" else of_input
    kernel.__doc__ = doc
    return _hidden(name=f"special_{name}", refuses=f"{name}_cpu", kinds="hc")(kernel)


for _name, _row in _WITHOUT_DERIVATIVE.items():
    _bessel(_name, *_row)


@_hidden(refuses="airy_ai_cpu", kinds="hc")
def special_airy_ai(np: Any, x: Any, /) -> Any:
    """Return the Airy function Ai of each element of ``x``."""
    return kernels.airy_ai(np, x)


@_hidden(refuses="spherical_bessel_j0_cpu", kinds="hc")
def special_spherical_bessel_j0(np: Any, x: Any, /) -> Any:
    """Return ``sin(x) / x``, the spherical Bessel function of the first kind of order 0, elementwise."""
    return kernels.spherical_bessel_j0(np, x)


# -- Orthogonal polynomials ------------------------------------------------------------------------------------------

#: By name: the kernel, its arguments ``kind`` and ``high`` (None: it has none), and the beginning of the docstring.
_POLYNOMIALS = {
    **{
        f"chebyshev_polynomial_{kind}": (polynomials.chebyshev, kind, high, f"Chebyshev polynomial of the {which} kind")
        for kind, high, which in (("t", 6, "first"), ("u", 8, "second"), ("v", 8, "third"), ("w", 8, "fourth"))
    },
    **{
        f"shifted_chebyshev_polynomial_{kind}": (
            polynomials.shifted_chebyshev, kind, high, f"Shifted Chebyshev polynomial (on [0, 1]) of the {which} kind"
        )
        for kind, high, which in (("t", 6, "first"), ("u", 6, "second"), ("v", 6, "third"), ("w", 4, "fourth"))
    },
    "hermite_polynomial_h": (polynomials.hermite_h, None, 0, "Physicist's Hermite polynomial"),
    "hermite_polynomial_he": (polynomials.hermite_he, None, 0, "Probabilist's Hermite polynomial"),
    "laguerre_polynomial_l": (polynomials.laguerre_l, None, 0, "Laguerre polynomial"),
    "legendre_polynomial_p": (polynomials.legendre_p, None, 0, "Legendre polynomial"),
}  # fmt: skip


def _polynomial(name: str, evaluate: Any, kind: str | None, high: int, title: str) -> Any:
    """Define an orthogonal polynomial of ``retrograd.special``, with the name ``name``, and return the function.

    The docstring of the function begins with ``title``, the name of the polynomial. For a Chebyshev polynomial,
    ``kind`` is its letter, such as "t" for T, and ``evaluate(np, kind, x, degree, high)`` computes the result. Above
    the degree ``high``, it is computed from an angle, for example T of degree n as ``cos(n * acos(x))``. For any other
    polynomial, ``kind`` is None, and ``evaluate(np, x, degree)`` computes the result.
    """

    def kernel(np: Any, x: Any, n: Any, /) -> Any:
        x, n = np.broadcast_arrays(x, n if hasattr(n, "dtype") else x.dtype.type(n))
        degree = n.astype(np.int64)
        return evaluate(np, x, degree) if kind is None else evaluate(np, kind, x, degree, high)

    kernel.__doc__ = f"{title} of degree ``n`` at ``x``, elementwise (0 for a negative ``n``)."
    return _hidden(name=f"special_{name}", refuses=f"{name}_cpu", kinds="hc")(kernel)


for _name, _polynomial_row in _POLYNOMIALS.items():
    _polynomial(_name, *_polynomial_row)

# -- Logarithms, and zeta --------------------------------------------------------------------------------------------


def _logit_rule(F: Any, g: Any, self: Any, eps: Any) -> Any:
    bounded = eps is not None and eps >= 0
    low, high = (eps, 1 - eps) if bounded else (0.0, 1.0)
    outside = (self < low) | (self > high)
    grad = g / (self * (1 - self) + 0.0)  # + 0.0 turns -0.0 into 0.0
    return F.masked_fill_scalar(grad, outside, 0 if bounded else math.nan)


@exported("special", "logit")
@pointwise(_logit_rule, floats=True, refuses=("logit_cpu", "c"))
def logit(np: Any, self: Any, /, eps: Any = None) -> Any:
    """Return ``log(self / (1 - self))`` elementwise.

    If ``eps`` is not None, the elements are first clamped to the range from ``eps`` to ``1 - eps``.
    """
    if eps is not None:
        low, high = self.dtype.type(eps), self.dtype.type(1) - self.dtype.type(eps)
        self = np.where(self < low, low, np.where(self > high, high, self))
    return np.log(self / (1 - self))


def _of_two(*rules: Any, name: str, backward: str, refuses: str, kinds: str = "c") -> Any:
    """Return a decorator that makes a function of two arrays three elementwise operations.

    The decorator returns the operations as a tuple: for two tensors, for a number and a tensor, and for a tensor and a
    number. Their names are ``name`` with a suffix. Their nodes in the autograd graph have the names ``backward``
    followed by Backward0, Backward1 and Backward2.

    ``rules`` are the derivative rules: functions that return the gradient of an operand. ``kinds`` holds the values of
    ``numpy.dtype.kind`` for which PyTorch's error is raised, for example "c" for complex dtypes. ``refuses`` is the
    name of PyTorch's kernel in the error message.
    """

    def declare(kernel: Any) -> tuple[Any, ...]:
        return tuple(
            pointwise(
                *rules, name=name + suffix, backward=f"{backward}Backward{number}", floats=True,
                refuses=(refuses, kinds), function=False, method=False, in_place=False,
            )(kernel)
            for number, suffix in enumerate(("_tensor", "_scalar", "_number"))
        )  # fmt: skip

    return declare


def _choose(blocks: tuple[Any, ...], input: Any, other: Any) -> Any:
    """Return the operation for the types of ``input`` and ``other``, which are tensors or numbers.

    ``blocks`` is the tuple of three operations that the decorator of :func:`_of_two` returns. Raise TypeError if both
    ``input`` and ``other`` are numbers.
    """
    if isinstance(input, Tensor):
        return blocks[0 if isinstance(other, Tensor) else 2]
    if isinstance(other, Tensor):
        return blocks[1]
    given = f"{type(input).__name__}, {type(other).__name__}"
    raise TypeError(
        f"{blocks[0].op.shown}() received an invalid combination of arguments - got ({given}), but expected one of:\n"
        " * (Tensor input, Tensor other, *, Tensor out = None)\n"
        " * (Number self, Tensor other, *, Tensor out = None)\n"
        " * (Tensor input, Number other, *, Tensor out = None)\n"
    )


@_of_two(
    lambda F, g, self, other: F.masked_fill_scalar(F.xlogy_tensor(g, other), (self == 0) & (other <= 0), 0),
    lambda g, self, other: g * self / other,
    name="xlogy", backward="Xlogy", refuses="xlogy_cpu",
)  # fmt: skip
def _xlogy(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self * log(other)`` elementwise.

    The result is 0 where ``self`` is 0 and ``other`` is not nan.
    """
    return special(np, "xlogy", self, other)


@exported("special")
@public()
def xlogy(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Return ``input * log(other)`` elementwise. One of ``input`` and ``other`` may be a number.

    The result is 0 where ``input`` is 0 and ``other`` is not nan.

    >>> import retrograd as torch
    >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 0.])
    """
    return _choose(_xlogy, input, other)(input, other)


@public()
def xlogy_(input: Tensor, other: Any) -> Tensor:
    """In-place version of :func:`xlogy`."""
    return modify(_choose(_xlogy, input, other).op, (input, other), ())


@_of_two(
    lambda F, g, self, other: F.masked_fill_scalar(F.special_xlog1py_tensor(g, other), (self == 0) & (other <= -1), 0),
    lambda g, self, other: g * self / (other + 1),
    name="special_xlog1py", backward="SpecialXlog1Py", refuses="xlog1py_cpu",
)  # fmt: skip
def _xlog1py(np: Any, self: Any, other: Any, /) -> Any:
    """Return ``self * log(1 + other)`` elementwise.

    The result is 0 where ``self`` is 0 and ``other`` is not nan.
    """
    return special(np, "xlog1py", self, other)


@pointwise(
    lambda F, g, self, other, n: -g * F.zeta_sum(self, other, n + 1),
    lambda F, g, self, other, n: g * (
        (n * F.zeta_sum(self + 1, other, n - 1) if n else 0) - self * F.zeta_sum(self + 1, other, n)
    ),
    function=False, method=False, in_place=False,
)  # fmt: skip
def zeta_sum(np: Any, self: Any, other: Any, /, n: int) -> Any:
    """Return the sum of ``log(k + other) ** n * (k + other) ** -self`` over k from 0 to infinity, elementwise.

    Except for the sign, this sum is the ``n``-th derivative of the Hurwitz zeta function with respect to ``self``.
    """
    x, q = (each if hasattr(each, "dtype") else np.asarray(each, np.float64) for each in (self, other))
    return special_derivatives.zeta_sum(np, x, q, n)


@_of_two(
    lambda F, g, self, other: -g * F.zeta_sum(self, other, 1),
    lambda F, g, self, other: g * (-self * F.special_zeta_tensor(self + 1, other)),
    name="special_zeta", backward="SpecialZeta", refuses="zeta_cpu", kinds="hc",
)  # fmt: skip
def _zeta(np: Any, self: Any, other: Any, /) -> Any:
    """Return the Hurwitz zeta function elementwise: the sum of ``(k + other) ** -self`` over k from 0 to infinity."""
    return _hurwitz(np, self, other)


@exported("special")
def xlog1py(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Return ``input * log(1 + other)`` elementwise. One of ``input`` and ``other`` may be a number.

    The result is 0 where ``input`` is 0 and ``other`` is not nan.
    """
    return _choose(_xlog1py, input, other)(input, other)


@exported("special")
def zeta(input: Any, other: Any, *, out: Tensor | None = None) -> Any:
    """Return the Hurwitz zeta function: the sum of ``(k + other) ** -input`` over k from 0 to infinity, elementwise.

    One of ``input`` and ``other`` may be a number.
    """
    return _choose(_zeta, input, other)(input, other)
