"""Samples of cumulative sums, products, extrema and integrals."""

from __future__ import annotations

from . import Sample, booleans, complexes, distinct, integers, normal, positive

SAMPLES: list[Sample] = []
for name in ("cumsum", "cumprod"):
    for dim in ("0", "-1", "dim=1"):
        SAMPLES += [
            Sample(name, f"torch.{name}(x, {dim})", x=normal(2, 3, 2)),
            Sample(f"{name}_", f"x.clone().{name}_({dim})", x=positive(2, 3)),
        ]
    SAMPLES += [
        Sample(name, f"torch.{name}(x[()], 0)", x=normal()),
        Sample(name, f"torch.{name}(x, 1)", smooth=False, x=normal(2, 0)),
        Sample(name, f"x.t().{name}(0)", x=normal(2, 3)),
        Sample(name, f"torch.{name}(z, 0)", z=complexes(3)),
        Sample(name, f"torch.{name}(i, 0)", smooth=False, i=integers(-3, 4, 4)),
        Sample(name, f"torch.{name}(b, 1)", smooth=False, b=booleans(2, 3)),
        Sample(name, f"torch.{name}(x, 0, dtype=torch.float32)", smooth=False, x=normal(3)),
        Sample(name, f"torch.{name}(i, 0, dtype=torch.float64)", smooth=False, i=integers(-3, 4, 4)),
        Sample(name, f"torch.{name}(x.detach(), 0, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=normal(4)),
        Sample(name, f"torch.{name}(x * i, 0)", x=normal(5), i=integers(0, 2, 5)),
        Sample(name, f"torch.{name}(x * i, 1)", x=normal(2, 30), i=integers(0, 9, 2, 30)),
    ]  # fmt: skip
for name in ("cummax", "cummin"):
    SAMPLES += [
        Sample(name, f"torch.{name}(x, 1)", x=distinct(2, 4)),
        Sample(name, f"x.{name}(dim=0)", x=distinct(4, 2)),
        Sample(name, f"torch.{name}(x.t(), -1)", x=distinct(3, 2)),
        Sample(name, f"torch.{name}(x[()], 0)", x=normal()),
        Sample(name, f"torch.{name}(i, 0)", smooth=False, i=integers(0, 3, 6)),
        Sample(name, f"torch.{name}(b, 0)", smooth=False, b=booleans(4)),
    ]
for dim in ("0", "1", "dim=-1"):
    SAMPLES += [
        Sample("logcumsumexp", f"torch.logcumsumexp(x, {dim})", x=normal(2, 3)),
        Sample("logcumsumexp", f"torch.logcumsumexp(z / 2, {dim})", z=complexes(3, 2)),
    ]
SAMPLES += [
    Sample("logcumsumexp", "torch.logcumsumexp(x[()], 0)", x=normal()),
    Sample("logcumsumexp", "x.t().logcumsumexp(0)", x=normal(2, 3)),
    Sample("logcumsumexp", "torch.logcumsumexp(x * 100, 0)", smooth=False, x=normal(5)),
]
for name in ("trapezoid", "trapz", "cumulative_trapezoid"):
    SAMPLES += [
        Sample(name, f"torch.{name}(y)", y=normal(2, 3)),
        Sample(name, f"torch.{name}(y, dim=0)", y=normal(3, 2)),
        Sample(name, f"torch.{name}(y, dx=0.5)", y=normal(2, 3)),
        Sample(name, f"torch.{name}(y, x)", y=normal(2, 3), x=normal(3)),
        Sample(name, f"torch.{name}(y, x )", y=normal(2, 3), x=normal(2, 3)),
        Sample(name, f"torch.{name}(y, x, dim=0)", y=normal(3, 2), x=normal(3)),
        Sample(name, f"torch.{name}(y, x, dim=1)", y=normal(2, 3, 2), x=normal(3, 1)),
        Sample(name, f"torch.{name}(z)", z=complexes(3)),
        Sample(name, f"torch.{name}(i)", smooth=False, i=integers(0, 5, 2, 3)),
        Sample(name, f"torch.{name}(y )", smooth=False, y=normal(2, 1)),
        Sample(name, f"torch.{name}(b)", smooth=False, b=booleans(3)),
    ]
