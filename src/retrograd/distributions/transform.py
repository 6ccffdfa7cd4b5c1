"""``Transform``: base class of transforms, and composite transforms such as ``ComposeTransform``.

The module ``transforms`` exports these classes, and pickles refer to the classes by that module.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Sequence
from functools import reduce
from typing import Any

import retrograd as torch
from retrograd import Size, Tensor

from ..compat.pickle_names import TorchNamed
from . import constraints
from .utils import lazy_property, sum_rightmost


class Transform(TorchNamed):
    """Base class of transforms, functions from the set ``domain`` to the set ``codomain``.

    If ``cache_size`` is 1, the last argument and the last result are cached. The inverse of the cached result is then
    exactly the cached argument.

    A subclass defines ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.
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

    @property
    def domain(self) -> Any:
        return self._forward.codomain

    @property
    def codomain(self) -> Any:
        return self._forward.domain

    @property
    def bijective(self) -> bool:
        return self._forward.bijective

    @property
    def sign(self) -> Any:
        return self._forward.sign

    @property
    def inv(self) -> Transform:
        return self._forward

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


# -- Composite transforms --------------------------------------------------------------------------------------------


def _behind(constraint: Any, event_dim: int) -> Any:
    """Return ``constraint``, with its events extended to at least ``event_dim`` dimensions.

    If the events of ``constraint`` have fewer dimensions, its last batch dimensions become event dimensions.
    """
    more = event_dim - constraint.event_dim
    return constraints.independent(constraint, more) if more > 0 else constraint


class ComposeTransform(Transform):
    """Composition of the transforms ``parts``; ``parts[0]`` is applied first."""

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
        return _behind(self.parts[0].domain, event_dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _behind(self.parts[-1].codomain, event_dim)

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
    """Transform ``base_transform`` with some batch dimensions reinterpreted as event dimensions.

    These are the last ``reinterpreted_batch_ndims`` batch dimensions. ``log_abs_det_jacobian`` is summed over these
    dimensions.
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

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

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
    """Base class of transforms that apply each transform of ``tseq`` to one part of a tensor along ``dim``."""

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

    @property
    def bijective(self) -> bool:
        return all(each.bijective for each in self.transforms)

    def _size(self) -> tuple[int, str]:
        """Return the size that an argument must have along ``dim``, and the name of this size in error messages."""
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
    """Transform that applies ``tseq[i]`` to ``x.select(dim, i)`` of a tensor ``x`` and stacks the results."""

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
    """Transform that reshapes each event from ``in_shape`` to ``out_shape``."""

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

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


__all__ = [
    "CatTransform",
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "StackTransform",
    "Transform",
]
