"""Constraints: sets of valid parameters or samples of a distribution. ``check`` tests whether values are in the set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import retrograd as torch
from retrograd import Tensor

from ..compat.pickle_names import TorchNamed


class Constraint(TorchNamed):
    """Base class of constraints, sets of values.

    ``is_discrete`` is true if the set is countable. An event is an element of the set, for example a vector;
    ``event_dim`` is its number of dimensions.
    """

    is_discrete: Any = False
    event_dim: Any = 0
    #: Names of the attributes shown by ``repr``.
    bounds: ClassVar[tuple[str, ...]] = ()

    def check(self, value: Tensor) -> Tensor:
        """Return a boolean tensor that is true for each event of ``value`` that belongs to the set."""
        raise NotImplementedError

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self.bounds)
        return f"{type(self).__name__.removeprefix('_')}({shown})"


# -- Constraints that depend on parameters ---------------------------------------------------------------------------


class _Dependent(Constraint):
    """Placeholder for a constraint that depends on the parameters of a distribution, such as the bounds of ``Uniform``.

    The class of the distribution has the placeholder as an attribute, because its parameters are not known. An instance
    of the class has the actual constraint.
    """

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> None:
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str) -> Any:
        if (value := getattr(self, f"_{name}")) is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return value

    @property
    def is_discrete(self) -> bool:
        return self._known("is_discrete")

    @property
    def event_dim(self) -> int:
        return self._known("event_dim")

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        """Return a copy of this placeholder with the passed ``is_discrete`` and ``event_dim``.

        An argument that is not passed has the same value as in this placeholder.
        """
        if is_discrete is NotImplemented:
            is_discrete = self._is_discrete
        if event_dim is NotImplemented:
            event_dim = self._event_dim
        return _Dependent(is_discrete=is_discrete, event_dim=event_dim)

    def check(self, x: Tensor) -> Tensor:
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint: Any) -> bool:
    """Whether ``constraint`` is a placeholder for constraints that depend on the parameters of a distribution."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """``constraints.dependent_property``: property of a distribution whose value is a constraint.

    The value depends on the parameters of the distribution. Therefore the class of the distribution has no value: if
    the attribute is read from the class, the result is this property object.
    """

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ) -> None:
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        """Return a property with the getter ``fn`` and the ``is_discrete`` and ``event_dim`` of this object.

        Python calls this method for the decorator ``@dependent_property(event_dim=1)``.
        """
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# -- Numbers ---------------------------------------------------------------------------------------------------------


class _Real(Constraint):
    """Constraint to real numbers; NaN is excluded."""

    def check(self, value: Tensor) -> Tensor:
        return torch.eq(value, value)


class _Boolean(Constraint):
    """Constraint to 0 and 1."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return value.eq(0) | value.eq(1)


class _Above(Constraint):
    bounds = ("lower_bound",)

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound


class _Below(Constraint):
    bounds = ("upper_bound",)

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound


class _Between(Constraint):
    bounds = ("lower_bound", "upper_bound")

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound, self.upper_bound = lower_bound, upper_bound


class _GreaterThan(_Above):
    """Constraint to real numbers greater than ``lower_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """Constraint to real numbers greater than or equal to ``lower_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return self.lower_bound <= value


class _LessThan(_Below):
    """Constraint to real numbers less than ``upper_bound``."""

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class _Interval(_Between):
    """Constraint to real numbers from ``lower_bound`` to ``upper_bound``, both included."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """Constraint to real numbers from ``lower_bound``, included, to ``upper_bound``, excluded."""

    def check(self, value: Tensor) -> Tensor:
        return (self.lower_bound <= value) & (value < self.upper_bound)


def _whole(value: Any) -> Any:
    """Return a boolean tensor that is true for each integer in ``value``."""
    return value % 1 == 0


class _IntegerInterval(_Between):
    """Constraint to integers from ``lower_bound`` to ``upper_bound``, both included."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """Constraint to integers less than or equal to ``upper_bound``."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Constraint to integers greater than or equal to ``lower_bound``."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return _whole(value) & (value >= self.lower_bound)


# -- Vectors ---------------------------------------------------------------------------------------------------------


class _Simplex(Constraint):
    """Constraint to vectors of non-negative numbers whose sum is 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _OneHot(Constraint):
    """Constraint to vectors with one element 1 and all others 0."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return boolean.check(value).all(-1) & (value.sum(-1) == 1)


class _Multinomial(Constraint):
    """Constraint to vectors of counts whose sum is at most ``upper_bound``."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, x: Tensor) -> Tensor:
        return (x >= 0).all(-1) & (x.sum(-1) <= self.upper_bound)


# -- Matrices --------------------------------------------------------------------------------------------------------


class _LowerTriangular(Constraint):
    """Constraint to lower triangular matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).flatten(-2).all(-1)


class _LowerCholesky(Constraint):
    """Constraint to lower triangular matrices with a positive diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return lower_triangular.check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(Constraint):
    """Constraint to Cholesky factors of correlation matrices.

    The factors are lower triangular, with a positive diagonal and rows of norm 1.
    """

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        tolerance = torch.finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = torch.linalg.norm(value.detach(), dim=-1)
        return ((lengths - 1).abs() <= tolerance).all(-1) & lower_cholesky.check(value)


class _Square(Constraint):
    """Constraint to square matrices."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return torch.full(value.shape[:-2], square, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    """Constraint to symmetric matrices."""

    def check(self, value: Tensor) -> Tensor:
        square = super().check(value)
        if not square.all():
            return square
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1)


class _PositiveSemidefinite(_Symmetric):
    """Constraint to symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return (torch.linalg.eigvalsh(value) >= 0).all(-1) if symmetric.all() else symmetric


class _PositiveDefinite(_Symmetric):
    """Constraint to symmetric matrices whose eigenvalues are positive."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        return torch.linalg.cholesky_ex(value).info == 0 if symmetric.all() else symmetric


# -- Composite constraints -------------------------------------------------------------------------------------------


def _all_of_event(checked: Tensor, kept: int) -> Tensor:
    """Return whether all elements of the boolean tensor ``checked`` are true, for each event.

    The first ``kept`` dimensions are batch dimensions and are kept. The other dimensions belong to an event.
    """
    return checked.all(tuple(range(kept, checked.dim()))) if kept < checked.dim() else checked


class _BasedConstraint(Constraint):
    """Base class of constraints that apply another constraint, ``base_constraint``, to parts of a value."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)


class _IndependentConstraint(_BasedConstraint):
    """Constraint ``base_constraint`` for larger events: the last batch dimensions become event dimensions.

    ``reinterpreted_batch_ndims`` is the number of these dimensions. All events of ``base_constraint`` within a larger
    event must satisfy ``base_constraint``.
    """

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        super().__init__(base_constraint)
        if not isinstance(reinterpreted_batch_ndims, int):
            raise AssertionError(
                f"reinterpreted_batch_ndims must be an int, got {type(reinterpreted_batch_ndims).__name__}"
            )
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    event_dim = property(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    def check(self, value: Tensor) -> Tensor:
        checked = self.base_constraint.check(value)
        if checked.dim() < self.reinterpreted_batch_ndims:
            expected = self.base_constraint.event_dim + self.reinterpreted_batch_ndims
            raise ValueError(f"Expected value.dim() >= {expected} but got {value.dim()}")
        return _all_of_event(checked, checked.dim() - self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


def with_event_dim(constraint: Constraint, event_dim: int) -> Constraint:
    """Return ``constraint``, changed such that its events have at least ``event_dim`` dimensions.

    If they have fewer dimensions, the last batch dimensions become event dimensions.
    """
    more = event_dim - constraint.event_dim
    return independent(constraint, more) if more > 0 else constraint


class MixtureSameFamilyConstraint(_BasedConstraint):
    """Constraint to values of a mixture (``MixtureSameFamily``).

    ``base_constraint`` is the constraint to values of the components, the distributions that are mixed. Its bounds may
    differ between the components; a value must satisfy ``base_constraint`` for every component.
    """

    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        checked = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return _all_of_event(checked, value.dim() - self.event_dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _PartwiseConstraint(Constraint):
    """Base class of ``cat`` and ``stack``, which apply each constraint in ``cseq`` to one part of a tensor.

    The parts are consecutive along the dimension ``dim``.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        if not all(isinstance(each, Constraint) for each in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    is_discrete = property(lambda self: any(each.is_discrete for each in self.cseq))

    def _check_dim(self, value: Tensor) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_PartwiseConstraint):
    """Constraint ``constraints.cat``, which applies the constraints ``cseq`` to consecutive parts along ``dim``.

    ``lengths`` are the sizes of the parts along ``dim``, by default 1 each.
    """

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    event_dim = property(lambda self: max(each.event_dim for each in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        parts, start = [], 0
        for each, length in zip(self.cseq, self.lengths, strict=True):
            parts.append(each.check(value.narrow(self.dim, start, length)))
            start += length
        return torch.cat(parts, self.dim)


class _Stack(_PartwiseConstraint):
    """Constraint ``constraints.stack``: ``x.select(dim, i)`` of a tensor ``x`` must satisfy ``cseq[i]``."""

    @property
    def event_dim(self) -> int:
        highest = max(each.event_dim for each in self.cseq)
        return highest + 1 if self.dim + highest < 0 else highest

    def check(self, value: Tensor) -> Tensor:
        self._check_dim(value)
        parts = [value.select(self.dim, index) for index in range(value.shape[self.dim])]
        return torch.stack([each.check(part) for part, each in zip(parts, self.cseq, strict=False)], self.dim)


dependent, dependent_property = _Dependent(), _DependentProperty
independent, cat, stack = _IndependentConstraint, _Cat, _Stack
boolean, one_hot, multinomial = _Boolean(), _OneHot(), _Multinomial
nonnegative_integer, positive_integer = _IntegerGreaterThan(0), _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real, positive, nonnegative = _Real(), _GreaterThan(0.0), _GreaterThanEq(0.0)
real_vector = independent(real, 1)
greater_than, greater_than_eq, less_than = _GreaterThan, _GreaterThanEq, _LessThan
interval, half_open_interval, unit_interval = _Interval, _HalfOpenInterval, _Interval(0.0, 1.0)
simplex = _Simplex()
lower_triangular, lower_cholesky, corr_cholesky = _LowerTriangular(), _LowerCholesky(), _CorrCholesky()
square, symmetric = _Square(), _Symmetric()
positive_semidefinite, positive_definite = _PositiveSemidefinite(), _PositiveDefinite()

__all__ = [
    "Constraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property", "greater_than",
    "greater_than_eq", "independent", "integer_interval", "interval", "half_open_interval", "is_dependent", "less_than",
    "lower_cholesky", "lower_triangular", "MixtureSameFamilyConstraint", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_semidefinite", "positive_definite", "positive_integer",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip
