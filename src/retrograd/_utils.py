"""``torch._utils``: helpers that packages import, for lists of gradients, devices, and errors of worker threads."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from .compiler import is_compiling as is_compiling
from .core import devices, dtypes
from .core.tensor import Tensor
from .operations.creation.typed_storage import TypedStorage

# -- Lists of tensors --------------------------------------------------------------------------------------------------


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of ``tensors`` as one 1-d tensor; :func:`_unflatten_dense_tensors` is the inverse."""
    from . import cat

    return cat([each.reshape(-1) for each in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return views of the 1-d tensor ``flat`` that have the shapes of ``tensors``."""
    found, start = [], 0
    for each in tensors:
        found.append(flat.narrow(0, start, each.numel()).view(each.shape))
        start += each.numel()
    return tuple(found)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Return lists of ``tensors`` of one type, each of less than ``size_limit`` bytes if it has several tensors."""
    groups: dict[str, tuple[list[Tensor], int]] = {}
    for each in tensors:
        group, size = groups.get(each.type(), ([], 0))
        added = each.numel() * each.element_size()
        if size > 0 and size + added > size_limit:
            yield group
            group, size = [], 0
        group.append(each)
        groups[each.type()] = group, size + added
    yield from (group for group, _ in groups.values())


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Return ``tensors``, which are grouped by type, in the order of the types of ``ordered_tensors``."""
    groups: dict[str, list[Tensor]] = defaultdict(list)
    for each in tensors:
        groups[each.type()].append(each)
    found = {kind: iter(group) for kind, group in groups.items()}
    return tuple(next(found[each.type()]) for each in ordered_tensors)


def _element_size(dtype: Any) -> int:
    """Return the size in bytes of an element of ``dtype``."""
    if not isinstance(dtype, dtypes.dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _rebuild_tensor(storage: TypedStorage, storage_offset: int, size: Any, stride: Any) -> Tensor:
    """Return a tensor of the shape ``size`` with the given ``stride`` in the memory of ``storage``."""
    from . import empty

    made: Tensor = empty(0, dtype=storage.dtype)
    return made.set_(storage._untyped_storage, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: TypedStorage, storage_offset: int, size: Any, stride: Any, requires_grad: bool, backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:  # fmt: skip
    """Return :func:`_rebuild_tensor` of the first arguments, as a leaf that requires a gradient if ``requires_grad``."""
    return _rebuild_tensor(storage, storage_offset, size, stride).requires_grad_(requires_grad)


def _handle_complex(tensor: Tensor) -> Tensor:
    """Return ``view_as_real`` of a complex ``tensor``, and ``tensor`` itself if it is real."""
    from . import view_as_real

    return view_as_real(tensor) if tensor.is_complex() else tensor


# -- Devices -----------------------------------------------------------------------------------------------------------


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """Return the index of ``device``, an int, a device, text or None.

    The CPU has the index -1 if ``allow_cpu`` is true and is refused otherwise. A missing index is None if ``optional`` is
    true, and otherwise an error.
    """
    if isinstance(device, str):
        device = devices.device(device)
    known = isinstance(device, devices.device)
    index = device.index if known else device if isinstance(device, int) else None
    if known and device.type == "cpu":
        if not allow_cpu:
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        return -1 if index is None else index
    if index is None and not optional:
        raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
    return index


# -- Errors ------------------------------------------------------------------------------------------------------------


class KeyErrorMessage(str):
    """Text whose representation is the text itself, because a KeyError shows the representation of its argument."""

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception that is being handled, as a class and text, so that another thread or process can raise it.

    >>> from retrograd._utils import ExceptionWrapper
    >>> try:
    ...     raise ValueError("bad")
    ... except ValueError:
    ...     kept = ExceptionWrapper(where="in worker 0")
    >>> kept.exc_type, kept.where
    (<class 'ValueError'>, 'in worker 0')
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        exc_info = sys.exc_info() if exc_info is None else exc_info
        self.exc_type, self.where = exc_info[0], where
        self.exc_msg = "".join(traceback.format_exception(*exc_info))

    def reraise(self) -> None:
        """Raise an exception of the kept class, or a RuntimeError if its constructor takes no single text."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(text))
        if getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:
            raise RuntimeError(text) from None
        raise error


# -- Others ------------------------------------------------------------------------------------------------------------


class classproperty:
    """Decorator for a property of a class."""

    def __init__(self, func: Callable[[Any], Any]) -> None:
        self.func = func

    def __get__(self, instance: Any, owner: Any) -> Any:
        return self.func(owner)


def _import_dotted_name(name: str) -> Any:
    """Return the object with the dotted name ``name``, such as ``torch.nn.Linear``."""
    first, *rest = name.split(".")
    found = importlib.import_module(first)
    for each in rest:
        found = getattr(found, each)
    return found


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Tensor:
    """Return a parameter with the elements of ``data``; pickles of parameters contain this function."""
    from .nn import Parameter

    made: Tensor = Parameter(data, requires_grad)
    return made


def _get_available_device_type() -> str | None:
    """Return the kind of the GPU, or None without one."""
    return "cuda" if devices.gpu_count() else None


def _get_device_module(device_type: str) -> Any:
    """Return ``torch.<device_type>``.

    Raises:
        RuntimeError: There is no such module.
    """
    found = getattr(sys.modules[__package__], device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        )
    return found


__all__ = ["ExceptionWrapper", "KeyErrorMessage", "classproperty", "is_compiling"]
