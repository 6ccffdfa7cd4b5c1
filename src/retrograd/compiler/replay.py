"""Replay of a call without its Python, for functions compiled with ``pure=True``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.lazy_tensor import Lazy
from ..core.pytree import tree_flatten
from ..core.tensor import Tensor, new
from .entries import Entry, Unsupported, describe, frozen, same_constant
from .segments import Segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.typing import Args, Kwargs, PyTree
    from .cursor import Cursor


class Replay:
    """Call that was one segment: its arguments, the tensors that it read besides, and the structure of its result.

    ``of(cursor, args, kwargs, result)`` returns a list with the replay of the call that ``cursor`` has just deferred, or
    an empty list if the call cannot be replayed.
    """

    @staticmethod
    def of(cursor: Cursor, args: Args, kwargs: Kwargs, result: PyTree) -> list[Replay]:
        values = cursor.values
        if not values or values[-1].__class__ is not Lazy:
            return []
        try:
            return [Replay(values, cursor.root.place + 1, args, kwargs, result)]
        except Unsupported:
            return []

    def __init__(self, values: Sequence[Tensor], count: int, args: Args, kwargs: Kwargs, result: PyTree) -> None:
        self.arguments, self.names = [_constant(each) for each in (*args, *kwargs.values())], tuple(kwargs)
        #: The entry of each result, and the other tensors.
        self.values: list[Entry | Tensor] = [x._creation_meta if x.__class__ is Lazy else x for x in values]
        self.count = count
        self.others = [(x, describe(x)) for x in values[count:] if x.__class__ is not Lazy]
        leaves, self.structure = tree_flatten(result)
        places = [next((k for k, x in enumerate(values) if x is each), None) for each in leaves]
        self.leaves = [(k, None if k is not None else _constant(each)) for k, each in zip(places, leaves, strict=True)]
        if any(k is None and isinstance(each, Tensor) for k, each in zip(places, leaves, strict=True)):
            raise Unsupported("a result that is not of the segment")
        if any(k is not None and k >= count and values[k].__class__ is not Lazy for k in places):
            raise Unsupported("a result that the call may have created")
        self.identities = _identities((*args, *kwargs.values()))
        self.live = sorted({k for k in places if k is not None and values[k].__class__ is Lazy})
        self.segment: Segment | None = None

    def matches(self, args: Args, kwargs: Kwargs) -> bool:
        """Whether a call with equal shapes of its tensors is this call: equal constants, and the same other tensors."""
        given = (*args, *kwargs.values())
        if len(given) != len(self.arguments) or tuple(kwargs) != self.names:
            return False
        for each, constant in zip(given, self.arguments, strict=True):
            if constant is Tensor:
                if not isinstance(each, Tensor):
                    return False
            elif not same_constant(each, constant):
                return False
        if _identities(given) != self.identities:
            return False
        try:
            return all(describe(x) == description for x, description in self.others)
        except Unsupported:
            return False

    def run(self, inputs: Sequence[Tensor]) -> PyTree:
        """Return the result of the call for the tensors ``inputs``."""
        values = [*inputs]
        for each in self.values[self.count :]:
            if isinstance(each, Entry):
                pending: Lazy = new(Lazy)
                pending._creation_meta = last = each
                values.append(pending)
            else:
                values.append(each)
        if self.live:
            if self.segment is None:
                self.segment = Segment(last, self.live, values, "the call returns")
            self.segment.run(values)
        found = [constant if k is None else values[k] for k, constant in self.leaves]
        return found[0] if self.structure.is_leaf() else self.structure.unflatten(found)


def _identities(arguments: Sequence[object]) -> list[int]:
    """Return, for each of the tensors among ``arguments``, the index of the first that is the same object."""
    found = [id(each) for each in arguments if isinstance(each, Tensor)]
    return [found.index(each) for each in found]


def _constant(value: object) -> object:
    """Return the constant ``value``, or the class Tensor for a tensor."""
    return Tensor if isinstance(value, Tensor) else frozen(value)
