"""The graph: ``Node`` (one recorded operation), ``AccumulateGrad`` (a leaf's end of it), ``Output`` (one result of many).

An edge of the graph is a reference to the place where a gradient arrives: the node itself if the operation has one
result, else the ``Output`` of that result, or a leaf's ``AccumulateGrad``. A gradient is an array in a plain sweep and
a Tensor in a sweep that records itself. Nothing here knows an operation, and no node refers to a Tensor strongly, so
that a graph has no reference cycle and goes with its last reference.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from types import CodeType
from typing import Any, ClassVar, Self

from ..runtime import user_frame

# Nodes are numbered downwards: the youngest has the smallest number, and a heap hands it out first.
next_number = count(0, -1).__next__


class Handle:
    """What registering a hook returns: ``remove()`` takes the hook away; as a context manager it does so at the end.

    It holds the dictionary of hooks weakly. ``hook``: what to enter there; PyTorch's ``RemovableHandle(hooks_dict)`` leaves
    that to its maker. ``extra_dict``: a dictionary, or several, from which the handle's number is to be taken as well.
    """

    __module__ = "torch.utils.hooks"
    next_id: ClassVar[int] = 0

    def __init__(self, hooks_dict: Any, hook: Any = None, *notes: Any, extra_dict: Any = None) -> None:
        """``notes``: further such dictionaries, in which it is noted that this hook is to be called in a special way."""
        others = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        self.extra_dict_ref = tuple(map(weakref.ref, (*others, *notes)))
        self.id = Handle.next_id
        Handle.next_id += 1
        if hook is not None:
            hooks_dict[self.id] = hook
        for each in notes:
            each[self.id] = True

    def remove(self) -> None:
        """Take the hook away; nothing happens if it is gone already."""
        for each in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = each()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:
        return self.hooks_dict_ref(), self.id, tuple(each() for each in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.hooks_dict_ref = weakref.ref(HookList() if state[0] is None else state[0])
        self.id = state[1]
        Handle.next_id = max(Handle.next_id, self.id + 1)
        self.extra_dict_ref = tuple(map(weakref.ref, state[2] if len(state) > 2 else ()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


Handle.__name__ = Handle.__qualname__ = "RemovableHandle"


class HookList(dict[int, Callable[..., Any]]):
    """Hooks in the order in which they were registered."""

    __slots__ = ("__weakref__",)


#: No hooks; nothing is ever entered here.
NONE = HookList()


class Hooks:
    """The hooks at one place of the graph.

    ``tensor`` are those of a tensor whose gradient arrives here (retaining it included), ``before`` and ``after`` are
    a node's own, ``accumulated`` a leaf's, called when its ``grad`` has been written.
    """

    __slots__ = ("accumulated", "after", "before", "retaining", "tensor")

    def __init__(self) -> None:
        self.tensor = HookList()
        self.before = self.after = self.accumulated = NONE
        self.retaining: int | None = None  # the key in `tensor` under which the gradient is retained

    def own(self, when: str) -> HookList:
        """``before``, ``after`` or ``accumulated``, to be registered in: made when first asked for."""
        found: HookList = getattr(self, when)
        if found is NONE:
            found = HookList()
            setattr(self, when, found)
        return found


def hooks_of(place: Any) -> Hooks:
    """The hooks at a place of the graph, made when first asked for."""
    if place.hooks is None:
        place.hooks = Hooks()
        if place.__class__ is AccumulateGrad:
            plan_for(place)
        elif place.__class__ is OutputEdge:  # these are run when the node is, which knows none of its results
            known = place.node.__dict__.setdefault("result_hooks", {})
            place.hooks = known.setdefault(place.position, place.hooks)
    return place.hooks


#: The places that live and for whose sake every sweep has a plan.
_planned: set[weakref.ref[Any]] = set()


def plan_for(place: Any) -> None:
    """Let sweeps have a plan as long as ``place`` lives: they take longer (see engine, Note [The order of leaves])."""
    _planned.add(weakref.ref(place, _gone))
    AccumulateGrad.hooked = True


def _gone(reference: weakref.ref[Any]) -> None:
    _planned.discard(reference)
    if not _planned and AccumulateGrad.hooked is True:  # else a profiler has a reason of its own
        AccumulateGrad.hooked = False


class Node:
    """One recorded operation: where gradients go from here (``edges``), and in subclasses what is kept to compute them.

    Subclasses are named and printed as PyTorch's nodes are (``AddBackward0``). They are made by the table of operations
    and define ``vjp`` (arrays in, arrays out), ``vjp_recorded`` (Tensors in, Tensors out) and ``saved``.
    """

    __slots__ = ("__dict__", "__weakref__", "code", "dtype", "edges", "hooks", "instruction", "number", "shape")
    __module__ = "builtins"  # so that the class prints as <class 'AddBackward0'>

    edges: tuple[Any, ...]  # one place (or None) per differentiable input
    number: int  # the order in which nodes were made; see next_number
    shape: tuple[int, ...]  # of the gradient that arrives here, which is the result's
    dtype: Any  # likewise; a NumPy dtype
    hooks: Hooks | None
    code: CodeType | None  # with `instruction`: the place in the user's program that recorded this
    instruction: int
    outputs: ClassVar[int] = 1  # how many results the operation has
    single: ClassVar[bool] = True  # whether that is one
    lone: ClassVar[bool] = False  # whether it is a LoneNode
    variable_ref: ClassVar[Any] = None  # only an AccumulateGrad has one
    takes_none: ClassVar[bool] = False  # whether it is run even if no gradient arrived
    operation: ClassVar[Any] = None  # the record of its operation, if the table has one; for those who explain
    listed: tuple[int, ...] | None = None  # the operands that can have gradients, if not all
    result_hooks: dict[int, Hooks] | None = None  # the hooks of its results, by position, if it has several
    run: ClassVar[Callable[[Any, tuple[Any, ...]], Any]]  # set by engine.py

    def vjp(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        """The gradients for ``edges`` (None where there is none), given the result's, all arrays.

        One edge: the gradient itself, not a tuple. ``keep``: whether what is saved is needed again.
        """
        raise RuntimeError(f"{type(self).__name__} has no derivative")

    def vjp_recorded(self, grad: Any, edges: tuple[Any, ...], keep: bool) -> Any:
        """As :meth:`vjp` for Tensors, recording what it does."""
        raise RuntimeError(f"{type(self).__name__} has no derivative")

    def place(self, position: int, value: Any) -> Any:
        """Where the gradient of a saved result arrives (see Note [Results saved by in-place operations])."""
        return self if self.outputs == 1 else OutputEdge(self, position, value.shape, value.dtype)

    def edge_of(self, operand: int) -> Any:
        """Where the gradient of an operand goes."""
        return self.edges[operand]

    # -- what a user sees

    def name(self) -> str:
        """The node's name, such as ``MulBackward0``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the gradients go: for each input the node (or None) and the number of the result there."""
        return self._listed(self.edges)

    def _listed(self, edges: tuple[Any, ...]) -> tuple[tuple[Any, int], ...]:
        return tuple(_shown(edges[index]) for index in self.listed or range(len(edges)))

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""
        return self.__dict__.setdefault("metadata", {})

    @property
    def requires_grad(self) -> bool:
        """True: a node exists only where a gradient is required."""
        return True

    @property
    def node(self) -> Any:
        return self

    @property
    def position(self) -> int:
        return 0

    def __call__(self, *grads: Any) -> Any:
        """The gradients that this node sends on if ``grads`` arrive: a Tensor, or a tuple; what is saved is kept."""
        return Node.run(self, grads)

    def _sequence_nr(self) -> int:
        return -self.number

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call ``fn(grad_inputs, grad_outputs)`` after each run of this node; what it returns replaces grad_inputs."""
        return Handle(hooks_of(self).own("after"), fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call ``fn(grad_outputs)`` before each run of this node; what it returns replaces grad_outputs."""
        return Handle(hooks_of(self).own("before"), fn)


class SingleEdgeNode(Node):
    """A node with one edge: of the ``operands`` of the operation only number ``operand`` has a place in the graph."""

    __slots__ = ()
    __module__ = "builtins"
    lone: ClassVar[bool] = True
    operand: ClassVar[int]
    operands: ClassVar[int]
    edge: Any  # a slot of the subclasses

    @property
    def edges(self) -> tuple[Any, ...]:  # type: ignore[override]
        """The one edge."""
        return (self.edge,)

    def edge_of(self, operand: int) -> Any:
        return self.edge if operand == self.operand else None

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """Where the gradients go: for each input the node (or None) and the number of the result there."""
        return self._listed(self.spread(self.edge))

    def spread(self, value: Any) -> tuple[Any, ...]:
        """``value`` at the place of the one operand, and None for the others."""
        return tuple(value if index == self.operand else None for index in range(self.operands))


class OutputEdge:
    """One result of a node that has several: a gradient that arrives here waits for those of its siblings."""

    __slots__ = ("__weakref__", "dtype", "hooks", "node", "number", "position", "shape")
    edges: ClassVar[tuple[Any, ...]] = ()  # its node has them
    single: ClassVar[bool] = False
    lone: ClassVar[bool] = False
    variable_ref: ClassVar[Any] = None

    def __init__(self, node: Node, position: int, shape: tuple[int, ...], dtype: Any) -> None:
        self.node = node
        self.position = position
        self.shape = shape
        self.dtype = dtype
        self.hooks: Hooks | None = None
        self.number = next_number()


def dead_ref() -> None:
    """The ``leaf`` of an :class:`AccumulateGrad` at which gradients just end (see ``views``)."""


def _shown(edge: Any) -> tuple[Any, int]:
    """An edge as ``next_functions`` gives it."""
    return (None, 0) if edge is None or edge.variable_ref is dead_ref else (edge.node, edge.position)


class AccumulateGrad:
    """A leaf's end of the graph: what arrives here is added to the leaf's ``grad``.

    It holds the leaf's memory, not the leaf: ``variable`` is the leaf while that lives, else a new Tensor in its place.
    """

    __slots__ = (
        "__weakref__", "_notes", "array", "cell", "code", "dtype", "hooks", "instruction", "number", "shape", "variable_ref",
    )  # fmt: skip
    __module__ = "builtins"
    hooked: ClassVar[bool] = False  # whether any leaf that lives has had a hook; see `plan_for`
    next_functions: ClassVar[tuple[Any, ...]] = ()
    edges: ClassVar[tuple[Any, ...]] = ()
    lone: ClassVar[bool] = False
    requires_grad: ClassVar[bool] = True
    position: ClassVar[int] = 0
    remake: ClassVar[Callable[[AccumulateGrad], Any]]  # set by tensor.py

    def __init__(self, leaf: Any, array: Any, cell: list[Any] | None) -> None:
        self.variable_ref: Callable[[], Any] = weakref.ref(leaf)
        self.array = array
        self.cell = cell
        self.shape: tuple[int, ...] = array.shape
        self.dtype = array.dtype
        self.hooks: Hooks | None = None
        self.number = next_number()
        self._notes: dict[Any, Any] | None = None
        self.code, self.instruction = user_frame.user_location(3)

    @property
    def metadata(self) -> dict[Any, Any]:
        """A dictionary for the user's own notes."""
        if self._notes is None:
            self._notes = {}
        return self._notes

    @property
    def node(self) -> AccumulateGrad:
        return self

    @property
    def variable(self) -> Any:
        """The leaf."""
        leaf = self.variable_ref()
        return AccumulateGrad.remake(self) if leaf is None else leaf

    def name(self) -> str:
        """``torch::autograd::AccumulateGrad``, as PyTorch calls it."""
        return "torch::autograd::AccumulateGrad"

    def __call__(self, *grads: Any) -> Any:
        """Accumulate a gradient."""
        return Node.run(self, grads)

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    def register_hook(self, fn: Callable[..., Any]) -> Handle:
        """Call ``fn(grad_inputs, grad_outputs)`` after each accumulation."""
        return Handle(hooks_of(self).own("after"), fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:
        """Call ``fn(grad_outputs)`` before each accumulation; what it returns replaces grad_outputs."""
        return Handle(hooks_of(self).own("before"), fn)
