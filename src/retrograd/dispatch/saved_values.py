"""Nodes whose saved values are packed by saved-tensor hooks, and the values of ``grad_fn._raw_saved_…``.

A node with packed values is an instance of a subclass of the ordinary (plain) node class of its operation. The method
``vjp`` of the subclass unpacks the values and makes the node an instance of the plain class; with
``retain_graph=True``, it makes an unpacked copy of the node instead. Therefore the method ``vjp`` of the plain class
need not check whether a value is packed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.error_context import describe_node, with_remedy
from ..core.grad_mode import restore_recording, set_recording
from ..core.graph import Node
from ..core.saved_tensor_hooks import PackedValue
from ..core.tensor import Tensor, at_edge, new, wrap

if TYPE_CHECKING:
    from types import MemberDescriptorType

    from ..core.saved_tensor_hooks import Hooks
    from ..core.typing import Array, Edges, Function, Gradient, Gradients
    from .typing import DeclaredNode, HeldTensor, OperandSequence, VJPMethod


def pack_saved_values(
    node: DeclaredNode, tensors: OperandSequence, outs: Sequence[Tensor | Array], hooks: Hooks
) -> None:
    """Replace the arrays that ``node``, a new node, has saved by the results of the pack hook.

    ``tensors`` are the operands of the call, and ``outs`` its results, as arrays if they are not returned. ``hooks`` are
    the pack hook and the unpack hook.
    """
    pack, unpack = hooks
    before = set_recording(False)
    try:
        for each in node.arrays:
            value = getattr(node, each.held, None)
            if value is None:  # not needed, or not given
                continue
            if each.kind == "result":
                result = outs[each.index]
                packed = PackedValue.result(result if isinstance(result, Tensor) else wrap(result), pack, unpack)
            else:
                source = tensors[each.index]
                if not isinstance(source, Tensor):  # a number
                    continue
                if source._array is not value:  # converted, or what is overwritten
                    source = at_edge(value, [0, None], node.edge_of(each.index))
                packed = PackedValue(source, pack, unpack)
            setattr(node, each.held, packed)
    finally:
        restore_recording(before)
    if node.arrays:
        node.__class__ = packed_class(type(node))


def packed_class(kind: type[Node]) -> type[Node]:
    """Return the subclass of the node class ``kind`` for nodes with packed values; both classes have the same name."""
    if hasattr(kind, "plain"):
        return kind
    if kind not in _packed:
        _packed[kind] = _packed_subclass(kind)
    return _packed[kind]


_packed: dict[type[Node], type[Node]] = {}


def _packed_subclass(kind: type[Node]) -> type[Node]:
    slots = [
        each.__dict__[name]
        for each in kind.__mro__
        for name in each.__dict__.get("__slots__", ())
        if not name.startswith("__")
    ]
    body = {
        "__slots__": (), "__module__": "builtins", "plain": kind,
        "vjp": _unpacking("vjp", slots), "vjp_recorded": _unpacking("vjp_recorded", slots),
    }  # fmt: skip
    return type(kind.__name__, (kind,), body)


def _unpacking(level: str, slots: Sequence[MemberDescriptorType]) -> VJPMethod:
    """Return the method ``vjp`` or ``vjp_recorded`` of the nodes whose values are packed by saved-tensor hooks.

    The method unpacks the values and then calls the method of the same name of the plain (ordinary) node class.
    ``level`` is the name of the method, and ``slots`` are the descriptors of the ``__slots__`` of the node class.
    """

    def vjp(node: DeclaredNode, grad: Gradient, edges: Edges, keep: bool) -> Gradients:
        if keep:
            return getattr(_unpacked_copy(node, slots), level)(grad, edges, keep)
        # The graph is not retained: the node itself is unpacked and becomes a plain node.
        _unpack(node, node)
        node.__class__ = node.plain
        return getattr(node, level)(grad, edges, keep)

    return vjp


def _unpack(node: DeclaredNode, target: DeclaredNode) -> None:
    """Store the values that the unpack hooks of ``node`` return as the saved values of ``target``."""
    unpacked = [
        (each, held.unpack()._array)
        for each in node.arrays
        if (held := getattr(node, each.held, None)).__class__ is PackedValue
    ]
    for each, array in unpacked:
        setattr(target, each.held, array)
        setattr(target, each.cell, [0, None])
        setattr(target, each.seen, 0)


def _unpacked_copy(node: DeclaredNode, slots: Sequence[MemberDescriptorType]) -> DeclaredNode:
    """Return a copy of ``node`` whose saved values are the results of the unpack hooks.

    The copy is an instance of the plain (ordinary) node class. ``slots`` are the descriptors of the ``__slots__`` whose
    values are copied.
    """
    copied: Any = new(node.plain)
    for slot in slots:
        try:
            slot.__set__(copied, slot.__get__(node))
        except AttributeError:  # the slot is empty: no gradient needs this value
            continue
    _unpack(node, copied)
    copied.__dict__["place"] = node.place
    return copied


# --- Saved tensors in public ----------------------------------------------------------------------------------------


class SavedTensor(ABC):
    """Tensor saved by a graph node, as ``grad_fn._raw_saved_…`` returns it; hooks can be registered on it."""

    __slots__ = ()
    __module__ = "torch._C._autograd"
    _owner: DeclaredNode

    @abstractmethod
    def held(self) -> HeldTensor:
        """Return the value that the node has saved.

        The value is the tensor, a PackedValue (the result of a pack hook) in place of it, None if no tensor was saved,
        or FREED if a backward pass has freed the value.
        """

    @abstractmethod
    def hold(self, packed: PackedValue) -> None:
        """Save ``packed``, which contains the result of a pack hook, on the node in place of the tensor."""

    @property
    def data(self) -> object:
        """Saved tensor, or the object that the pack hook returned for it."""
        value = self.held()
        return value.value if value.__class__ is PackedValue else value

    @property
    def unpack_hook(self) -> Function | None:
        """Hook that converts :attr:`data` to the tensor, or None if there are no hooks."""
        value = self.held()
        return value.hook if value.__class__ is PackedValue else None

    def unpack(self) -> Tensor:
        """Return the saved tensor; if hooks are registered, it is the result of the unpack hook."""
        value = self.held()
        return value.unpack() if value.__class__ is PackedValue else value

    # Note [Any in public signatures]
    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Save the object ``pack_hook(tensor)`` instead of the tensor; the backward pass uses ``unpack_hook(object)``.

        Raises RuntimeError if no tensor is saved, if it was freed, or if it has hooks already.
        """
        value = self.held()
        if value is FREED:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
                "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to "
                "backward through the graph a second time or if you need to access saved variables after calling backward."
                f"{describe_node(self._owner)} Remedy: register them before the backward pass."
            )
        if value.__class__ is PackedValue:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                f"is allowed at a time.{describe_node(self._owner)} Remedy: combine both in one pair of hooks."
            )
        if value is None:
            text = f"Calling register_hooks on a saved tensor with value None is forbidden.{describe_node(self._owner)}"
            raise RuntimeError(with_remedy(text, "check first that .data is not None"))
        self.hold(PackedValue(value, pack_hook, unpack_hook))


#: The value of a saved tensor after a backward pass that did not retain the graph.
FREED: HeldTensor = object()


class NodeSavedTensor(SavedTensor):
    """Tensor saved by a node of a declared operation, as ``grad_fn._raw_saved_…`` returns it.

    The node stores the array, or the result of a pack hook, in its attribute ``s_<slot>``. The function ``lift`` has no
    parameters, and returns the array as a Tensor with its gradient edge.
    """

    __slots__ = ("_lift", "_owner", "_slot")
    __module__ = "torch._C._autograd"

    def __init__(self, node: DeclaredNode, slot: str, lift: Callable[[], Tensor]) -> None:
        self._owner, self._slot, self._lift = node, slot, lift

    def held(self) -> HeldTensor:
        value = getattr(self._owner, "s_" + self._slot, None)
        if value is None:
            return None if getattr(self._owner, "c_" + self._slot, None) is None else FREED
        return value if value.__class__ is PackedValue else self._lift()

    def hold(self, packed: PackedValue) -> None:
        setattr(self._owner, "s_" + self._slot, packed)
        self._owner.__class__ = packed_class(type(self._owner))


NodeSavedTensor.__name__ = NodeSavedTensor.__qualname__ = "SavedTensor"
