"""Samples of activations, softmax and dropout (which uses PyTorch's random numbers for a seed)."""

from __future__ import annotations

from tests.conformance.samples import Recipe, Sample, distinct, integers, normal, positive, unique_expressions, unit

F = "torch.nn.functional."


def wide(*shape: int) -> Recipe:
    """Numbers on all sides of every kink, none of them on one."""
    return lambda rng: distinct(*shape)(rng) * 1.13 + 0.07


SAMPLES = []
for name in (
    "celu", "elu", "gelu", "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "logsigmoid", "mish",
    "relu", "relu6", "rrelu", "selu", "silu", "softplus", "softshrink", "softsign", "tanhshrink",
):  # fmt: skip
    SAMPLES.append(Sample(name, f"{F}{name}(x)", x=wide(3, 5)))
    SAMPLES.append(Sample(name, f"{F}{name}(x.t())", x=normal(2, 3)))
    SAMPLES.append(Sample(name, f"{F}{name}(x)", x=normal()))
    SAMPLES.append(Sample(name, f"{F}{name}(x[:0])", x=normal(2)))
for name in (
    "celu", "elu", "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "mish", "relu", "relu6", "rrelu", "selu",
    "silu",
):  # fmt: skip
    SAMPLES.append(Sample(name, f"{F}{name}(x.clone(), inplace=True)", x=wide(2, 4)))
SAMPLES += [
    Sample(name, f"{F}{name}_(x.clone(){more})", x=wide(2, 4))
    for name, more in (
        ("celu", ", 2"), ("elu", ", 0.7"), ("hardtanh", ", -0.4, 0.6"), ("leaky_relu", ", 0.2"), ("relu", ""),
        ("rrelu", ", 0.1, 0.3"), ("selu", ""), ("threshold", ", 0.1, 0.3"),
    )
]  # fmt: skip
SAMPLES += [
    Sample(name, f"torch.{name}(x{more})", x=wide(2, 4))
    for name, more in (
        ("celu", ""), ("celu", ", alpha=0.25"), ("hardshrink", ", 0.3"), ("prelu", ", torch.tensor(0.25, dtype=x.dtype)"),
        ("rrelu", ""), ("selu", ""), ("threshold", ", 0.1, 0.3"), ("relu", ""), ("celu_", ".clone(), 0.5"),
        ("selu_", ".clone()"), ("rrelu_", ".clone()"), ("threshold_", ".clone(), -0.1, 0.2"), ("relu_", ".clone()"),
    )
]  # fmt: skip
SAMPLES += [
    Sample("celu", F + "celu(x, 4)", x=wide(2, 4)),
    Sample("elu", F + "elu(x, alpha=2.0)", x=wide(2, 4)),
    Sample("gelu", F + "gelu(x, approximate='tanh')", x=wide(2, 4)),
    Sample("glu", F + "glu(x)", x=normal(2, 4)),
    Sample("glu", F + "glu(x, 0)", x=normal(4, 3)),
    Sample("glu", F + "glu(x, -2)", x=normal(2, 4, 3)),
    Sample("hardshrink", "x.hardshrink(1.1)", x=wide(2, 4)),
    Sample("hardtanh", F + "hardtanh(x, -0.5, 2)", x=wide(2, 4)),
    Sample("hardtanh", F + "hardtanh(i, -2, 3)", smooth=False, i=integers(-5, 6, 5)),
    Sample("relu6", F + "relu6(i)", smooth=False, i=integers(-5, 9, 5)),
    Sample("leaky_relu", F + "leaky_relu(x, negative_slope=-0.3)", x=wide(2, 4)),
    Sample("prelu", F + "prelu(x, w)", x=wide(2, 3), w=unit(1)),
    Sample("prelu", F + "prelu(x, w)", x=wide(2, 3, 2), w=unit(3)),
    Sample("prelu", "x.prelu(w)", x=wide(4), w=unit()),
    Sample("prelu", "torch.prelu(x, w)", x=wide(2, 3, 2, 1), w=unit(3)),
    Sample("softplus", F + "softplus(x, 2.0)", x=wide(2, 4)),
    Sample("softplus", F + "softplus(x, beta=0.7, threshold=1.0)", x=wide(2, 4)),
    Sample("softshrink", F + "softshrink(x, 0.9)", x=wide(2, 4)),
    Sample("threshold", F + "threshold(x, 0.2, -1.0)", x=wide(2, 4)),
    Sample("threshold", F + "threshold(x.clone(), 0.2, 5, inplace=True)", x=wide(2, 4)),
    Sample("threshold", F + "threshold(i, 2, 7)", smooth=False, i=integers(-5, 6, 5)),
    Sample("rrelu", "(torch.manual_seed(3), " + F + "rrelu(x, training=True))[1]", x=wide(3, 4)),
    Sample("rrelu", "(torch.manual_seed(3), torch.rrelu(x, 0.2, 0.9, True))[1]", x=wide(3, 4)),
    Sample("rrelu", "(torch.manual_seed(3), " + F + "rrelu_(x.clone(), 0.2, 0.9, True))[1]", x=wide(3, 4)),
]
# -- softmax
for name in ("softmax", "log_softmax"):
    SAMPLES += [
        Sample(name, f"torch.{name}(x, 0)", x=normal(3, 4)),
        Sample(name, f"torch.{name}(x, -1)", x=normal(2, 3, 4)),
        Sample(name, f"torch.{name}(x, 1)", x=normal(2, 3, 4)),
        Sample(name, f"torch.{name}(x, 0)", x=normal()),
        Sample(name, f"torch.{name}(x.t(), 1)", x=normal(3, 4)),
        Sample(name, f"torch.{name}(x[:0], 0)", x=normal(3)),
        Sample(name, f"x.{name}(1)", x=normal(3, 4)),
        Sample(name, f"x.{name}(dim=1, dtype=torch.float64)", x=normal(3, 4)),
        Sample(name, f"torch.{name}(i, 0, dtype=torch.float64)", smooth=False, i=integers(0, 5, 3)),
        Sample(name, f"{F}{name}(x, 1)", x=normal(3, 4)),
        Sample(name, f"{F}{name}(x, dim=-1, dtype=torch.float64)", x=normal(3, 4)),
    ]
SAMPLES += [
    Sample("softmin", F + "softmin(x, 1)", x=normal(3, 4)),
    Sample("softmin", F + "softmin(x, dim=0)", x=normal(3)),
    Sample("gumbel_softmax", "(torch.manual_seed(1), " + F + "gumbel_softmax(x))[1]", x=normal(3, 4)),
    Sample("gumbel_softmax", "(torch.manual_seed(1), " + F + "gumbel_softmax(x, 0.7, dim=0))[1]", x=normal(3, 4)),
    Sample(
        "gumbel_softmax", "(torch.manual_seed(1), " + F + "gumbel_softmax(x, tau=2, hard=True))[1]", smooth=False,
        x=normal(3, 4),
    ),
]  # fmt: skip
# -- dropout
for name, inputs in (
    ("dropout(x)", normal(3, 5)), ("dropout(x, 0.2)", normal(3, 5)), ("dropout(x, 0.9, training=True)", normal(20)),
    ("dropout(x, training=False)", normal(3)), ("dropout(x, 0.0)", normal(3)), ("dropout(x, 1.0)", normal(3)),
    ("dropout(x.clone(), 0.4, inplace=True)", normal(3, 3)), ("dropout(x.t())", normal(3, 5)),
    ("alpha_dropout(x, training=True)", normal(3, 5)), ("alpha_dropout(x)", normal(3)),
    ("alpha_dropout(x, 1.0, training=True)", normal(3)),
    ("alpha_dropout(x.clone(), 0.3, True, True)", normal(3, 5)),
    ("feature_alpha_dropout(x, training=True)", normal(3, 4, 2)), ("dropout1d(x)", normal(2, 4, 2)),
    ("dropout1d(x)", normal(5, 2)), ("dropout1d(x.clone(), inplace=True)", normal(5, 2)),
    ("dropout2d(x)", normal(2, 4, 2, 1)), ("dropout3d(x)", normal(2, 4, 1, 2, 1)), ("dropout3d(x)", normal(5, 1, 2, 1)),
):  # fmt: skip
    SAMPLES.append(Sample("dropout", f"(torch.manual_seed(7), {F}{name})[1]", x=inputs))
SAMPLES += [
    Sample("dropout", f"(torch.manual_seed(7), torch.{call})[1]", x=normal(3, 4))
    for call in (
        "dropout(x, 0.5, True)", "dropout_(x.clone(), 0.5, True)", "alpha_dropout(x, 0.5, True)",
        "alpha_dropout_(x.clone(), 0.5, True)", "feature_dropout(x, 0.5, True)", "feature_dropout_(x.clone(), 0.5, True)",
        "feature_alpha_dropout(x, 0.5, True)", "feature_alpha_dropout_(x.clone(), 0.5, True)",
        "native_dropout(x, 0.3, True)[0]", "native_dropout(x, 0.3, False)[0]", "native_dropout(x, 1.0, True)[0]",
    )
]  # fmt: skip
SAMPLES.append(
    Sample(
        "native_dropout",
        "(torch.manual_seed(7), torch.native_dropout(x, 0.3, True)[1])[1]",
        smooth=False,
        x=positive(6),
    )
)
# Squared results make the incoming gradient depend on the inputs, which tests the second derivative by the gradient.
_seen: set[str] = set()
for _each in list(SAMPLES):
    if _each.smooth and _each.op not in _seen and "[:0]" not in _each.expression:
        _seen.add(_each.op)
        SAMPLES.append(Sample(_each.op, f"({_each.expression}).square()", **_each.inputs))
unique_expressions(SAMPLES)
