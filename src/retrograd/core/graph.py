"""Classes of the graph: ``Node`` (an operation), ``OutputEdge`` (one of several results), ``AccumulateGrad`` (a leaf).

A gradient edge is a reference to the object at which a gradient arrives: the node if the operation has one result, the
``OutputEdge`` of a result if it has several, or the ``AccumulateGrad`` of a leaf. A gradient is an array in an ordinary
backward pass, and a Tensor in one that is recorded. No node has a strong reference to a Tensor, so a graph has no
reference cycle and is freed with its last reference.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from itertools import count
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from ..runtime import user_frame

if TYPE_CHECKING:
    from .tensor import Tensor
    from .typing import Array, ArrayDType, Edge, Edges, Gradient, Gradients, Shape, VersionCounter

# Nodes are numbered downwards: the newest has the smallest number, so a heap returns it first.
next_number: Callable[[], int] = count(0, -1).__next__

#: Not empty once a tensor in a graph has changed its shape while it was not recorded: its gradient edge keeps the shape.
#: Only then must functions that record a node compare the shape of an operand's edge with that of its array. The item is
#: the number that a node had at the last change.
edges_of_other_shape: list[int] = []


def note_other_shape() -> None:
    """Note that the shape of a gradient edge is no longer that of its tensor."""
    edges_of_other_shape[:] = [next_number()]


class Handle:
    """Handle of a registered hook: ``remove()``, or the end of a ``with`` block, removes the hook.

    The handle has weak references to the dictionaries of hooks.

    Args:
        hooks_dict: Dictionary of hooks, whose keys are the ids of the handles.
        hook: Hook to add to ``hooks_dict``, or None if the caller adds it, as with PyTorch's constructor.
        notes: Dictionaries that mark hooks with an option, such as ``with_kwargs``. To each, the id of the handle is
            added as a key with the value True.
        extra_dict: A further dictionary or a list of dictionaries, from which ``remove`` also deletes the id.
    """

    __module__ = "torch.utils.hooks"
    next_id: ClassVar[int] = 0

    # Note [Any in public signatures]
    def __init__(self, hooks_dict: Any, hook: Any = None, *notes: Any, extra_dict: Any = None) -> None:
        others = extra_dict if isinstance(extra_dict, list) else [] if extra_dict is None else [extra_dict]
        # Note [Any in public signatures]
        self.hooks_dict_ref: weakref.ref[Any] = weakref.ref(hooks_dict)
        # Note [Any in public signatures]
        self.extra_dict_ref: tuple[weakref.ref[Any], ...] = tuple(map(weakref.ref, (*others, *notes)))
        self.id: int = Handle.next_id
        Handle.next_id += 1
        if hook is not None:
            hooks_dict[self.id] = hook
        for each in notes:
            each[self.id] = True

    def remove(self) -> None:
        """Remove the hook, if it has not been removed yet."""
        for each in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = each()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __getstate__(self) -> tuple[Any, ...]:  # Note [Any in public signatures]
        return self.hooks_dict_ref(), self.id, tuple(each() for each in self.extra_dict_ref)

    def __setstate__(self, state: tuple[Any, ...]) -> None:  # Note [Any in public signatures]
        self.hooks_dict_ref = weakref.ref(HookList() if state[0] is None else state[0])
        self.id = state[1]
        Handle.next_id = max(Handle.next_id, self.id + 1)
        self.extra_dict_ref = tuple(map(weakref.ref, state[2] if len(state) > 2 else ()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


Handle.__name__ = Handle.__qualname__ = "RemovableHandle"


class HookList(dict[int, Callable[..., Any]]):  # Note [Any in public signatures]
    """Dictionary of the hooks of one tensor or node, in order of registration; the keys are the ids of the handles."""

    __slots__ = ("__weakref__",)


#: An empty list of hooks, never modified.
NO_HOOKS = HookList()


class Hooks:
    """Hooks of a node, a leaf or one result of a node, in four dictionaries of the class :class:`HookList`.

    Attributes:
        tensor: Hooks of the tensor (``Tensor.register_hook``).
        before: Hooks that are called before the node runs.
        after: Hooks that are called after the node has run.
        accumulated: Hooks of a leaf that are called after its ``grad`` has been written.
        retaining: Key in ``tensor`` of the hook that ``Tensor.retain_grad`` has registered, or None.
        earlier: Hooks of the edge before a recorded ``transpose_`` or the like, to which the tensor's hooks are added.
    """

    __slots__ = ("accumulated", "after", "before", "earlier", "retaining", "tensor")
    tensor: HookList
    before: HookList
    after: HookList
    accumulated: HookList

    def __init__(self) -> None:
        self.tensor = HookList()
        self.before = self.after = self.accumulated = NO_HOOKS
        self.retaining: int | None = None
        self.earlier: Hooks | None = None

    def own(self, when: str) -> HookList:
        """Return the dictionary of hooks named ``when``, so that the caller can add a hook to it.

        ``when`` is ``before``, ``after`` or ``accumulated``. If this dictionary is ``NO_HOOKS``, the empty one that all
        objects share, it is first replaced by a new dictionary.
        """
        hooks: HookList = getattr(self, when)
        if hooks is NO_HOOKS:
            hooks = HookList()
            setattr(self, when, hooks)
        return hooks


def hooks_of(edge: Edge) -> Hooks:
    """Return the :class:`Hooks` of the gradient edge ``edge``, which are created on the first call."""
    if edge.hooks is None:
        edge.hooks = Hooks()
        if edge.__class__ is AccumulateGrad:
            require_plan(edge)
        elif edge.__class__ is OutputEdge:  # the node runs these hooks, and it has no reference to its OutputEdges
            by_result = edge.node.__dict__.setdefault("result_hooks", {})
            edge.hooks = by_result.setdefault(edge.position, edge.hooks)
    return edge.hooks


#: Existing edges that make every backward pass need a plan.
_planned: set[weakref.ref[Edge]] = set()


def require_plan(edge: Edge) -> None:
    """Make every backward pass visit leaves in PyTorch's order, as long as the object ``edge`` exists.

    ``edge`` is the gradient edge of a leaf with hooks, for example. PyTorch's order requires a traversal of the graph
    before the backward pass, which takes time (see Note [The order of leaves] in ``engine.py``).
    """
    _planned.add(weakref.ref(edge, _forget))
    AccumulateGrad.hooked = True


def _forget(reference: weakref.ref[Edge]) -> None:
    """Remove ``reference``, a weak reference to an edge that no longer exists, from :data:`_planned`.

    If :data:`_planned` is then empty, backward passes need not visit leaves in PyTorch's order (see
    :func:`require_plan`).
    """
    _planned.discard(reference)
    if not _planned:
        AccumulateGrad.hooked = False


#: Names and beginnings of names that ``dir`` lists of a node.
_PUBLIC = frozenset({
    "metadata", "name", "next_functions", "register_hook", "register_prehook", "requires_grad", "saved_tensors", "variable",
    "dirty_tensors", "materialize_grads", "needs_input_grad", "non_differentiable", "saved_for_forward", "to_save",
    "_sequence_nr",
})  # fmt: skip
_SHOWN = ("__", "_saved_", "_raw_saved_")


class Node:
    """Base class of the nodes of the graph; a node is a recorded operation with the gradient edges of its inputs.

    The operations of retrograd have generated subclasses with the names of PyTorch's nodes (``AddBackward0``). A
    subclass stores the saved values and computes the gradients of the inputs (vector-Jacobian products). The method
    ``vjp`` computes with arrays, ``vjp_recorded`` with Tensors.
    """

    __slots__ = ("__dict__", "__weakref__", "code", "dtype", "edges", "hooks", "instruction", "number", "shape")
    __module__ = "builtins"  # so that the class prints as <class 'AddBackward0'>

    edges: Edges  # the edge (or None) of each differentiable input
    number: int  # position in the order of creation; see next_number
    shape: Shape  # shape of the result, and so of the gradient that arrives here
    dtype: ArrayDType  # NumPy dtype of the result
    hooks: Hooks | None
    code: CodeType | None  # with `instruction`: location in the user's program that recorded the node
    instruction: int
    outputs: ClassVar[int] = 1  # number of results of the operation
    single: ClassVar[bool] = True  # whether the operation has one result
    lone: ClassVar[bool] = False  # whether the node is a SingleEdgeNode
    variable_ref: ClassVar[None] = None  # set for an AccumulateGrad only
    takes_none: ClassVar[bool] = False  # whether the node runs even if no gradient arrived
    merged: ClassVar[bool] = False  # whether the results are those of several operations, of which some may not be used
    aliases_leaf: ClassVar[bool] = False  # whether it is the alias of an argument of a transform of torch.func
    operation: ClassVar[Any] = None  # declaration in the table, for explanations of a graph; Note [Any of declarations]
    listed: tuple[int, ...] | None = None  # indices of the operands that can have gradients, if not all
    result_hooks: dict[int, Hooks] | None = None  # hooks of the results, by position, if there are several
    run: ClassVar[Callable[..., Gradients]]  # set by engine.py

    if TYPE_CHECKING:  # of a SingleEdgeNode only, for code that has tested `lone`
        edge: Edge
        operand: ClassVar[int]
        operands: ClassVar[int]

        def spread(self, value: Gradient) -> tuple[Gradient, ...]: ...

    def vjp(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        """Return the gradients of the inputs, computed from ``grad``, the gradient of the result.

        ``edges`` are the gradient edges of the inputs; None if an input requires no gradient. The result is a tuple
        with an array or None for each edge or, if there is only one edge, its gradient. If ``keep`` is true, the saved
        values are not freed.
        """
        raise RuntimeError(f"{type(self).__name__} has no derivative")

    def vjp_recorded(self, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        """Return the gradients of the inputs as Tensors, computed by recorded operations (``create_graph=True``).

        The arguments are those of :meth:`vjp`, but ``grad`` is a Tensor.
        """
        raise RuntimeError(f"{type(self).__name__} has no derivative")

    def place(self, position: int, value: Array) -> Edge | None:
        """Return the gradient edge of the result at index ``position``, whose array is ``value``.

        The edge is the node itself, or an OutputEdge if the node has several results. In-place operations on views
        replace this method: see Note [Results saved by in-place operations] in ``views.py``.
        """
        return self if self.outputs == 1 else OutputEdge(self, position, value.shape, value.dtype)

    def edge_of(self, operand: int) -> Edge | None:
        """Return the gradient edge of the operand at index ``operand``, or None if the operand requires no gradient."""
        return self.edges[operand]

    # -- Public attributes

    def name(self) -> str:
        """Return the name of the node, such as ``MulBackward0``."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:  # Note [Any in public signatures]
        """Pairs (node, index), one for each input of the operation that can have a gradient.

        ``node`` is the node that computed the input, or the AccumulateGrad of a leaf. ``index`` is the index of the
        input among the results of this node. The pair is ``(None, 0)`` for an input that requires no gradient.
        """
        return self._listed(self.edges)

    def _listed(self, edges: Edges) -> tuple[tuple[Node | AccumulateGrad | None, int], ...]:
        return tuple(_as_next_function(edges[index]) for index in self.listed or range(len(edges)))

    @property
    def metadata(self) -> dict[Any, Any]:  # Note [Any in public signatures]
        """Dictionary in which users may store data."""
        return self.__dict__.setdefault("metadata", {})

    @property
    def requires_grad(self) -> bool:
        """True, because a node is created only if a gradient is required."""
        return True

    @property
    def node(self) -> Node:
        return self

    @property
    def position(self) -> int:
        return 0

    @user_frame.strips_frames
    def __call__(self, *grads: Any) -> Any:  # Note [Any in public signatures]
        """Return the gradients of the inputs, computed from ``grads``, the gradients of the results.

        If the operation has one input, its gradient is returned, otherwise a tuple.
        """
        return Node.run(self, grads)

    def __dir__(self) -> list[str]:
        """Return the names that PyTorch's nodes have, and those that the program has set."""
        internal = {name for kind in type(self).__mro__ if issubclass(kind, Node) for name in vars(kind)} - _PUBLIC
        return [name for name in object.__dir__(self) if name not in internal or name.startswith(_SHOWN)]

    def _sequence_nr(self) -> int:
        return -self.number

    def register_hook(self, fn: Callable[..., Any]) -> Handle:  # Note [Any in public signatures]
        """Register ``fn(grad_inputs, grad_outputs)``, which is called after this node.

        If the hook returns a value other than None, this value replaces ``grad_inputs``. Return a
        handle that can remove the hook.
        """
        return Handle(hooks_of(self).own("after"), fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:  # Note [Any in public signatures]
        """Register ``fn(grad_outputs)``, which is called before this node runs.

        If the hook returns a value other than None, this value replaces ``grad_outputs``. Return a
        handle that can remove the hook.
        """
        return Handle(hooks_of(self).own("before"), fn)


class SingleEdgeNode(Node):
    """Base class of graph nodes with a single edge, because only one operand of the operation requires a gradient.

    ``operands`` is the number of operands of the operation, and ``operand`` is the index of the one with the edge.
    """

    __slots__ = ()
    __module__ = "builtins"
    lone: ClassVar[bool] = True

    @property
    def edges(self) -> Edges:  # type: ignore[override]
        """Tuple with the only edge of the node."""
        return (self.edge,)

    def edge_of(self, operand: int) -> Edge | None:
        return self.edge if operand == self.operand else None

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:  # Note [Any in public signatures]
        """Pairs (node, index), one for each input of the operation that can have a gradient.

        ``node`` is the node that computed the input, or the AccumulateGrad of a leaf. ``index`` is the index of the
        input among the results of this node. The pair is ``(None, 0)`` for an input that requires no gradient.
        """
        return self._listed(self.spread(self.edge))

    def spread(self, value: Gradient) -> tuple[Gradient, ...]:
        """Return a tuple with ``value`` at the index of the operand with the edge, and None for the other operands."""
        return tuple(value if index == self.operand else None for index in range(self.operands))


class OutputEdge:
    """Object at which the gradient of one result arrives, for a node with several results.

    The node runs when the gradients of all its results have arrived.
    """

    __slots__ = ("__weakref__", "dtype", "hooks", "node", "number", "position", "shape")
    edges: ClassVar[Edges] = ()  # those of its node
    single: ClassVar[Literal[False]] = False
    lone: ClassVar[Literal[False]] = False
    variable_ref: ClassVar[None] = None

    def __init__(self, node: Node, position: int, shape: Shape, dtype: ArrayDType) -> None:
        self.node: Node = node
        self.position: int = position
        self.shape: Shape = shape
        self.dtype: ArrayDType = dtype
        self.hooks: Hooks | None = None
        self.number: int = next_number()


def dead_ref() -> None:
    """Return None, like a weak reference to a leaf that no longer exists.

    The attribute ``variable_ref`` of an :class:`AccumulateGrad` is usually a weak reference to the leaf. If the
    gradients are to be discarded, the attribute is this function (see ``views.py``).
    """


def _as_next_function(edge: Edge | None) -> tuple[Node | AccumulateGrad | None, int]:
    """Return the pair (node, index of one of its results) that represents ``edge`` in ``next_functions``.

    The pair is ``(None, 0)`` if ``edge`` is None, or an AccumulateGrad that discards its gradients.
    """
    return (None, 0) if edge is None or edge.variable_ref is dead_ref else (edge.node, edge.position)


class AccumulateGrad:
    """Object at which the gradients of a leaf arrive, and which adds them to the leaf's ``grad``.

    The object has a strong reference to the leaf's array, but only a weak one to the leaf. Therefore ``variable`` is
    the leaf while the leaf exists, and otherwise a new Tensor of the array, with the gradients that have arrived since.

    >>> import retrograd as torch
    >>> x = torch.ones(1, requires_grad=True)
    >>> node = (x * 2).grad_fn.next_functions[0][0]
    >>> node.name(), node.variable is x
    ('torch::autograd::AccumulateGrad', True)
    """

    __slots__ = (
        "__weakref__", "_notes", "array", "cell", "code", "dtype", "grad", "hooks", "instruction", "number", "shape",
        "variable_ref",
    )  # fmt: skip
    __module__ = "builtins"
    code: CodeType | None
    instruction: int

    hooked: ClassVar[bool] = False  # whether any existing leaf has had a hook; see `require_plan`
    next_functions: ClassVar[tuple[tuple[Node | AccumulateGrad | None, int], ...]] = ()
    edges: ClassVar[Edges] = ()
    lone: ClassVar[Literal[False]] = False
    requires_grad: ClassVar[bool] = True
    position: ClassVar[int] = 0
    if TYPE_CHECKING:
        single: ClassVar[Literal[False]]  # read only of edges that are not leaves
    remake: ClassVar[Callable[[AccumulateGrad], Tensor]]  # set by tensor.py

    def __init__(self, leaf: Tensor, array: Array, counter: VersionCounter | None) -> None:
        self.variable_ref: Callable[[], Tensor | None] = weakref.ref(leaf)
        self.array: Array = array
        self.cell: VersionCounter | None = counter
        self.shape: Shape = array.shape
        self.dtype: ArrayDType = array.dtype
        self.hooks: Hooks | None = None
        self.grad: Array | Tensor | None = None  # of a leaf that no longer exists
        self.number: int = next_number()
        self._notes: dict[object, object] | None = None
        self.code, self.instruction = user_frame.user_location(3)

    @property
    def metadata(self) -> dict[Any, Any]:  # Note [Any in public signatures]
        """Dictionary in which users may store data."""
        if self._notes is None:
            self._notes = {}
        return self._notes

    def __dir__(self) -> list[str]:
        """Return the names that PyTorch's nodes have."""
        return [name for name in object.__dir__(self) if name in _PUBLIC or name[:2] == "__"]

    @property
    def node(self) -> AccumulateGrad:
        return self

    @property
    def variable(self) -> Tensor:
        """Leaf whose gradients are added here, or a new Tensor of its array if the leaf no longer exists."""
        leaf = self.variable_ref()
        return AccumulateGrad.remake(self) if leaf is None else leaf

    def name(self) -> str:
        """Return ``torch::autograd::AccumulateGrad``, PyTorch's name of this class."""
        return "torch::autograd::AccumulateGrad"

    @user_frame.strips_frames
    def __call__(self, *grads: Any) -> Any:  # Note [Any in public signatures]
        """Add the gradient ``grads[0]`` to the leaf's ``grad``."""
        return Node.run(self, grads)

    def _sequence_nr(self) -> int:
        return 2**64 - 1

    def register_hook(self, fn: Callable[..., Any]) -> Handle:  # Note [Any in public signatures]
        """Register ``fn(grad_inputs, grad_outputs)``, called after each accumulation.

        ``grad_inputs`` is an empty tuple, and ``grad_outputs`` contains the gradient. Return a handle that can remove
        the hook.
        """
        return Handle(hooks_of(self).own("after"), fn)

    def register_prehook(self, fn: Callable[..., Any]) -> Handle:  # Note [Any in public signatures]
        """Register ``fn(grad_outputs)``, which is called before each accumulation.

        If the hook returns a value other than None, this value replaces ``grad_outputs``. Return a
        handle that can remove the hook.
        """
        return Handle(hooks_of(self).own("before"), fn)
