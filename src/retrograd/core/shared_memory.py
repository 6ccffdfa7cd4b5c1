"""Memory that a NumPy array of the program shares, so that it can be written without a function of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ReferenceType, ref

from .tensor import memory_owner

if TYPE_CHECKING:
    from .typing import Array

#: Weak references to the arrays that own such memory, by identity.
SHARED: dict[int, ReferenceType[Array]] = {}


def share(array: Array) -> Array:
    """Note that the program has ``array``, which is also that of a tensor, and return it."""
    owner = array if array.base is None else memory_owner(array)
    key = id(owner)
    if key not in SHARED:
        SHARED[key] = ref(owner, lambda reference: SHARED.pop(key, None))
    return array


def is_shared(array: Array) -> bool:
    """Whether the program has an array that shares the memory of ``array``."""
    return bool(SHARED) and id(array if array.base is None else memory_owner(array)) in SHARED
