"""``Transform``, the base class of transforms of random variables, and all transforms.

The sections of this file are the base class, elementwise transforms, transforms of vectors and matrices, and composite
transforms such as ``ComposeTransform``.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Sequence
from functools import reduce
from numbers import Number
from typing import Any

import retrograd as torch
from retrograd import Size, Tensor
from retrograd.nn.functional import logsigmoid, pad, softplus

from ..compat.pickle_names import TorchNamed
from . import constraints
from .utils import broadcast_all, lazy_property, sum_rightmost, tril_matrix_to_vec, vec_to_tril_matrix


class Transform(TorchNamed):
    """Base class of transforms, functions from the set ``domain`` to the set ``codomain``.

    If ``cache_size`` is 1, the last argument and the last result are cached. The inverse of the cached result is then
    exactly the cached argument.

    A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.

    >>> import retrograd as torch
    >>> transform = torch.distributions.ExpTransform()
    >>> isinstance(transform, torch.distributions.Transform), transform.bijective, transform.sign
    (True, True, 1)
    >>> transform.inv(transform(torch.tensor(2.0)))
    tensor(2.)
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    _cached_x_y: tuple[Any, Any] = (None, None)

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> int:
        """Return the number of dimensions of an event.

        Raises ValueError if the events of ``domain`` and ``codomain`` have different numbers of dimensions.
        """
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Transform:
        """Return the inverse of this transform; ``t.inv.inv`` is ``t``."""
        found = self._inv() if self._inv is not None else None
        if found is None:
            found = self._inverted()
            self._inv = weakref.ref(found)
        return found

    def _inverted(self) -> Transform:
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """Return 1 for an increasing transform and -1 for a decreasing transform."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """Return this transform if it has the cache size ``cache_size``, otherwise a copy with this cache size."""
        if self._cache_size == cache_size:
            return self
        new = self.__new__(type(self))
        new.__dict__.update(self.__dict__)
        Transform.__init__(new, cache_size)
        return new

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        if x is not self._cached_x_y[0]:
            self._cached_x_y = x, self._call(x)
        return self._cached_x_y[1]

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is not self._cached_x_y[1]:
            self._cached_x_y = self._inverse(y), y
        return self._cached_x_y[0]

    def _call(self, x: Any) -> Any:
        """Return the value of this transform at ``x``."""
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        """Return the argument for which this transform has the value ``y``."""
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """Return the logarithm of the absolute value of the Jacobian determinant, for each event of ``x``.

        ``y`` is the value of this transform at ``x``.
        """
        raise NotImplementedError

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the result for an argument of shape ``shape``."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the argument for a result of shape ``shape``."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return self is other


class _ParameterlessTransform(Transform):
    """Base class of transforms without parameters; all instances of a class are equal."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self))


class _InverseTransform(Transform):
    """Inverse of ``transform``; the result of ``transform.inv``."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._forward = transform

    domain = property(lambda self: self._forward.codomain)
    codomain = property(lambda self: self._forward.domain)
    bijective = property(lambda self: self._forward.bijective)
    sign = property(lambda self: self._forward.sign)
    inv = property(lambda self: self._forward)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._forward.with_cache(cache_size).inv

    def __call__(self, x: Any) -> Any:
        return self._forward._inv_call(x)

    def _inv_call(self, y: Any) -> Any:
        return self._forward(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._forward.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._forward.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._forward.forward_shape(shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._forward == other._forward

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._forward!r})"


# -- Elementwise transforms ------------------------------------------------------------------------------------------


class _IncreasingTransform(_ParameterlessTransform):
    """Base class of increasing functions, without parameters, of one real number."""

    domain = constraints.real
    bijective = True
    sign = +1


class ExpTransform(_IncreasingTransform):
    """Transform ``exp(x)``.

    >>> import retrograd as torch
    >>> transform = torch.distributions.ExpTransform()
    >>> transform(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    >>> transform.log_abs_det_jacobian(torch.tensor([0.0, 1.0]), None)
    tensor([0., 1.])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.exp()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """Transform ``x ** exponent``.

    >>> import retrograd as torch
    >>> torch.distributions.PowerTransform(torch.tensor(2.0))(torch.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Tensor:
        return self.exponent.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(torch.eq(self.exponent, other.exponent).all())

    def _call(self, x: Tensor) -> Tensor:
        return x.pow(self.exponent)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Tensor) -> Tensor:
    """Return the sigmoid of ``x``, clamped to exclude 0 and 1."""
    limits = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_IncreasingTransform):
    """Transform ``1 / (1 + exp(-x))``, clamped to exclude 0 and 1; the inverse is the logit function.

    >>> import retrograd as torch
    >>> torch.distributions.SigmoidTransform()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.2689, 0.5000, 0.8808])
    """

    codomain = constraints.unit_interval

    def _call(self, x: Tensor) -> Tensor:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Tensor) -> Tensor:
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x) - softplus(x)


class SoftplusTransform(_IncreasingTransform):
    """Transform ``log(1 + exp(x))``.

    >>> import retrograd as torch
    >>> torch.distributions.SoftplusTransform()(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3133, 0.6931, 2.1269])
    """

    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return softplus(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -softplus(-x)


class TanhTransform(_IncreasingTransform):
    """Transform ``tanh(x)``.

    For large arguments, the result is rounded to ±1, whose inverse is infinite. With ``cache_size=1``, the inverse of
    the last result is instead the last argument.

    >>> import retrograd as torch
    >>> transform = torch.distributions.TanhTransform()
    >>> transform(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.7616,  0.0000,  0.9640])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x: Tensor) -> Tensor:
        return x.tanh()

    def _inverse(self, y: Tensor) -> Tensor:
        return torch.atanh(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2.0 * (math.log(2.0) - x - softplus(-2.0 * x))


class AbsTransform(_ParameterlessTransform):
    """Transform ``abs(x)``; the inverse returns its non-negative argument unchanged.

    >>> import retrograd as torch
    >>> torch.distributions.AbsTransform()(torch.tensor([-1.0, 2.0]))
    tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Tensor) -> Tensor:
        return x.abs()

    def _inverse(self, y: Tensor) -> Tensor:
        return y


class AffineTransform(Transform):
    """Transform ``loc + scale * x``, whose events are the last ``event_dim`` dimensions.

    >>> import retrograd as torch
    >>> transform = torch.distributions.AffineTransform(loc=1.0, scale=2.0)
    >>> transform(torch.tensor([0.0, 3.0]))
    tensor([1., 7.])
    >>> transform.inv(torch.tensor([1.0, 7.0]))
    tensor([0., 3.])
    """

    bijective = True

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.with_event_dim(constraints.real, self.event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.with_event_dim(constraints.real, self.event_dim)

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            number: Any = self.scale
            return (number > 0) - (number < 0)
        return self.scale.sign()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineTransform) and all(
            a == b if isinstance(a, Number) and isinstance(b, Number) else bool(torch.as_tensor(a == b).all())
            for a, b in ((self.loc, other.loc), (self.scale, other.scale))
        )

    def _call(self, x: Tensor) -> Tensor:
        return self.loc + self.scale * x

    def _inverse(self, y: Tensor) -> Tensor:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        number = isinstance(self.scale, Number)
        found = torch.full_like(x, math.log(abs(self.scale))) if number else torch.abs(self.scale).log()
        if not self.event_dim:
            return found.expand(x.shape)
        return sum_rightmost(found, self.event_dim).expand(x.shape[: -self.event_dim])

    def forward_shape(self, shape: Any) -> Any:
        return torch.broadcast_shapes(shape, *(getattr(each, "shape", ()) for each in (self.loc, self.scale)))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """Transform by the cumulative distribution function of ``distribution``.

    The transform maps samples of ``distribution`` to uniformly distributed values between 0 and 1.

    >>> import retrograd as torch
    >>> normal = torch.distributions.Normal(0.0, 1.0)
    >>> torch.distributions.CumulativeDistributionTransform(normal)(torch.tensor([-1.0, 0.0, 1.0]))
    tensor([0.1587, 0.5000, 0.8413])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution: Any, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.distribution = distribution

    domain = property(lambda self: self.distribution.support)

    def _call(self, x: Tensor) -> Tensor:
        return self.distribution.cdf(x)

    def _inverse(self, y: Tensor) -> Tensor:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)


# -- Vectors and matrices --------------------------------------------------------------------------------------------


def _one_more(shape: Any, by: int) -> Any:
    """Return ``shape`` with its last size increased by ``by``."""
    if len(shape) < 1:
        raise ValueError("Too few dimensions on input")
    return (*shape[:-1], shape[-1] + by)


class SoftmaxTransform(_ParameterlessTransform):
    """Transform ``exp(x) / sum(exp(x))`` along the last dimension.

    The transform is not bijective. The inverse returns the logarithm, which is one of the possible arguments.

    >>> import retrograd as torch
    >>> torch.distributions.SoftmaxTransform()(torch.tensor([1.0, 2.0, 3.0]))
    tensor([0.0900, 0.2447, 0.6652])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Tensor) -> Tensor:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        _one_more(shape, 0)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_ParameterlessTransform):
    """Transform from vectors of n elements to vectors of n + 1 positive elements that sum to 1 (stick breaking).

    A stick of length 1 is broken n times; the n + 1 elements are the lengths of the pieces. Break i removes a fraction
    of the remaining stick: ``sigmoid(x[i] - log(k))``, where k is the number of pieces that remain after this break.

    >>> import retrograd as torch
    >>> torch.distributions.StickBreakingTransform()(torch.tensor([0.0, 0.0]))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _remaining(x: Tensor, pieces: int) -> Tensor:
        """Return the vector ``pieces, pieces - 1, …, 1`` in the dtype of ``x``.

        An element is the number of pieces that remain after one break of the stick. The transform subtracts the
        logarithms of these numbers from its argument, so that a vector of zeros is mapped to pieces of equal length.
        """
        return pieces + 1 - x.new_ones(pieces).cumsum(-1)

    def _call(self, x: Tensor) -> Tensor:
        shares = _clipped_sigmoid(x - self._remaining(x, x.shape[-1]).log())
        rest = (1 - shares).cumprod(-1)
        return pad(shares, [0, 1], value=1) * pad(rest, [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        pieces = y[..., :-1]
        rest = torch.clamp(1 - pieces.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return pieces.log() - rest.log() + self._remaining(y, pieces.shape[-1]).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        x = x - self._remaining(x, x.shape[-1]).log()
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        return _one_more(shape, 1)

    def inverse_shape(self, shape: Any) -> Any:
        return _one_more(shape, -1)


class LowerCholeskyTransform(_ParameterlessTransform):
    """Transform from a square matrix to its lower triangle with the exponential function applied to the diagonal.

    >>> import retrograd as torch
    >>> torch.distributions.LowerCholeskyTransform()(torch.tensor([[0.0, 5.0], [2.0, 1.0]]))
    tensor([[1.0000, 0.0000],
            [2.0000, 2.7183]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Tensor) -> Tensor:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Tensor) -> Tensor:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_ParameterlessTransform):
    """Transform from a square matrix to ``L @ L.mT``, where ``L`` is the result of :class:`LowerCholeskyTransform`.

    >>> import retrograd as torch
    >>> torch.distributions.PositiveDefiniteTransform()(torch.tensor([[0.0, 5.0], [2.0, 0.0]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Tensor) -> Tensor:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Tensor) -> Tensor:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CorrCholeskyTransform(Transform):
    """Transform from a vector to the Cholesky factor of a correlation matrix.

    ``tanh`` maps the elements of the vector to the canonical partial correlations, from which the factor is computed.

    Source: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009.

    >>> import retrograd as torch
    >>> torch.distributions.CorrCholeskyTransform()(torch.tensor([0.5, 0.0, 0.0]))
    tensor([[1.0000, 0.0000, 0.0000],
            [0.4621, 0.8868, 0.0000],
            [0.0000, 0.0000, 1.0000]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Tensor) -> Tensor:
        eps = torch.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(torch.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        # Remaining length of each row (of total length 1) after each of its elements.
        left = (1 - partial**2).sqrt().cumprod(-1)
        partial = partial + torch.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return partial * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Tensor) -> Tensor:
        before = pad((1 - torch.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(before, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor, intermediates: Any = None) -> Tensor:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError("Too few dimensions on input")
        size = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return (*shape[:-1], size, size)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError("Too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


# -- Composite transforms --------------------------------------------------------------------------------------------


class ComposeTransform(Transform):
    """Composition of the transforms ``parts``; ``parts[0]`` is applied first.

    >>> import retrograd as torch
    >>> from retrograd.distributions import AffineTransform, ComposeTransform, ExpTransform
    >>> ComposeTransform([AffineTransform(0.0, 2.0), ExpTransform()])(torch.tensor([0.0, 0.5]))
    tensor([1.0000, 2.7183])
    """

    def __init__(self, parts: list[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    @constraints.dependent_property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return constraints.with_event_dim(self.parts[0].domain, event_dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return constraints.with_event_dim(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        return reduce(operator.mul, (part.sign for part in self.parts), 1)

    def _inverted(self) -> Transform:
        inverse = ComposeTransform([part.inv for part in reversed(self.parts)])
        inverse._inv = weakref.ref(self)
        return inverse

    def with_cache(self, cache_size: int = 1) -> Any:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return torch.zeros_like(x)
        steps = [x]
        for part in self.parts[:-1]:
            steps.append(part(steps[-1]))
        steps.append(y)
        event_dim, terms = self.domain.event_dim, []
        for part, before, after in zip(self.parts, steps[:-1], steps[1:], strict=True):
            stretched = part.log_abs_det_jacobian(before, after)
            terms.append(sum_rightmost(stretched, event_dim - part.domain.event_dim))
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        return reduce(lambda found, part: part.forward_shape(found), self.parts, shape)

    def inverse_shape(self, shape: Any) -> Any:
        return reduce(lambda found, part: part.inverse_shape(found), reversed(self.parts), shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


class IndependentTransform(Transform):
    """Transform ``base_transform`` for larger events: the last batch dimensions become event dimensions.

    ``reinterpreted_batch_ndims`` is the number of these dimensions. ``log_abs_det_jacobian`` is summed over them.

    >>> import retrograd as torch
    >>> transform = torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1)
    >>> x = torch.tensor([1.0, 2.0])
    >>> transform.log_abs_det_jacobian(x, transform(x))
    tensor(3.)
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Any:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x: Tensor) -> Tensor:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _PartwiseTransform(Transform):
    """Base class of ``CatTransform`` and ``StackTransform``, which apply each transform in ``tseq`` to one part.

    The parts of a tensor are consecutive along the dimension ``dim``.
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        if not all(isinstance(each, Transform) for each in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [each.with_cache(cache_size) if cache_size else each for each in tseq]
        self.dim = dim

    def with_cache(self, cache_size: int = 1) -> Any:
        new = super().with_cache(cache_size)
        if new is not self:
            new.transforms = [each.with_cache(cache_size) for each in self.transforms]
        return new

    bijective = property(lambda self: all(each.bijective for each in self.transforms))

    def _size(self) -> tuple[int, str]:
        """Return the size that an argument must have along ``dim``, and the term for this size in error messages."""
        raise NotImplementedError

    def _check(self, **values: Tensor) -> None:
        expected, text = self._size()
        for name, value in values.items():
            if not -value.dim() <= self.dim < value.dim():
                raise AssertionError(f"dim {self.dim} out of range for tensor with {value.dim()} dimensions")
            if value.shape[self.dim] != expected:
                raise AssertionError(f"{name}.size({self.dim}) = {value.shape[self.dim]} must equal {text} {expected}")


class CatTransform(_PartwiseTransform):
    """Transform that applies the transforms ``tseq`` to consecutive parts along ``dim``.

    ``lengths`` are the sizes of the parts along ``dim``, by default 1 each.

    >>> import retrograd as torch
    >>> from retrograd.distributions import AffineTransform, CatTransform, ExpTransform
    >>> CatTransform([ExpTransform(), AffineTransform(0.0, 10.0)], lengths=[1, 2])(torch.tensor([0.0, 1.0, 2.0]))
    tensor([ 1., 10., 20.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> int:
        """Return the largest number of event dimensions among the transforms."""
        return max(each.event_dim for each in self.transforms)

    @lazy_property
    def length(self) -> int:
        """Return the sum of the sizes of all parts along ``dim``."""
        return sum(self.lengths)

    def _size(self) -> tuple[int, str]:
        return self.length, "length"

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([each.domain for each in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([each.codomain for each in self.transforms], self.dim, self.lengths)

    def _call(self, x: Tensor) -> Tensor:
        self._check(x=x)
        parts = zip(self.transforms, x.split(self.lengths, self.dim), strict=True)
        return torch.cat([each(part) for each, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y=y)
        parts = zip(self.transforms, y.split(self.lengths, self.dim), strict=True)
        return torch.cat([each.inv(part) for each, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        self._check(x=x, y=y)
        xs, ys = (each.split(self.lengths, self.dim) for each in (x, y))
        stretched = [
            sum_rightmost(each.log_abs_det_jacobian(before, after), self.event_dim - each.event_dim)
            for each, before, after in zip(self.transforms, xs, ys, strict=True)
        ]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return torch.cat(stretched, dim) if dim < 0 else reduce(operator.add, stretched)


class StackTransform(_PartwiseTransform):
    """Transform that applies ``tseq[i]`` to ``x.select(dim, i)`` of a tensor ``x`` and stacks the results.

    >>> import retrograd as torch
    >>> from retrograd.distributions import AffineTransform, ExpTransform, StackTransform
    >>> transform = StackTransform([ExpTransform(), AffineTransform(0.0, 10.0)], dim=0)
    >>> transform(torch.tensor([[0.0, 1.0], [2.0, 3.0]]))
    tensor([[ 1.0000,  2.7183],
            [20.0000, 30.0000]])
    """

    def _size(self) -> tuple[int, str]:
        return len(self.transforms), "len(transforms)"

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([each.domain for each in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([each.codomain for each in self.transforms], self.dim)

    def _call(self, x: Tensor) -> Tensor:
        self._check(x=x)
        parts = zip(self.transforms, x.unbind(self.dim), strict=True)
        return torch.stack([each(part) for each, part in parts], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        self._check(y=y)
        parts = zip(self.transforms, y.unbind(self.dim), strict=True)
        return torch.stack([each.inv(part) for each, part in parts], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        self._check(x=x, y=y)
        parts = zip(self.transforms, x.unbind(self.dim), y.unbind(self.dim), strict=True)
        return torch.stack([each.log_abs_det_jacobian(before, after) for each, before, after in parts], self.dim)


class ReshapeTransform(Transform):
    """Transform that reshapes each event from ``in_shape`` to ``out_shape``.

    >>> import retrograd as torch
    >>> transform = torch.distributions.ReshapeTransform((4,), (2, 2))
    >>> transform(torch.arange(4.0))
    tensor([[0., 1.],
            [2., 3.]])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    domain = constraints.dependent_property(lambda self: constraints.independent(constraints.real, len(self.in_shape)))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _reshaped(shape, self.out_shape, self.in_shape)


def _reshaped(shape: Any, before: Size, after: Size) -> Any:
    """Return ``shape`` with its last ``len(before)`` sizes replaced by the sizes ``after``.

    Raise ValueError if the replaced sizes differ from ``before``.
    """
    cut = len(shape) - len(before)
    if cut < 0:
        raise ValueError("Too few dimensions on input")
    if tuple(shape[cut:]) != before:
        raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
    return Size(shape[:cut]) + after


identity_transform = ComposeTransform([])

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftplusTransform",
    "TanhTransform", "SoftmaxTransform", "StackTransform", "StickBreakingTransform", "Transform", "identity_transform",
]  # fmt: skip
