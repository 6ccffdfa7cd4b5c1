"""Distributions with parameters and values (``CASES``), pairs of them (``PAIRS``), and the calls made on each.

The results are described with their nodes and gradients; ``golden/distributions.json`` holds PyTorch's.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

#: Sessions with distributions, in the format of ``module_sessions.txt``.
SOURCE = Path(__file__).with_name("distribution_sessions.txt")
Values = Any


@dataclass
class Case:
    """A distribution with parameters a, b, c, and values at which its functions are evaluated."""

    expression: str
    values: Values
    a: Values = None
    b: Values = None
    c: Values = None
    #: Probabilities for ``icdf``.
    heights: Values = (0.2, 0.7)
    #: The dtype in which functions are evaluated, and the tolerance.
    dtype: str = "float64"
    close: float = 1e-9

    def parameters(self) -> dict[str, Values]:
        return {name: each for name in "abc" if (each := getattr(self, name)) is not None}


_SPD = [[2.0, 0.5], [0.5, 1.5]]
_TRIL = [[1.2, 0.0], [-0.4, 0.7]]
_THIRDS = [[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]]

CASES = [
    Case("Normal(a, b)", [0.3, -2.0], a=[0.5, -1.0], b=[1.0, 2.5]),
    Case("Normal(a, 2)", [[0.3], [-2.0]], a=[0.5, -1.0]),
    Case("Laplace(a, b)", [0.3, -2.0], a=[0.5, -1.0], b=[1.0, 2.5]),
    Case("Cauchy(a, b)", [0.3, -2.0], a=[0.5, -1.0], b=[1.0, 2.5]),
    Case("Uniform(a, b)", [0.3, -0.5], a=[0.0, -1.0], b=[1.0, 2.5]),
    Case("Exponential(a)", [0.3, 2.0], a=[0.5, 3.0]),
    Case("Gamma(a, b)", [0.3, 2.0], a=[0.5, 3.0], b=[1.0, 2.5]),
    Case("Gamma(a, b)", [0.9, 20.0], a=[1.0, 25.0], b=[1.0, 2.5]),
    Case("Chi2(a)", [0.3, 2.0], a=[0.5, 3.0]),
    Case("Beta(a, b)", [0.3, 0.8], a=[0.5, 3.0], b=[1.5, 2.5]),
    Case("Beta(a, b)", [0.3, 0.8], a=[20.0, 9.0], b=[15.0, 8.0]),
    Case("Dirichlet(a)", [[0.2, 0.3, 0.5], [0.1, 0.8, 0.1]], a=[[0.5, 0.8, 0.6], [3.0, 1.5, 2.0]]),
    Case("Bernoulli(a)", [1.0, 0.0, 1.0], a=[0.3, 0.9, 0.5]),
    Case("Bernoulli(logits=a)", [1.0, 0.0], a=[0.3, -2.0]),
    Case("ContinuousBernoulli(a)", [0.2, 0.7, 0.4], a=[0.3, 0.9, 0.5]),
    Case("ContinuousBernoulli(logits=a)", [0.2, 0.7], a=[0.3, -2.0]),
    Case("Binomial(5, a)", [2.0, 5.0], a=[0.3, 0.9]),
    Case("Binomial(torch.tensor([40, 3]), logits=a)", [12.0, 0.0], a=[-0.3, 0.9]),
    Case("Geometric(a)", [2.0, 0.0], a=[0.3, 0.9]),
    Case("Geometric(logits=a)", [2.0, 0.0], a=[0.3, -0.9]),
    Case("NegativeBinomial(a, b)", [2.0, 0.0], a=[4.0, 2.5], b=[0.3, 0.9]),
    Case("NegativeBinomial(a, logits=b)", [2.0, 0.0], a=[4.0, 2.5], b=[0.3, -0.9]),
    Case("Poisson(a)", [2.0, 12.0], a=[0.8, 14.0]),
    Case("Categorical(a)", [2, 0], a=_THIRDS),
    Case("Categorical(logits=a)", [2, 0], a=_THIRDS),
    Case("Categorical(a)", 1, a=[1.0, 2.0, 1.0]),
    Case("OneHotCategorical(a)", [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], a=_THIRDS),
    Case("OneHotCategoricalStraightThrough(logits=a)", [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]], a=_THIRDS),
    Case("Multinomial(4, a)", [[1.0, 1.0, 2.0], [4.0, 0.0, 0.0]], a=_THIRDS),
    Case("Multinomial(4, logits=a)", [1.0, 1.0, 2.0], a=[0.1, 0.5, -0.3]),
    Case("StudentT(a, b, c)", [0.3, -2.0, 1.0], a=[0.8, 1.5, 4.0], b=[0.0, 1.0, 2.0], c=[1.0, 0.5, 2.0]),
    Case("FisherSnedecor(a, b)", [0.3, 2.0, 1.0], a=[3.0, 1.5, 4.0], b=[1.5, 3.0, 5.0]),
    Case("LogNormal(a, b)", [0.3, 2.0], a=[0.5, -1.0], b=[1.0, 0.5]),
    Case("HalfNormal(a)", [0.3, 2.0], a=[1.0, 0.5]),
    Case("HalfCauchy(a)", [0.3, 2.0], a=[1.0, 0.5]),
    Case("Gumbel(a, b)", [0.3, -2.0], a=[0.5, -1.0], b=[1.0, 2.5]),
    Case("Weibull(a, b)", [0.3, 2.0], a=[0.5, 3.0], b=[1.0, 2.5]),
    Case("Pareto(a, b)", [0.6, 4.0, 2.0], a=[0.5, 3.0, 1.0], b=[0.8, 2.5, 1.5]),
    Case("Kumaraswamy(a, b)", [0.3, 0.8], a=[0.5, 3.0], b=[1.5, 2.5]),
    Case("InverseGamma(a, b)", [0.3, 0.8, 2.0], a=[0.5, 3.0, 1.5], b=[1.5, 2.5, 1.0]),
    Case("GeneralizedPareto(a, b, c)", [0.9, 2.0, 0.5], a=[0.5, 1.0, 0.0], b=[1.5, 2.5, 1.0], c=[0.2, 0.0, -0.5],
         dtype="float32", close=1e-6),  # PyTorch supports no other
    Case("VonMises(a, b)", [0.3, -2.0], a=[0.5, -1.0], b=[1.0, 6.5], close=1e-6),  # PyTorch approximates Bessel's functions
    Case("LogisticNormal(a, b)", [[0.2, 0.3, 0.5]], a=[0.5, -1.0], b=[1.0, 0.5]),
    Case("LogitRelaxedBernoulli(a, b)", [0.3, -2.0], a=0.5, b=[0.3, 0.9]),
    Case("RelaxedBernoulli(a, logits=b)", [0.3, 0.9], a=0.5, b=[0.3, -0.9]),
    Case("ExpRelaxedCategorical(a, b)", [[-1.2, -0.9, -1.2], [-0.4, -2.0, -1.6]], a=0.5, b=_THIRDS),
    Case("RelaxedOneHotCategorical(a, logits=b)", [[0.3, 0.2, 0.5], [0.1, 0.8, 0.1]], a=0.5, b=_THIRDS),
    Case("MultivariateNormal(a, b)", [0.3, -1.0], a=[0.5, -1.0], b=_SPD),
    Case("MultivariateNormal(a, precision_matrix=b)", [[0.3, -1.0], [1.0, 2.0]], a=[[0.5, -1.0], [0.0, 0.0]], b=_SPD),
    Case("MultivariateNormal(a, scale_tril=b)", [0.3, -1.0], a=[0.5, -1.0], b=[_TRIL, [[2.0, 0.0], [0.3, 1.0]]]),
    Case("LowRankMultivariateNormal(a, b, c)", [[0.3, -1.0, 2.0]], a=[0.5, -1.0, 0.0], b=[[1.0], [0.4], [-0.3]],
         c=[[1.0, 0.5, 2.0], [0.2, 0.8, 1.0]]),
    Case("Wishart(a, b)", [[1.0, 0.2], [0.2, 2.0]], a=3.5, b=_SPD),
    Case("Wishart(a, scale_tril=b)", [[1.0, 0.2], [0.2, 2.0]], a=[4.5, 3.0], b=_TRIL),
    Case("Wishart(a, precision_matrix=b)", [[1.0, 0.2], [0.2, 2.0]], a=4.5, b=_SPD),
    Case("LKJCholesky(3, a)", [[1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.48, 0.64, 0.6]], a=[0.5, 2.0]),
    Case("Independent(Normal(a, b), 1)", [0.3, -2.0], a=[0.5, -1.0], b=[1.0, 2.5]),
    Case("Independent(Bernoulli(a), 1)", [[1.0, 0.0], [1.0, 1.0]], a=[[0.3, 0.9], [0.5, 0.2]]),
    Case("MixtureSameFamily(Categorical(a), Normal(b, c))", [0.3, -2.0], a=[0.5, 1.0], b=[0.0, 2.0], c=[1.0, 0.5]),
    Case("MixtureSameFamily(Categorical(logits=a), Independent(Normal(b, 1.0), 1))", [0.3, -2.0], a=[0.5, 1.0],
         b=[[0.0, 2.0], [1.0, 1.0]]),
    Case("TransformedDistribution(Normal(a, b), [ExpTransform(), AffineTransform(1.0, -2.0)])", [0.3, -2.0], a=[0.5, -1.0],
         b=[1.0, 0.5]),
    Case("TransformedDistribution(Uniform(a, b), [SigmoidTransform().inv, AffineTransform(b, 2.0)])", [0.3, 2.0],
         a=[0.0, 0.1], b=[0.9, 1.0]),
    Case("TransformedDistribution(Normal(a, 1.0), StickBreakingTransform())", [0.3, 0.5, 0.2], a=[0.5, -1.0]),
]  # fmt: skip

_N, _B, _E, _G = "Normal(a, b)", "Beta(b, b + 1)", "Exponential(b)", "Gamma(b, b * b)"
_U, _P, _L, _GU, _CB = (
    "Uniform(a, a + b)",
    "Pareto(b, b + 1.5)",
    "Laplace(a, b)",
    "Gumbel(a, b)",
    "ContinuousBernoulli(c)",
)
_MVN = "MultivariateNormal(a, scale_tril=torch.diag_embed(b) + 0.3 * torch.ones(2, 2, dtype=a.dtype).tril(-1))"
_LOW = "LowRankMultivariateNormal(a, b.unsqueeze(-1), b)"
#: Pairs of the same distribution with different parameters.
_ALONE = [
    _N, _B, _E, _G, _U, _P, _L, _GU, _CB, _MVN, _LOW, "Bernoulli(c)", "Binomial(4, c)", "Categorical(c)", "Cauchy(a, b)",
    "Dirichlet(b)", "Geometric(c)", "HalfNormal(b)", "OneHotCategorical(c)", "Poisson(b)", "Independent(Normal(a, b), 1)",
    "LogNormal(a, b)", "Chi2(b)", "Wishart(b[0] + 2, torch.eye(2, dtype=a.dtype) * c)",
]  # fmt: skip
#: Pairs of each with all of the others.
_ALL = [_N, _B, _E, _G, _U, _P, _L, _GU, _CB]
PAIRS = [(each, each) for each in _ALONE]
PAIRS += [(p, q) for p in _ALL for q in (_N, _B, _E, _G, _U, _P, _GU, _CB, _L) if p != q]
PAIRS += [(_LOW, _MVN), (_MVN, _LOW), ("Bernoulli(c)", "Poisson(b)"), ("Poisson(b)", "Bernoulli(c)"),
          ("Poisson(b)", "Binomial(3, c)"), ("Uniform(c, c + 0.1)", _B), ("Uniform(c, c + 0.1)", _CB),
          ("Uniform(b, b + 1.0)", _G), ("Uniform(b, b + 1.0)", _E), ("Uniform(b + 3.0, b + 4.0)", _P),
          ("Pareto(b, b + 3.0)", _N), ("Pareto(b, b + 3.0)", "Pareto(b - 0.1, b)"), (_B, "Uniform(-b, b + 1.0)"),
          ("Normal(a, b)", "Poisson(b)")]  # fmt: skip
#: The parameters of the first and the second.
FIRST = {"a": [0.5, -1.0], "b": [0.8, 1.7], "c": [0.3, 0.8]}
SECOND = {"a": [0.2, 0.4], "b": [1.4, 0.6], "c": [0.45, 0.6]}

ASKED = ("mean", "mode", "variance", "stddev", "entropy()", "perplexity()", "enumerate_support()")
OF_VALUES = ("log_prob", "cdf", "icdf")


def title(case: Case) -> str:
    """Return a unique name for a case."""
    return f"{case.expression} of {case.a}"


def names(torch: Any) -> dict[str, Any]:
    """Return the namespace of the expressions."""
    D = torch.distributions
    return {
        **{name: getattr(D, name) for name in D.__all__}, "torch": torch,
        "LogitRelaxedBernoulli": D.relaxed_bernoulli.LogitRelaxedBernoulli,
        "ExpRelaxedCategorical": D.relaxed_categorical.ExpRelaxedCategorical,
    }  # fmt: skip


def leaves(torch: Any, given: dict[str, Values], dtype: Any) -> dict[str, Any]:
    return {name: torch.tensor(each, dtype=dtype, requires_grad=True) for name, each in given.items()}


def found(torch: Any, compute: Any, inputs: list[Any]) -> Any:
    """Return the result of ``compute()``, its node and its gradients by ``inputs``, or its error."""
    try:
        result = compute()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if not isinstance(result, torch.Tensor):
        return repr(result)
    shown = {"value": result.tolist(), "dtype": str(result.dtype)}
    if result.requires_grad:
        weights = (torch.arange(result.numel(), dtype=result.dtype) * 0.3 + 0.5).reshape(result.shape)
        weights = weights.where(result.detach().isfinite(), torch.zeros_like(weights))
        total = (result.where(result.isfinite(), torch.zeros_like(result)) * weights).sum()
        shown["node"] = type(result.grad_fn).__name__
        try:
            gradients = torch.autograd.grad(total, inputs, allow_unused=True, retain_graph=True)
            shown["grads"] = [None if each is None else each.tolist() for each in gradients]
        except RuntimeError as error:
            shown["grads"] = str(error)
    return shown


def drawn(torch: Any, draw: Any, inputs: list[Any]) -> Any:
    """Return samples for a seed, and the next random number after them."""
    torch.manual_seed(5)
    return [found(torch, draw, inputs), torch.rand(()).item()]


def answers(torch: Any, case: Case) -> dict[str, Any]:
    """Evaluate all functions of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _answers(torch, case)


def _answers(torch: Any, case: Case) -> dict[str, Any]:
    space, shown = names(torch), {}
    dtype = getattr(torch, case.dtype)
    given = leaves(torch, case.parameters(), dtype)
    inputs = list(given.values())
    d = eval(case.expression, {**space, **given})
    for name in ("batch_shape", "event_shape", "support", "arg_constraints", "has_rsample", "has_enumerate_support"):
        shown[name] = found(torch, lambda name=name: getattr(d, name), inputs)
    shown["text"] = repr(d)
    for asked in ASKED:
        shown[asked] = found(torch, lambda asked=asked: eval(f"d.{asked}", {"d": d}), inputs)
    for name in OF_VALUES:
        values = case.heights if name == "icdf" else case.values
        whole = isinstance(values, int) or (isinstance(values, list) and isinstance(values[0], int))
        x = torch.tensor(values) if whole else torch.tensor(values, dtype=dtype, requires_grad=True)
        by = inputs + ([] if whole else [x])
        shown[name] = found(torch, lambda name=name, x=x: getattr(d, name)(x), by)
        if name == "log_prob":
            wide = d.expand(torch.Size((2,)) + d.batch_shape)
            shown["expanded"] = [repr(wide), found(torch, partial(wide.log_prob, x), by)]
            shown["expanded draw"] = drawn(torch, wide.sample, inputs)
    for kind in (torch.float64, torch.float32):
        given = leaves(torch, case.parameters(), kind)
        d, inputs = eval(case.expression, {**space, **given}), list(given.values())
        shown[f"sample {kind}"] = drawn(torch, partial(d.sample, (3,)), inputs)
        shown[f"many {kind}"] = drawn(torch, lambda d=d: d.sample((10, 3)).sum((0, 1)), inputs)
        shown[f"rsample {kind}"] = drawn(torch, partial(d.rsample, (3,)), inputs)
    return shown


def divergence(torch: Any, pair: tuple[str, str]) -> Any:
    """Return the KL divergence of a pair, with gradients by the parameters of both."""
    space = names(torch)
    first, second = (leaves(torch, each, torch.float64) for each in (FIRST, SECOND))
    p, q = (eval(each, {**space, **given}) for each, given in zip(pair, (first, second), strict=True))
    return found(torch, lambda: torch.distributions.kl_divergence(p, q), [*first.values(), *second.values()])


def differs(ours: Any, theirs: Any, relative: float) -> bool:
    """Whether two answers differ by more than rounding. Gradients that PyTorch does not implement may exist."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        compared = [key for key in theirs if key != "grads" or not isinstance(theirs[key], str)]
        return ours.keys() != theirs.keys() or any(differs(ours[key], theirs[key], relative) for key in compared)
    if isinstance(ours, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(ours) != len(theirs) or any(differs(a, b, relative) for a, b in zip(ours, theirs, strict=True))
    if isinstance(ours, float) and isinstance(theirs, float):
        if ours != ours or theirs != theirs:
            return (ours != ours) != (theirs != theirs)
        return ours != theirs and not abs(ours - theirs) <= relative * (1 + abs(theirs))
    return bool(ours != theirs)
