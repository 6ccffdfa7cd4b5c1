"""``TypedStorage``: the memory of a tensor as a sequence of elements, which ``Tensor.storage()`` returns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor
from ...dispatch.declare import public
from ...runtime.user_frame import warn
from .storage import UntypedStorage

_DEPRECATED = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the only storage class. This "
    "should only matter to you if you are using storages directly.  To access UntypedStorage directly, use "
    "tensor.untyped_storage() instead of tensor.storage()"
)


class TypedStorage:
    """Memory of a tensor as elements of its dtype; deprecated, use ``Tensor.untyped_storage()``.

    >>> import retrograd as torch
    >>> storage = torch.arange(4.0)[1:].storage()
    >>> len(storage), storage[3]
    (4, 3.0)
    """

    __module__ = "torch.storage"

    def __init__(self, *, wrap_storage: UntypedStorage, dtype: dtypes.dtype) -> None:
        self._untyped_storage, self.dtype = wrap_storage, dtype

    @property
    def _elements(self) -> Any:
        size = self.dtype.itemsize
        whole = self._untyped_storage._bytes
        return whole[: whole.size // size * size].view(self.dtype.numpy)

    def untyped(self) -> UntypedStorage:
        """Return the storage as bytes."""
        return self._untyped_storage

    def size(self) -> int:
        """Return the number of elements."""
        return self.nbytes() // self.element_size()

    __len__ = size

    def nbytes(self) -> int:
        """Return the number of bytes."""
        return self._untyped_storage.nbytes()

    def element_size(self) -> int:
        """Return the number of bytes of an element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Return the address of the first byte."""
        return self._untyped_storage.data_ptr()

    @property
    def device(self) -> Any:
        """Device on which the memory is allocated."""
        return self._untyped_storage.device

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self._untyped_storage.is_cuda

    def is_shared(self) -> bool:
        """Whether child processes that are created by ``fork`` share the memory."""
        return self._untyped_storage.is_shared()

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not -len(self) <= index < len(self):
            raise IndexError(f"index {index} out of range for storage of size {len(self)}")
        return self._elements[index].item()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._elements[index] = value

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def tolist(self) -> list[Any]:
        """Return the elements as a list of numbers."""
        return list(self._elements.tolist())

    def fill_(self, value: Any) -> TypedStorage:
        """Write ``value`` to every element, and return this storage."""
        self._elements[...] = value
        return self

    def clone(self) -> TypedStorage:
        """Return a copy of this storage."""
        return TypedStorage(wrap_storage=self._untyped_storage.clone(), dtype=self.dtype)

    def cpu(self) -> TypedStorage:
        """Return a storage on the CPU with the elements of this storage, or this storage if it is on the CPU."""
        return self if not self.is_cuda else TypedStorage(wrap_storage=self._untyped_storage.cpu(), dtype=self.dtype)

    def __repr__(self) -> str:
        shown = "...\n" if self.device.type == "meta" else "".join(f" {each}\n" for each in self.tolist())
        return f"{shown}[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size {len(self)}]"


@public(function=False)
def storage(input: Tensor) -> TypedStorage:
    """Return the storage of ``input`` as elements (deprecated): the memory that ``input`` shares with its views.

    >>> import retrograd as torch
    >>> torch.tensor([1.0, 2.0]).storage().tolist()
    [1.0, 2.0]
    """
    warn(_DEPRECATED)
    return TypedStorage(wrap_storage=UntypedStorage(input._array), dtype=input.dtype)


__all__ = ["TypedStorage", "storage"]
