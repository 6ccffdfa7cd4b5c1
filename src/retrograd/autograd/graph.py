"""The graph as a user handles it: ``Node``, edges, hooks on several gradients, and hooks on what is saved."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy

from ..compat.missing_names import module_getattr
from ..core import engine, saved_tensor_hooks
from ..core.error_context import with_remedy
from ..core.graph import AccumulateGrad, Handle, OutputEdge, plan_for
from ..core.graph import Node as RecordedNode
from ..core.tensor import REQUIRE, Tensor, at_edge, wrap
from ..core.views import bump_version


class _EveryNode(type):
    """So that leaves' ends of the graph count as nodes too."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (RecordedNode, AccumulateGrad))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls is subclass or issubclass(subclass, (RecordedNode, AccumulateGrad))


class Node(metaclass=_EveryNode):
    """What every ``grad_fn`` is an instance of."""


class GradientEdge(NamedTuple):
    """A place of the graph at which a gradient arrives: result ``output_nr`` of ``node``."""

    node: Any
    output_nr: int
    ownership_token: Any = None  # the place itself; an edge made by hand has none


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """The place at which the gradient of ``tensor`` arrives; ``grad`` and ``backward`` take it as an input."""
    if not tensor.requires_grad:
        text = "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        raise RuntimeError(with_remedy(text, REQUIRE))
    place = Tensor._current(tensor)
    return GradientEdge(place.node, place.position, place)


def place_of(edge: GradientEdge) -> Any:
    """The place that an edge names."""
    if edge.ownership_token is not None or edge.node.__class__ is AccumulateGrad or edge.node.single:
        return edge.node if edge.ownership_token is None else edge.ownership_token
    return OutputEdge(edge.node, edge.output_nr, edge.node.shape, edge.node.dtype)


def like(edge: GradientEdge) -> Tensor:
    """A tensor of the shape and dtype of the gradients that arrive at ``edge``, there in the graph."""
    place = place_of(edge)
    return at_edge(numpy.broadcast_to(numpy.zeros((), place.dtype), place.shape), [0, None], place)


def zeros_at(place: Any, require_grad: bool) -> Tensor:
    """The gradient of what did not contribute."""
    return wrap(numpy.zeros(place.shape, place.dtype)).requires_grad_(require_grad)


def increment_version(tensor: Any) -> None:
    """Count a modification of ``tensor`` (or of several) that its version counter could not see."""
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(each)


def register_multi_grad_hook(tensors: Any, fn: Callable[..., Any], *, mode: str = "all") -> MultiHandle:
    """Call ``fn`` with the gradients of several tensors, in every backward pass that computes them.

    ``mode="all"``: ``fn(grads)`` once all are there, with None for those that the pass does not compute.
    ``mode="any"``: ``fn(grad)`` with the first one. Returns a handle whose ``remove()`` takes the hook away. Raises
    ValueError for another mode, RuntimeError for a tensor that requires no gradient.

    >>> import retrograd as torch
    >>> x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    >>> handle = torch.autograd.graph.register_multi_grad_hook([x, y], lambda grads: print(len(grads)))
    >>> (x * y).sum().backward()
    2
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    tensors = tuple(tensors)
    if mode == "any":
        tensors = tuple(each for each in tensors if each.requires_grad)
    places = [_place(each) for each in tensors]
    hooks = [_first_of(fn)] * len(tensors) if mode == "any" else _all_of(fn, places)
    for place in places:
        plan_for(place)
    return MultiHandle(tuple(each.register_hook(hook) for each, hook in zip(tensors, hooks, strict=True)))


def _place(tensor: Tensor) -> Any:
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    return Tensor._current(tensor)


def _first_of(fn: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    done: WeakSet[Any] = WeakSet()
    lock = threading.Lock()

    @functools.wraps(fn)
    def hook(grad: Tensor) -> None:
        plan = engine.running()
        with lock:
            if plan in done:
                return
            done.add(plan)
        fn(grad)

    return hook


def _all_of(fn: Callable[[list[Any]], None], places: list[Any]) -> list[Callable[[Tensor], None]]:
    """A hook for each of the ``places``; the one that is called last calls ``fn``."""
    # The plan of a sweep stands for it: it is held by nobody else once the sweep is over.
    collected: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
    missing: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
    lock = threading.Lock()

    def collect(index: int, grad: Tensor) -> None:
        plan = engine.running()
        if plan is None:
            raise AssertionError("expected this hook to be called inside a backward call")
        with lock:
            if plan not in collected:
                collected[plan] = [None] * len(places)
                missing[plan] = sum(map(plan.serves, places))
            collected[plan][index] = grad
            missing[plan] -= 1
            ready = not missing[plan]
        if ready:
            del missing[plan]
            fn(collected.pop(plan))

    return [functools.partial(collect, index) for index in range(len(places))]


class MultiHandle(Handle):
    """What :func:`register_multi_grad_hook` returns: ``remove()`` takes the hook away from all its tensors."""

    __module__ = "torch.autograd.graph"

    def __init__(self, handles: tuple[Handle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone already."""
        for each in self.handles:
            each.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.handles

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.handles = state


MultiHandle.__name__ = MultiHandle.__qualname__ = "_MultiHandle"


def set_retain_grad_last(last: bool) -> None:
    """Choose when a gradient is retained: after all hooks of its tensor, as PyTorch 2 does, or in its turn (False).

    By default ``retain_grad`` acts among the hooks in the order of registration: hooks registered later do not show in
    the retained gradient. One setting for the process.
    """
    engine.retain_last = bool(last)


# --- What is saved for the backward pass ----------------------------------------------------------------------------


class saved_tensors_hooks:
    """Within this block, keep ``pack_hook(tensor)`` in place of each tensor that is saved for the backward pass.

    When the backward pass (or ``grad_fn._saved_…``) asks for the tensor, ``unpack_hook`` is given what ``pack_hook`` made of
    it. Blocks may be nested: the innermost acts. Nothing is recorded within ``pack_hook``, and it must not modify the tensor
    (RuntimeError). What ``unpack_hook`` gives back must be a tensor (TypeError), of the same numbers.

    >>> import retrograd as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.item(), lambda kept: torch.tensor(kept)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        saved_tensor_hooks.push(self.pack_hook, self.unpack_hook)

    def __exit__(self, *error: object) -> None:
        saved_tensor_hooks.pop()


class save_on_cpu(saved_tensors_hooks):
    """Within this block, keep what is saved for the backward pass in the processor's memory instead of a GPU's.

    ``pin_memory`` and ``device_type`` are accepted as PyTorch accepts them; memory is not pinned.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Within this block, entering :class:`saved_tensors_hooks` raises a RuntimeError that says ``error_message``.

    So does entering this block while there are such hooks.
    """
    before = saved_tensor_hooks.refuse(error_message)
    try:
        yield
    finally:
        saved_tensor_hooks.refuse(before)


class _Kept:
    """A saved tensor that may be written to: a copy of its numbers is made first."""

    __slots__ = ("__weakref__", "array", "cell")

    def __init__(self, tensor: Tensor) -> None:
        self.array, self.cell = tensor._array, tensor._version_counter


class AllowMutation:
    """What :func:`allow_mutation_on_saved_tensors` gives: the tensors saved within it."""

    def __init__(self) -> None:
        self.kept: WeakValueDictionary[int, _Kept] = WeakValueDictionary()  # by the numbers of their arrays
        self.over = False

    def pack(self, tensor: Tensor) -> _Kept:
        """Remember a tensor; one that is saved twice is remembered once."""
        found = self.kept.get(id(tensor._array))
        if found is None:
            found = self.kept[id(tensor._array)] = _Kept(tensor)
        return found

    def unpack(self, kept: _Kept) -> Tensor:
        """The tensor as it was when it was saved."""
        if self.over:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded. Remedy: run the backward pass within the block."
            )
        return wrap(kept.array)

    def copy(self, tensor: Tensor) -> None:
        """``tensor`` is going to be written to: copy what was saved of its memory."""
        for number, each in list(self.kept.items()):
            if each.cell is tensor._version_counter:
                del self.kept[number]
                each.array = each.array.copy()


_mutable = threading.Lock()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[AllowMutation]:
    """Within this block, tensors saved for the backward pass may be modified in place: they are copied first.

    The backward pass must be run within it, too (AssertionError). Such blocks can not be nested (RuntimeError).

    >>> import retrograd as torch
    >>> x = torch.tensor(2.0, requires_grad=True)
    >>> with torch.autograd.graph.allow_mutation_on_saved_tensors():
    ...     y = x * 1
    ...     z = y**2
    ...     _ = y.mul_(5)
    ...     z.backward()
    >>> x.grad
    tensor(4.)
    """
    if not _mutable.acquire(blocking=False):
        raise RuntimeError("allow_mutation_on_saved_tensors contexts cannot be nested")
    context = AllowMutation()
    try:
        with saved_tensors_hooks(context.pack, context.unpack):
            saved_tensor_hooks.before_writing.append(context.copy)
            try:
                yield context
            finally:
                saved_tensor_hooks.before_writing.remove(context.copy)
    finally:
        context.over = True
        _mutable.release()


#: What PyTorch does not have: loaded when it is asked for.
_LATER = {"draw": "..inspection.draw", "memory": "..inspection.memory", "watch_leaks": "..inspection.memory"}
__all__ = [
    "AccumulateGrad", "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
    "set_retain_grad_last", *_LATER,
]  # fmt: skip
__getattr__ = module_getattr(__name__, _LATER)
