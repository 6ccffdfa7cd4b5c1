"""Lazy tensors: results of deferred operations, which have no array until they are needed.

Note [Lazy tensors]. A lazy tensor is an instance of ``Lazy``, a subclass of ``Tensor`` without slots of its own. Its
slots are unset, except ``_creation_meta``, which has the :class:`~retrograd.compiler.entries.Entry` of the operation.
Python calls ``Lazy.__getattr__`` when an unset slot is read. This method computes the tensor, and the class of the
object becomes ``Tensor``. So each function that does not handle lazy tensors computes them when it reads a slot. On
``Tensor``, the method would make each read of a slot 16 ns slower. Attributes that depend on the shape, dtype and
strides alone are read from the entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import dtypes
from .deferral import active_cursor
from .devices import CPU
from .size import Size, size_of
from .tensor import Tensor, contiguous_format
from .torch_function import DISABLED, HANDLERS

if TYPE_CHECKING:
    from .devices import device
    from .dtypes import dtype
    from .typing import Cursor, LazyEntry

SLOTS = frozenset(Tensor.__slots__) - {"__dict__", "__weakref__", "_frozen_edge"}


class Lazy(Tensor):
    """Result of a deferred operation; see Note [Lazy tensors]."""

    __slots__ = ()
    __module__ = "torch"
    __torch_function__ = DISABLED
    _creation_meta: LazyEntry

    def __getattr__(self, name: str) -> Any:  # Note [Any by attribute name]
        if self.__class__ is Lazy and name in SLOTS:
            compute(self, name)
            return getattr(self, name)
        raise AttributeError(f"'Tensor' object has no attribute '{name}'", name=name, obj=self)

    # Attributes that are read from the entry. All other attributes are those of Tensor.

    @property
    def shape(self) -> Size:
        return size_of(Size, self._creation_meta.shape)

    @property
    def dtype(self) -> dtype:
        return dtypes.dtype_of(self._creation_meta.dtype)

    @property
    def ndim(self) -> int:
        return len(self._creation_meta.shape)

    @property
    def device(self) -> device:
        return CPU

    @property
    def requires_grad(self) -> bool:
        return self._creation_meta.graded

    @requires_grad.setter
    def requires_grad(self, value: object) -> None:
        compute(self, "requires_grad")
        self.requires_grad = value

    @property
    def is_leaf(self) -> bool:
        return not self._creation_meta.graded

    def size(self, dim: int | None = None, **names: int) -> Any:  # Note [Any in public signatures]
        if names:
            compute(self, "size")
            return self.size(dim, **names)
        shape = self._creation_meta.shape
        if dim is None:
            return size_of(Size, shape)
        if dim.__class__ is int and -len(shape) <= dim < len(shape):
            return shape[dim]
        compute(self, "size")
        return self.size(dim)

    def dim(self) -> int:
        return len(self._creation_meta.shape)

    ndimension = dim

    def numel(self) -> int:
        return size_of(Size, self._creation_meta.shape).numel()

    nelement = numel

    def __len__(self) -> int:
        shape = self._creation_meta.shape
        if shape:
            return shape[0]
        compute(self, "__len__")
        return len(self)

    def is_contiguous(self, *, memory_format: Any = contiguous_format) -> bool:  # Note [Any in public signatures]
        if memory_format is contiguous_format:
            return self._creation_meta.contiguous
        compute(self, "is_contiguous")
        return self.is_contiguous(memory_format=memory_format)

    def __copy__(self) -> Tensor:
        compute(self, "__copy__")
        return self.__copy__()

    def as_subclass(self, cls: Any) -> Any:  # Note [Any in public signatures]
        compute(self, "as_subclass")
        return self.as_subclass(cls)

    __hash__ = Tensor.__hash__


Lazy.__name__ = Lazy.__qualname__ = "Tensor"


def compute(x: Tensor, reader: str) -> None:
    """Compute the lazy tensor ``x`` and all other deferred results of its segment; ``reader`` is the reason.

    Raises RuntimeError if the call that deferred ``x`` was interrupted, or runs in another thread.
    """
    cursor = active_cursor()
    if cursor is None or not cursor.holds(x):
        others: list[Cursor] = [*HANDLERS]
        cursor = next((each for each in others if hasattr(type(each), "holds") and each.holds(x)), None)
    if cursor is not None:
        cursor.read(x, reader)
    if x.__class__ is Lazy:
        raise RuntimeError(
            "The value of this tensor is not known: the call of a compiled function that deferred its computation was "
            "interrupted, or runs in another thread."
        )


def fill(x: Tensor, computed: Tensor) -> None:
    """Make the lazy tensor ``x`` an ordinary tensor with the fields of ``computed``, which no one else refers to.

    Nothing is changed if ``x`` has been computed meanwhile, by a signal handler that has read it.
    """
    if x.__class__ is not Lazy:
        return
    x._array, x._grad_edge, x._counter = computed._array, computed._grad_edge, computed._counter
    x._view, x._grad = computed._view, computed._grad
    if computed._view is not None:
        x._view_version = computed._view_version
    x.__class__ = Tensor  # type: ignore[assignment]
    x._creation_meta = 0 if computed._view is None else computed._creation_meta
