"""Distributions: compared with PyTorch's record, and with mathematics: densities integrate to one and to the stated
moments, entropies and divergences; samples have the gradients of the distribution function.
"""

from __future__ import annotations

import inspect
import math
import subprocess
import sys
from typing import Any

import numpy
import pytest
import scipy.special

import retrograd as torch
import retrograd.distributions as D
from retrograd.autograd import gradcheck, gradgradcheck
from retrograd.autograd.functional import jacobian
from retrograd.distributions import constraints
from retrograd.distributions import transforms as T
from retrograd.kernels import gamma_sampling as kernels
from tests.conformance.distribution_cases import (
    CASES,
    PAIRS,
    SOURCE,
    Case,
    answers,
    differs,
    divergence,
    leaves,
    names,
    title,
)
from tests.conformance.golden import load
from tests.conformance.module_cases import programs, shown

GOLDEN = load("distributions")
PROGRAMS = programs(SOURCE)


def differing_answers(ours: dict[str, Any], theirs: dict[str, Any], close: float) -> list[str]:
    """Return the answers that differ from the recorded ones."""
    return [
        f"{asked}\n  PyTorch: {theirs[asked]}\n  here:    {ours[asked]}"
        for asked in theirs
        if differs(ours[asked], theirs[asked], 3e-5 if "float32" in asked else close)
    ]


@pytest.mark.parametrize("case", CASES, ids=title)
def test_answers_match_pytorch(case: Case) -> None:
    ours, theirs = answers(torch, case), GOLDEN["cases"][title(case)]
    assert ours.keys() == theirs.keys()
    if case.expression.startswith("Wishart"):  # PyTorch's samples have no gradient: it overwrites a saved tensor
        theirs = {asked: each for asked, each in theirs.items() if not asked.startswith("rsample")}
    wrong = differing_answers(ours, theirs, case.close)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("pair", PAIRS, ids=" to ".join)
def test_divergences_match_pytorch(pair: tuple[str, str]) -> None:
    assert not differs(divergence(torch, pair), GOLDEN["pairs"][" to ".join(pair)], 1e-9)


@pytest.mark.parametrize("topic", PROGRAMS)
def test_sessions_match_pytorch(topic: str) -> None:
    statements = PROGRAMS[topic]
    found = shown(torch, statements)
    wrong = [
        f"{statement}\n  PyTorch: {theirs}\n  here:    {ours}"
        for statement, ours, theirs in zip(statements, found, GOLDEN["shown"][topic], strict=True)
        if ours != theirs
    ]
    assert not wrong, "\n".join(wrong)


# -- Densities -------------------------------------------------------------------------------------------------------

A, B, C = 0.7, 1.6, 2.3
CONTINUOUS = [
    D.Normal(A, B), D.Laplace(A, B), D.Cauchy(A, B), D.Uniform(A, B), D.Exponential(B), D.Gamma(C, B), D.Chi2(5.0),
    D.Beta(B, C), D.ContinuousBernoulli(torch.tensor(0.3)), D.ContinuousBernoulli(torch.tensor(0.5001)),
    D.StudentT(3.5, A, B), D.FisherSnedecor(6.0, 9.0), D.LogNormal(A, 0.4), D.HalfNormal(B), D.HalfCauchy(B),
    D.Gumbel(A, B), D.Weibull(B, C), D.Pareto(B, 3.5), D.Kumaraswamy(B, C), D.InverseGamma(4.0, B),
    D.GeneralizedPareto(A, B, 0.1), D.GeneralizedPareto(A, B, -0.4), D.RelaxedBernoulli(torch.tensor(0.8), 0.4),
    D.TransformedDistribution(D.Normal(A, B), [D.SigmoidTransform(), D.AffineTransform(1.0, -2.0)]),
]  # fmt: skip
DISCRETE = [
    D.Bernoulli(0.3), D.Binomial(6, torch.tensor(0.3)), D.Geometric(0.4), D.NegativeBinomial(3.0, torch.tensor(0.3)),
    D.Poisson(B), D.Categorical(torch.tensor([0.2, 0.3, 0.5])),
]  # fmt: skip


def named(distribution: Any) -> str:
    return type(distribution).__name__


def double(distribution: Any) -> Any:
    """Return a distribution in float64, with parameters in attributes of it or of its parts."""
    for name, value in vars(distribution).items():
        if isinstance(value, torch.Tensor):
            setattr(distribution, name, value.double())
        elif isinstance(value, D.Distribution):
            double(value)
        elif isinstance(value, list):
            for each in value:
                for inner, parameter in vars(each).items():
                    if isinstance(parameter, torch.Tensor):
                        setattr(each, inner, parameter.double())
    return distribution


def spread(support: Any) -> tuple[Any, Any]:
    """Return points all over a support, and the weight of each."""
    u = torch.linspace(-16.0, 16.0, 8001, dtype=torch.float64)
    if isinstance(support, type(constraints.real)):
        return torch.sinh(u), torch.cosh(u) * 0.004
    upper = getattr(support, "upper_bound", None)
    endless = isinstance(upper, torch.Tensor) and bool(upper.isinf().all())
    to = D.biject_to(constraints.greater_than(support.lower_bound) if endless else support)
    u = 2.2 * u
    x = to(u)
    return x, to.log_abs_det_jacobian(u, x).exp() * 0.0088


@pytest.mark.parametrize("distribution", CONTINUOUS, ids=named)
def test_densities_integrate_to_one_and_the_moments(distribution: Any) -> None:
    d = double(distribution)
    x, weights = spread(d.support)
    inside = d.support.check(x)
    x, weights = x[inside], weights[inside]
    height = d.log_prob(x)
    p = height.exp() * weights
    assert float(p.sum()) == pytest.approx(1, abs=2e-6)
    for asked, expected in (
        ("mean", lambda: (p * x).sum()),
        ("variance", lambda: (p * (x - d.mean) ** 2).sum()),
        ("entropy", lambda: -(p * height).nan_to_num(0.0).sum()),
    ):
        try:
            found = getattr(d, asked)
            found = found() if callable(found) else found
        except NotImplementedError:
            continue
        if found.isfinite():
            # Heavy tails are cut off.
            assert float(found) == pytest.approx(float(expected()), rel=3e-3 if asked == "variance" else 1e-4), asked


@pytest.mark.parametrize("distribution", DISCRETE, ids=named)
def test_probabilities_sum_to_one_and_the_moments(distribution: Any) -> None:
    if distribution.has_enumerate_support:
        x = distribution.enumerate_support()
    else:
        x = torch.arange(200.0)
    p = distribution.log_prob(x).exp()
    assert float(p.sum()) == pytest.approx(1, abs=1e-5)
    if not isinstance(distribution, D.Categorical):
        assert float((p * x).sum()) == pytest.approx(float(distribution.mean), rel=1e-4)
        assert float((p * (x - distribution.mean) ** 2).sum()) == pytest.approx(float(distribution.variance), rel=1e-4)


@pytest.mark.parametrize("distribution", CONTINUOUS, ids=named)
def test_cdf_has_the_density_as_derivative_and_icdf_as_inverse(distribution: Any) -> None:
    d = double(distribution)
    with torch.no_grad():
        torch.manual_seed(0)
        x = d.sample((20,)).double()
    x.requires_grad_()
    try:
        height = d.cdf(x)
    except NotImplementedError:
        return
    (slope,) = torch.autograd.grad(height.sum(), x)
    # Close to 1/2 the continuous Bernoulli distribution is approximated by the uniform one.
    close = 1e-3 if isinstance(d, D.ContinuousBernoulli) else 1e-5
    assert torch.allclose(slope, d.log_prob(x).exp(), rtol=close, atol=1e-9)
    try:
        back = d.icdf(height)
    except NotImplementedError:
        return
    assert torch.allclose(back, x, rtol=1e-5, atol=1e-6)


#: Finite differences do not apply: a matrix is read as symmetric, or the formula changes at the point.
_OTHERWISE = ("GeneralizedPareto", "MultivariateNormal(a, b)", "MultivariateNormal(a, precision", "Wishart")


@pytest.mark.parametrize("case", [each for each in CASES if not each.expression.startswith(_OTHERWISE)], ids=title)
def test_first_and_second_derivatives_of_log_prob(case: Case) -> None:
    given = leaves(torch, case.parameters(), torch.float64)
    x = torch.tensor(case.values)
    x = x.double() if x.is_floating_point() else x

    def density(*parameters: Any) -> Any:
        d = eval(case.expression, {**names(torch), **dict(zip(given, parameters, strict=True))})
        return d.log_prob(x)

    D.Distribution.set_default_validate_args(False)  # finite differences leave the simplex
    try:
        assert gradcheck(density, tuple(given.values()))
        assert gradgradcheck(density, tuple(given.values()), fast_mode=True)
    finally:
        D.Distribution.set_default_validate_args(True)


# -- Divergences -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("p", "q"),
    [
        (D.Normal(A, B), D.Gumbel(0.2, 1.9)),
        (D.Gumbel(A, B), D.Gumbel(0.2, 1.9)),
        (D.Cauchy(A, B), D.Cauchy(0.2, 1.9)),
        (D.Laplace(A, B), D.Normal(0.2, 1.9)),
        (D.Normal(A, B), D.Laplace(0.2, 1.9)),
        (D.Gamma(C, B), D.Gumbel(0.2, 1.9)),
        (D.Beta(B, C), D.Gamma(2.0, 1.0)),
        (D.Beta(B, C), D.ContinuousBernoulli(torch.tensor(0.3))),
        (D.Pareto(B, 3.5), D.Gamma(2.0, 1.0)),
        (D.Uniform(0.2, 0.9), D.Beta(B, C)),
        (D.Uniform(2.0, 2.5), D.Pareto(1.2, 2.0)),
        (D.HalfNormal(B), D.HalfNormal(0.8)),
        (D.LogNormal(A, 0.4), D.LogNormal(0.2, 0.6)),
    ],
    ids=lambda each: named(each),
)
def test_divergences_are_integrals(p: Any, q: Any) -> None:
    found = float(D.kl_divergence(p, q))
    x, weights = spread(p.support)
    p, q = double(p), double(q)
    inside = p.support.check(x) & q.support.check(x)
    x, weights = x[inside], weights[inside]
    height = p.log_prob(x)
    expected = (height.exp() * weights * (height - q.log_prob(x))).nan_to_num(0.0).sum()
    assert found == pytest.approx(float(expected), rel=2e-4, abs=2e-5)


def test_wishart_divergences_of_batches_match_single_ones() -> None:
    # PyTorch sums the term of the degrees of freedom over two batch dimensions.
    df, other = torch.tensor([2.8, 3.7]), torch.tensor([3.4, 2.6])
    scale = torch.eye(2) * torch.tensor([0.3, 0.8])
    together = D.kl_divergence(D.Wishart(df, scale), D.Wishart(other, scale))
    alone = [D.kl_divergence(D.Wishart(df[i], scale), D.Wishart(other[i], scale)) for i in range(2)]
    assert torch.allclose(together, torch.stack(alone))


def test_multivariate_divergences_match_sample_averages() -> None:
    torch.manual_seed(0)
    p = D.MultivariateNormal(torch.tensor([0.5, -1.0]), torch.tensor([[1.0, 0.3], [0.3, 0.5]]))
    low = D.LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.4]]), torch.tensor([0.5, 0.8]))
    whole = D.MultivariateNormal(torch.zeros(2), low.covariance_matrix)
    assert torch.allclose(D.kl_divergence(p, low), D.kl_divergence(p, whole))
    assert torch.allclose(D.kl_divergence(low, p), D.kl_divergence(whole, p))
    assert torch.allclose(D.kl_divergence(low, low), torch.zeros(()), atol=1e-6)
    x = p.sample((20000,))
    average = (p.log_prob(x) - whole.log_prob(x)).mean()
    assert float(average) == pytest.approx(float(D.kl_divergence(p, whole)), rel=0.03)


# -- Samples ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("distribution", [*CONTINUOUS, *DISCRETE], ids=named)
def test_samples_have_the_moments(distribution: Any) -> None:
    try:
        mean, variance = float(distribution.mean), float(distribution.variance)
    except NotImplementedError:
        return
    if not (math.isfinite(mean) and math.isfinite(variance)):
        return
    torch.manual_seed(1)
    drawn = distribution.sample((3000,)).double()
    assert float(drawn.mean()) == pytest.approx(mean, abs=5 * math.sqrt(variance / 3000))


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.0, 7.9, 8.1, 40.0, 300.0])
def test_gamma_samples_have_implicit_gradients(alpha: float) -> None:
    x = scipy.special.gammaincinv(alpha, numpy.linspace(0.02, 0.98, 25))
    step = 1e-5 * alpha
    slope = (scipy.special.gammainc(alpha + step, x) - scipy.special.gammainc(alpha - step, x)) / (2 * step)
    density = numpy.exp((alpha - 1) * numpy.log(x) - x - scipy.special.gammaln(alpha))
    found = kernels.standard_gamma_grad(numpy, numpy.full(25, alpha), x)
    assert numpy.allclose(found, -slope / density, rtol=2e-3)


@pytest.mark.parametrize("alpha", [0.3, 1.5, 6.5, 30.0])
@pytest.mark.parametrize("beta", [0.4, 2.0, 8.0, 50.0])
def test_dirichlet_samples_have_implicit_gradients(alpha: float, beta: float) -> None:
    x = scipy.special.betaincinv(alpha, beta, numpy.linspace(0.05, 0.95, 19))
    step = 1e-5 * alpha
    cdf = scipy.special.betainc
    slope = (cdf(alpha + step, beta, x) - cdf(alpha - step, beta, x)) / (2 * step)
    density = numpy.exp((alpha - 1) * numpy.log(x) + (beta - 1) * numpy.log1p(-x) - scipy.special.betaln(alpha, beta))
    shares, both = numpy.stack([x, 1 - x], 1), numpy.array([alpha, beta])
    found = kernels.dirichlet_grad(numpy, shares, numpy.broadcast_to(both, shares.shape))[:, 0]
    assert numpy.allclose(found * (1 - x), -slope / density, rtol=2e-2, atol=1e-4 / alpha)


def test_gradients_of_sample_averages_match_the_mean() -> None:
    torch.manual_seed(0)
    concentration = torch.tensor([0.7, 3.0], requires_grad=True)
    for make in (
        lambda: D.Gamma(concentration, 2.0),
        lambda: D.Beta(concentration, 1.5),
        lambda: D.Chi2(concentration),
    ):
        d = make()
        (found,) = torch.autograd.grad(d.rsample((4000,)).mean(0).sum(), concentration)
        (expected,) = torch.autograd.grad(make().mean.sum(), concentration)
        assert torch.allclose(found, expected, rtol=0.1, atol=0.02), named(d)


def test_samples_of_empty_batch() -> None:
    empty = torch.ones(0)
    for d in (D.Normal(empty, empty), D.Gamma(empty, empty), D.Beta(empty, empty), D.Poisson(empty)):
        assert d.sample((2,)).shape == (2, 0)
    assert D.Dirichlet(torch.ones(0, 3)).sample().shape == (0, 3)


def test_gamma_samples_with_zero_and_nan_concentration() -> None:
    torch.manual_seed(0)
    drawn = D.Gamma(torch.tensor([0.0, math.nan, 1.0]), 1.0, validate_args=False).sample()
    assert float(drawn[0]) == torch.finfo(torch.float32).tiny and drawn[1].isnan() and float(drawn[2]) > 0


def test_singular_wishart_samples_are_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    d = D.Wishart(torch.tensor([3.0, 4.0]), torch.eye(2))
    real, asked = d._drawn, []

    def drawn(shape: Any) -> Any:
        asked.append(tuple(shape))
        found = real(shape)
        if len(asked) == 2:
            found[1, 0] = torch.zeros(2, 2)
        return found

    monkeypatch.setattr(d, "_drawn", drawn)
    with pytest.warns(UserWarning, match="Singular sample detected"):
        value = d.rsample(torch.Size((3,)))
    assert asked == [(3,), (3,), (1,)] and d.support.check(value).all()


# -- Transforms ------------------------------------------------------------------------------------------------------

BIJECTIVE = [
    (T.ExpTransform(), 3), (T.SigmoidTransform(), 3), (T.SoftplusTransform(), 3), (T.TanhTransform(), 3),
    (T.AffineTransform(0.3, -2.0), 3), (T.AffineTransform(torch.arange(3.0).double(), 2.0, event_dim=1), 3),
    (T.ComposeTransform([T.ExpTransform(), T.PowerTransform(2.5)]), 3), (T.StickBreakingTransform(), 3),
    (T.CorrCholeskyTransform(), 6), (T.IndependentTransform(T.TanhTransform(), 1), 3),
    (T.CatTransform([T.ExpTransform(), T.TanhTransform()], -1, [1, 2]), 3),
    (T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], -1), 3),
    (T.CumulativeDistributionTransform(D.Normal(0.3, 2.0)), 3), (T.ReshapeTransform((6,), (2, 3)), 6),
    (T.ExpTransform().inv, 3),
]  # fmt: skip


@pytest.mark.parametrize(("transform", "size"), BIJECTIVE, ids=lambda each: str(each).replace("\n", ""))
def test_transforms_match_inverse_and_log_abs_det_jacobian(transform: Any, size: int) -> None:
    x = torch.linspace(0.2, 0.9, size, dtype=torch.float64) * torch.tensor([1.0, 2.0, 0.5] * (size // 3)).double()
    y = transform(x)
    assert transform.codomain.check(y).all() and y.shape == transform.forward_shape(x.shape)
    assert torch.allclose(transform.inv(y), x) and transform.inverse_shape(y.shape) == x.shape
    assert transform.with_cache().inv.inv == transform.with_cache() or transform._cache_size == 0

    def parts(x: Any) -> Any:
        """Split into as many numbers as were joined."""
        found = transform(x)
        if isinstance(transform, T.CorrCholeskyTransform):
            return D.utils.tril_matrix_to_vec(found, -1)
        return found.reshape(-1)[:size]

    expected = jacobian(parts, x).det().abs().log()
    found = transform.log_abs_det_jacobian(x, y)
    assert float(found.sum()) == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize("transform", [T.TanhTransform(1), T.ComposeTransform([T.TanhTransform()], 1)], ids=str)
def test_transform_cache_returns_the_original_value(transform: Any) -> None:
    x = torch.tensor([30.0])
    y = transform(x)
    assert transform.inv(y) is x and transform(x) is y
    assert T.TanhTransform().inv(y).isinf()


# -- Under vmap ------------------------------------------------------------------------------------------------------


def test_samples_and_densities_under_vmap() -> None:
    shapes = torch.tensor([0.5, 2.0, 3.0])

    def draw(shape: Any) -> Any:
        return D.Gamma(shape, torch.ones(())).rsample()

    with pytest.raises(RuntimeError, match="randomness error mode"):
        torch.vmap(draw)(shapes)
    torch.manual_seed(0)
    slopes = torch.vmap(torch.func.grad(draw), randomness="different")(shapes)
    torch.manual_seed(0)
    drawn = D.Gamma(shapes.clone().requires_grad_(), 1.0)
    (expected,) = torch.autograd.grad(drawn.rsample().sum(), drawn.concentration)
    assert torch.equal(slopes, expected)
    both = torch.vmap(lambda shape, x: D.Gamma(shape, torch.ones(())).log_prob(x))(shapes, shapes)
    assert torch.allclose(both, D.Gamma(shapes, 1.0).log_prob(shapes))
    with pytest.raises(ValueError, match="to be within the support"):
        torch.vmap(lambda x: D.Gamma(shapes, torch.ones(3)).log_prob(x))(-shapes)
    weights = torch.ones(4, 3)
    first = torch.func.grad(lambda weight: D.Dirichlet(weight).rsample()[0])
    found = torch.vmap(first, randomness="different")(weights)
    assert found.shape == (4, 3) and (found[:, 0] > 0).all() and (found[:, 1:] < 0).all()


# -- Loading ---------------------------------------------------------------------------------------------------------


def test_distributions_are_imported_on_first_access() -> None:
    program = """
import sys
import retrograd as torch
assert not any("distributions" in name or name.endswith("ops.gamma") for name in sys.modules)
assert "distributions" in dir(torch)
from retrograd import distributions
assert torch.distributions is distributions and distributions.Normal(0.0, 1.0).mean == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_log_prob_with_shared_matrix_solves_once() -> None:
    d = D.MultivariateNormal(torch.zeros(2, 1, 3), scale_tril=torch.eye(3) + torch.ones(4, 3, 3).tril(-1))
    x = torch.arange(5 * 2 * 4 * 3.0).reshape(5, 2, 4, 3)
    one_by_one = torch.stack([D.MultivariateNormal(torch.zeros(3), scale_tril=d.scale_tril[0, i]).log_prob(x[:, :, i])
                              for i in range(4)], -1)  # fmt: skip
    assert torch.allclose(d.log_prob(x), one_by_one)
    assert d.log_prob(x[0, 0, 0]).shape == (2, 4)


@pytest.mark.parametrize("name", ["mean", "mode", "variance", "stddev", "support"])
def test_every_property_has_a_docstring_and_its_own_name(name: str) -> None:
    for cls in (
        each for each in map(vars(D).get, D.__all__) if isinstance(each, type) and issubclass(each, D.Distribution)
    ):
        found = inspect.getattr_static(cls, name)
        if isinstance(found, property):
            assert inspect.getdoc(getattr(cls, name)), cls
            assert found.fget is not None and found.fget.__name__ == name, cls
