"""``torch.autograd.graph``: ``Node``, gradient edges, hooks on gradients of several tensors, and saved-tensor hooks."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

import numpy

from ..compat.lazy_imports import module_getattr
from ..compat.module_names import shown_in
from ..core import engine, hooks, saved_tensor_hooks
from ..core.error_context import with_remedy
from ..core.graph import AccumulateGrad, Handle, OutputEdge, require_plan
from ..core.graph import Node as RecordedNode
from ..core.tensor import REQUIRE, Tensor, at_edge, wrap
from ..core.views import bump_version


class _NodeInstanceCheck(type):
    """Metaclass that makes ``isinstance(x, Node)`` true for nodes of operations and for AccumulateGrad (of leaves)."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, (RecordedNode, AccumulateGrad))

    def __subclasscheck__(cls, subclass: type) -> bool:
        return cls is subclass or issubclass(subclass, (RecordedNode, AccumulateGrad))


class Node(metaclass=_NodeInstanceCheck):
    """Abstract base class of the nodes of the autograd graph, which tensors have as ``grad_fn``.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> isinstance((x * 2).grad_fn, torch.autograd.graph.Node)
    True
    """

    # For readers and editors: an instance has these attributes from the class of its operation.
    name, next_functions, metadata = RecordedNode.name, RecordedNode.next_functions, RecordedNode.metadata
    requires_grad, __call__ = RecordedNode.requires_grad, RecordedNode.__call__
    register_hook, register_prehook = RecordedNode.register_hook, RecordedNode.register_prehook


class GradientEdge(NamedTuple):
    """Place in the autograd graph where the gradient of a tensor is computed.

    The tensor is result number ``output_nr`` of the graph node ``node``. ``ownership_token`` is the backward engine's
    object for this place, or None in a tuple that the user created.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> edge = torch.autograd.graph.get_gradient_edge(x * 2)
    >>> edge.node.name(), edge.output_nr
    ('MulBackward0', 0)
    """

    node: Any
    output_nr: int
    ownership_token: Any = None  # the engine's edge; None if the user created the tuple


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return the gradient edge of ``tensor``, which ``grad`` and ``backward`` accept in place of the tensor.

    Raises RuntimeError for a tensor that requires no gradient.

    >>> import retrograd as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> edge = torch.autograd.graph.get_gradient_edge(x)
    >>> torch.autograd.grad(x**2, edge)
    (tensor(6.),)
    """
    if not tensor.requires_grad:
        text = "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        raise RuntimeError(with_remedy(text, REQUIRE))
    edge = Tensor._current(tensor)
    return GradientEdge(edge.node, edge.position, edge)  # type: ignore[union-attr]


def engine_edge_of(edge: GradientEdge) -> Any:
    """Convert a ``GradientEdge`` to the object that the backward engine uses for it.

    The object is AccumulateGrad for a leaf, the node itself if the node has a single result, or an OutputEdge, which is
    one of several results of a node.
    """
    if edge.ownership_token is not None or edge.node.__class__ is AccumulateGrad or edge.node.single:
        return edge.node if edge.ownership_token is None else edge.ownership_token
    return OutputEdge(edge.node, edge.output_nr, edge.node.shape, edge.node.dtype)


def zeros_like_edge(edge: GradientEdge) -> Tensor:
    """Return a Tensor of zeros whose gradient edge (place in the autograd graph) is ``edge``.

    The Tensor has the shape and dtype of the gradient that a backward pass accumulates at ``edge``.
    """
    engine_edge = engine_edge_of(edge)
    return at_edge(numpy.broadcast_to(numpy.zeros((), engine_edge.dtype), engine_edge.shape), [0, None], engine_edge)


def zero_gradient(edge: Any, require_grad: bool) -> Tensor:
    """Return the gradient of an input on which the differentiated outputs do not depend: a Tensor of zeros.

    ``edge`` is the place of the input in the graph. If ``require_grad`` is true, the Tensor of zeros requires a
    gradient.
    """
    return wrap(numpy.zeros(edge.shape, edge.dtype)).requires_grad_(require_grad)


def increment_version(tensor: Any) -> None:
    """Increment the version counter of ``tensor``, which is a Tensor or a sequence of Tensors.

    Call this function after a modification that is not made by a Tensor operation, such as a write through NumPy.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> torch.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    for each in (tensor,) if isinstance(tensor, Tensor) else tensor:
        bump_version(each)


def register_multi_grad_hook(tensors: Any, fn: Callable[..., Any], *, mode: str = "all") -> MultiHandle:
    """Register ``fn``, called in every backward pass that computes gradients of ``tensors``.

    With ``mode="all"``, ``fn(grads)`` is called after the last gradient has been computed; ``grads`` has None for
    tensors without gradient in this pass. With ``mode="any"``, ``fn(grad)`` is called with the first gradient. Return a
    handle whose ``remove()`` removes the hook.

    Raise ValueError for another mode. If a tensor requires no gradient, AssertionError is raised with ``mode="all"``,
    and the tensor is ignored with ``mode="any"``.

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
    edges = [_edge_of(each) for each in tensors]
    hooks = [_hook_for_first(fn)] * len(tensors) if mode == "any" else _hooks_for_all(fn, edges)
    for edge in edges:
        require_plan(edge)
    return MultiHandle(tuple(each.register_hook(hook) for each, hook in zip(tensors, hooks, strict=True)))


def _edge_of(tensor: Tensor) -> Any:
    if not tensor.requires_grad:
        raise AssertionError("Expected gradient function to be set")
    return Tensor._current(tensor)


def _hook_for_first(fn: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    done: WeakSet[Any] = WeakSet()
    lock = threading.Lock()

    @functools.wraps(fn)
    def hook(grad: Tensor) -> None:
        plan = engine.running_plan()
        with lock:
            if plan in done:
                return
            done.add(plan)
        fn(grad)

    return hook


def _hooks_for_all(fn: Callable[[list[Any]], None], edges: list[Any]) -> list[Callable[[Tensor], None]]:
    """Return a list of hooks, one for each of ``edges``, by which ``fn`` is called when all gradients are computed.

    ``edges`` are the places in the graph at which the hooks are registered. In each backward pass, the hook that runs
    last calls ``fn`` with the list of the gradients, which has None for an edge without gradient in this pass.
    """
    # Keyed weakly by the plan of a backward pass, which no other object references after the pass.
    collected: WeakKeyDictionary[Any, list[Any]] = WeakKeyDictionary()
    missing: WeakKeyDictionary[Any, int] = WeakKeyDictionary()
    lock = threading.Lock()

    def collect(index: int, grad: Tensor) -> None:
        plan = engine.running_plan()
        if plan is None:
            raise AssertionError("expected this hook to be called inside a backward call")
        with lock:
            if plan not in collected:
                collected[plan] = [None] * len(edges)
                missing[plan] = sum(map(plan.serves, edges))
            collected[plan][index] = grad
            missing[plan] -= 1
            ready = not missing[plan]
        if ready:
            del missing[plan]
            fn(collected.pop(plan))

    return [functools.partial(collect, index) for index in range(len(edges))]


class MultiHandle(Handle):
    """Handle of a hook of :func:`register_multi_grad_hook`: ``remove()`` removes the hook from all its tensors."""

    __module__ = shown_in("torch.autograd.graph", __name__)

    def __init__(self, handles: tuple[Handle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove the hook; a second call has no effect."""
        for each in self.handles:
            each.remove()

    def __getstate__(self) -> tuple[Any, ...]:
        return self.handles

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.handles = state


MultiHandle.__name__ = MultiHandle.__qualname__ = "_MultiHandle"


def set_retain_grad_last(last: bool) -> None:
    """Set when ``retain_grad`` stores the gradient of a tensor: after all its hooks, or in the order of registration.

    If ``last`` is true, the gradient is stored after all hooks, as in PyTorch 2. The default is False: the stored
    gradient does not show the effect of hooks registered after ``retain_grad``. The setting applies to the whole
    process.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True) * 1
    >>> torch.autograd.graph.set_retain_grad_last(True)
    >>> x.retain_grad()
    >>> _ = x.register_hook(lambda gradient: gradient * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10.])
    >>> torch.autograd.graph.set_retain_grad_last(False)
    """
    hooks.retain_last = bool(last)


# --- Saved tensors --------------------------------------------------------------------------------------------------


class saved_tensors_hooks:
    """Context manager that saves ``pack_hook(tensor)`` in place of each tensor saved for the backward pass.

    When the backward pass or ``grad_fn._saved_…`` reads the tensor, ``unpack_hook`` is called with the packed object.
    If blocks are nested, the hooks of the innermost block apply. Operations in ``pack_hook`` are not recorded in the
    graph. RuntimeError is raised if ``pack_hook`` modifies the tensor. ``unpack_hook`` must return a tensor with the
    same values; TypeError is raised for any other object.

    >>> import retrograd as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.item(), lambda kept: torch.tensor(kept)):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad
    tensor(6.)
    """

    #: The hooks that were active before each block, which may be nested.
    _before: tuple[Any, ...] = ()

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self) -> None:
        self._before = (*self._before, saved_tensor_hooks.active_stack())
        try:
            saved_tensor_hooks.push(self.pack_hook, self.unpack_hook)
        except BaseException:  # an error or an interrupt: __exit__ is not called
            *rest, before = self._before
            saved_tensor_hooks.restore(before)
            self._before = (*rest,)
            raise

    def __exit__(
        self, kind: object = None, error: object = None, trace: object = None, *, entered: tuple[Any, ...] | None = None
    ) -> None:
        try:  # from the first instruction: ``entered`` is a parameter, so that nothing precedes the block
            entered = self._before
            if entered:  # false after more exits than entries
                saved_tensor_hooks.restore(entered[-1])
            self._before = entered[:-1]
        except BaseException:  # an interrupt
            entered = self._before if entered is None else entered
            if entered:
                saved_tensor_hooks.restore(entered[-1])
            self._before = entered[:-1]
            raise


class save_on_cpu(saved_tensors_hooks):
    """Context manager that saves tensors for the backward pass in CPU memory instead of GPU memory.

    ``pin_memory`` and ``device_type`` have no effect.

    >>> import retrograd as torch
    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> with torch.autograd.graph.save_on_cpu():
    ...     y = x**2
    >>> y.backward()
    >>> x.grad
    tensor([6.])
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Return a context manager in which :class:`saved_tensors_hooks` raises RuntimeError with ``error_message``.

    If such hooks are active already, the error is raised when the context is entered.

    >>> import retrograd as torch
    >>> with torch.autograd.graph.disable_saved_tensors_hooks("no hooks here"):
    ...     with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
    ...         pass
    Traceback (most recent call last):
        ...
    RuntimeError: no hooks here
    """
    before = saved_tensor_hooks.refuse(error_message)
    try:
        yield
    finally:
        saved_tensor_hooks.refuse(before)


class _SavedArray:
    """Array of a saved tensor; before the tensor is modified, the array is replaced by a copy with the old values."""

    __slots__ = ("__weakref__", "array", "counter")

    def __init__(self, tensor: Tensor) -> None:
        self.array, self.counter = tensor._array, tensor._version_counter


class AllowMutation:
    """Tensors that were saved for the backward pass inside one :func:`allow_mutation_on_saved_tensors` context.

    ``tid_to_weakhandle`` has the objects saved in place of tensors by the identity of their arrays, until these are
    modified; ``cloned`` has the objects whose arrays have been copied. An object exists as long as a node refers to it.
    """

    def __init__(self) -> None:
        self.tid_to_weakhandle: WeakValueDictionary[int, _SavedArray] = WeakValueDictionary()
        self.cloned: WeakKeyDictionary[_SavedArray, Any] = WeakKeyDictionary()
        self.over = False

    def pack(self, tensor: Tensor) -> _SavedArray:
        """Return the object that is saved in place of ``tensor``; tensors with the same array get the same object."""
        saved = self.tid_to_weakhandle.get(id(tensor._array))
        if saved is None:
            saved = self.tid_to_weakhandle[id(tensor._array)] = _SavedArray(tensor)
        return saved

    def unpack(self, saved: _SavedArray) -> Tensor:
        """Return a Tensor with the values that the saved tensor ``saved`` had at the time of saving."""
        if self.over:
            raise AssertionError(
                "Trying to backward outside of the 'allow_mutation_on_saved_tensors' contextin which the graph was "
                "originally recorded. Remedy: run the backward pass within the block."
            )
        return wrap(saved.array)

    def copy(self, tensor: Tensor) -> None:
        """Replace the saved arrays that share memory with ``tensor`` by copies, before ``tensor`` is modified."""
        for number, each in list(self.tid_to_weakhandle.items()):
            if each.counter is tensor._version_counter:
                del self.tid_to_weakhandle[number]
                each.array = self.cloned[each] = each.array.copy()

    def clear(self) -> None:
        """Forget all saved tensors, at the end of the context."""
        self.over = True
        self.tid_to_weakhandle.clear()
        self.cloned.clear()


_mutable = threading.Lock()


@contextlib.contextmanager
def allow_mutation_on_saved_tensors() -> Iterator[AllowMutation]:
    """Return a context manager in which saved tensors may be modified in place; they are copied before a modification.

    The backward pass must run within the block too; otherwise AssertionError is raised. RuntimeError is raised for
    nested blocks.

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
            saved_tensor_hooks.before_modification.append(context.copy)
            try:
                yield context
            finally:
                saved_tensor_hooks.before_modification.remove(context.copy)
    finally:
        context.clear()
        _mutable.release()


#: Functions that PyTorch does not have, loaded on first access.
_LATER = {
    "draw": "..inspection.draw", "memory": "..inspection.memory", "page": "..inspection.page",
    "recording": "..inspection.page", "watch_leaks": "..inspection.memory",
}  # fmt: skip
__all__ = [
    "AccumulateGrad", "GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks",
    "get_gradient_edge", "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks",
    "set_retain_grad_last", *_LATER,
]  # fmt: skip
__getattr__ = module_getattr(__name__, _LATER)
