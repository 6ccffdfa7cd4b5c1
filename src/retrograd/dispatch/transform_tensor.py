"""Tensors that stand for more than their array: what an operation does with them is their class's business.

A subclass of :class:`WrapperTensor` belongs to one :class:`Run` of a transformation: the duals of forward mode, the batches
of vmap. What it stands for are other tensors (its *parts*), which belong to runs further out, or to none; only plain
tensors lie in memory and in the graph. Its ``_array`` has the shape and dtype that the user sees, so that surfaces can
sort out arguments by it; what is computed, ``process`` decides, once an operation has come as far as its block. Nothing is
paid where there are none: they are looked for only among operands that are not exactly Tensors.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, ClassVar

from ..core.devices import module_of
from ..core.tensor import Tensor, new, wrap
from ..core.torch_function import DISABLED

_runs: ContextVar[tuple[TransformLevel, ...]] = ContextVar("runs", default=())
#: The transformations under way, the outermost first.
runs = _runs.get


class TransformLevel:
    """One run of a transformation; ``depth`` says how many are under way around it, itself included."""

    __slots__ = ("alive", "depth")
    strict: ClassVar[bool] = True  # whether it is one of torch.func
    sliced: ClassVar[bool] = False  # whether it has slices
    size: int  # of one that has: how many

    def __init__(self) -> None:
        self.alive = False
        self.depth = 0

    def differs(self) -> bool:
        """Whether random numbers are to be other ones in every slice. Raises RuntimeError where none may be drawn."""
        return False

    def met(self, function: Any) -> None:
        """A custom ``Function`` is being called."""

    def drawn(self, made: Tensor) -> Any:
        """Numbers drawn for every slice, along a first dimension, as a tensor of this run."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        around = runs()
        self.alive, self.depth = True, len(around) + 1
        _runs.set((*around, self))
        return self

    def __exit__(self, *error: object) -> None:
        self.alive = False
        _runs.set(tuple(each for each in runs() if each is not self))

    def around(self, inside: Callable[[], Any]) -> Any:
        """What ``inside()`` gives while this run is under way.

        No ``with``: at the beginning of ``__exit__`` an interrupt may be raised, and the run would never end.
        """
        before = runs()
        try:
            self.__enter__()
            return inside()
        finally:
            self.alive = False
            _runs.set(before)


def _part(name: str) -> Any:
    """A field that is the field of what stands in the memory and in the graph for an interpreted tensor."""
    return property(
        lambda self: getattr(self._inner, name),
        lambda self, value: setattr(self._inner, name, value),
        doc=f"Its {name}.",
    )


def _told(name: str) -> Any:
    """A method that asks the inner tensor."""
    return lambda self, *given, **named: getattr(self._inner, name)(*given, **named)


class WrapperTensor(Tensor):
    """A tensor whose class says what operations do with it; ``level`` says which acts first (the highest)."""

    __slots__ = ()  # so that an instance may become a plain tensor
    __torch_function__ = DISABLED
    level: Any

    @abstractmethod
    def process(self, op: Any, tensors: tuple[Any, ...], params: tuple[Any, ...], in_place: bool) -> Any:
        """What ``op`` gives for operands of which ``self`` is one of the highest level.

        ``in_place``: the first operand takes the result, and is returned.
        """

    def refuse_out(self, name: str) -> Exception:
        """The error for ``out=``."""
        return RuntimeError(f"{name}(): out= is not supported for {type(self).__name__}")


class TransformTensor(WrapperTensor):
    """A tensor of a run of a transformation; it stands for ``_inner`` and for whatever else its class says."""

    __slots__ = ()
    __module__ = "torch"
    _run: TransformLevel  # these two lie in the instance's dictionary, so that a plain Tensor can be given this class
    _inner: Tensor
    level = property(lambda self: self._run.depth)

    _grad_edge = _part("_grad_edge")
    _counter = _part("_counter")
    _grad = _part("_grad")
    _view = _part("_view")
    _view_version = _part("_view_version")
    _creation_meta = _part("_creation_meta")
    _array = _part("_array")

    # What reads numbers reads those of the inner tensor, which may refuse it.
    item, tolist, numpy, __array__, data_ptr = map(_told, ("item", "tolist", "numpy", "__array__", "data_ptr"))
    __bool__, __float__, __int__ = map(_told, ("__bool__", "__float__", "__int__"))
    __complex__, __index__ = map(_told, ("__complex__", "__index__"))

    def become(self, other: Any) -> None:
        """Stand for what ``other`` stands for from now on."""
        self.__dict__.update(other.__dict__)

    @abstractmethod
    def blank(self, members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
        """:func:`blank` for ``members`` of which ``self`` is one of the innermost run."""

    @abstractmethod
    def gradients(self, outs: Any, inputs: Any, grads: Any, solve: Callable[..., Any]) -> list[Any]:
        """The gradients of ``outs`` by ``inputs``, of which ``self`` is one of the innermost run, given ``grads``.

        ``solve(outs, inputs, grads, last)`` finds those of tensors of runs further out; all calls but the last leave the
        graph in place. A gradient is None where there is none; one of ``grads`` is None where it is 1.
        """

    @abstractmethod
    def custom(self, function: Any, args: tuple[Any, ...]) -> Any:
        """What a custom ``Function`` gives for arguments of which ``self`` is one of the innermost run."""

    @abstractmethod
    def joined(self, tensors: Sequence[Any], dim: Any, join: Callable[..., Any]) -> Any:
        """What ``join(tensors, dim)``, which is linear, gives for operands of which ``self`` is of the innermost run."""

    @abstractmethod
    def spread_as(self, made: Tensor) -> Any:
        """``made`` (a new tensor like ``self``), with memory of its own for every slice of the batches of ``self``."""

    #: Whether it has slices, each with numbers of its own.
    sliced: ClassVar[bool] = False

    def by_slices(self, surface: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """What ``public`` gives slice by slice."""
        raise NotImplementedError

    def dynamic(self, name: str) -> Exception:
        """The error for an operation whose result has a shape that depends on the numbers."""
        raise NotImplementedError

    @abstractmethod
    def merged(self, members: Sequence[Any], build: Callable[..., Any]) -> Any:
        """Of ``members``, of which ``self`` is of the innermost run, one tensor of their run: of what ``build`` makes of
        their parts, element by element."""


def innermost(tensors: Sequence[Any]) -> Any:
    """The operand whose transformation has to act first, or None."""
    found = [each for each in tensors if isinstance(each, WrapperTensor)]
    return max(found, key=lambda each: each.level) if found else None


def batched(values: Sequence[Any]) -> Any:
    """Of the operands, and of those in lists among them, the batch whose run is innermost, or None."""
    every = [each for value in values for each in (value if isinstance(value, (tuple, list)) else (value,))]
    return innermost([found for each in every if (found := _batch_in(each)) is not None])


def _batch_in(x: Any) -> TransformTensor | None:
    while isinstance(x, TransformTensor):
        if x.sliced:
            return x
        x = x._inner
    return None


def slicewise(surface: Callable[..., Any]) -> Callable[..., Any]:
    """Let a function that reads the numbers of tensors itself run slice by slice where these are batches."""

    @functools.wraps(surface)
    def checked(*args: Any, **kwargs: Any) -> Any:
        found = batched([*args, *kwargs.values()]) if runs() else None
        return surface(*args, **kwargs) if found is None else found.by_slices(surface, args, kwargs)

    return checked


def spread_as(x: Any, made: Tensor) -> Any:
    """``made``, a new tensor like ``x``, spread over the slices of whatever batches ``x`` belongs to."""
    return x.spread_as(made) if isinstance(x, TransformTensor) else made


def slicing(x: Any) -> set[Any]:
    """The runs of vmap of which ``x`` is a batch."""
    if not isinstance(x, TransformTensor):
        return set()
    found = slicing(x._inner) | slicing(getattr(x, "_tangent", None))
    return found | {x._run} if x.sliced else found


def in_slices() -> bool:
    """Whether the function that is running is to be run for many slices at once."""
    around = runs()
    return bool(around) and any(each.sliced for each in around)


def draw(sample: Callable[[tuple[int, ...]], Any], shape: tuple[int, ...]) -> Tensor:
    """Random numbers of ``shape`` that ``sample`` draws: within vmap other ones for every slice, if it was told so."""
    around = [each for each in runs() if each.differs()]
    made = wrap(sample((*[each.size for each in around], *shape)))
    for each in around:
        made = each.drawn(made)
    return made


def wrap_in(kind: type[TransformTensor], run: TransformLevel, inner: Tensor) -> Any:
    """A new interpreted tensor that stands for ``inner``."""
    made = new(kind)
    made._run, made._inner = run, inner
    return made


def placeholder(members: Sequence[Any], shape: tuple[int, ...], dtype: Any) -> Tensor:
    """Zeros that require gradients, with a slice for every slice of whatever batches ``members`` belong to."""
    special = innermost(members)
    if special is not None:
        return special.blank(members, shape, dtype)
    near = next(each._array for each in members if isinstance(each, Tensor))
    return wrap(module_of(near).zeros(shape, dtype)).requires_grad_()
