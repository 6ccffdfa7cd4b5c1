"""``Distribution``: base class of distributions, which checks parameters and values and defines the public methods.

The parameters of a distribution are the attributes named in ``arg_constraints``. ``repr``, validation and ``expand``
use these names.
"""

from __future__ import annotations

from typing import Any, ClassVar

import retrograd as torch
from retrograd import Size, Tensor

from ..compat.pickle_names import TorchNamed
from ..dispatch.transform_tensor import TransformTensor
from ..runtime.user_frame import warn
from . import constraints
from .utils import SINGLE_SAMPLE, lazy_property

OURS = ("retrograd.distributions", "torch.distributions")


class Distribution(TorchNamed):
    """Base class of distributions.

    An object represents a batch of independent distributions: ``batch_shape`` is the shape of the batch, and
    ``event_shape`` is the shape of one sample of one distribution.

    >>> from retrograd.distributions import Normal
    >>> Normal(0.0, 1.0).log_prob(torch.tensor(0.0))
    tensor(-0.9189)
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    #: Attributes that :meth:`expand` copies besides the parameters, and distributions that it expands.
    _kept: ClassVar[tuple[str, ...]] = ()
    _stretched: ClassVar[tuple[str, ...]] = ()
    #: Computed attributes that are added to pickles, because PyTorch's classes store them.
    _pickled_attributes: ClassVar[tuple[str, ...]] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **{name: getattr(self, name) for name in self._pickled_attributes}}

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set the default of ``validate_args``: whether distributions check their parameters and values."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
        for name, constraint in wanted.items():
            of_class = getattr(type(self), name, None)
            if constraints.is_dependent(constraint) or (
                name not in self.__dict__ and isinstance(of_class, lazy_property)
            ):
                continue
            value = getattr(self, name)
            if not all_true(constraint.check(value)):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    # -- Shapes and parameters

    @property
    def batch_shape(self) -> Size:
        """Return the shape of the batch of distributions, to which the parameters are broadcast."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """Return the shape of a single sample of a single distribution of the batch."""
        return self._event_shape

    @property
    def arg_constraints(self) -> dict[str, constraints.Constraint]:
        """Return a dict from the names of the parameters to the constraints that these must satisfy."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """Return the constraint that the values of this distribution satisfy."""
        raise NotImplementedError

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return a copy of this distribution with its parameters expanded to ``batch_shape``.

        If ``_instance`` is an object of the class, it is used for the result instead of a new object.
        """
        owner = _package_class(type(self))
        if owner in REQUIRE_OWN_EXPAND:
            raise NotImplementedError
        new = self._get_checked_instance(owner, _instance)
        batch_shape = Size(batch_shape)
        self._expand_into(new, batch_shape)
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_into(self, new: Any, batch_shape: Size) -> None:
        """Store the parameters of this distribution, expanded to ``batch_shape``, in the distribution ``new``."""
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                new.__dict__[name] = value.expand(batch_shape + value.shape[value.dim() - constraint.event_dim :])
        for name in self._kept:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name]
        for name in self._stretched:
            new.__dict__[name] = self.__dict__[name].expand(batch_shape)

    def _get_checked_instance(self, cls: Any, _instance: Any = None) -> Any:
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define a "
                "custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """Return ``sample_shape + batch_shape + event_shape``."""
        if not isinstance(sample_shape, Size):
            sample_shape = Size(sample_shape)
        return Size(sample_shape + self._batch_shape + self._event_shape)

    # -- Sampling

    def sample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        """Return samples of shape ``sample_shape + batch_shape + event_shape``, detached from the graph."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = SINGLE_SAMPLE) -> Tensor:
        """Return reparametrised samples of shape ``sample_shape + batch_shape + event_shape``.

        The samples are differentiable with respect to the parameters of the distribution.
        """
        raise NotImplementedError

    def sample_n(self, n: int) -> Tensor:
        """Return ``n`` samples along a new first dimension (deprecated: use :meth:`sample`)."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning)
        return self.sample(Size((n,)))

    # -- Densities

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability (or density) of each event in ``value``."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """Return the cumulative distribution function: the probability that a sample is at most ``value``."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """Return the quantile for the probability ``value``: the inverse function of :meth:`cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all possible events along a new first dimension.

        If ``expand`` is true, the events are expanded over the batch shape, otherwise the batch dimensions have size 1.
        """
        raise NotImplementedError

    def _as_enumeration(self, values: Tensor, expand: bool) -> Tensor:
        """Return the result of :meth:`enumerate_support` for a distribution with the possible values ``values``.

        ``values`` is a 1-d tensor, and ``expand`` is the argument of :meth:`enumerate_support`.
        """
        values = values.reshape(-1, *(1,) * len(self._batch_shape))
        return values.expand(-1, *self._batch_shape) if expand else values

    # -- Moments and entropy

    @property
    def mean(self) -> Tensor:
        """Return the expected value."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """Return the most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """Return the variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """Return the standard deviation."""
        return self.variance.sqrt()

    def entropy(self) -> Tensor:
        """Return the entropy, the expected value of ``-log_prob``."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return torch.exp(self.entropy())

    # -- Validation and repr

    def _check_sample(self, value: Any) -> None:
        """Call :meth:`_validate_sample` unless the distribution was created with ``validate_args=False``."""
        if self._validate_args:
            self._validate_sample(value)

    def _validate_sample(self, value: Any) -> None:
        """Raise ValueError if ``value`` is not a valid argument of ``log_prob``.

        ``value`` must be a tensor whose shape ends with ``event_shape`` and broadcasts with ``batch_shape +
        event_shape``. All its events must be in the support of the distribution.
        """
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        start = value.dim() - len(self._event_shape)
        if start < 0 or value.shape[start:] != self._event_shape:
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        drawn = self._batch_shape + self._event_shape
        for ours, theirs in zip(reversed(value.shape), reversed(drawn), strict=False):
            if ours != theirs and 1 not in (ours, theirs):
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {drawn}.")
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation."
            )
            return
        if not all_true(support.check(value)):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        given = [(name, self.__dict__[name]) for name in self.arg_constraints if name in self.__dict__]
        shown = ", ".join(f"{name}: {value if value.numel() == 1 else value.size()}" for name, value in given)
        return f"{type(self).__name__}({shown})"


def all_true(checked: Tensor) -> bool:
    """Whether all elements of ``checked`` are true.

    Inside ``torch.vmap``, these are the elements of all samples of the batch, not of a single sample.
    """
    while isinstance(checked, TransformTensor):
        checked = checked._inner
    return bool(checked.all())


def _package_class(cls: type) -> Any:
    """Return the class of retrograd from which ``cls`` is derived, or ``cls`` itself.

    This is the first class in ``cls.__mro__`` that retrograd defines.
    """
    return next(each for each in cls.__mro__ if each.__module__.startswith(OURS))


#: Direct subclasses of these must define ``expand`` themselves.
REQUIRE_OWN_EXPAND: list[type] = [Distribution]

__all__ = ["Distribution"]
