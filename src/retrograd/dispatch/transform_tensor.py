"""Base classes of tensors with their own implementation of operations: forward mode, ``vmap``, tracing.

The method ``process`` of a :class:`WrapperTensor` computes the result of an operation. A :class:`TransformTensor`
belongs to one level of a transformation (:class:`TransformLevel`), for example a dual tensor of forward mode or a batch
of ``vmap``. It wraps an inner tensor, which belongs to an outer level or to none; only plain tensors are stored in the
graph. Its ``_array`` has the shape and dtype that the user sees, because public functions check their arguments by
them. Programs without transformations pay nothing, because wrapper tensors are looked for only among operands whose
class is not exactly Tensor.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

from ..core.devices import array_module_of
from ..core.tensor import Tensor, new, wrap
from ..core.torch_function import DISABLED

_runs: ContextVar[tuple[TransformLevel, ...]] = ContextVar("runs", default=())
#: Return the active transform levels, the outermost first.
active_levels = _runs.get


class TransformLevel:
    """One active call of a transformation, such as ``vmap`` or ``jvp``; a context manager.

    Calls of transformations can be nested: ``depth`` is 1 for the outermost.
    """

    __slots__ = ("alive", "depth")
    strict: ClassVar[bool] = True  # whether it is a transformation of torch.func
    sliced: ClassVar[bool] = False  # whether it maps over slices (vmap)
    size: int  # the number of slices, if it does

    def __init__(self) -> None:
        self.alive = False
        self.depth = 0

    def differs(self) -> bool:
        """Whether every slice of a vmap gets its own random numbers.

        Raises RuntimeError if random numbers may not be drawn.
        """
        return False

    def met(self, function: Any) -> None:
        """Raise an error if the custom ``Function`` class ``function`` can not be called at this level."""

    def drawn(self, made: Tensor) -> Any:
        """Return the random numbers ``made``, whose first dimension is the slices, as a batch of this level."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        outer = active_levels()
        self.alive, self.depth = True, len(outer) + 1
        _runs.set((*outer, self))
        return self

    def __exit__(self, *error: object) -> None:
        self.alive = False
        _runs.set(tuple(each for each in active_levels() if each is not self))

    def around(self, inside: Callable[[], Any]) -> Any:
        """Return ``inside()``, called while this level is active.

        No ``with`` statement is used, because an interrupt at the beginning of ``__exit__`` would leave the level
        active.
        """
        before = active_levels()
        try:
            self.__enter__()
            return inside()
        finally:
            self.alive = False
            _runs.set(before)


def _inner_field(name: str) -> Any:
    """Return a property that reads and writes the field ``name`` of the inner tensor."""
    return property(
        lambda self: getattr(self._inner, name),
        lambda self, value: setattr(self._inner, name, value),
        doc=f"The inner tensor's {name}.",
    )


def _inner_method(name: str) -> Any:
    """Return a method that calls the method ``name`` of the inner tensor."""
    return lambda self, *args, **kwargs: getattr(self._inner, name)(*args, **kwargs)


class WrapperTensor(Tensor):
    """Base class of tensors that implement operations themselves.

    The operand with the highest ``level`` computes the result of an operation.
    """

    __slots__ = ()  # no slots of its own, because the class of an instance may be set to Tensor
    __torch_function__ = DISABLED
    level: Any

    @abstractmethod
    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        """Return the result of ``op`` for the operands ``tensors``, of which ``self`` has the highest level.

        If ``in_place`` is true, write the result into the first operand and return this operand.
        """

    def refuse_out(self, name: str) -> Exception:
        """Return the error for a call of the function ``name`` with ``out=``."""
        return RuntimeError(f"{name}(): out= is not supported for {type(self).__name__}")


class TransformTensor(WrapperTensor):
    """Base class of the tensors of a transform level; such a tensor wraps the tensor ``_inner``."""

    __slots__ = ()
    __module__ = "torch"
    _run: (
        TransformLevel  # this and _inner are stored in __dict__, because a plain Tensor's class may be set to this one
    )
    _inner: Tensor
    level = property(lambda self: self._run.depth)

    _grad_edge = _inner_field("_grad_edge")
    _counter = _inner_field("_counter")
    _grad = _inner_field("_grad")
    _view = _inner_field("_view")
    _view_version = _inner_field("_view_version")
    _creation_meta = _inner_field("_creation_meta")
    _array = _inner_field("_array")

    # Methods that read elements are those of the inner tensor, which may raise.
    item, tolist, numpy, __array__, data_ptr = map(_inner_method, ("item", "tolist", "numpy", "__array__", "data_ptr"))
    __bool__, __float__, __int__ = map(_inner_method, ("__bool__", "__float__", "__int__"))
    __complex__, __index__ = map(_inner_method, ("__complex__", "__index__"))

    def become(self, other: Any) -> None:
        """Set the inner tensor and all other attributes of ``self`` to those of ``other``.

        In-place operations do so with their result.
        """
        self.__dict__.update(other.__dict__)

    @abstractmethod
    def blank(self, members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
        """Return the result of :func:`placeholder`; ``self`` is the one of ``members`` with the innermost level."""

    @abstractmethod
    def gradients(self, outs: Any, inputs: Any, grads: Any, solve: Callable[..., Any]) -> list[Any]:
        """Return the gradients of ``outs`` with respect to ``inputs``.

        ``self`` is one of these tensors, with the innermost level. ``grads`` are the incoming gradients of ``outs``
        (None for 1). ``solve(outs, inputs, grads, last)`` computes the gradients of tensors of outer levels; it must be
        called with ``last=True`` in the last call, which frees the graph unless it is retained. A gradient that does
        not exist is None.
        """

    @abstractmethod
    def custom(self, function: Any, args: tuple[Any, ...]) -> Any:
        """Return the result of the custom ``Function`` class ``function`` for ``args``.

        ``self`` is the one of ``args`` with the innermost level.
        """

    @abstractmethod
    def joined(self, tensors: Sequence[Any], dim: Any, join: Callable[..., Any]) -> Any:
        """Return ``join(tensors, dim)``, where ``self`` is the one of ``tensors`` with the innermost level.

        ``join`` is linear in the tensors, for example ``cat``.
        """

    @abstractmethod
    def spread_as(self, made: Tensor) -> Any:
        """Return ``made``, a new tensor like ``self``, with a copy for each slice of the batches that ``self`` has."""

    #: Whether it has slices: it is a batch of vmap.
    sliced: ClassVar[bool] = False

    def by_slices(self, surface: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call the function ``surface`` with ``args`` and ``kwargs`` for each slice, and return the stacked results."""
        raise NotImplementedError

    def dynamic(self, name: str) -> Exception:
        """Return the error for the operation ``name``, whose result has a shape that depends on the elements."""
        raise NotImplementedError

    @abstractmethod
    def merged(self, members: Sequence[Any], build: Callable[..., Any]) -> Any:
        """Return the tensor of this level that wraps ``build`` of the inner tensors of ``members``."""


def innermost(tensors: Sequence[Any]) -> Any:
    """Return the wrapper tensor with the highest level among ``tensors``, or None if there is none.

    Its transformation processes an operation first.
    """
    wrappers = [each for each in tensors if isinstance(each, WrapperTensor)]
    return max(wrappers, key=lambda each: each.level) if wrappers else None


def innermost_batch(values: Sequence[Any]) -> Any:
    """Return the batch of the innermost level of vmap among ``values`` and the elements of lists in them, or None."""
    flat = [each for value in values for each in (value if isinstance(value, (tuple, list)) else (value,))]
    return innermost([batch for each in flat if (batch := _batch_in(each)) is not None])


def _batch_in(x: Any) -> TransformTensor | None:
    """Return ``x`` or the outermost of its inner tensors that is a batch of vmap, or None."""
    while isinstance(x, TransformTensor):
        if x.sliced:
            return x
        x = x._inner
    return None


def slicewise(surface: Callable[..., Any]) -> Callable[..., Any]:
    """Decorate a function that reads the elements of tensors: it is called for each slice of a batch of vmap."""

    @functools.wraps(surface)
    def checked(*args: Any, **kwargs: Any) -> Any:
        batch = innermost_batch([*args, *kwargs.values()]) if active_levels() else None
        return surface(*args, **kwargs) if batch is None else batch.by_slices(surface, args, kwargs)

    return checked


def copy_per_slice(x: Any, made: Tensor) -> Any:
    """Return ``made``, a new tensor like ``x``, with a copy for every slice of the batches that ``x`` belongs to."""
    return x.spread_as(made) if isinstance(x, TransformTensor) else made


def batch_levels(x: Any) -> set[Any]:
    """Return the levels of vmap at which ``x``, its inner tensors or their tangents are batches."""
    if not isinstance(x, TransformTensor):
        return set()
    levels = batch_levels(x._inner) | batch_levels(getattr(x, "_tangent", None))
    return levels | {x._run} if x.sliced else levels


def in_vmap() -> bool:
    """Whether a level of vmap is active."""
    levels = active_levels()
    return bool(levels) and any(each.sliced for each in levels)


def draw(sample: Callable[[tuple[int, ...]], Any], shape: tuple[int, ...]) -> Tensor:
    """Return a tensor of random numbers ``sample(shape)``.

    In ``vmap(randomness="different")`` the result is a batch with its own random numbers for every slice.
    """
    levels = [each for each in active_levels() if each.differs()]
    result = wrap(sample((*[each.size for each in levels], *shape)))
    for each in levels:
        result = each.drawn(result)
    return result


def wrap_in(kind: type[TransformTensor], run: TransformLevel, inner: Tensor) -> Any:
    """Return a new tensor of the class ``kind`` and the level ``run`` that wraps ``inner``."""
    wrapper = new(kind)
    wrapper._run, wrapper._inner = run, inner
    return wrapper


def placeholder(members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Return zeros of ``shape`` and ``dtype`` that require gradients, on the device of ``members``.

    If ``members`` include batches of vmap, the result is a batch with as many slices.
    """
    special = innermost(members)
    if special is not None:
        return special.blank(members, shape, dtype)
    array = next(each._array for each in members if isinstance(each, Tensor))
    return wrap(array_module_of(array).zeros(shape, dtype)).requires_grad_()
