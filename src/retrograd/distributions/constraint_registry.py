"""``biject_to`` and ``transform_to``: registries of transforms from the real numbers to the set of a constraint.

The transforms of ``biject_to`` are bijective. The transforms of ``transform_to`` are intended for unconstrained
optimisation; some of them are not bijective.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from . import constraints, transforms

Factory = Callable[[Any], transforms.Transform]


class ConstraintRegistry:
    """Registry of functions that create a transform for a constraint, one function for each class of constraints.

    ``registry(constraint)`` returns a transform from the real numbers to the set of ``constraint``.

    >>> from retrograd.distributions import biject_to, constraints
    >>> biject_to(constraints.simplex)
    StickBreakingTransform()
    """

    def __init__(self) -> None:
        self._registry: dict[type, Factory] = {}

    def register(self, constraint: Any, factory: Factory | None = None) -> Any:
        """Register ``factory``, the function that creates a transform for constraints of one class.

        ``constraint`` is the class or an instance of the class. ``factory`` is called with a constraint of this class
        and returns a transform; it is also the result of ``register``. If ``factory`` is None, the result is a
        decorator that registers a function.
        """
        if factory is None:
            return lambda given: self.register(constraint, given)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not (isinstance(constraint, type) and issubclass(constraint, constraints.Constraint)):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint: Any) -> transforms.Transform:
        """Return a transform from the real numbers to the set of ``constraint``.

        Raise NotImplementedError if no function is registered for the class of ``constraint``.
        """
        if type(constraint) not in self._registry:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints") from None
        return self._registry[type(constraint)](constraint)


biject_to, transform_to = ConstraintRegistry(), ConstraintRegistry()


def _between(constraint: Any) -> transforms.Transform:
    """Return a transform from the real numbers to the interval ``constraint``."""
    lower, upper = constraint.lower_bound, constraint.upper_bound
    if all(isinstance(each, Number) for each in (lower, upper)) and (lower, upper) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(lower, upper - lower)]
    )


def _shifted_exp(bound: str, scale: int) -> Factory:
    """Return a function that creates the transform ``b + scale * exp(x)`` for a constraint with the bound ``b``.

    ``bound`` is the name of the constraint's attribute with this bound, such as ``lower_bound``. ``scale`` is 1 for
    values greater than ``b`` and -1 for values less than ``b``.
    """
    return lambda constraint: transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(getattr(constraint, bound), scale)]
    )


def _fill(registry: ConstraintRegistry, simplex: Factory) -> None:
    """Register in ``registry`` the transforms that ``biject_to`` and ``transform_to`` have in common.

    ``simplex`` is the function that creates the transform for ``constraints.simplex``, which differs.
    """

    def independent(constraint: Any) -> transforms.Transform:
        base = registry(constraint.base_constraint)
        return transforms.IndependentTransform(base, constraint.reinterpreted_batch_ndims)

    above, below = _shifted_exp("lower_bound", 1), _shifted_exp("upper_bound", -1)
    for constraint, factory in (
        (constraints.real, lambda _: transforms.identity_transform),
        (constraints.independent, independent),
        (constraints.greater_than, above),
        (constraints.greater_than_eq, above),
        (constraints.less_than, below),
        (constraints.interval, _between),
        (constraints.half_open_interval, _between),
        (constraints.simplex, simplex),
        (constraints.corr_cholesky, lambda _: transforms.CorrCholeskyTransform()),
        (constraints.cat, lambda each: transforms.CatTransform(list(map(registry, each.cseq)), each.dim, each.lengths)),
        (constraints.stack, lambda each: transforms.StackTransform(list(map(registry, each.cseq)), each.dim)),
    ):
        registry.register(constraint, factory)


_fill(biject_to, lambda _: transforms.StickBreakingTransform())
_fill(transform_to, lambda _: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda _: transforms.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda _: transforms.PositiveDefiniteTransform())

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]
