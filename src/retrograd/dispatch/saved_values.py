"""Saved values that hooks have packed: the classes of nodes that unpack them, and what ``_raw_saved_…`` gives a user.

A node that holds something packed is of a subclass of its class. Its vjp lets the hooks give it back, whereupon it is a plain
node; if it is needed again, a stand-in of the plain class holds that. So the vjps of plain nodes never look whether anything
is packed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from ..core.error_context import describe_node, with_remedy
from ..core.graph import Node
from ..core.saved_tensor_hooks import PackedValue
from ..core.tensor import Tensor, new


def packed_class(kind: type[Node]) -> type[Node]:
    """``kind`` for nodes that hold something packed."""
    if hasattr(kind, "plain"):
        return kind
    if kind not in _packed:
        _packed[kind] = _made(kind)
    return _packed[kind]


_packed: dict[type[Node], type[Node]] = {}


def _made(kind: type[Node]) -> type[Node]:
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


def _unpacking(level: str, slots: Sequence[Any]) -> Callable[..., Any]:
    """The vjp of a node that holds something packed."""

    def vjp(node: Any, grad: Any, edges: Any, keep: bool) -> Any:
        if keep:
            return getattr(_stand_in(node, slots), level)(grad, edges, keep)
        # It is not needed again: unpacked, it is a plain node.
        held = [getattr(node, each.held, None) for each in node.arrays]
        _hold(node, [each.unpack()._array if each.__class__ is PackedValue else None for each in held])
        node.__class__ = node.plain
        return getattr(node, level)(grad, edges, keep)

    return vjp


def _hold(node: Any, arrays: Sequence[Any]) -> None:
    """Put what was unpacked (None: nothing was) in the place of what was packed."""
    for each, array in zip(node.arrays, arrays, strict=True):
        if array is not None:
            setattr(node, each.held, array)
            setattr(node, each.cell, [0, None])
            setattr(node, each.seen, 0)


def _stand_in(node: Any, slots: Sequence[Any]) -> Any:
    """A node of the plain class that has all that ``node`` has, and holds what the hooks give back."""
    twin: Any = new(node.plain)
    for slot in slots:
        try:
            slot.__set__(twin, slot.__get__(node))
        except AttributeError:  # nothing lies there: no gradient needs it
            continue
    held = [getattr(twin, each.held, None) for each in node.arrays]
    _hold(twin, [each.unpack()._array if each.__class__ is PackedValue else None for each in held])
    twin.__dict__["place"] = node.place
    return twin


# --- What a user sees -----------------------------------------------------------------------------------------------


class SavedTensor(ABC):
    """One tensor that a node keeps, as ``grad_fn._raw_saved_…``: hooks can be given to it alone."""

    __slots__ = ()
    __module__ = "torch._C._autograd"
    _owner: Any

    @abstractmethod
    def held(self) -> Any:
        """What lies on the node: something Packed, the tensor, None if there never was one, FREED if there was."""

    @abstractmethod
    def hold(self, packed: PackedValue) -> None:
        """Let this lie on the node in the tensor's stead."""

    @property
    def data(self) -> Any:
        """What is kept: the tensor, or what the pack hook has made of it."""
        value = self.held()
        return value.value if value.__class__ is PackedValue else value

    @property
    def unpack_hook(self) -> Any:
        """The hook that makes a tensor of what is kept, or None."""
        value = self.held()
        return value.hook if value.__class__ is PackedValue else None

    def unpack(self) -> Tensor:
        """The saved tensor."""
        value = self.held()
        return value.unpack() if value.__class__ is PackedValue else value

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Keep ``pack_hook(tensor)`` instead of the tensor, and give ``unpack_hook`` of that to the backward pass.

        Raises RuntimeError if there is nothing to pack, if it was freed, or if it has hooks already.
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
                f"is allowed at a time.{describe_node(self._owner)} Remedy: do in one pair what both are to do."
            )
        if value is None:
            text = f"Calling register_hooks on a saved tensor with value None is forbidden.{describe_node(self._owner)}"
            raise RuntimeError(with_remedy(text, "ask first whether there is a tensor: .data is None if there is not"))
        self.hold(PackedValue(value, pack_hook, unpack_hook))


FREED: Any = object()


class OfNode(SavedTensor):
    """One that a node of the table keeps."""

    __slots__ = ("_lift", "_owner", "_slot")
    __module__ = "torch._C._autograd"

    def __init__(self, node: Any, slot: str, lift: Callable[[], Any]) -> None:
        self._owner, self._slot, self._lift = node, slot, lift

    def held(self) -> Any:
        value = getattr(self._owner, "s_" + self._slot, None)
        if value is None:
            return None if getattr(self._owner, "c_" + self._slot, None) is None else FREED
        return value if value.__class__ is PackedValue else self._lift()

    def hold(self, packed: PackedValue) -> None:
        setattr(self._owner, "s_" + self._slot, packed)
        self._owner.__class__ = packed_class(type(self._owner))


OfNode.__name__ = OfNode.__qualname__ = "SavedTensor"
