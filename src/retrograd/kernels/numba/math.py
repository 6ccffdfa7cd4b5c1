"""Scalar functions for Numba loops: exp, log, log1p, erf, sigmoid, tanh, the normal CDF, and element access.

For float32 the functions are computed by polynomials, which compile to vector instructions; for float64 they are libm's
functions. The coefficients were fitted by weighted least squares, iterated towards the smallest maximum error (Lawson
1961). Bounds of the errors, in units in the last place of float32: exp 0.7, erf 1.6, sigmoid 2.0, tanh 2, log 1
(tests/unit/test_numba_kernels.py).
"""

from __future__ import annotations

import math
from typing import Any

import numpy
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

OPTIONS = {"forceinline": True, "error_model": "numpy", "fastmath": {"contract"}}
F = numpy.float32
#: Adding this to a float32 rounds it to an integer, which is then in the low bits of the sum.
WHOLE = F(12582912.0)
LOG2E, LN2_HIGH, LN2_LOW = F(1.44269504), F(0.693359375), F(-2.12194440e-4)
ROOT_HALF = math.sqrt(0.5)
DENSITY = 1 / math.sqrt(2 * math.pi)


def scalar(name: str) -> Any:
    """Return a scalar function called ``name`` that can be called only in compiled loops; Python calls raise TypeError.

    The compiled implementations for float32 and float64 are registered by :func:`forms`.
    """

    def only_in_loops(*args: Any) -> Any:
        raise TypeError(f"{name} exists in compiled loops only")

    only_in_loops.__name__ = only_in_loops.__qualname__ = name
    return only_in_loops


like, exp, decay, decay_less_one, log1p = (scalar(name) for name in ("like", "exp", "decay", "decay_less_one", "log1p"))
sigmoid, erf, normal_cdf, tanh, log = (scalar(name) for name in ("sigmoid", "erf", "normal_cdf", "tanh", "log"))


def part(function: Any) -> Any:
    """Return ``function``, a scalar function of float32, compiled by Numba so that it is inlined in its callers."""
    return njit(function, **OPTIONS)


def forms(function: Any, single: Any, double: Any) -> None:
    """Register the compiled implementations of ``function``, a function of one argument from :func:`scalar`.

    Compiled loops call ``single`` for a float32 and ``double`` for a float64.
    """

    def choose(x):  # type: ignore[no-untyped-def]
        return single if x == types.float32 else double if x == types.float64 else None

    single.__annotations__ = double.__annotations__ = {}  # Numba compares the signatures
    overload(function, jit_options=OPTIONS)(choose)


@overload(like, jit_options=OPTIONS)
def _like(x, value):  # type: ignore[no-untyped-def]
    if x == types.float32:
        return lambda x, value: numpy.float32(value)
    return (lambda x, value: numpy.float64(value)) if x == types.float64 else None


def at(x: Any, i: Any) -> Any:
    """Return ``x[i]`` if ``x`` is an array, or ``x`` itself if ``x`` is a number."""
    raise TypeError("exists in compiled loops only")


@overload(at, jit_options=OPTIONS)
def _at(x, i):  # type: ignore[no-untyped-def]
    return (lambda x, i: x[i]) if isinstance(x, types.Array) else (lambda x, i: x)


def row(x: Any, r: Any) -> Any:
    """Return row ``x[r]`` if ``x`` is a matrix, or ``x`` itself if ``x`` is a number."""
    raise TypeError("exists in compiled loops only")


@overload(row, jit_options=OPTIONS)
def _row(x, r):  # type: ignore[no-untyped-def]
    return (lambda x, r: x[r]) if isinstance(x, types.Array) else (lambda x, r: x)


def shared(x: Any, r: Any) -> Any:
    """Return the element or row of ``x`` that broadcasting combines with row r of a matrix.

    If ``x`` is a matrix, its only row is combined with all rows, and the result is ``x[0]``. If ``x`` is 1-d, it has
    one number for each row, and the result is ``x[r]``.
    """
    raise TypeError("exists in compiled loops only")


@overload(shared, jit_options=OPTIONS)
def _shared(x, r):  # type: ignore[no-untyped-def]
    return (lambda x, r: x[0]) if x.ndim == 2 else (lambda x, r: x[r])


@intrinsic
def larger(typing: Any, x: Any, y: Any) -> Any:
    """Return the larger of ``x`` and ``y``, or nan if either is nan.

    This compiles to one instruction, also in vector registers. Numba passes ``typing``; callers leave it out.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = args[0].type
        form = ir.FunctionType(kind, [kind, kind])
        return builder.call(builder.module.declare_intrinsic("llvm.maximum", [kind], form), args)

    return x(x, x), generate


@intrinsic(prefer_literal=True)
def power_of_two(typing: Any, shifted: Any, part: Any) -> Any:
    """Return ``2**n`` as a float32, where n is the integer in the low bits of ``shifted``.

    ``shifted`` is the sum of the constant WHOLE and a number; the sum is rounded so that its low bits hold the number
    as an integer. If ``part`` is 0, n must be from -126 to 127. For other n, the power is the product of the results
    for ``part`` = 1 and ``part`` = 2. Numba passes ``typing``; callers leave it out.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        power = builder.sub(builder.bitcast(args[0], word), word(0x4B400000))
        if part.literal_value:
            half = builder.ashr(power, word(1))
            power = half if part.literal_value == 1 else builder.sub(power, half)
        return builder.bitcast(builder.shl(builder.add(power, word(127)), word(23)), ir.FloatType())

    return types.float32(types.float32, part), generate


def _exp_single(x: Any) -> Any:
    # exp(x) = 2**n exp(r) with |r| <= ln(2) / 2. Beyond the bounds the result is 0 or infinity; nan passes through.
    x = min(max(x, F(-104)), F(89))
    shifted = x * LOG2E + WHOLE
    n = shifted - WHOLE
    # r and then 1 + r are represented as sums of two numbers; otherwise the error is 0.97 units in the last place.
    rough = x - n * LN2_HIGH
    r = rough - n * LN2_LOW
    near = F(1) + r
    rest = (r - (near - F(1))) + ((rough - r) - n * LN2_LOW)
    y = near + (_exp_rest(r) * (r * r) + rest)
    return y * power_of_two(shifted, 1) * power_of_two(shifted, 2)


@part
def _exp_rest(r: Any) -> Any:
    """Return ``(exp(r) - 1 - r) / r**2`` for small ``r``, computed by a polynomial."""
    p = F(1.978926593437791e-4)
    p = p * r + F(1.3945752289146185e-3)
    p = p * r + F(8.33350419998169e-3)
    p = p * r + F(4.166628047823906e-2)
    p = p * r + F(0.1666666567325592)
    return p * r + F(0.5)


forms(exp, _exp_single, lambda x: math.exp(x))


@part
def _fade(x: Any) -> Any:
    """Return ``exp(max(x, -87))`` for a float32 ``x`` <= 0, with an error of at most 1 unit in the last place."""
    x = max(x, F(-87))
    shifted = x * LOG2E + WHOLE
    n = shifted - WHOLE
    r = (x - n * LN2_HIGH) - n * LN2_LOW
    return (_exp_rest(r) * (r * r) + r + F(1)) * power_of_two(shifted, 0)


def _decay_single(x: Any) -> Any:
    return F(0) if x < F(-87) else _fade(x)


forms(decay, _decay_single, lambda x: math.exp(x))


def _sigmoid_single(x: Any) -> Any:
    return F(1) / (F(1) + exp(-x))


forms(sigmoid, _sigmoid_single, lambda x: 1.0 / (1.0 + math.exp(-x)))


@part
def _tail(u: Any, density: Any) -> Any:
    """Return the probability that a standard normal variable exceeds ``u`` >= 0, with a relative error of 6e-8.

    ``density`` must be ``exp(-u * u / 2)``.
    """
    t = F(1) / (F(1) + F(0.3) * u)
    p = F(0.038397304713726044)
    p = p * t + F(-0.16925844550132751)
    p = p * t + F(0.2288506031036377)
    p = p * t + F(-0.07672406733036041)
    p = p * t + F(0.14268556237220764)
    p = p * t + F(0.0946197509765625)
    p = p * t + F(0.1219366192817688)
    p = p * t + F(0.11948541551828384)
    p = p * t + F(7.301860932784621e-06)
    return density * p


def _cdf_single(x: Any) -> Any:
    u = abs(x)
    tail = _tail(u, decay(F(-0.5) * (u * u)))
    return F(1) - tail if x > 0 else tail


forms(normal_cdf, _cdf_single, lambda x: 0.5 * math.erfc(-x * ROOT_HALF))


def _erf_single(x: Any) -> Any:
    a = abs(x)
    square = a * a
    p = F(7.889119297033176e-05)
    p = p * square + F(-0.0008020841050893068)
    p = p * square + F(0.005189535208046436)
    p = p * square + F(-0.026854444295167923)
    p = p * square + F(0.11283600330352783)
    p = p * square + F(-0.3761262595653534)
    p = p * square + F(0.12837916612625122)
    far = F(1) - F(2) * _tail(a * F(1.4142135623730951), decay(-square))
    return x + x * p if a < F(1) else (far if x > 0 else -far)


forms(erf, _erf_single, lambda x: math.erf(x))


@part
def log_of(x: Any) -> Any:
    """Return the logarithm of ``x``, a positive float32 that is not subnormal and at most ``2**125``.

    The error is at most 1 unit in the last place. 0 and nan are not supported.
    """
    # x = 2**n m with m between sqrt(1/2) and sqrt(2).
    n = exponent_of(x)
    m = x * power_of_two(WHOLE - n, 0)
    f = m - F(1)
    p = F(7.0376836292e-2)
    p = p * f + F(-1.1514610310e-1)
    p = p * f + F(1.1676998740e-1)
    p = p * f + F(-1.2420140846e-1)
    p = p * f + F(1.4249322787e-1)
    p = p * f + F(-1.6668057665e-1)
    p = p * f + F(2.0000714765e-1)
    p = p * f + F(-2.4999993993e-1)
    p = p * f + F(3.3333331174e-1)
    square = f * f
    y = p * f * square + n * LN2_LOW
    return (f + (y - F(0.5) * square)) + n * LN2_HIGH


@intrinsic
def exponent_of(typing: Any, x: Any) -> Any:
    """Return, as a float32, the integer n for which ``x / 2**n`` is between sqrt(1/2) and sqrt(2).

    Numba passes ``typing``; callers leave it out.
    """

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        bits = builder.sub(builder.bitcast(args[0], word), word(0x3F3504F3))
        return builder.sitofp(builder.ashr(bits, word(23)), ir.FloatType())

    return types.float32(types.float32), generate


@part
def cosine_and_sine(x: Any) -> Any:
    """Return the cosine and the sine of ``x``, a float32 from 0 to 2 pi, with errors below 1e-7."""
    # The nearest multiple of pi / 2 is subtracted in three parts; odd multiples exchange sine and cosine.
    n = (x * F(0.6366197723675814) + WHOLE) - WHOLE
    r = ((x - n * F(1.5703125)) - n * F(4.837512969970703e-4)) - n * F(7.54978995489188216e-8)
    square = r * r
    sine = F(-1.9515295891e-4) * square + F(8.3321608736e-3)
    sine = (sine * square + F(-1.6666654611e-1)) * square * r + r
    cosine = F(2.443315711809948e-5) * square + F(-1.388731625493765e-3)
    cosine = (cosine * square + F(4.166664568298827e-2)) * square * square - F(0.5) * square + F(1)
    odd = n == F(1) or n == F(3)
    first, second = (sine, cosine) if odd else (cosine, sine)
    return (-first if n == F(1) or n == F(2) else first), (-second if n == F(2) or n == F(3) else second)


def _decay_less_one_single(x: Any) -> Any:
    # 2**n exp(r) - 1 = 2**n (exp(r) - 1) + (2**n - 1), which does not cancel for small x.
    low = max(x, F(-87))
    shifted = low * LOG2E + WHOLE
    n = shifted - WHOLE
    r = (low - n * LN2_HIGH) - n * LN2_LOW
    scale = power_of_two(shifted, 0)
    return scale * (_exp_rest(r) * (r * r) + r) + (scale - F(1))


forms(decay_less_one, _decay_less_one_single, lambda x: math.expm1(x))


def _log1p_single(x: Any) -> Any:
    whole = F(1) + x
    far = whole > F(2.0**125)  # for these 2**-n would not be a normal number
    near = log_of(whole * F(2.0**-24) if far else whole)
    result = (
        near + (F(16.63553233343869) if far else F(0)) + (x - (whole - F(1))) / whole
    )  # the rounding error of the sum
    result = x if whole == F(math.inf) or x == F(0) else result  # keeps -0
    return result if whole > F(0) else (F(-math.inf) if whole == F(0) else F(math.nan))


forms(log1p, _log1p_single, lambda x: math.log1p(x))


def _tanh_single(x: Any) -> Any:
    # tanh(|x|) = -m / (2 + m) with m = exp(-2 |x|) - 1, which does not cancel for small x.
    m = decay_less_one(F(-2) * abs(x))
    return math.copysign(m / (F(2) + m), x)


forms(tanh, _tanh_single, lambda x: math.tanh(x))


def _log_single(x: Any) -> Any:
    tiny = x < F(1.17549435e-38)  # subnormal numbers are scaled to normal ones
    far = x > F(2.0**125)  # for these 2**-n would not be a normal number
    near = log_of(x * F(8388608) if tiny else x * F(2.0**-24) if far else x)
    result = near + (F(-15.942385) if tiny else F(16.63553233343869) if far else F(0))
    result = x if x == F(math.inf) else result
    return result if x > F(0) else (F(-math.inf) if x == F(0) else F(math.nan))


forms(log, _log_single, lambda x: math.log(x))


@njit(forceinline=True, fastmath={"contract", "reassoc", "nsz"})
def plus(total: Any, x: Any) -> Any:
    """Return ``total + x`` as one step of a sum whose additions the compiler may reorder for vector instructions.

    Other operations of the calling loop are not reordered.
    """
    return total + x
