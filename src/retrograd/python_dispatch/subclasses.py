"""Subclasses of Tensor with a ``__torch_dispatch__``, and the arrays of those that wrap other tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..core.devices import CPU, device
from ..core.dtypes import dtype as dtype_class
from ..core.graph import AccumulateGrad
from ..core.tensor import Tensor, new, strided
from ..kernels.meta.array import MetaArray, as_strided, new_array


class SubclassArray(MetaArray):
    """Array of a wrapper subclass: a layout on the device ``place``, the class, and the attributes of the instance."""

    __slots__ = ("attributes", "kind", "place", "slots")
    attributes: dict[str, Any]
    kind: type[Tensor]

    def __init__(self, layout: Any, kind: type[Tensor], attributes: dict[str, Any], place: Any) -> None:
        super().__init__(layout)
        self.kind, self.attributes, self.place = kind, attributes, place
        slots = [
            each for base in kind.__mro__[: kind.__mro__.index(Tensor)] for each in _names(vars(base).get("__slots__"))
        ]
        self.slots: dict[str, Any] = dict.fromkeys(slots)

    def note(self, instance: Tensor) -> None:
        """Record the values of the slots of ``instance``, whose array this is."""
        for name in self.slots:
            self.slots[name] = getattr(instance, name, None)

    def copy(self, order: str = "C") -> SubclassArray:
        """Return ``self``: its elements are those of other tensors."""
        return self

    def __setitem__(self, index: Any, value: Any) -> None:
        """Do nothing: the handler of an in-place operation has written."""


def dispatches(kind: type[Tensor]) -> bool:
    """Whether the class ``kind`` has a ``__torch_dispatch__`` of its own."""
    return kind.__torch_dispatch__ is not Tensor.__torch_dispatch__


def restored(x: Any) -> Any:
    """Return ``x``, or, if it is a plain tensor with the array of a wrapper subclass, the same as an instance of it."""
    array: Any = x._array if isinstance(x, Tensor) else None
    if array.__class__ is SubclassArray and type(x) is Tensor:
        out: Any = new(array.kind)
        out._array, out._version_counter = array, x._version_counter
        out._grad_edge, out._view, out._grad = x._grad_edge, None, None
        out.__dict__.update(array.attributes)
        for name, value in array.slots.items():
            setattr(out, name, value)
        return out
    return x


def _names(slots: Any) -> tuple[str, ...]:
    """Return the names of ``slots``, the attribute ``__slots__`` of a class or None."""
    return (slots,) if isinstance(slots, str) else tuple(slots or ())


def make_wrapper_subclass(
    cls: type[Tensor], size: Sequence[int], strides: Any = None, storage_offset: int | None = None,
    memory_format: Any = None, dtype: dtype_class | None = None, layout: Any = strided, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False, dispatch_layout: bool = False, _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Tensor:  # fmt: skip
    """Return an instance of ``cls`` with a shape, a dtype and a device, and no memory.

    Its operations are those of ``cls.__torch_dispatch__``.

    Raises:
        RuntimeError: ``cls`` has no ``__torch_dispatch__``.
    """
    from . import calls

    if not dispatches(cls):
        raise RuntimeError(
            f"You cannot call _make_wrapper_subclass on a subclass of Tensor that does not define __torch_dispatch__: {cls}"
        )
    from ..core.dtypes import default

    kind = (default.floating if dtype is None else dtype).numpy
    made = new_array(tuple(map(int, size)), kind)
    array = made.layout
    if strides is not None:
        array = as_strided(array, made.shape, tuple(int(each) * kind.itemsize for each in strides))
    out: Any = new(cls)
    place = CPU if device is None else _device(device)
    out._array = SubclassArray(array, cls, out.__dict__, place)
    out._version_counter = [0, None]
    out._grad_edge = out._view = out._grad = None
    if requires_grad:
        out._grad_edge = AccumulateGrad(out, out._array, out._version_counter)
    calls.activate()
    return out


_device = device
__all__ = ["SubclassArray", "dispatches", "make_wrapper_subclass", "restored"]
