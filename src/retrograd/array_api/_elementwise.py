"""Elementwise functions of the array API standard: a table, and those that differ from PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import retrograd as torch
from retrograd import Tensor

from ._dtypes import (
    ANY,
    BITS,
    BOOL,
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
    "bitwise_invert": (BITS, torch.bitwise_not),
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
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), (BITS, None)),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), (INTEGRAL, None)),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal", "maximum", "minimum"), (REAL, None)),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), ((BOOL,), None)),
    "divide": (FLOATING, None),
    "equal": (ANY, torch.eq),
    "floor_divide": (REAL, floor_divide),
    "not_equal": (ANY, None),
    "remainder": (REAL, remainder),
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
        function.__doc__ = f"``{name}`` of the array API standard, elementwise."
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
