"""Methods of Tensor for protocols of Python and NumPy: conversion, iteration, printing, copying, pickling."""

from __future__ import annotations

import copy as _copy
import importlib
from collections.abc import Sequence
from typing import Any

from ..compat.pickle_names import pickled_as
from ..core import devices, dtypes, formatting, torch_function
from ..core.error_context import with_remedy
from ..core.tensor import (
    Tensor,
    address,
    leaf_sharing_memory,
    memory_owner,
    wrap,
)
from ..dispatch.declare import public
from ..dispatch.intercept import GO_ON, HANDLERS, OVERRIDING, intercept
from ..dispatch.operand_promotion import PLAIN
from ..runtime.user_frame import strip_frames, strips_frames, warn
from .creation.conversion import item, numpy_, numpy_array_of
from .engine_ops import as_strided_of


@strips_frames
def _array_protocol(self: Tensor, dtype: Any = None, copy: bool | None = None) -> Any:
    array = numpy_(self)
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def _bool(self: Tensor) -> bool:
    if (HANDLERS or OVERRIDING) and (answer := intercept(_bool, (self,), {})) is not GO_ON:
        return answer
    size = self._array.size
    if size == 1:
        return bool(self._array.reshape(()))
    if size == 0:
        raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
    raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")


def _single_value(self: Tensor) -> Any:
    """Return the only element of ``self`` as a Python number, and warn if ``self`` requires gradients.

    Raise ValueError if ``self`` does not have exactly one element.
    """
    if self._array.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    if self.requires_grad:
        warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\nConsider using "
            "tensor.detach() first.",
        )
    return item(self)


def _int(self: Tensor) -> int:
    if (HANDLERS or OVERRIDING) and (answer := intercept(_int, (self,), {})) is not GO_ON:
        return answer
    try:
        return int(_real(self, "int64_t"))
    except Exception as error:
        raise strip_frames(error) or error from None


def _float(self: Tensor) -> float:
    if (HANDLERS or OVERRIDING) and (answer := intercept(_float, (self,), {})) is not GO_ON:
        return answer
    try:
        return float(_real(self, "double"))
    except Exception as error:
        raise strip_frames(error) or error from None


def _real(self: Tensor, name: str) -> Any:
    """Return the only element of ``self`` as a real number, for ``int(self)`` or ``float(self)``.

    Raise RuntimeError if the imaginary part is not 0. ``name`` is the C type in the error message, such as ``double``.
    """
    value = _single_value(self)
    if isinstance(value, complex):
        if value.imag:
            raise RuntimeError(f"value cannot be converted to type {name} without overflow")
        return value.real
    return value


def _complex(self: Tensor) -> complex:
    try:
        return complex(_single_value(self))
    except Exception as error:
        raise strip_frames(error) or error from None


def _index(self: Tensor) -> int:
    if (HANDLERS or OVERRIDING) and (answer := intercept(_index, (self,), {})) is not GO_ON:
        return answer
    if self._array.size != 1 or self._array.dtype.kind not in "biu":
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


def _len(self: Tensor) -> int:
    if (HANDLERS or OVERRIDING) and (answer := intercept(_len, (self,), {})) is not GO_ON:
        return answer
    if self._array.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return int(self._array.shape[0])


def _iter(self: Tensor) -> Any:
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _delete(self: Tensor, index: Any) -> None:
    raise TypeError("Tensor does not support deleting items")


def _reversed(self: Tensor) -> Tensor:
    return self if self._array.ndim == 0 else self.flip(0)


@strips_frames
def _contains(self: Tensor, element: Any) -> bool:
    if isinstance(element, Tensor):
        return bool(element.eq(self).any())
    if isinstance(element, (int, float, complex)):
        return bool(self.eq(element).any())
    raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {element.__class__}.")


def _node_name(x: Tensor) -> str | None:
    """Return the class name of ``x.grad_fn``, the graph node of ``x``, or None if there is no node.

    If access to ``grad_fn`` raises RuntimeError, return "Invalid", which PyTorch prints in this case.
    """
    try:
        node = x.grad_fn
    except RuntimeError:
        return "Invalid"
    return None if node is None else node.__class__.__name__


def text_of(x: Tensor, prefix: str = "tensor(", contents: str | None = None, more: Sequence[str] = ()) -> str:
    """Return the repr of the tensor ``x``.

    ``prefix`` is the beginning of the repr. ``contents`` is a text that replaces the elements; None means that the
    elements are printed. ``more`` holds additional items before the closing parenthesis, such as ``tangent=…``.
    """
    device = x.device
    return formatting.tensor_text(
        x._array if x.is_meta else numpy_array_of(x),
        dtype=repr(x.dtype),
        default_dtype=repr(dtypes.default.floating),
        default_complex=repr(dtypes.default.complex),
        device=None if device.type == "cpu" else str(device),
        requires_grad=x.requires_grad,
        grad_fn=_node_name(x),
        prefix=prefix,
        contents=contents,
        more=more,
    )


def _repr(self: Tensor, *, tensor_contents: str | None = None) -> str:
    if self.__class__ in PLAIN:
        return text_of(self, contents=tensor_contents)
    shown = text_of(self, f"{self.__class__.__name__}(", contents=tensor_contents)
    return f"Parameter({shown})" if getattr(self, "_is_param", False) else shown


def _format(self: Tensor, spec: str) -> str:
    if self._array.ndim == 0 and self.__class__ is Tensor and not self.is_meta:
        return format(item(self), spec)
    return object.__format__(self, spec)


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  "
            "If you were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
            + with_remedy("", "copy x.detach().clone()", self._grad_edge, "The tensor is")
        )
    copied = _like(self, _copied(self._array, memo))
    copied._set_requires_grad(self.requires_grad)
    memo[id(self)] = copied
    if self._grad is not None:
        copied._grad = _copy.deepcopy(self.grad, memo)
    if self.__dict__:
        copied.__dict__.update(_copy.deepcopy(self.__dict__, memo))
    return copied


def _copied(array: Any, memo: dict[Any, Any]) -> Any:
    """Return a deep copy of ``array`` with the same strides.

    The whole storage of ``array`` is copied, and the result is a view of this copy. ``memo`` is the dictionary of
    ``copy.deepcopy``, which also holds the copied storages. Arrays that share a storage are therefore copied to views
    of one copied storage.
    """
    memory = memory_owner(array)
    key = "memory", id(memory)
    if key not in memo:
        memo[key] = devices.array_module_of(memory).array(memory, order="K")
    copied = memo[key]
    if array is memory:
        return copied
    flat = copied.ravel(order="K").view(array.dtype)
    start = (address(array) - address(memory)) // array.itemsize
    return as_strided_of(devices.array_module_of(array))(flat[start:], array.shape, array.strides)


def _like(x: Tensor, array: Any) -> Tensor:
    """Return a tensor that shares the memory of ``array`` and has the class of ``x``, Tensor or a subclass."""
    out = wrap(array)
    if x.__class__ is Tensor:
        return out
    instance: Tensor = object.__new__(x.__class__)
    instance._array, instance._version_counter, instance._grad_edge, instance._view, instance._grad = (
        out._array,
        out._version_counter,
        None,
        None,
        None,
    )
    return instance


def _shallow(self: Tensor) -> Tensor:
    with torch_function.disabled_overrides(torch_function.MODES):  # modes must not see it without its attributes
        out: Tensor = leaf_sharing_memory(self.__class__, self, self.requires_grad)
    out.__dict__.update(self.__dict__)
    return out


@pickled_as("tensor")
def rebuild(cls: Any, array: Any, requires_grad: bool, attributes: dict[str, Any], place: str) -> Tensor:
    """Return a tensor with the elements ``array``: the function that ``pickle`` calls to load a tensor.

    ``cls`` is the class of the tensor, or None for Tensor itself. ``attributes`` is the ``__dict__`` of the saved
    tensor. ``place`` is the name of the device of the saved tensor, such as "cuda:0"; if there is no GPU, the new
    tensor is on the CPU.
    """
    tensor: Tensor = leaf_sharing_memory(cls or Tensor, wrap(dtypes.with_shared_dtype(array)), False)
    if place.startswith("cuda") and devices.gpu_count():
        tensor._array = devices.to_device(tensor._array, devices.device(place))
    with torch_function.disabled_overrides(torch_function.MODES):
        tensor._set_requires_grad(requires_grad)
    tensor.__dict__.update(attributes)
    return tensor


def _reduce(self: Tensor, protocol: int) -> Any:
    return rebuild, (
        None if self.__class__ is Tensor else self.__class__,
        self._array if self.is_meta else numpy_array_of(self),
        self.requires_grad,
        self.__dict__,
        str(self.device),
    )


def _array_namespace(self: Tensor, /, *, api_version: str | None = None) -> Any:
    """Return the module ``retrograd.array_api``, the functions of the Python array API standard."""
    if api_version not in (None, *API_VERSIONS):
        raise ValueError(f"array API version {api_version!r} is not supported; the newest is {API_VERSIONS[-1]!r}")
    return importlib.import_module("retrograd.array_api")


def _to_device(self: Tensor, device: Any, /, *, stream: Any = None) -> Tensor:
    """Return the tensor on ``device``, as ``to(device)``: the method that the array API standard requires.

    >>> import retrograd as torch
    >>> torch.ones(2).to_device("cpu")
    tensor([1., 1.])
    """
    if stream is not None:
        raise NotImplementedError("Tensor.to_device() does not take a stream")
    return self.to(device)


#: Versions of the array API standard whose functions ``retrograd.array_api`` has, the newest last.
API_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")

DUNDERS: dict[str, Any] = {
    "__array__": _array_protocol, "__bool__": _bool, "__int__": _int, "__float__": _float, "__complex__": _complex,
    "__index__": _index, "__len__": _len, "__iter__": _iter, "__reversed__": _reversed, "__contains__": _contains,
    "__repr__": _repr, "__format__": _format, "__deepcopy__": _deepcopy, "__copy__": _shallow,
    "__reduce_ex__": _reduce, "__delitem__": _delete, "__array_namespace__": _array_namespace,
    "to_device": _to_device,
}  # fmt: skip

for _name, _function in DUNDERS.items():
    _function.__qualname__ = f"Tensor.{_name}"
    public(function=False, name=_name)(_function)
