"""``torch.fx.immutable_collections``: the list and the dictionary that the arguments of nodes are stored in."""

from __future__ import annotations

from typing import Any, NoReturn, TypeVar

from ..core.pytree import CONTAINERS, register_pytree_node

Element = TypeVar("Element")
Key = TypeVar("Key")

_REMEDY = """If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_REMEDY}")


class immutable_list(list[Element]):
    """List that refuses to be changed, and can be hashed if its elements can.

    >>> import retrograd as torch
    >>> torch.fx.immutable_collections.immutable_list([1, 2])
    [1, 2]
    """

    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[Key, Element]):
    """Dictionary that refuses to be changed, and can be hashed if its values can."""

    __delitem__ = __ior__ = __setitem__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


def _as_container(cls: Any, base: Any) -> None:
    """Register ``cls``, a subclass of ``base``, as a container type of pytrees."""
    known = CONTAINERS[base]
    register_pytree_node(cls, known.flatten, lambda children, context: cls(known.unflatten(children, context)))


_as_container(immutable_list, list)
_as_container(immutable_dict, dict)

__all__ = ["immutable_dict", "immutable_list"]
