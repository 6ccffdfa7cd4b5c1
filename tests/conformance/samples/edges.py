"""Samples at the edges of derivatives: ties, zeros, infinities, nan, bounds, and shapes that must be reduced.

Derivatives are compared with PyTorch's record only, because most functions have a kink or a pole there.
"""

from __future__ import annotations

from typing import Any

import numpy

from tests.conformance.samples import Recipe, Sample, complexes, distinct, normal, positive, spd, unique_expressions

INF, NAN = numpy.inf, numpy.nan


def values(*numbers: Any) -> Recipe:
    """The given numbers."""
    return lambda rng: numpy.array(numbers, dtype=complex if any(isinstance(x, complex) for x in numbers) else float)


def indices(*numbers: Any) -> Recipe:
    """The given integers (int64)."""
    return lambda rng: numpy.array(numbers)


def edge(op: str, expression: str, **inputs: Any) -> Sample:
    return Sample(op, expression, named=True, second=False, **inputs)


F = "torch.nn.functional."
SAMPLES = []

# Two operands that are equal, and bounds that are reached.
PAIR = {"x": values(1.0, 2.0, 3.0, 0.0), "y": values(2.0, 2.0, 1.0, 0.0)}
for name in ("maximum", "minimum", "fmax", "fmin", "max", "min"):
    SAMPLES.append(edge(name, f"torch.{name}(x, y) ** 2", **PAIR))
LIMITS = {"x": values(-2.0, -1.0, 0.5, 1.0, 2.0, 0.5), "low": values(-1.0, -1.0, -1.0, 0.0, 1.0, 1.0),
          "high": values(1.0, 1.0, 0.5, 1.0, 1.0, 1.0)}  # fmt: skip
SAMPLES += [
    edge("clamp", "torch.clamp(x, low, high) ** 2", **LIMITS),
    edge("clamp", "torch.clamp(x, min=low) ** 2", x=LIMITS["x"], low=values(-2.0, 0.0, 0.5, 1.0, 3.0, 0.0)),
    edge("clamp", "torch.clamp(x, max=high) ** 2", x=LIMITS["x"], high=values(-2.0, 0.0, 0.5, 1.0, 3.0, 0.0)),
    edge("clamp", "torch.clamp(x, -1, 1) ** 2", x=LIMITS["x"]),
    edge("clamp_min", "torch.clamp_min(x, -1) ** 2", x=LIMITS["x"]),
    edge("clamp_max", "torch.clamp_max(x, 1) ** 2", x=LIMITS["x"]),
    edge("copysign", "torch.copysign(x, y) ** 2", x=values(0.0, 1.0, -2.0), y=values(-1.0, -1.0, 1.0)),
    edge("heaviside", "torch.nan_to_num(x) ** 2", x=values(1.0, INF, -INF, NAN)),
    edge("nan_to_num", "torch.sqrt(torch.nan_to_num(x, 0.0, 0.0, 0.0))", x=values(1.0, INF, -INF, NAN)),
    edge("nextafter", "torch.nextafter(x, y)", x=values(1.0, 2.0), y=values(1.0, 3.0)),
]  # fmt: skip

# Powers and logarithms of 0.
SAMPLES += [
    Sample("add", "torch.add(x, y, alpha=2) ** 2", x=normal(3), y=normal(3)),
    Sample("rsub", "torch.rsub(x, y, alpha=2) ** 2", x=normal(3), y=normal(3)),
    Sample("rsub", "torch.rsub(x, 1.5, alpha=2) ** 2", x=normal(3)),
    edge("pow", "torch.pow(x, y)", x=values(2.0, 3.0), y=values(0.0, 1.0)),
    edge("pow", "torch.pow(x, y)", once=True, x=values(0.0, 0.0, 2.0, 3.0), y=values(0.0, 2.0, 0.0, 1.0)),
    edge("pow", "torch.pow(x, 2 * y).log()", once=True, x=values(0.0, 2.0, 0.5), y=values(0.0, 0.0, 1.0)),
    edge("pow", "torch.sqrt(torch.pow(x, y) - 1)", once=True, x=values(2.0, 3.0), y=values(0.0, 2.0)),
    edge("pow", "torch.pow(0.0, x)", x=values(0.0, 2.0, -1.0, 0.5)),
    edge("pow", "torch.pow(0.0, x) * 2", x=values(2 + 0j, -1 + 0j)),
    edge("pow", "torch.pow(-2.0, x)", x=values(1.0, 2.0)),
    Sample("pow", "torch.pow(2.0, x)", x=complexes(3)),
    Sample("pow", "torch.pow(1.5 + 0.5j, x)", x=complexes(3)),
    edge("atan2", "torch.atan2(x, y)", x=values(0.0, 1.0, 0.0), y=values(0.0, 0.0, 2.0)),
    edge("sinc", "torch.sinc(x)", x=values(0.0, 0.5, 1.0, 1e-200)),
    edge("sinc", "torch.sqrt(1 - torch.sinc(x))", x=values(0.0, 0.5, 1.0)),
    edge("angle", "torch.angle(x)", x=values(0j, 1 + 1j)),
    edge("xlogy", "torch.xlogy(x, y)", x=values(0.0, 0.0, 0.0, 2.0, 0.0), y=values(0.0, -1.0, 2.0, 3.0, 1.0)),
    edge(
        "xlog1py", "torch.special.xlog1py(x, y)", x=values(0.0, 0.0, 0.0, 2.0, 0.0), y=values(-1.0, -2.0, 2.0, 3.0, 0.5)
    ),
    edge("xlogy", "torch.xlogy(x, y)", x=values(1.0, 3.0), y=values(0.0, -1.0)),
    edge("xlog1py", "torch.special.xlog1py(x, y)", x=values(1.0, 3.0), y=values(-1.0, -2.0)),
    edge("i1", "torch.special.i1(x)", x=values(0.0, 1e-20, -1e-17, 2.220446049250313e-16, 1.0)),
    edge("i1e", "torch.special.i1e(x)", x=values(0.0, 1e-20, -1e-17, 2.220446049250313e-16, 1.0)),
    edge("logit", "torch.logit(x)", x=values(0.0, 1.0, -0.5, 1.5, 0.25)),
    edge("logit", "torch.logit(x, 0.25)", x=values(0.25, 0.75, 0.1, 0.9, 0.5)),
    edge("logit", "torch.logit(x, 0)", x=values(0.25, 0.5)),
    edge("logit", "torch.logit(x, 0.0)", x=values(-0.25, 1.5, 0.5)),
]

# Reductions: ties, nan, zeros.
TIES = {"x": values([1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [NAN, 1.0, 2.0])}
for name in ("amax", "amin"):
    SAMPLES += [edge(name, f"torch.{name}(x, {args}) ** 2", **TIES) for args in ("1", "0", "(0, 1)", "1, True")]
SAMPLES += [
    edge("max", "torch.sqrt(torch.max(x) - 3)", x=values(1.0, 3.0, 3.0)),
    edge("median", "torch.sqrt(torch.median(x) - 2)", x=values(1.0, 3.0, 2.0)),
    edge("aminmax", "torch.aminmax(x, dim=1, keepdim=True)", x=distinct(2, 3)),
    edge("aminmax", "torch.aminmax(x, dim=1)", x=distinct(2, 3)),
    edge("var", "torch.var(x, 0, correction=3)", x=normal(3, 2)),
    edge("var", "torch.var(x, 0, correction=4)", x=normal(3, 2)),
    edge("var_mean", "torch.var_mean(x, 0, correction=4)", x=normal(3, 2)),
    edge("var_mean", "torch.var_mean(x, 0)[1]", x=normal(3, 2)),
    edge("std", "torch.std(x, 1)", x=values([1.0, 1.0, 1.0], [1.0, 2.0, 4.0])),
    edge("std_mean", "torch.std_mean(x, 1)", x=values([1.0, 1.0, 1.0], [1.0, 2.0, 4.0])),
    edge("nansum", "torch.nansum(x * y, 1)", x=values([1.0, NAN], [2.0, 3.0]), y=normal(2, 2)),
    edge("prod", "torch.prod(x, 0)", x=values(3.0)),
    Sample("prod", "torch.prod(x, 0) ** 2", x=positive()),
]
ZEROS = {"x": values([0.0, 0.0, 0.0], [1.0, -2.0, 0.0], [2.0, 2.0, -2.0])}
for order in ("0", "0.5", "1", "1.5", "2", "2.5", "3", "4", "float('inf')", "-float('inf')"):
    SAMPLES += [
        edge("norm", f"torch.linalg.vector_norm(x, {order}, 1)", once=order == "2", **ZEROS),
        Sample("norm", f"torch.linalg.vector_norm(x, {order}, 0)", x=distinct(3, 2)),
    ]
    if order != "0":  # PyTorch has no derivative
        SAMPLES += [
            edge(
                "dist",
                f"torch.dist(x, y, {order})",
                once=order == "2",
                x=values(1.0, 2.0, 2.0),
                y=values(1.0, 2.0, 2.0),
            ),
            edge("dist", f"torch.dist(x, y, {order}) ", x=values(1.0, 2.0, 4.0), y=values(1.0, 3.0, 2.0)),
        ]
for order in ("0.5", "1", "1.5", "2", "3", "float('inf')"):
    SAMPLES += [
        edge(
            "cdist", f"torch.cdist(x, y, {order})", x=values([1.0, 2.0], [3.0, 3.0]), y=values([1.0, 2.0], [4.0, 4.0])
        ),
        edge("pdist", f"{F}pdist(x, {order})", x=values([1.0, 2.0], [1.0, 2.0], [2.0, 1.0])),
    ]
SAMPLES += [
    edge("cdist", "torch.cdist(x, y, compute_mode='use_mm_for_euclid_dist')", x=values([1.0, 2.0], [3.0, 3.0]),
         y=values([1.0, 2.0], [4.0, 5.0])),
    *[edge("cdist", f"torch.sqrt(torch.cdist(x, y, {order}))", once=True, x=values([1.0, 2.0], [3.0, 3.0]),
           y=values([1.0, 2.0], [4.0, 4.0])) for order in (0.5, 1, 1.5, 2, 3)],
    *[edge("norm", f"torch.sqrt(torch.linalg.vector_norm(x, {order}, 1))", once=True, **ZEROS) for order in (1.5, 2, 2.5, 3)],
    edge("renorm", "torch.renorm(x, 2, 0, 5.0)", x=values([3.0, 4.0], [1.0, 1.0], [6.0, 8.0])),
]  # fmt: skip

# Scans: zeros and infinities.
SAMPLES += [
    edge("cumprod", "torch.cumprod(x, 0)", x=values(2.0, 0.0, 3.0, 0.0, 4.0)),
    edge("cumprod", "torch.cumprod(x, 1)", x=values([2.0, 0.0, 3.0], [0.0, 3.0, 4.0])),
    edge("prod", "torch.prod(x, 1)", x=values([2.0, 0.0, 3.0], [0.0, 3.0, 0.0])),
    edge("logcumsumexp", "torch.logcumsumexp(x, 0)", once=True, x=values(1.0, INF, 2.0)),
]

# Scattered values: a source larger than the index, indices that occur twice, zeros and ties among the values.
SOURCE = {"x": normal(3, 4), "s": normal(3, 5), "i": indices([0, 2, 1], [1, 0, 0])}
SAMPLES += [
    Sample("scatter", "x.scatter(0, i, s)", beyond=True, **{**SOURCE, "i": indices([0, 2, 1], [1, 0, 2])}),
    Sample("scatter_add", "x.scatter_add(0, i, s) ** 2", beyond=True, **SOURCE),
    *[Sample("scatter_reduce", f"x.scatter_reduce(0, i, s, '{how}') ** 2", beyond=True, **SOURCE)
      for how in ("sum", "mean", "prod", "amax", "amin")],
    *[edge("scatter_reduce", f"x.scatter_reduce(0, i, s, '{how}', include_self={include}) ** 2",
           x=values(1.0, 2.0, 0.0, 3.0), s=values(2.0, 1.0, 0.0, 3.0, 2.0), i=indices(0, 0, 2, 3, 1))
      for how, include in (("prod", True), ("prod", False), ("amax", True), ("amin", True))],
    *[edge("scatter_reduce", f"x.scatter_reduce(0, i, s, '{how}', include_self={include})",
           x=values(1.0, 2.0, 5.0, 3.0), s=values(0.0, 3.0, 0.0, 4.0, 0.0), i=indices(0, 0, 2, 2, 3))
      for how in ("prod", "amax", "amin") for include in (True, False)],
    Sample("index_add", "x.index_add(0, torch.tensor([1]), y) ** 2", x=normal(3), y=normal(1)),
    Sample("index_copy", "x.index_copy(0, torch.tensor(1), y) ** 2", x=normal(3), y=normal()),
    Sample("put", "x.put(torch.tensor([[1, 2], [0, 3]]), y) ** 2", x=normal(4), y=normal(4)),
    Sample("put", "x.put(torch.tensor([1, 2, 0, 3]), y) ** 2", x=normal(4), y=normal(2, 2)),
    Sample("index_fill", "x.index_fill(1, torch.tensor([0, 2]), v) ** 2", x=normal(2, 4), v=normal()),
]  # fmt: skip

# Activations and losses at their kinks.
KINKS = {"x": values(-3.0, -1.0, -0.5, 0.0, 0.5, 1.0, 3.0)}
for call in ("prelu(x, torch.tensor([0.25], dtype=x.dtype))", "hardswish(x)", "hardsigmoid(x)", "hardtanh(x)", "relu6(x * 6)", "elu(x)", "elu(x, 0.5)", "selu(x)", "celu(x)",
             "softplus(x, 1, 0.5)", "softplus(x, 2, 1.0)", "leaky_relu(x)", "softshrink(x)", "hardshrink(x)", "threshold(x, 0.5, 2.0)",
             "logsigmoid(x)", "mish(x * 7)"):  # fmt: skip
    SAMPLES.append(edge(call.partition("(")[0], f"{F}{call}", **KINKS))
    SAMPLES.append(edge(call.partition("(")[0], f"{F}{call} ** 2", once=call[0] == "p", **KINKS))
SAMPLES.append(edge("prelu", F + "prelu(x, w)", once=True, w=values(0.25), **KINKS))
APART, TARGET = {"x": values(0.0, 1.0, -1.0, 2.0)}, "torch.tensor([0.0, 0.0, 0.0, 0.5]).double()"
for how in ("mean", "none"):
    SAMPLES += [
        edge(name, f"{F}{name}(x, {TARGET}, reduction='{how}'){square}", **APART)
        for square in ("", " ** 2")
        for name in ("smooth_l1_loss", "huber_loss", "l1_loss")
    ]
    SAMPLES += [
        edge("binary_cross_entropy", f"{F}binary_cross_entropy(x, y, reduction='{how}')", x=values(0.0, 1.0, 0.5, 1e-13, 1 - 1e-13),
             y=values(0.0, 1.0, 1.0, 0.5, 0.5)),
        edge("binary_cross_entropy", f"{F}binary_cross_entropy(x, y, reduction='{how}') ** 2", x=values(0.0, 1.0, 0.5),
             y=values(0.0, 1.0, 1.0)),
        edge("multi_margin_loss", f"{F}multi_margin_loss(x, torch.tensor([0, 2, 1]), 2, 1.0, torch.tensor([0.5, 1.5, 2.0]).double(), "
             f"reduction='{how}') ** 2", x=normal(3, 3)),
    ]  # fmt: skip
SAMPLES += [
    Sample("soft_margin_loss", F + "soft_margin_loss(x, torch.tensor([0.5, -2.0, 3.0]).double())", x=normal(3)),
    Sample("glu", F + "glu(x, 0)", x=normal(6, 2)),
    Sample("glu", F + "glu(x, 1)", x=normal(2, 6)),
    Sample("softmax", F + "softmax(x, 0)", x=normal()),
    Sample("log_softmax", F + "log_softmax(x, 0)", x=normal()),
    Sample("max_unpool2d", F + "max_unpool2d(x, torch.tensor([[[0, 3], [9, 14]]]), 2) ** 2", x=normal(1, 2, 2)),
    Sample("channel_shuffle", F + "channel_shuffle(x, 6) ** 2", x=normal(2, 6, 2)),
    Sample("channel_shuffle", F + "channel_shuffle(x, 2) ** 2", x=normal(2, 6, 2)),
    Sample("channel_shuffle", F + "channel_shuffle(x, 3) ** 2", x=normal(2, 6, 2, 2)),
]

# Matrices that are wide, tall or empty of one gradient.
for shape in ((2, 3), (3, 2), (2, 2), (2, 4), (3, 4, 2), (3, 2, 4)):
    size = ", ".join(map(str, shape))
    SAMPLES += [
        Sample("linalg_qr", f"torch.linalg.qr(x)[{k}] # {size}", x=normal(*shape)) for k in (0, 1)
    ] + [
        Sample("linalg_lu_factor", f"torch.linalg.lu_factor(x)[0] # {size}", x=normal(*shape)),
    ] + [
        Sample("lu_unpack", f"torch.lu_unpack(x, torch.tensor([1, 2], dtype=torch.int32).expand(*x.shape[:-2], 2))[{k}] # {size}", x=normal(*shape))
        for k in (1, 2)
    ]  # fmt: skip
SAMPLES += [
    Sample("as_strided", "torch.as_strided(x.expand(3), (2,), (0,)) ** 2", x=normal(1)),
    edge("linalg_qr", "torch.linalg.qr(x, 'complete')", x=normal(2, 2)),
    edge("cholesky", "torch.linalg.cholesky(x)", x=spd(4)),
    edge("cholesky", "torch.linalg.cholesky(x, upper=True)", x=spd(3, 2)),
    edge("linalg_eigh", "torch.linalg.eigh(x + x.mH)[1]", x=complexes(3, 3)),
    edge("linalg_eig", "torch.linalg.eig(x)[1]", x=complexes(3, 3)),
    edge("linalg_svd", "torch.linalg.svd(x)[0]", x=complexes(3, 3)),
    edge("triangular_solve", "torch.triangular_solve(y, x)[1] ** 2", x=normal(3, 3), y=normal(3, 2)),
    Sample(
        "grid_sample", F + "grid_sample(x, y / 4, align_corners=False) ** 2", x=normal(2, 3, 3, 4), y=normal(2, 2, 3, 2)
    ),
    Sample("matrix_exp", "torch.linalg.matrix_exp(x)", x=normal(2, 3, 3)),
    Sample("cholesky", "torch.linalg.cholesky((x + x.mT) / 2)", x=spd(4)),
    Sample("cholesky", "torch.linalg.cholesky((x + x.mT) / 2, upper=True)", x=spd(3, 2)),
    Sample("slogdet", "torch.linalg.slogdet(x)", x=complexes(3, 3)),
    Sample("householder_product", "torch.linalg.householder_product(x, y)", x=normal(2, 4, 3), y=normal(2, 3)),
    Sample(
        "lu_solve", "torch.linalg.lu_solve(*torch.linalg.lu_factor(x), y, left=False)", x=normal(3, 3), y=normal(2, 3)
    ),
    Sample("asinh", "torch.asinh(x)", x=complexes(3)),
    Sample("acosh", "torch.acosh(x)", x=complexes(3)),
    Sample("atanh", "torch.atanh(x)", x=complexes(3)),
    Sample("per_matrix", "x.det()[:, None, None] * y", x=normal(2, 3, 3), y=normal(2, 3, 3)),
]

# Random values, whose gradient is 0.
SAMPLES += [
    edge("normal", "torch.normal(m, s)", m=normal(3), s=positive(3)),
    edge("normal", "torch.normal(m, 2.0)", m=normal(3)),
    edge("normal", "torch.normal(1.0, s)", s=positive(3)),
    edge("bernoulli", "torch.bernoulli(p)", p=values(0.25, 0.5, 0.75)),
    edge("poisson", "torch.poisson(p)", p=positive(3)),
    edge("uniform_", "(x * 2).uniform_()", x=normal(3)),
    edge("normal_", "(x * 2).normal_()", x=normal(3)),
    edge("exponential_", "(x * 2).exponential_()", x=normal(3)),
    edge("bernoulli_", "(x * 2).bernoulli_()", x=normal(3)),
]
SAMPLES = unique_expressions(SAMPLES)
