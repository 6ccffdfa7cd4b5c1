"""``kl_divergence`` and ``register_kl``: formulas of Kullback-Leibler divergences by pair of distribution classes.

Source of most formulas: Nielsen and Garcia, "Statistical exponential families: a digest with flash cards", 2009. For
distributions ``p`` and ``q`` of different families, the divergence is the expected value of ``-q.log_prob(x)`` over
samples ``x`` of ``p``, minus the entropy of ``p``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import retrograd as torch
from retrograd import Tensor

from ..runtime.user_frame import warn
from .bernoulli import Bernoulli
from .beta import Beta
from .binomial import Binomial
from .categorical import Categorical
from .cauchy import Cauchy
from .continuous_bernoulli import ContinuousBernoulli
from .dirichlet import Dirichlet
from .distribution import Distribution
from .exp_family import ExponentialFamily
from .exponential import Exponential
from .gamma import Gamma
from .geometric import Geometric
from .gumbel import Gumbel
from .half_normal import HalfNormal
from .independent import Independent
from .laplace import Laplace
from .lowrank_multivariate_normal import LowRankMultivariateNormal, lowrank_logdet, lowrank_mahalanobis
from .multivariate_normal import MultivariateNormal, log_diagonal, mahalanobis
from .normal import Normal
from .one_hot_categorical import OneHotCategorical
from .pareto import Pareto
from .poisson import Poisson
from .transformed_distribution import TransformedDistribution
from .uniform import Uniform
from .utils import euler_constant, sum_rightmost

Formula = Callable[[Any, Any], Any]

_KL_REGISTRY: dict[tuple[type, type], Formula] = {}
_FOUND: dict[tuple[type, type], Formula | None] = {}

# -- Registry --------------------------------------------------------------------------------------------------------


def register_kl(type_p: type, type_q: type) -> Callable[[Formula], Formula]:
    """Return a decorator that registers a function ``f(p, q)`` for the Kullback-Leibler divergence.

    :func:`kl_divergence` calls the function if ``p`` is an instance of ``type_p`` and ``q`` an instance of ``type_q``.
    If several functions are registered for base classes of ``type(p)`` and ``type(q)``, it calls the one whose classes
    come first in their method resolution orders (``__mro__``).

    >>> import retrograd as torch
    >>> class Point(torch.distributions.Distribution):
    ...     arg_constraints = {}
    >>> decorator = torch.distributions.register_kl(Point, Point)
    >>> _ = decorator(lambda p, q: torch.tensor(0.0))
    >>> torch.distributions.kl_divergence(Point(), Point())
    tensor(0.)
    """
    if not (isinstance(type_p, type) and isinstance(type_q, type)):
        raise TypeError("issubclass() arg 1 must be a class")

    def decorator(formula: Formula) -> Formula:
        _KL_REGISTRY[type_p, type_q] = formula
        _FOUND.clear()
        return formula

    return decorator


def _formula_for(type_p: type, type_q: type) -> Formula | None:
    """Return the registered function that computes the Kullback-Leibler divergence for two classes.

    The result is the function registered for the base classes that come first in ``type_p.__mro__`` and
    ``type_q.__mro__`` (a class counts as its own base class). The result is None if no function is registered for base
    classes of both. If one function comes first for ``type_p`` and another for ``type_q``, the function for ``type_p``
    is returned, and a RuntimeWarning is issued.
    """
    if (type_p, type_q) not in _FOUND:
        places = {
            pair: (type_p.__mro__.index(pair[0]), type_q.__mro__.index(pair[1]))
            for pair in _KL_REGISTRY
            if issubclass(type_p, pair[0]) and issubclass(type_q, pair[1])
        }
        if not places:
            return None
        left = min(places, key=lambda pair: places[pair])
        right = min(places, key=lambda pair: places[pair][::-1])
        if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
            p, q = left[0].__name__, right[1].__name__
            warn(
                f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please register_kl({p}, {q})",
                RuntimeWarning,
            )
        _FOUND[type_p, type_q] = _KL_REGISTRY[left]
    return _FOUND[type_p, type_q]


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """Return the Kullback-Leibler divergence of ``p`` and ``q``.

    The divergence is the expected value of ``p.log_prob(x) - q.log_prob(x)`` over samples ``x`` of ``p``. Raise
    NotImplementedError if no formula is registered for the classes of ``p`` and ``q``.

    >>> kl_divergence(Normal(0.0, 1.0), Normal(1.0, 1.0))
    tensor(0.5000)
    """
    formula = _formula_for(type(p), type(q))
    if formula is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
        )
    return formula(p, q)


# -- Infinite: the support of p exceeds q's --------------------------------------------------------------------------

#: Attribute of p with its shape, class of p, and the classes of q.
_INFINITE: list[tuple[str, type, tuple[type, ...]]] = [
    ("concentration1", Beta, (Pareto,)),
    ("probs", ContinuousBernoulli, (Pareto,)),
    ("rate", Exponential, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    ("concentration", Gamma, (Beta, ContinuousBernoulli, Pareto, Uniform)),
    ("loc", Gumbel, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    ("loc", Laplace, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    ("loc", Normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)),
    ("scale", Pareto, (Beta, ContinuousBernoulli, Uniform)),
    ("rate", Poisson, (Bernoulli, Binomial)),
]


def _infinite(attribute: str) -> Formula:
    """Return a function of ``p`` and ``q`` for an infinite Kullback-Leibler divergence.

    Its result has the shape of the attribute ``attribute`` of ``p``, which is one of the parameters.
    """
    return lambda p, q: torch.full_like(getattr(p, attribute), math.inf)


for _attribute, _p, _all in _INFINITE:
    for _q in _all:
        register_kl(_p, _q)(_infinite(_attribute))


def _infinite_unless(inside: Any, found: Tensor) -> Tensor:
    """Return ``found`` after setting its elements to infinity where the boolean tensor ``inside`` is false.

    ``found`` is a Kullback-Leibler divergence, and is modified in place.
    """
    found[~inside] = math.inf
    return found


# -- Within a family -------------------------------------------------------------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_families(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of two distributions of the same exponential family.

    The result is ``F(θq) - F(θp) - <θq - θp, ∇F(θp)>``, where ``F`` is the log normaliser and ``θp`` and ``θq`` are the
    natural parameters of ``p`` and ``q`` (the Bregman divergence).
    """
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot                             be computed "
            "using Bregman divergences"
        )
    normaliser, params, slopes = p._log_normalizer_grads()
    found = q._log_normalizer(*q._natural_params) - normaliser
    for ours, theirs, slope in zip(params, q._natural_params, slopes, strict=True):
        found = found - sum_rightmost((theirs - ours) * slope, len(q.event_shape) if slope.dim() > found.dim() else 0)
    return found


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p: Any, q: Any) -> Tensor:
    yes = p.probs * (torch.nn.functional.softplus(-q.logits) - torch.nn.functional.softplus(-p.logits))
    no = (1 - p.probs) * (torch.nn.functional.softplus(q.logits) - torch.nn.functional.softplus(p.logits))
    yes = yes.masked_fill(q.probs == 0, math.inf).masked_fill(p.probs == 0, 0)
    return yes + no.masked_fill(q.probs == 1, math.inf).masked_fill(p.probs == 1, 0)


@register_kl(Beta, Beta)
def _beta(p: Any, q: Any) -> Tensor:
    p_sum, q_sum = (each.concentration1 + each.concentration0 for each in (p, q))
    norms = [
        sum_.lgamma() - each.concentration1.lgamma() - each.concentration0.lgamma()
        for each, sum_ in ((p, p_sum), (q, q_sum))
    ]
    return (
        norms[0] - norms[1]
        + (p.concentration1 - q.concentration1) * torch.digamma(p.concentration1)
        + (p.concentration0 - q.concentration0) * torch.digamma(p.concentration0)
        + (q_sum - p_sum) * torch.digamma(p_sum)
    )  # fmt: skip


@register_kl(Binomial, Binomial)
def _binomial(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of the binomial distributions ``p`` and ``q``.

    The divergence is infinite where ``q.total_count`` is less than ``p.total_count``. Raises NotImplementedError if it
    is greater anywhere, because the divergence then has no closed form.
    """
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    found = p.total_count * (p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p())
    return _infinite_unless(p.total_count <= q.total_count, found)


@register_kl(Categorical, Categorical)
def _categorical(p: Any, q: Any) -> Tensor:
    each = p.probs * (p.logits - q.logits)
    shape = each.shape
    each = each.masked_fill((q.probs == 0).expand(shape), math.inf).masked_fill((p.probs == 0).expand(shape), 0)
    return each.sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p: Any, q: Any) -> Tensor:
    return _categorical(p._categorical, q._categorical)


@register_kl(Cauchy, Cauchy)
def _cauchy(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of the Cauchy distributions ``p`` and ``q``.

    Source: Chyzak and Nielsen, "A closed-form formula for the KL divergence between Cauchy distributions", 2019.
    """
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return (
        p.mean * (p.logits - q.logits) + p._log_norm() + torch.log1p(-p.probs)
        + (-q._log_norm() - torch.log1p(-q.probs))
    )  # fmt: skip


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p: Any, q: Any) -> Tensor:
    p_sum, q_sum = (each.concentration.sum(-1) for each in (p, q))
    away = torch.digamma(p.concentration) - torch.digamma(p_sum).unsqueeze(-1)
    return (
        p_sum.lgamma() - q_sum.lgamma() - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
        + ((p.concentration - q.concentration) * away).sum(-1)
    )  # fmt: skip


@register_kl(Exponential, Exponential)
def _exponential(p: Any, q: Any) -> Tensor:
    ratio = q.rate / p.rate
    return -ratio.log() + ratio - 1


@register_kl(Gamma, Gamma)
def _gamma(p: Any, q: Any) -> Tensor:
    return (
        q.concentration * (p.rate / q.rate).log() + torch.lgamma(q.concentration) - torch.lgamma(p.concentration)
        + (p.concentration - q.concentration) * torch.digamma(p.concentration)
        + (q.rate - p.rate) * (p.concentration / p.rate)
    )  # fmt: skip


@register_kl(Geometric, Geometric)
def _geometric(p: Any, q: Any) -> Tensor:
    return -p.entropy() - torch.log1p(-q.probs) / p.probs - q.logits


@register_kl(Gumbel, Gumbel)
def _gumbel(p: Any, q: Any) -> Tensor:
    ratio, away, theirs = p.scale / q.scale, p.loc / q.scale, q.loc / q.scale
    found = -ratio.log() + away - theirs + ratio * euler_constant
    return found + torch.exp(theirs + (1 + ratio).lgamma() - away) - (1 + euler_constant)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p: Any, q: Any) -> Tensor:
    return _normal(p.base_dist, q.base_dist)


@register_kl(Laplace, Laplace)
def _laplace(p: Any, q: Any) -> Tensor:
    ratio, away = p.scale / q.scale, (p.loc - q.loc).abs()
    return -ratio.log() + away / q.scale + ratio * torch.exp(-away / p.scale) - 1


@register_kl(Normal, Normal)
def _normal(p: Any, q: Any) -> Tensor:
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Pareto, Pareto)
def _pareto(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of the Pareto distributions ``p`` and ``q``.

    Source: Gil, "On Rényi divergence measures for continuous alphabet sources", 2011.
    """
    ratio = q.alpha / p.alpha
    found = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return _infinite_unless(p.support.lower_bound >= q.support.lower_bound, found)


@register_kl(Poisson, Poisson)
def _poisson(p: Any, q: Any) -> Tensor:
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


@register_kl(Uniform, Uniform)
def _uniform(p: Any, q: Any) -> Tensor:
    return _infinite_unless(_within(p, q), ((q.high - q.low) / (p.high - p.low)).log())


def _within(p: Any, q: Any) -> Tensor:
    """Return a boolean tensor that is true where the interval of the uniform distribution ``q`` contains that of ``p``."""
    return (q.low <= p.low) & (p.high <= q.high)


@register_kl(Independent, Independent)
def _independent(p: Any, q: Any) -> Tensor:
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of the transformed distributions ``p`` and ``q``.

    If their transforms are equal, this is the divergence of the base distributions. Otherwise NotImplementedError is
    raised.
    """
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError
    return kl_divergence(p.base_dist, q.base_dist)


# -- Normal vectors --------------------------------------------------------------------------------------------------


def _same_events(p: Any, q: Any, which: str) -> None:
    if p.event_shape != q.event_shape:
        gap = " " * 25
        raise ValueError(
            f"KL-divergence between two {which} Normals with{gap} different event shapes cannot be computed"
        )


def _trace_of_squares(*matrices: Tensor) -> Tensor:
    """Return the trace of ``M @ M.mT``, summed over the matrices ``M`` in ``matrices``.

    Batch dimensions are kept.
    """
    return sum(each.pow(2).sum((-2, -1)) for each in matrices)


def _solved(triangular: Tensor, other: Tensor) -> Tensor:
    """Return the solution ``x`` of ``triangular @ x = other`` for a lower triangular matrix."""
    return torch.linalg.solve_triangular(triangular, other, upper=False)


@register_kl(MultivariateNormal, MultivariateNormal)
def _multivariate(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "Multivariate")
    ours, theirs = p._unbroadcasted_scale_tril, q._unbroadcasted_scale_tril
    halves = log_diagonal(theirs) - log_diagonal(ours)
    spread = _trace_of_squares(_solved(theirs, ours)) + mahalanobis(theirs, q.loc - p.loc)
    return halves + 0.5 * (spread - p.event_shape[0])


@register_kl(LowRankMultivariateNormal, MultivariateNormal)
def _lowrank_multivariate(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "(Low Rank) Multivariate")
    theirs = q._unbroadcasted_scale_tril
    log_dets = 2 * log_diagonal(theirs) - lowrank_logdet(p._unbroadcasted_cov_diag, p._capacitance_tril)
    parts = (p._unbroadcasted_cov_factor, torch.diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    spread = _trace_of_squares(*(_solved(theirs, each) for each in parts)) + mahalanobis(theirs, q.loc - p.loc)
    return 0.5 * (log_dets + spread - p.event_shape[0])


def _to_lowrank(p: Any, q: Any, our_log_det: Tensor, parts: tuple[Tensor, ...]) -> Tensor:
    """Return the Kullback-Leibler divergence of two normal distributions of vectors, ``p`` and ``q``.

    ``q`` is a LowRankMultivariateNormal. The covariance of ``p`` is given by the matrices ``parts``: it is the sum of
    ``M @ M.mT`` over all ``M`` in ``parts``. ``our_log_det`` is the logarithm of the determinant of this covariance.
    """
    factor, diagonal, capacitance = q._unbroadcasted_cov_factor, q._unbroadcasted_cov_diag, q._capacitance_tril
    log_dets = lowrank_logdet(diagonal, capacitance) - our_log_det
    # By Woodbury's formula: the trace of D^-1 P minus the trace of the low-rank correction.
    less = _solved(capacitance, factor.mT / diagonal.unsqueeze(-2))
    root = diagonal.sqrt().unsqueeze(-1)
    spread = _trace_of_squares(*(each / root for each in parts)) - _trace_of_squares(*(less @ each for each in parts))
    distance = lowrank_mahalanobis(factor, diagonal, q.loc - p.loc, capacitance)
    return 0.5 * (log_dets + spread + distance - p.event_shape[0])


@register_kl(MultivariateNormal, LowRankMultivariateNormal)
def _multivariate_lowrank(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "(Low Rank) Multivariate")
    ours = p._unbroadcasted_scale_tril
    return _to_lowrank(p, q, 2 * log_diagonal(ours), (ours,))


@register_kl(LowRankMultivariateNormal, LowRankMultivariateNormal)
def _lowrank(p: Any, q: Any) -> Tensor:
    _same_events(p, q, "Low Rank Multivariate")
    parts = (p._unbroadcasted_cov_factor, torch.diag_embed(p._unbroadcasted_cov_diag.sqrt()))
    return _to_lowrank(p, q, lowrank_logdet(p._unbroadcasted_cov_diag, p._capacitance_tril), parts)


# -- From one family to another --------------------------------------------------------------------------------------


# Cross-entropy minus the entropy of p, summed in PyTorch's order.


def _to_normal(p: Any, q: Any) -> Tensor:
    """Return the cross entropy of ``p`` and ``q``, where ``q`` is a normal distribution.

    The cross entropy is the expected value of ``-q.log_prob(x)`` over samples ``x`` of ``p``. The caller subtracts the
    entropy of ``p``, which gives the Kullback-Leibler divergence.
    """
    square = (q.scale * q.scale) * 2
    return 0.5 * (square * math.pi).log() + (p.variance + (p.mean - q.loc).pow(2)) / square


def _by_moments(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of ``p`` and ``q``, where ``q`` is a normal distribution.

    The formula holds for any ``p`` and uses only the mean, the variance and the entropy of ``p``.
    """
    return -p.entropy() + _to_normal(p, q)


for _p in (Beta, ContinuousBernoulli, Exponential, Gamma, Uniform):
    register_kl(_p, Normal)(_by_moments)


@register_kl(Gumbel, Normal)
@register_kl(Laplace, Normal)
def _with_tails_normal(p: Any, q: Any) -> Tensor:
    return _to_normal(p, q) - p.entropy()


@register_kl(Pareto, Normal)
def _pareto_normal(p: Any, q: Any) -> Tensor:
    return _infinite_unless(p.alpha > 2, _by_moments(p, q))


def _to_exponential(p: Any, q: Any) -> Tensor:
    """Return the Kullback-Leibler divergence of ``p`` and ``q``, where ``q`` is an exponential distribution.

    The samples of ``p`` must not be negative.
    """
    return -p.entropy() - q.rate.log() + q.rate * p.mean


for _p in (Beta, ContinuousBernoulli, Gamma):
    register_kl(_p, Exponential)(_to_exponential)


@register_kl(Pareto, Exponential)
def _pareto_exponential(p: Any, q: Any) -> Tensor:
    return _infinite_unless(p.alpha > 1, _to_exponential(p, q))


@register_kl(Uniform, Exponential)
def _uniform_exponential(p: Any, q: Any) -> Tensor:
    return _infinite_unless(p.low >= 0, _to_exponential(p, q))


def _to_gamma(log_mean: Tensor, p: Any, q: Any) -> Tensor:
    """Return the cross entropy of ``p`` and ``q``, where ``q`` is a gamma distribution.

    The cross entropy is the expected value of ``-q.log_prob(x)`` over samples ``x`` of ``p``. ``log_mean`` is the
    expected value of ``log(x)``. The caller subtracts the entropy of ``p``, which gives the Kullback-Leibler
    divergence.
    """
    norm = q.concentration.lgamma() - q.concentration * q.rate.log()
    return norm - (q.concentration - 1) * log_mean + q.rate * p.mean


@register_kl(Beta, Gamma)
def _beta_gamma(p: Any, q: Any) -> Tensor:
    log_mean = p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    return -p.entropy() + _to_gamma(log_mean, p, q)


@register_kl(Exponential, Gamma)
def _exponential_gamma(p: Any, q: Any) -> Tensor:
    return _to_gamma(-p.rate.log() - euler_constant, p, q) - p.entropy()


@register_kl(Pareto, Gamma)
def _pareto_gamma(p: Any, q: Any) -> Tensor:
    return _infinite_unless(p.alpha > 1, _to_gamma(p.scale.log() + p.alpha.reciprocal(), p, q) - p.entropy())


def _x_log_x(x: Tensor) -> Tensor:
    return torch.xlogy(x, x)


def _mean_of_log(p: Any) -> Tensor:
    """Return the expected logarithm of a sample of the uniform distribution ``p``."""
    return (_x_log_x(p.high) - _x_log_x(p.low)) / (p.high - p.low) - 1


@register_kl(Uniform, Gamma)
def _uniform_gamma(p: Any, q: Any) -> Tensor:
    return _infinite_unless(p.low >= 0, _to_gamma(_mean_of_log(p), p, q) - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_beta(p: Any, q: Any) -> Tensor:
    # 1 - x is uniform too.
    rest = (_x_log_x(1 - p.low) - _x_log_x(1 - p.high)) / (p.high - p.low) - 1
    norm = q.concentration1.lgamma() + q.concentration0.lgamma() - (q.concentration1 + q.concentration0).lgamma()
    found = -p.entropy() - (q.concentration1 - 1) * _mean_of_log(p) - (q.concentration0 - 1) * rest + norm
    return _infinite_unless((p.low >= 0) & (p.high <= 1), found)


@register_kl(Uniform, Pareto)
def _uniform_pareto(p: Any, q: Any) -> Tensor:
    norm = (q.alpha * q.scale.pow(q.alpha)).log()
    return _infinite_unless(p.low >= q.scale, _mean_of_log(p) * (q.alpha + 1) - p.entropy() - norm)


def _to_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    return -p.entropy() - p.mean * q.logits - torch.log1p(-q.probs) - q._log_norm()


register_kl(Beta, ContinuousBernoulli)(_to_continuous_bernoulli)


@register_kl(Uniform, ContinuousBernoulli)
def _uniform_continuous_bernoulli(p: Any, q: Any) -> Tensor:
    inside = (p.low >= q.support.lower_bound) & (p.high <= q.support.upper_bound)
    return torch.where(inside, _to_continuous_bernoulli(p, q), math.inf)


@register_kl(Beta, Uniform)
def _beta_uniform(p: Any, q: Any) -> Tensor:
    inside = (q.low <= p.support.lower_bound) & (q.high >= p.support.upper_bound)
    return _infinite_unless(inside, -p.entropy() + (q.high - q.low).log())


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_uniform(p: Any, q: Any) -> Tensor:
    inside = (q.low <= p.support.lower_bound) & (q.high >= p.support.upper_bound)
    return torch.where(inside, -p.entropy() + (q.high - q.low).log(), math.inf)


def _to_gumbel(p: Any, q: Any, growth: Tensor) -> Tensor:
    """Return the cross entropy of ``p`` and ``q``, where ``q`` is a Gumbel distribution.

    The cross entropy is the expected value of ``-q.log_prob(x)`` over samples ``x`` of ``p``. ``growth`` is the
    expected value of ``exp(-(x - q.loc) / q.scale)``. The caller subtracts the entropy of ``p``, which gives the
    Kullback-Leibler divergence.
    """
    return q.scale.log() + (p.mean - q.loc) / q.scale + growth


@register_kl(Exponential, Gumbel)
def _exponential_gumbel(p: Any, q: Any) -> Tensor:
    rate = p.rate * q.scale
    return -p.entropy() + _to_gumbel(p, q, torch.exp(q.loc / q.scale) * rate / (rate + 1))


@register_kl(Gamma, Gumbel)
def _gamma_gumbel(p: Any, q: Any) -> Tensor:
    growth = torch.exp(q.loc / q.scale) * (1 + (p.rate * q.scale).reciprocal()).pow(-p.concentration)
    return -p.entropy() + _to_gumbel(p, q, growth)


@register_kl(Normal, Gumbel)
def _normal_gumbel(p: Any, q: Any) -> Tensor:
    growth = torch.exp((q.loc - p.loc) / q.scale + 0.5 * (p.scale / q.scale).pow(2))
    return _to_gumbel(p, q, growth) - p.entropy()


@register_kl(Uniform, Gumbel)
def _uniform_gumbel(p: Any, q: Any) -> Tensor:
    low, high = ((q.loc - each) / q.scale for each in (p.low, p.high))
    return _to_gumbel(p, q, q.scale / (p.high - p.low) * (torch.exp(low) - torch.exp(high))) - p.entropy()


@register_kl(Normal, Laplace)
def _normal_laplace(p: Any, q: Any) -> Tensor:
    away = p.loc - q.loc
    ratio = away / p.scale
    spread = math.sqrt(2 / math.pi) * p.scale * torch.exp(-0.5 * ratio.pow(2))
    distance = spread + away * torch.erf(math.sqrt(0.5) * ratio)
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@register_kl(Bernoulli, Poisson)
def _bernoulli_poisson(p: Any, q: Any) -> Tensor:
    return -p.entropy() - (p.probs * q.rate.log() - q.rate)


__all__ = ["register_kl", "kl_divergence"]
