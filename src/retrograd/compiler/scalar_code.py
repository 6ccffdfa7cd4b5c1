"""Tables of the expressions by which a fused loop computes one element of an operation's result.

An operation that is in none of the tables cannot be part of a loop. In the expressions, ``F`` is the dtype of the loop,
so that ``F(2)`` is a number of this dtype. Functions such as ``exp`` and ``sigmoid`` are defined in
``kernels/numba/math.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .typing import Parameters

#: Function from the parameters by name, and the operands' texts, to the text of the result's element.
Text = Callable[..., str]


def scalar_literal(value: object) -> str:
    """Return the number ``value`` as source text in the dtype of the loop, ``F``: ``F(2)`` for 2."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"F({'nan' if value != value else 'inf' if value > 0 else '-inf'})"
    return f"F({value!r})"


def _scaled(p: Parameters, text: str) -> str:
    return text if p["alpha"] == 1 else f"{scalar_literal(p['alpha'])} * {text}"


def _larger(a: str, b: str) -> str:
    return f"({a} if {a} > {b} or {a} != {a} else {b})"


def _smaller(a: str, b: str) -> str:
    return f"({a} if {a} < {b} or {a} != {a} else {b})"


def _bounded(p: Parameters, a: str, low: str = "min", high: str = "max") -> str:
    text = a
    if p[low] is not None:
        text = f"max({text}, {scalar_literal(p[low])})"
    return text if p[high] is None else f"min({text}, {scalar_literal(p[high])})"


def _within(p: Parameters, g: str, a: str) -> str:
    tests = [f"{a} >= {scalar_literal(p['min'])}"] * (p["min"] is not None) + [f"{a} <= {scalar_literal(p['max'])}"] * (
        p["max"] is not None
    )
    return f"({g} if {' and '.join(tests)} else F(0))"


POWERS: dict[float, str] = {
    1: "{0}", 2: "{0} * {0}", 3: "{0} * {0} * {0}", 0.5: "sqrt({0})", -1: "F(1) / {0}", -2: "F(1) / ({0} * {0})",
    4: "({0} * {0}) * ({0} * {0})", -0.5: "F(1) / sqrt({0})",
}  # fmt: skip


def _power(p: Parameters, a: str) -> str:
    return POWERS[p["exponent"]].format(a)


def _gelu(p: Parameters, a: str) -> str:
    if p["approximate"] == "none":
        return f"{a} * normal_cdf({a})"
    return f"F(0.5) * {a} * (F(1) + tanh(F({math.sqrt(2 / math.pi)!r}) * {a} * (F(1) + F(0.044715) * {a} * {a})))"


#: Operations whose results have the dtype of the loop.
EXPRESSIONS: dict[str, Text] = {
    "add": lambda p, a, b: f"{a} + {_scaled(p, b)}",
    "sub": lambda p, a, b: f"{a} - {_scaled(p, b)}",
    "rsub_number": lambda p, a, b: f"{b} - {_scaled(p, a)}",
    "rsub_tensor": lambda p, a, b: f"{b} - {_scaled(p, a)}",
    "mul": lambda p, a, b: f"{a} * {b}",
    "div_true": lambda p, a, b: f"{a} / {b}",
    "times_number": lambda p, a: f"{a} * {scalar_literal(p['number'])}",
    "by_number": lambda p, a: f"{a} / {scalar_literal(p['number'])}",
    "neg": lambda p, a: f"-{a}",
    "abs": lambda p, a: f"abs({a})",
    "square": lambda p, a: f"{a} * {a}",
    "sqrt": lambda p, a: f"sqrt({a})",
    "rsqrt": lambda p, a: f"F(1) / sqrt({a})",
    "reciprocal": lambda p, a: f"F(1) / {a}",
    "pow_scalar": _power,
    "exp": lambda p, a: f"exp({a})",
    "log": lambda p, a: f"log({a})",
    "log1p": lambda p, a: f"log1p({a})",
    "sin": lambda p, a: f"sin({a})",
    "cos": lambda p, a: f"cos({a})",
    "erf": lambda p, a: f"erf({a})",
    "tanh": lambda p, a: f"tanh({a})",
    "sigmoid": lambda p, a: f"sigmoid({a})",
    "sign": lambda p, a: f"(F(1) if {a} > 0 else F(-1) if {a} < 0 else F(0))",
    "sgn": lambda p, a: f"(F(1) if {a} > 0 else F(-1) if {a} < 0 else F(0))",
    "maximum": lambda p, a, b: _larger(a, b),
    "minimum": lambda p, a, b: _smaller(a, b),
    "clamp_low_tensor": lambda p, a, b: _larger(a, b),
    "clamp_high_tensor": lambda p, a, b: _smaller(a, b),
    "clamp_scalar": _bounded,
    "hardtanh": lambda p, a: _bounded(p, a, "min_val", "max_val"),
    "clamp_backward": _within,
    "addcmul": lambda p, a, b, c: f"{a} + {b} * {c}" if p["value"] == 1 else f"{a} + {scalar_literal(p['value'])} * {b} * {c}",
    "zeros_as": lambda p, a: "F(0)",
    "clone_block": lambda p, a: a,
    "tanh_backward": lambda p, g, y: f"{g} * (F(1) - {y} * {y})",
    "sigmoid_backward": lambda p, g, y: f"{g} * (F(1) - {y}) * {y}",
    "relu": lambda p, a: f"(F(0) if {a} < 0 else {a})",
    "threshold_backward": lambda p, g, a: f"(F(0) if {a} <= {scalar_literal(p['threshold'])} else {g})",
    "leaky_relu": lambda p, a: f"({a} if {a} > 0 else {a} * {scalar_literal(p['negative_slope'])})",
    "leaky_relu_backward": lambda p, g, a: f"({g} if {a} > 0 else {g} * {scalar_literal(p['negative_slope'])})",
    "gelu": _gelu,
    "silu": lambda p, a: f"{a} * sigmoid({a})",
    "mse_loss_backward": lambda p, g, a, b: f"(F(2) * ({a} - {b})) * ({g})",
    "where_block": lambda p, c, a, b: f"({a} if {c} else {b})",
    "where_else": lambda p, c, a: f"({a} if {c} else F(0))",
    "masked_product": lambda p, a, b: f"({b} if {b} == F(0) else {a} * {b})",
    "where_half": lambda p, g, a, b: f"({g} / F(2) if {a} == {b} else {g})",
    "masked_fill_scalar": lambda p, a, c: f"({scalar_literal(p['value'])} if {c} else {a})",
    "minimum_zero": lambda p, a: f"min({a}, F(0))",
    "native_dropout_block": lambda p, a, c: f"({a} * {scalar_literal(p['scale'])} if {c} else {a} * F(0))",
}  # fmt: skip
#: Operations with bool results; the last three also have bool operands.
BOOL_EXPRESSIONS: dict[str, Text] = {
    **{name: (lambda p, a, b, sign=sign: f"{a} {sign} {b}") for name, sign in
       {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items()},
    "isnan": lambda p, a: f"{a} != {a}",
    "logical_not": lambda p, a: f"not {a}",
    "logical_and": lambda p, a, b: f"{a} and {b}",
    "logical_or": lambda p, a, b: f"{a} or {b}",
}  # fmt: skip
#: Indices of the operands that are bool.
BOOL_OPERANDS = {"where_block": (0,), "where_else": (0,), "masked_fill_scalar": (1,), "native_dropout_block": (1,),
           "logical_not": (0,), "logical_and": (0, 1), "logical_or": (0, 1)}  # fmt: skip
#: Operations without a vectorised polynomial in float32: they are as slow as the C library's function.
UNVECTORIZED = frozenset({"sin", "cos"})


def _gelu_slope(p: Parameters, g: str, a: str, name: Callable[[str], str]) -> str:
    if p["approximate"] != "none":
        inner = name(f"F({math.sqrt(2 / math.pi)!r}) * ({a} + F(0.044715) * {a} * {a} * {a})")
        bent = name(f"tanh({inner})")
        slope = name(f"F({math.sqrt(2 / math.pi)!r}) * (F(1) + F({3 * 0.044715!r}) * {a} * {a})")
        return f"{g} * (F(0.5) * (F(1) + {bent}) + F(0.5) * {a} * (F(1) - {bent} * {bent}) * {slope})"
    density = name(f"decay(F(-0.5) * ({a} * {a})) * F({1 / math.sqrt(2 * math.pi)!r})")
    return f"{g} * (normal_cdf({a}) + {a} * {density})"


def _silu_slope(p: Parameters, g: str, a: str, name: Callable[[str], str]) -> str:
    share = name(f"sigmoid({a})")
    return f"{g} * ({share} * (F(1) + {a} * (F(1) - {share})))"


def _softplus(p: Parameters, a: str, name: Callable[[str], str]) -> str:
    scaled = name(f"{a} * {scalar_literal(p['beta'])}")
    soft = name(f"(max({scaled}, F(0)) + log1p(decay(-abs({scaled})))) / {scalar_literal(p['beta'])}")
    return f"({a} if {scaled} > {scalar_literal(p['threshold'])} else {soft})"


def _softplus_slope(p: Parameters, g: str, a: str, name: Callable[[str], str]) -> str:
    scaled = name(f"{a} * {scalar_literal(p['beta'])}")
    return f"({g} if {scaled} > {scalar_literal(p['threshold'])} else {g} * sigmoid({scaled}))"


def _elu(p: Parameters, a: str, name: Callable[[str], str]) -> str:
    left = name(
        f"{scalar_literal(p['alpha'] * p['scale'])} * decay_less_one(min({a}, F(0)) * {scalar_literal(p['input_scale'])})"
    )
    return f"({a} * {scalar_literal(p['scale'])} if {a} > 0 else {left})"


def _elu_slope(p: Parameters, g: str, a: str, name: Callable[[str], str]) -> str:
    factor = scalar_literal(p["alpha"] * p["scale"] * p["input_scale"])
    left = name(f"{factor} * decay(min({a}, F(0)) * {scalar_literal(p['input_scale'])})")
    return f"{g} * ({scalar_literal(p['scale'])} if {a} > 0 else {left})"


#: Operations with intermediate results, each of which ``name`` assigns to a local variable.
MULTI_STATEMENT: dict[str, Text] = {
    "gelu_backward": _gelu_slope, "silu_backward": _silu_slope, "softplus": _softplus, "softplus_backward": _softplus_slope,
    "elu": _elu, "elu_backward": _elu_slope,
}  # fmt: skip
