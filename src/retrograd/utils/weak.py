"""``torch.utils.weak``: dictionaries whose keys are weak references to objects, compared by identity."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, MutableMapping
from typing import Any
from weakref import ref

from ..core.tensor import Tensor

WeakRef = ref


class WeakIdRef(ref):  # type: ignore[type-arg]
    """Weak reference that equals another if both refer to the same object."""

    __slots__ = ("_id",)

    def __init__(self, key: Any, callback: Any = None) -> None:
        self._id = id(key)
        super().__init__(key, callback)  # type: ignore[call-arg]

    def __call__(self) -> Any:
        return super().__call__()

    def __hash__(self) -> int:
        return self._id

    def __eq__(self, other: object) -> bool:
        one, two = self(), other() if isinstance(other, WeakIdRef) else None
        return one is two if one is not None and two is not None else self is other


class WeakIdKeyDictionary(MutableMapping[Any, Any]):
    """Dictionary with keys by identity; an entry is removed with its key.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> found = WeakIdKeyDictionary()
    >>> found[x] = 1
    >>> found[x], x in found, len(found)
    (1, True, 1)
    >>> del x
    >>> len(found)
    0
    """

    def __init__(self, dict: Any = None, ref_type: type = WeakIdRef) -> None:
        self.ref_type, self.data = ref_type, {}  # type: ignore[var-annotated]
        data = weakref.ref(self)

        def remove(key: Any) -> None:
            owner = data()
            if owner is not None:
                owner.data.pop(key, None)

        self._remove = remove
        if dict is not None:
            self.update(dict)

    def _ref(self, key: Any) -> Any:
        return self.ref_type(key, self._remove)

    def __getitem__(self, key: Any) -> Any:
        return self.data[self.ref_type(key)]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.data[self._ref(key)] = value

    def __delitem__(self, key: Any) -> None:
        del self.data[self.ref_type(key)]

    def __contains__(self, key: object) -> bool:
        try:
            return self.ref_type(key) in self.data
        except TypeError:
            return False

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        for each in list(self.data):
            key = each()
            if key is not None:
                yield key

    def keyrefs(self) -> list[Any]:
        """Return the weak references to the keys."""
        return list(self.data)

    def copy(self) -> WeakIdKeyDictionary:
        """Return a copy with the same keys and values."""
        return WeakIdKeyDictionary(self, self.ref_type)

    __copy__ = copy

    def __repr__(self) -> str:
        return f"<{type(self).__name__} at {id(self):#x}>"


WeakTensorKeyDictionary = WeakIdKeyDictionary


class TensorWeakRef:
    """Weak reference to a tensor; calling it returns the tensor, or None."""

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, Tensor):
            raise AssertionError(f"expected torch.Tensor, got {type(tensor)}.")
        self.ref = ref(tensor)

    def __call__(self) -> Tensor | None:
        return self.ref()


__all__ = ["TensorWeakRef", "WeakIdKeyDictionary", "WeakIdRef", "WeakTensorKeyDictionary"]
