"""Samples of special functions, in ``torch`` and in ``torch.special``."""

from __future__ import annotations

from . import Recipe, Sample, booleans, complexes, distinct, integers, normal, positive, unit


def inside(*shape: int) -> Recipe:
    """Numbers between 0.1 and 0.9: probabilities."""
    return lambda rng: rng.uniform(0.1, 0.9, shape)


#: Functions of one tensor in ``torch``, with inputs where they are smooth.
UNARY = {"lgamma": positive, "digamma": positive, "erf": normal, "erfc": normal, "erfinv": unit, "i0": normal,
         "logit": inside, "sinc": distinct}  # fmt: skip
#: Their names in ``torch.special``.
ALIASES = {"gammaln": "lgamma", "psi": "digamma", "digamma": "digamma", "erf": "erf", "erfc": "erfc", "erfinv": "erfinv",
           "i0": "i0", "logit": "logit", "sinc": "sinc", "exp2": "exp2", "expit": "sigmoid", "expm1": "expm1",
           "log1p": "log1p"}  # fmt: skip
#: Functions that only ``torch.special`` has.
HIDDEN = {"entr": positive, "erfcx": normal, "ndtr": normal, "ndtri": inside, "log_ndtr": normal, "i0e": distinct,
          "i1": distinct, "i1e": distinct}  # fmt: skip
BESSEL = ["airy_ai", "bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_i0", "modified_bessel_i1",
          "modified_bessel_k0", "modified_bessel_k1", "scaled_modified_bessel_k0", "scaled_modified_bessel_k1",
          "spherical_bessel_j0"]  # fmt: skip
POLYNOMIALS = [f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"]
POLYNOMIALS += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
EDGES = (
    "torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-20, 30.0, float('inf'), -float('inf'), float('nan')]).double()"
)
# PyTorch's Airy function is inaccurate in the seventh digit below -2.
BESSEL_EDGES = EDGES.replace("-2.5", "-1.5")

SAMPLES: list[Sample] = []
for name, recipe in UNARY.items():
    SAMPLES += [
        Sample(name, f"torch.{name}(x)", x=recipe(2, 3)),
        Sample(name, f"x.t().{name}()", x=recipe(3, 2)),
        Sample(name, f"torch.{name}(x )", x=recipe()),
        Sample(name, f"torch.{name}(x  )", smooth=False, x=recipe(0, 3)),
        Sample(name, f"x.clone().{name}_()", x=recipe(2, 3)),
        Sample(name, f"torch.{name}(x, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=recipe(3)),
        Sample(name, f"torch.{name}(i)", smooth=False, i=integers(-1, 4, 4)),
        Sample(name, f"torch.{name}(b)", smooth=False, b=booleans(3)),
        Sample(name, f"torch.{name}({EDGES} + 0 * x)", smooth=False, x=normal()),
    ]
for alias, name in ALIASES.items():
    recipe = UNARY.get(name, normal if name != "log1p" else positive)
    SAMPLES.append(Sample(name, f"torch.special.{alias}(x)", x=recipe(3)))
    SAMPLES.append(Sample(name, f"torch.special.{alias}(i)", smooth=False, i=integers(1, 4, 3)))
for name, recipe in HIDDEN.items():
    SAMPLES += [
        Sample(name, f"torch.special.{name}(x)", x=recipe(2, 3)),
        Sample(name, f"torch.special.{name}(x.t())", x=recipe(3, 2)),
        Sample(name, f"torch.special.{name}(x )", x=recipe()),
        Sample(name, f"torch.special.{name}(x.detach(), out=torch.empty(0).double())", smooth=False, x=recipe(3)),
        Sample(name, f"torch.special.{name}(i)", smooth=False, i=integers(-1, 3, 4)),
        Sample(name, f"torch.special.{name}({EDGES} + 0 * x)", smooth=False, x=normal()),
    ]
for name in BESSEL:
    SAMPLES += [
        Sample(name, f"torch.special.{name}(x)", smooth=False, x=distinct(2, 3)),
        Sample(name, f"torch.special.{name}(x * 20)", smooth=False, x=positive(4)),
        Sample(name, f"torch.special.{name}(i)", smooth=False, i=integers(-1, 4, 4)),
        Sample(name, f"torch.special.{name}(x, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=positive(3)),
        Sample(name, f"torch.special.{name}({BESSEL_EDGES} + 0 * x)", smooth=False, x=normal()),
    ]
for name in POLYNOMIALS:
    SAMPLES += [
        Sample(name, f"torch.special.{name}(x, n)", smooth=False, x=normal(4, 1), n=integers(-1, 12, 9)),
        Sample(name, f"torch.special.{name}(x, n )", smooth=False, x=unit(8), n=integers(0, 40, 8)),
        Sample(name, f"torch.special.{name}(x, 3)", smooth=False, x=normal(3)),
        Sample(name, f"torch.special.{name}(0.7, n)", smooth=False, n=integers(0, 9, 4)),
        Sample(name, f"torch.special.{name}(x, y)", smooth=False, x=normal(3), y=positive(3)),
        Sample(
            name, f"torch.special.{name}({EDGES}[:-1] + 0 * x, n)", smooth=False, x=normal(), n=integers(0, 9, 4, 1)
        ),
        Sample(name, f"torch.special.{name}(i, n)", smooth=False, i=integers(-1, 3, 4), n=integers(0, 9, 4)),
    ]
for name in ("xlogy", "xlog1py"):
    SAMPLES += [
        Sample(name, f"torch.special.{name}(x, y)", x=normal(2, 3), y=positive(3)),
        Sample(name, f"torch.special.{name}(x, 2.5)", x=normal(3)),
        Sample(name, f"torch.special.{name}(2.5, y)", y=positive(3)),
        Sample(name, f"torch.special.{name}(i, y)", i=integers(0, 2, 4), y=positive(4)),
        Sample(name, f"torch.special.{name}(i, 2)", smooth=False, i=integers(0, 3, 4)),
        Sample(name, f"torch.special.{name}({EDGES} + 0 * x, {EDGES}.view(-1, 1))", smooth=False, x=normal()),
    ]
SAMPLES += [
    Sample("xlogy", "torch.xlogy(x, y)", x=normal(2, 1), y=positive(3)),
    Sample("xlogy", "x.xlogy(y)", x=normal(2, 3), y=positive(3)),
    Sample("xlogy", "x.xlogy(3)", x=normal(3)),
    Sample("xlogy", "x.clone().xlogy_(y)", x=normal(3), y=positive(3)),
    Sample("xlogy", "x.clone().xlogy_(3)", x=normal(3)),
    Sample(
        "xlogy", "torch.xlogy(x, y, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=normal(3), y=positive(3)
    ),
    Sample("zeta", "torch.special.zeta(i, y)", i=integers(2, 5, 4), y=positive(4)),
    Sample("zeta", "torch.special.zeta(2.5, y)", y=positive(4)),
    Sample("zeta", "torch.special.zeta(x + 1, y)", smooth=False, x=positive(2, 3), y=positive(3)),
    Sample("zeta", "torch.special.zeta(x + 1, 2)", smooth=False, x=positive(2, 3)),
    Sample("zeta", "torch.special.zeta(i, j)", smooth=False, i=integers(0, 4, 4), j=integers(-1, 4, 4)),
    Sample(
        "zeta", "torch.special.zeta(x + 2, y)", beyond=True, x=positive(3), y=positive(3)
    ),  # PyTorch has no backward
    Sample("zeta", f"torch.special.zeta({EDGES} + 0 * x, {EDGES}.view(-1, 1))", smooth=False, x=normal()),
]
for name, alias in (("igamma", "gammainc"), ("igammac", "gammaincc")):
    SAMPLES += [
        Sample(name, f"torch.{name}(i.double(), y)", i=integers(1, 5, 2, 3), y=positive(3)),
        Sample(name, f"torch.{name}(x, y)", beyond=True, x=positive(3), y=positive(3)),
        Sample(name, f"torch.special.{alias}(i.double(), y)", i=integers(1, 5, 3), y=positive(3)),
        Sample(name, f"(i / 2).double().{name}(y)", i=integers(1, 5, 3), y=positive(3)),
        Sample(name, f"x.clone().{name}_(y)", smooth=False, x=positive(3), y=positive(3)),
        Sample(name, f"torch.{name}(x, i)", smooth=False, x=positive(3), i=integers(1, 5, 3)),
        Sample(name, f"torch.{name}({EDGES} + 0 * x, {EDGES}.view(-1, 1))", smooth=False, x=normal()),
        Sample(name, f"torch.{name}(x * 30, y * 30)", smooth=False, x=positive(4), y=positive(4)),
    ]
for n in (0, 1, 2, 5):
    SAMPLES += [
        Sample("polygamma", f"torch.polygamma({n}, x)", x=positive(3)),
        Sample("polygamma", f"x.polygamma({n})", x=positive(2, 2)),
        Sample("polygamma", f"torch.special.polygamma({n}, i)", smooth=False, i=integers(1, 4, 3)),
        Sample("polygamma", f"x.clone().polygamma_({n})", x=positive(3)),
        Sample("polygamma", f"torch.polygamma({n}, {EDGES} + 0 * x)", smooth=False, x=normal()),
    ]
SAMPLES += [
    Sample("polygamma", "torch.polygamma(3, -x)", smooth=False, x=positive(3)),
    Sample("polygamma", "torch.polygamma(1, -x)", smooth=False, x=positive(3)),
    Sample("polygamma", "torch.polygamma(-1, x)", smooth=False, x=positive(3)),
    Sample("polygamma", "torch.polygamma(1, x, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=positive(3)),
    Sample("mvlgamma", "torch.mvlgamma(x + 2, 3)", x=positive(2, 3)),
    Sample("mvlgamma", "x.mvlgamma(1)", x=positive(3)),
    Sample("mvlgamma", "torch.special.multigammaln(x + 1, 2)", x=positive()),
    Sample("mvlgamma", "(x + 2).mvlgamma_(p=2)", x=positive(3)),
    Sample("mvlgamma", "torch.mvlgamma(i, 2)", smooth=False, i=integers(1, 5, 3)),
    Sample("mvlgamma", "torch.mvlgamma(x, 0)", smooth=False, x=positive(3)),
    Sample("mvlgamma", "torch.mvlgamma(b, 2)", smooth=False, b=booleans(3)),
    Sample(
        "mvlgamma", "torch.mvlgamma(x + 2, 2, out=torch.empty(0, dtype=torch.float64))", smooth=False, x=positive(3)
    ),
    Sample("logit", "torch.logit(x, 0.2)", x=inside(6)),
    Sample("logit", "torch.logit(x, eps=0.2)", x=normal(4)),
    Sample("logit", "torch.special.logit(x, 0.3)", x=inside(4)),
    Sample("logit", "x.clone().logit_(0.1)", x=inside(4)),
    Sample("logit", "torch.logit(x * 1)", smooth=False, x=normal(4)),
    Sample("sinc", "torch.sinc(z)", z=complexes(3)),
    # The second derivative at 0 is nan, as at PyTorch.
    Sample("sinc", "torch.sinc(x * i)", second=False, x=normal(4), i=integers(0, 2, 4)),
    Sample("special_round", "torch.special.round(x)", smooth=False, x=normal(4)),
    Sample("special_round", "torch.special.round(x, decimals=2)", smooth=False, x=normal(4)),
    Sample("softmax", "torch.special.softmax(x, 0)", x=normal(2, 3)),
    Sample("softmax", "torch.special.softmax(x, dim=-1, dtype=torch.float64)", x=normal(2, 3)),
    Sample("log_softmax", "torch.special.log_softmax(x, 1)", x=normal(2, 3)),
    Sample("logsumexp", "torch.special.logsumexp(x, 1)", x=normal(2, 3)),
    Sample("logsumexp", "torch.special.logsumexp(x, (0, 1), keepdim=True)", x=normal(2, 3)),
]
