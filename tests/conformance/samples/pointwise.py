"""Samples of element-by-element operations."""

from __future__ import annotations

from . import Recipe, Sample, booleans, complexes, distinct, integers, normal, positive, unit


def inside(*shape: int) -> Recipe:
    """Numbers between 0.1 and 0.9."""
    return lambda rng: rng.uniform(0.1, 0.9, shape)


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
        continue  # PyTorch's relu has no out
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

EDGES = "torch.tensor([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, float('inf'), -float('inf'), float('nan')])"
for name, recipe in {"deg2rad": normal, "rad2deg": normal, "angle": distinct, "nan_to_num": normal}.items():
    SAMPLES += [
        Sample(name, f"torch.{name}(x)", x=recipe(2, 3)),
        Sample(name, f"x.t().{name}()", x=recipe(3, 2)),
        Sample(name, f"torch.{name}(x )", x=recipe()),
        Sample(name, f"torch.{name}(x  )", smooth=False, x=recipe(0, 3)),
        Sample(name, f"torch.{name}(i)", smooth=False, i=integers(-3, 3, 4)),
        Sample(name, f"torch.{name}(x, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=recipe(3)),
        Sample(name, f"torch.{name}({EDGES})", smooth=False),
    ]
for name in ("deg2rad", "rad2deg", "nan_to_num", "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh"):
    call = f"(x + 1).{name}_()" if "cosh" in name else f"x.clone().{name}_()"
    SAMPLES.append(Sample(name, call, beyond=name.endswith(("sinh", "cosh", "tanh")), x=inside(3)))
for name, kind in (("logaddexp", "normal"), ("logaddexp2", "normal"), ("ldexp", "normal"), ("copysign", "distinct")):
    recipe = {"normal": normal, "distinct": distinct}[kind]
    SAMPLES += [
        Sample(name, f"torch.{name}(x, y  )", x=recipe(2, 3), y=recipe(3)),
        Sample(name, f"x.{name}(y )", x=recipe(3, 2), y=recipe()),
        Sample(name, f"torch.{name}(x, y, out=torch.empty(0).double())", smooth=False, x=recipe(2, 1), y=recipe(3)),
    ]
for name in ("gcd", "lcm"):
    SAMPLES += [
        Sample(name, f"torch.{name}(i, j)", smooth=False, i=integers(-20, 20, 2, 3), j=integers(-20, 20, 3)),
        Sample(name, f"i.{name}(j)", smooth=False, i=integers(-20, 20, 6), j=integers(0, 3, 6)),
        Sample(name, f"i.clone().{name}_(j)", smooth=False, i=integers(-20, 20, 6), j=integers(1, 9, 6)),
        Sample(
            name, f"torch.{name}(i.to(torch.uint8), j.int())", smooth=False, i=integers(0, 20, 6), j=integers(1, 9, 6)
        ),
        Sample(name, f"torch.{name}(b, b)", smooth=False, b=booleans(3)),
    ]
SAMPLES += [
    Sample("angle", "torch.angle(z)", z=complexes(2, 3)),
    Sample("angle", "z.angle()", z=complexes()),
    Sample("polar", "torch.polar(x, y)", x=positive(2, 3), y=normal(3)),
    Sample("polar", "torch.polar(x, y )", x=positive(), y=normal(2, 1)),
    Sample(
        "polar", "torch.polar(x, y, out=torch.empty(0, dtype=torch.complex128))", smooth=False, x=normal(3), y=normal(3)
    ),
    Sample("complex", "torch.complex(x, y)", x=normal(2, 3), y=normal(3)),
    Sample("frexp", "torch.frexp(x)[0]", x=normal(2, 3)),
    Sample("frexp", "torch.frexp(x)", smooth=False, x=normal(4)),
    Sample("frexp", "x.frexp().exponent", smooth=False, x=normal(2, 2)),
    Sample("frexp", f"torch.frexp({EDGES})", smooth=False),
    Sample("frexp", "torch.frexp(i)", smooth=False, i=integers(0, 3, 3)),
    # PyTorch has no gradient for negative integer exponents, which are left out here; retrograd's is 2 ** exponent.
    Sample("ldexp", "torch.ldexp(x, i)", x=normal(2, 3), i=integers(0, 4, 3)),
    Sample("ldexp", "torch.ldexp(x, i) ", smooth=False, x=normal(2, 3), i=integers(-4, 4, 3)),
    Sample("ldexp", "x.clone().ldexp_(i)", x=normal(3), i=integers(0, 4, 3)),
    Sample("ldexp", "torch.ldexp(i, j)", smooth=False, i=integers(-3, 4, 3), j=integers(-3, 4, 3)),
    Sample("ldexp", "torch.ldexp(x, i * 100)", smooth=False, x=normal(4), i=integers(-30, 30, 4)),
    Sample("heaviside", "torch.heaviside(x, y)", smooth=False, x=normal(4), y=normal(4)),
    Sample("heaviside", "torch.heaviside(i, j)", smooth=False, i=integers(-1, 2, 6), j=integers(3, 9, 6)),
    Sample("heaviside", "x.clone().heaviside_(y)", smooth=False, x=normal(4), y=normal(4)),
    Sample("heaviside", "torch.heaviside(x, y )", beyond=True, x=normal(4), y=normal(4)),  # PyTorch has no backward
    Sample("heaviside", "torch.heaviside(x, i)", smooth=False, x=normal(4), i=integers(0, 3, 4)),
    Sample("heaviside", f"torch.heaviside({EDGES}, {EDGES}.view(-1, 1))", smooth=False),
    Sample("nextafter", "torch.nextafter(x, y)", smooth=False, x=normal(2, 3), y=normal(3)),
    Sample("nextafter", "x.clone().nextafter_(y)", smooth=False, x=normal(3), y=normal(3)),
    Sample("nextafter", f"torch.nextafter({EDGES}, {EDGES}.view(-1, 1))", smooth=False),
    Sample(
        "nan_to_num",
        "torch.nan_to_num(x / i, nan=1.5, posinf=2.5, neginf=-2.5)",
        smooth=False,
        x=normal(6),
        i=integers(0, 2, 6),
    ),
    Sample("nan_to_num", f"torch.nan_to_num({EDGES}, 5)", smooth=False),
    Sample("nan_to_num", "torch.nan_to_num(z / i)", smooth=False, z=complexes(4), i=integers(0, 2, 4)),
    Sample("copysign", "torch.copysign(x, -0.0)", x=distinct(4)),
    Sample("copysign", "x.clone().copysign_(-2)", x=distinct(4)),
    Sample("copysign", "torch.copysign(i, x)", smooth=False, i=integers(-3, 3, 4), x=distinct(4)),
    Sample("square", "torch.square(b)", smooth=False, b=booleans(4)),
    Sample("float_power", "x.clone().float_power_(3)", x=positive(3)),
    Sample("float_power", "x.clone().float_power_(y)", x=positive(3), y=normal(3)),
    Sample("float_power", "x.float().float_power_(3)", smooth=False, x=positive(3)),
    Sample("div", "torch.div(x, y, rounding_mode=None)", x=normal(2, 3), y=positive(3)),
    Sample("div", "x.clone().div_(y, rounding_mode=None)", x=normal(2, 3), y=positive(3)),
    Sample("clamp", "torch.clamp(b, c)", smooth=False, b=booleans(4), c=booleans(4)),
    Sample("clamp", "torch.clamp(x, y, 0.5)", smooth=False, x=normal(3), y=normal(3)),
    Sample("sgn", "torch.sgn(z * i)", smooth=False, z=complexes(4), i=integers(0, 2, 4)),
    Sample("logaddexp", "torch.logaddexp(z, w)", z=complexes(3), w=complexes(3)),
    Sample("acosh", "torch.acosh(x - 3)", smooth=False, x=positive(3)),
    Sample("remainder", "torch.remainder(x * i, y)", smooth=False, x=normal(6), i=integers(0, 2, 6), y=normal(6)),
    Sample("__rsub__", "x.__rsub__(2)", x=normal(3)),
    Sample("__rpow__", "x.__rpow__(2)", x=normal(3)),
    Sample("__rtruediv__", "x.__rtruediv__(2)", x=positive(3)),
    Sample("__rmod__", "x.__rmod__(2)", smooth=False, x=positive(3)),
    Sample("__rfloordiv__", "x.__rfloordiv__(2)", smooth=False, x=positive(3)),
    Sample("__radd__", "x.__radd__(2)", x=normal(3)),
    Sample("__rmul__", "x.__rmul__(2)", x=normal(3)),
]
for name in ("and", "or", "xor", "lshift", "rshift"):
    SAMPLES.append(Sample(f"__r{name}__", f"i.__r{name}__(9)", smooth=False, i=integers(0, 4, 3)))
for name in COMPARE[:6]:
    SAMPLES.append(Sample(name, f"x.clone().{name}_(y)", smooth=False, x=normal(3), y=normal(3)))
    SAMPLES.append(Sample(name, f"x.clone().{name}_(0.2) * 1", x=normal(3)))
    SAMPLES.append(Sample(name, f"x.clone().{name}_(y) * 1", x=normal(3), y=normal(3)))
