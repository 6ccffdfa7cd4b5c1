"""Elementwise functions of the array API standard: a table, and those that differ from PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import retrograd as torch
from retrograd import Tensor

from ._dtypes import (
    ANY,
    BOOL,
    BOOL_OR_INTEGRAL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    check,
    promoted,
)


def sign(x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        return torch.sgn(x)
    return torch.where(torch.isnan(x), x, torch.sign(x)) if x.dtype.is_floating_point else torch.sign(x)


def round(x: Tensor) -> Tensor:
    return torch.complex(torch.round(x.real), torch.round(x.imag)) if x.dtype.is_complex else torch.round(x)


def expm1(x: Tensor) -> Tensor:
    if not x.dtype.is_complex:
        return torch.expm1(x)
    # exp(a + bi) - 1 without cancellation near 0. Where the formula gives NaN for infinite parts, exp is right.
    half = torch.sin(x.imag / 2)
    shifted = torch.exp(x)
    real = torch.expm1(x.real) * torch.cos(x.imag) - 2 * half * half
    real = torch.where(torch.isfinite(x), real + 0.0, shifted.real - 1)
    return torch.complex(real, shifted.imag)


def tanh(x: Tensor) -> Tensor:
    result = torch.tanh(x)
    if not x.dtype.is_complex:
        return result
    limit = torch.isinf(x.real) & torch.isfinite(x.imag)  # the sign of the zero is that of sin(2b) otherwise
    return torch.where(limit, torch.complex(result.real, torch.copysign(torch.zeros_like(x.imag), x.imag)), result)


def floor_divide(x1: Tensor, x2: Tensor) -> Tensor:
    quotient = torch.floor_divide(x1, x2)
    if not x1.dtype.is_floating_point:
        return quotient
    return torch.where(torch.isinf(x1) | torch.isinf(x2), torch.floor(x1 / x2), quotient)


def remainder(x1: Tensor, x2: Tensor) -> Tensor:
    rest = torch.remainder(x1, x2)
    return torch.where(rest == 0, torch.copysign(rest, x2), rest) if x1.dtype.is_floating_point else rest


#: Functions of one array: the kinds of dtypes that they take, and PyTorch's function if it has another name or
#: differs.
UNARY: dict[str, tuple[tuple[str, ...], Callable[[Any], Any] | None]] = {
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "log1p", "log2", "log10",
         "reciprocal", "sin", "sinh", "sqrt", "tan"),
        (FLOATING, None),
    ),
    **dict.fromkeys(("abs", "negative", "positive", "square", "isfinite", "isinf", "isnan"), (NUMERIC, None)),
    **dict.fromkeys(("ceil", "floor", "trunc"), (REAL, None)),
    "bitwise_invert": (BOOL_OR_INTEGRAL, torch.bitwise_not),
    "conj": (NUMERIC, torch.conj_physical),
    "expm1": (FLOATING, expm1),
    "imag": ((COMPLEX,), None),
    "logical_not": ((BOOL,), None),
    "real": (NUMERIC, None),
    "round": (NUMERIC, round),
    "sign": (NUMERIC, sign),
    "signbit": ((REAL_FLOATING,), None),
    "tanh": (FLOATING, tanh),
}  # fmt: skip
#: Functions of two arrays, or of an array and a Python scalar.
BINARY: dict[str, tuple[tuple[str, ...], Callable[[Any, Any], Any] | None]] = {
    **dict.fromkeys(("add", "multiply", "pow", "subtract"), (NUMERIC, None)),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), ((REAL_FLOATING,), None)),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (BOOL_OR_INTEGRAL, None)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (INTEGRAL, None)),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal", "maximum", "minimum"), (REAL, None)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), ((BOOL,), None)),
    "divide": (FLOATING, None),
    "equal": (ANY, torch.eq),
    "floor_divide": (REAL, floor_divide),
    "not_equal": (ANY, None),
    "remainder": (REAL, remainder),
}

#: What the functions return, for their docstrings.
RESULTS = {
    "abs": "the absolute value of each element",
    "acos": "the inverse cosine of each element",
    "acosh": "the inverse hyperbolic cosine of each element",
    "asin": "the inverse sine of each element",
    "asinh": "the inverse hyperbolic sine of each element",
    "atan": "the inverse tangent of each element",
    "atanh": "the inverse hyperbolic tangent of each element",
    "bitwise_invert": "each element with all bits inverted",
    "ceil": "the smallest integer that is not less than each element",
    "conj": "the complex conjugate of each element",
    "cos": "the cosine of each element",
    "cosh": "the hyperbolic cosine of each element",
    "exp": "the exponential of each element",
    "expm1": "``exp(x) - 1`` of each element, accurate near zero",
    "floor": "the largest integer that is not greater than each element",
    "imag": "the imaginary part of each element",
    "isfinite": "whether each element is finite",
    "isinf": "whether each element is infinite",
    "isnan": "whether each element is NaN",
    "log": "the natural logarithm of each element",
    "log10": "the logarithm to base 10 of each element",
    "log1p": "``log(1 + x)`` of each element, accurate near zero",
    "log2": "the logarithm to base 2 of each element",
    "logical_not": "the logical NOT of each element",
    "negative": "the negative of each element",
    "positive": "each element unchanged",
    "real": "the real part of each element",
    "reciprocal": "the reciprocal of each element",
    "round": "each element rounded to the nearest integer, halves to the even one",
    "sign": "the sign of each element",
    "signbit": "whether the sign bit of each element is set",
    "sin": "the sine of each element",
    "sinh": "the hyperbolic sine of each element",
    "sqrt": "the square root of each element",
    "square": "the square of each element",
    "tan": "the tangent of each element",
    "tanh": "the hyperbolic tangent of each element",
    "trunc": "each element rounded towards zero",
    "add": "the sum of ``x1`` and ``x2`` for each element",
    "atan2": "the angle of the point (``x2``, ``x1``) for each element",
    "bitwise_and": "the bitwise AND of ``x1`` and ``x2`` for each element",
    "bitwise_left_shift": "the bits of each element of ``x1`` shifted left by ``x2`` places",
    "bitwise_or": "the bitwise OR of ``x1`` and ``x2`` for each element",
    "bitwise_right_shift": "the bits of each element of ``x1`` shifted right by ``x2`` places",
    "bitwise_xor": "the bitwise XOR of ``x1`` and ``x2`` for each element",
    "copysign": "the magnitude of each element of ``x1`` with the sign of ``x2``",
    "divide": "the quotient of ``x1`` and ``x2`` for each element",
    "equal": "whether each element of ``x1`` equals that of ``x2``",
    "floor_divide": "the quotient of ``x1`` and ``x2`` rounded down, for each element",
    "greater": "whether each element of ``x1`` is greater than that of ``x2``",
    "greater_equal": "whether each element of ``x1`` is greater than or equal to that of ``x2``",
    "hypot": "the square root of ``x1**2 + x2**2`` for each element",
    "less": "whether each element of ``x1`` is less than that of ``x2``",
    "less_equal": "whether each element of ``x1`` is less than or equal to that of ``x2``",
    "logaddexp": "``log(exp(x1) + exp(x2))`` for each element",
    "logical_and": "the logical AND of ``x1`` and ``x2`` for each element",
    "logical_or": "the logical OR of ``x1`` and ``x2`` for each element",
    "logical_xor": "the logical XOR of ``x1`` and ``x2`` for each element",
    "maximum": "the larger of ``x1`` and ``x2`` for each element",
    "minimum": "the smaller of ``x1`` and ``x2`` for each element",
    "multiply": "the product of ``x1`` and ``x2`` for each element",
    "nextafter": "the next floating-point number after each element of ``x1`` towards ``x2``",
    "not_equal": "whether each element of ``x1`` differs from that of ``x2``",
    "pow": "``x1`` raised to the power ``x2`` for each element",
    "remainder": "the remainder of ``x1`` divided by ``x2`` for each element, with the sign of ``x2``",
    "subtract": "the difference of ``x1`` and ``x2`` for each element",
}


def _unary(name: str, kinds: tuple[str, ...], function: Callable[[Any], Any]) -> Callable[[Tensor], Tensor]:
    def apply(x: Tensor, /) -> Tensor:
        check(name, kinds, x)
        return function(x)

    return apply


def _binary(name: str, kinds: tuple[str, ...], function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Tensor]:
    def apply(x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
        return function(*promoted(name, kinds, x1, x2))

    return apply


def _declared() -> dict[str, Callable[..., Tensor]]:
    """Return the functions of both tables by name."""
    functions: dict[str, Callable[..., Tensor]] = {}
    for name, (kinds, own) in UNARY.items():
        functions[name] = _unary(name, kinds, own or getattr(torch, name))
    for name, (kinds, of_two) in BINARY.items():
        functions[name] = _binary(name, kinds, of_two or getattr(torch, name))
    for name, function in functions.items():
        function.__name__ = function.__qualname__ = name
        function.__module__ = __package__
        function.__doc__ = f"Return {RESULTS[name]}."
    return functions


FUNCTIONS = _declared()


def clip(x: Tensor, /, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Return the elements of ``x``, limited to the interval from ``min`` to ``max``, in the dtype of ``x``."""
    check("clip", REAL, x)
    limits = []
    for limit in (min, max):
        if isinstance(limit, float) and math.isnan(limit):
            limit = torch.asarray(limit, dtype=x.dtype, device=x.device)  # PyTorch ignores a limit that is nan
        if isinstance(limit, Tensor):
            limit = promoted("clip", REAL, x, limit)[1].to(x.dtype)
        limits.append(limit)
    lower, upper = limits
    if not x.dtype.is_floating_point:  # a limit may be outside the range of the dtype
        info = torch.iinfo(x.dtype)
        lower = None if isinstance(lower, int) and lower <= info.min else lower
        upper = None if isinstance(upper, int) and upper >= info.max else upper
    if lower is None and upper is None:
        return x.clone()
    if isinstance(lower, Tensor) or isinstance(upper, Tensor):
        lower, upper = (
            torch.asarray(each, dtype=x.dtype, device=x.device) if isinstance(each, int | float) else each
            for each in (lower, upper)
        )
    return torch.clamp(x, lower, upper)
