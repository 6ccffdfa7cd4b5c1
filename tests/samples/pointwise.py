"""Samples of element-by-element operations."""

from __future__ import annotations

from . import Sample, booleans, complexes, distinct, integers, normal, positive, unit

UNARY = {
    "abs": distinct, "neg": normal, "sign": distinct, "sgn": distinct, "exp": normal, "exp2": normal, "expm1": normal,
    "log": positive, "log2": positive, "log10": positive, "log1p": positive, "sqrt": positive, "rsqrt": positive,
    "square": normal, "reciprocal": positive, "sin": normal, "cos": normal, "tan": unit, "asin": unit, "acos": unit,
    "atan": normal, "sinh": normal, "cosh": normal, "tanh": normal, "asinh": normal, "atanh": unit, "sigmoid": normal,
    "relu": distinct, "floor": distinct, "ceil": distinct, "trunc": distinct, "frac": distinct, "round": distinct,
    "conj_physical": normal,
}  # fmt: skip
COMPLEX = ["neg", "exp", "log", "sqrt", "square", "reciprocal", "sin", "cos", "tanh", "sinh", "cosh", "tan", "sigmoid",
           "log2", "log10", "expm1", "abs", "sgn", "conj_physical", "rsqrt", "asin", "atan"]  # fmt: skip
BINARY = {
    "add": normal, "sub": normal, "mul": normal, "div": positive, "pow": positive, "atan2": positive,
    "maximum": normal, "minimum": normal, "fmax": normal, "fmin": normal, "fmod": positive,
    "remainder": positive, "logaddexp": normal, "hypot": positive, "copysign": distinct,
}  # fmt: skip
COMPARE = ["eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"]
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
IN_PLACE = [
    name for name in UNARY if name not in ("conj_physical", "asinh", "atanh")
]  # PyTorch fails on the latter two

SAMPLES: list[Sample] = []
for name, recipe in UNARY.items():
    SAMPLES += [
        Sample(name, f"torch.{name}(x)", x=recipe(2, 3)),
        Sample(name, f"x.t().{name}()", x=recipe(3, 2)),
        Sample(name, f"torch.{name}(x )", x=recipe()),
        Sample(name, f"torch.{name}(x  )", smooth=False, x=recipe(0, 3)),
    ]
for name in IN_PLACE:
    SAMPLES.append(Sample(name, f"x.clone().{name}_()", x=UNARY[name](2, 3)))
    if name == "relu":
        continue  # PyTorch's relu takes no out
    SAMPLES.append(
        Sample(name, f"torch.{name}(x, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=UNARY[name](3))
    )
SAMPLES.append(Sample("acosh", "torch.acosh(x + 1)", x=positive(3)))
SAMPLES += [Sample(name, f"torch.{name}(z)", z=complexes(3)) for name in COMPLEX]
for name in ("abs", "neg", "sign", "exp", "log", "sqrt", "sin", "square", "reciprocal", "sigmoid", "floor", "round",
             "relu", "tanh", "rsqrt"):  # fmt: skip
    SAMPLES.append(Sample(name, f"torch.{name}(i)", smooth=False, i=integers(1, 9, 2, 3)))
for name, recipe in BINARY.items():
    SAMPLES += [
        Sample(name, f"torch.{name}(x, y)", x=recipe(2, 3), y=recipe(2, 3)),
        Sample(name, f"torch.{name}(x, y )", x=recipe(2, 1), y=recipe(3)),
        Sample(name, f"x.{name}(y)", x=recipe(3, 2), y=recipe()),
    ]
for name in ("add", "sub", "mul", "div", "pow", "fmod", "remainder", "atan2", "hypot", "copysign"):
    SAMPLES.append(Sample(name, f"x.clone().{name}_(y)", x=BINARY[name](2, 3), y=BINARY[name](3)))
for name in ("add", "sub", "mul", "div", "pow"):
    SAMPLES.append(Sample(name, f"torch.{name}(z, w)", z=complexes(2, 2), w=complexes(2)))
    SAMPLES.append(Sample(name, f"torch.{name}(z, x)", z=complexes(2, 2), x=positive(2)))
    SAMPLES.append(Sample(name, f"torch.{name}(i, j)", smooth=False, i=integers(1, 9, 2, 3), j=integers(1, 4, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(i, x)", smooth=False, i=integers(1, 9, 2, 3), x=positive(3)))
    SAMPLES.append(Sample(name, f"torch.{name}(x, 2)", x=positive(2, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(x, 2.5)", x=positive(2, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(i, 2)", smooth=False, i=integers(1, 9, 2, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(i, 2.5)", smooth=False, i=integers(1, 9, 2, 3)))
    SAMPLES.append(Sample(name, f"torch.{name}(i, 2j)", smooth=False, i=integers(1, 9, 2, 3)))
for symbol in ("+", "-", "*", "/", "**", "//", "%"):
    smooth = symbol not in ("//", "%")
    SAMPLES += [
        Sample("operator", f"x {symbol} y", smooth=smooth, x=positive(2, 3), y=positive(3)),
        Sample("operator", f"x {symbol} 3", smooth=smooth, x=positive(2, 3)),
        Sample("operator", f"i {symbol} 3", smooth=False, i=integers(1, 9, 2, 3)),
        Sample("operator", f"i {symbol} j", smooth=False, i=integers(-9, 9, 2, 3), j=integers(1, 9, 3)),
        Sample("operator", f"b {symbol} i", smooth=False, b=booleans(3), i=integers(1, 9, 3)),
    ]
for symbol in ("+", "-", "*", "/", "**"):
    SAMPLES.append(Sample("operator", f"2.5 {symbol} x", x=positive(2, 3)))
    SAMPLES.append(Sample("operator", f"2 {symbol} i", smooth=False, i=integers(1, 5, 3)))
for symbol in ("&", "|", "^"):
    SAMPLES.append(Sample("operator", f"i {symbol} j", smooth=False, i=integers(0, 9, 3), j=integers(0, 9, 3)))
    SAMPLES.append(Sample("operator", f"b {symbol} c", smooth=False, b=booleans(4), c=booleans(4)))
    SAMPLES.append(Sample("operator", f"i {symbol} 3", smooth=False, i=integers(0, 9, 3)))
SAMPLES += [
    Sample("positive", "+x", x=normal(2, 3)),
    Sample("positive", "torch.positive(x)", x=normal(2, 3)),
    Sample("operator", "1 << i", smooth=False, i=integers(0, 9, 4)),
    Sample("operator", "64 >> i", smooth=False, i=integers(0, 6, 4)),
    Sample("operator", "~b", smooth=False, b=booleans(4)),
    Sample("operator", "~i", smooth=False, i=integers(0, 9, 4)),
    Sample("operator", "i << 2", smooth=False, i=integers(0, 9, 4)),
    Sample("operator", "i >> 1", smooth=False, i=integers(0, 9, 4)),
    Sample("add", "torch.add(x, y, alpha=2.5)", x=normal(2, 3), y=normal(3)),
    Sample("add", "x.clone().add_(y, alpha=-1)", x=normal(2, 3), y=normal(3)),
    Sample("add", "x.add(1, alpha=2)", x=normal(2, 3)),
    Sample("add", "x.float().add(1, alpha=2)", smooth=False, x=normal(2, 3)),
    Sample("sub", "torch.sub(x, y, alpha=2)", x=normal(2, 3), y=normal(3)),
    Sample("rsub", "torch.rsub(x, y)", x=normal(2, 3), y=normal(3)),
    Sample("rsub", "torch.rsub(x, 2.0, alpha=3)", x=normal(2, 3)),
    Sample("div", "torch.div(x, y, rounding_mode='floor')", smooth=False, x=normal(2, 3), y=positive(3)),
    Sample("div", "torch.div(x, y, rounding_mode='trunc')", smooth=False, x=normal(2, 3), y=positive(3)),
    Sample("div", "torch.div(i, j, rounding_mode='trunc')", smooth=False, i=integers(-9, 9, 6), j=integers(1, 4, 6)),
    Sample("div", "torch.div(i, j, rounding_mode='floor')", smooth=False, i=integers(-9, 9, 6), j=integers(1, 4, 6)),
    Sample("floor_divide", "torch.floor_divide(x, y)", smooth=False, x=normal(2, 3), y=positive(3)),
    Sample("true_divide", "torch.true_divide(x, y)", x=normal(2, 3), y=positive(3)),
    Sample("pow", "x ** 2", x=normal(2, 3)),
    Sample("pow", "x**3", x=normal(2, 3)),
    Sample("pow", "x ** 0", x=normal(2, 3)),
    Sample("pow", "x ** 1", x=normal(2, 3)),
    Sample("pow", "x ** -1", x=positive(2, 3)),
    Sample("pow", "x ** -2", x=positive(2, 3)),
    Sample("pow", "x ** 0.5", x=positive(2, 3)),
    Sample("pow", "x ** -0.5", x=positive(2, 3)),
    Sample("pow", "x.clone().pow_(2)", x=normal(2, 3)),
    Sample("pow", "i ** 2", smooth=False, i=integers(-4, 4, 5)),
    Sample("pow", "i ** 0.5", smooth=False, i=integers(1, 4, 5)),
    Sample("float_power", "torch.float_power(x, 2)", x=positive(3)),
    Sample("round", "torch.round(x, decimals=1)", smooth=False, x=normal(4)),
    Sample("round", "torch.round(x * 100, decimals=-1)", smooth=False, x=normal(4)),
    Sample("clamp", "torch.clamp(x, -0.4, 0.6)", x=normal(3, 4)),
    Sample("clamp", "torch.clamp(x, min=0.1)", x=normal(3, 4)),
    Sample("clamp", "x.clamp(max=0.1)", x=normal(3, 4)),
    Sample("clamp", "torch.clamp(x, y, w)", x=distinct(3, 4), y=normal(4), w=positive(3, 1)),
    Sample("clamp", "torch.clamp(x, min=y)", x=distinct(3, 4), y=normal(4)),
    Sample("clamp", "torch.clamp(x, max=y)", x=distinct(3, 4), y=normal(4)),
    Sample("clamp", "x.clone().clamp_(-0.3, 0.3)", x=normal(3, 4)),
    Sample("clamp", "torch.clamp(i, 2, 5)", smooth=False, i=integers(0, 9, 5)),
    Sample("clamp", "torch.clamp(i, 2.5)", smooth=False, i=integers(0, 9, 5)),
    Sample("lerp", "torch.lerp(x, y, w)", x=normal(2, 3), y=normal(2, 3), w=unit(3)),
    Sample("addcmul", "torch.addcmul(x, y, w, value=0.5)", x=normal(2, 3), y=normal(2, 3), w=normal(3)),
    Sample("addcmul", "x.clone().addcmul_(y, w)", x=normal(2, 3), y=normal(2, 3), w=normal(3)),
    Sample("addcdiv", "torch.addcdiv(x, y, w, value=2)", x=normal(2, 3), y=normal(2, 3), w=positive(3)),
    Sample("where", "torch.where(b, x, y)", b=booleans(2, 3), x=normal(2, 3), y=normal(3)),
    Sample("where", "torch.where(x > 0, x, 0.5)", x=distinct(2, 3)),
    Sample("where", "x.where(b, y)", b=booleans(3), x=normal(2, 3), y=normal()),
]
for name in COMPARE:
    SAMPLES += [
        Sample(name, f"torch.{name}(i, j)", smooth=False, i=integers(0, 3, 2, 3), j=integers(0, 3, 3)),
        Sample(name, f"torch.{name}(x, i)", smooth=False, x=distinct(2, 3), i=integers(0, 3, 3)),
    ]
for name in COMPARE[:6]:
    SAMPLES.append(Sample(name, f"x.{name}(0.25)", smooth=False, x=distinct(2, 3)))
    SAMPLES.append(Sample(name, f"x.clone().{name}_(0.25)", smooth=False, x=distinct(2, 3)))
SAMPLES += [
    Sample(name, f"torch.{name}(i, j)", smooth=False, i=integers(0, 9, 4), j=integers(0, 9, 4)) for name in BITS
]
SAMPLES += [
    Sample(name, f"torch.{name}(x / y)", smooth=False, x=integers(-1, 2, 6), y=integers(0, 2, 6))
    for name in ("isnan", "isinf", "isfinite", "isposinf", "isneginf", "signbit", "isreal", "logical_not")
]
SAMPLES += [
    Sample("isclose", "torch.isclose(x, x + 1e-9)", smooth=False, x=normal(3)),
    Sample("isclose", "torch.isclose(x, y, rtol=0.5, atol=0.1)", smooth=False, x=normal(6), y=normal(6)),
    Sample("allclose", "torch.allclose(x, x + 1e-9)", smooth=False, x=normal(3)),
    Sample("equal", "torch.equal(x, x.clone())", smooth=False, x=normal(3)),
]
