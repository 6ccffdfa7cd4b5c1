"""PyTorch's legacy tensor types, one for each dtype and device, such as ``FloatTensor`` and ``cuda.LongTensor``."""

from __future__ import annotations

from typing import Any

import numpy

from ...compat.type_names import type_name
from ...core import devices, dtypes
from ...core.dtypes import dtype
from ...core.size import Size
from ...core.tensor import Tensor, new, strided, wrap
from ...dispatch.declare import public
from ...runtime.user_frame import strips_frames, warn
from ..shape.views import alias
from .conversion import LEGACY_TYPES, to
from .factory import parse_sizes
from .from_data import array_from_data
from .storage import UntypedStorage
from .typed_storage import TypedStorage


@public(function=False, name="new")
def _new(input: Tensor, *args: Any, size: Any = None, device: Any = None) -> Tensor:
    """Return a new tensor of the dtype of ``input`` from ``args``, which are sizes or data: the method ``Tensor.new``.

    ``size`` is a sequence of sizes, in place of ``args``. Raise RuntimeError if ``device`` is of another type than the
    device of ``input``.

    >>> import retrograd as torch
    >>> torch.zeros(2, dtype=torch.float64).new([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    if device is not None and devices.device(device).type != input.device.type:
        raise RuntimeError(
            f"legacy constructor expects device type: {input.device.type} but device type: {devices.device(device).type} was "
            "passed"
        )
    if size is not None and not args:
        return wrap(numpy.zeros(parse_sizes("new", (size,)), input.dtype.numpy))
    return _legacy_tensor(input.dtype, args)


# -- The legacy constructors -----------------------------------------------------------------------------------------


def _legacy_tensor(kind: dtype, args: tuple[Any, ...], any_dtype: bool = False) -> Tensor:
    """Return a tensor of dtype ``kind`` from ``args``, the arguments of a constructor such as ``FloatTensor``.

    Sizes create a tensor of zeros: ``FloatTensor(2, 3)`` has the shape (2, 3). A sequence holds the elements, as in
    ``FloatTensor([1, 2])``. For a tensor ``x``, ``FloatTensor(x)`` is an alias of ``x``; TypeError is raised if ``x``
    has another dtype than ``kind``, unless ``any_dtype`` is true.
    """
    if not args:
        return wrap(numpy.empty(0, kind.numpy))
    first = args[0]
    if isinstance(first, Tensor) and len(args) == 1:
        if first.dtype is not kind and not any_dtype:
            raise TypeError(f"expected {_options(kind)} (got {_options(first.dtype)})")
        return alias(first)
    if len(args) == 1 and isinstance(first, (TypedStorage, UntypedStorage)):
        if isinstance(first, TypedStorage) and first.dtype is not kind:
            raise RuntimeError(
                f"Expected a Storage of type {dtypes.scalar_name(kind)} or an UntypedStorage, but got type "
                f"{dtypes.scalar_name(first.dtype)} for argument 1 'storage'"
            )
        untyped = first.untyped() if isinstance(first, TypedStorage) else first
        return wrap(TypedStorage(wrap_storage=untyped, dtype=kind)._elements)
    if is_count(first):
        for position, each in enumerate(args):
            if not is_count(each):
                raise TypeError(
                    f"new(): argument 'size' failed to unpack the object at pos {position + 1} with error \"type must be "
                    f'tuple of ints,but got {type_name(each)}"'
                )
        return wrap(numpy.zeros(parse_sizes("new", args), kind.numpy))
    if len(args) > 1:
        shown = ", ".join(map(type_name, args))
        raise TypeError(f"new() received an invalid combination of arguments - got ({shown}), but expected one of:")
    if isinstance(first, Size):
        return wrap(numpy.zeros(tuple(first), kind.numpy))
    if first is None or isinstance(first, (bool, int, float, complex, numpy.generic)):
        raise TypeError(f"new(): data must be a sequence (got {type_name(first)})")
    return wrap(array_from_data(first, kind))


def is_count(value: Any) -> bool:
    """Whether ``value`` is an integer other than a bool, as each of several sizes is."""
    return isinstance(value, (int, numpy.integer)) and not isinstance(value, bool)


def _options(kind: dtype) -> str:
    """Return PyTorch's description of a tensor of dtype ``kind`` in error messages: "TensorOptions(dtype=…, …)"."""
    return (
        f"TensorOptions(dtype={dtypes.cpp_name(kind)}, device=cpu, layout=Strided, requires_grad=false (default), "
        "pinned_memory=false (default), memory_format=(nullopt))"
    )


def _construct(cls: Any, *args: Any, **kwargs: Any) -> Tensor:
    device = kwargs.pop("device", None)
    if "data" in kwargs:
        args = (kwargs.pop("data"), *args)
    if kwargs:
        got = [type_name(each) for each in args] + [f"{key}={type_name(value)}" for key, value in kwargs.items()]
        raise TypeError(
            f"new() received an invalid combination of arguments - got ({', '.join(got)}{', ' * (not args)}), but expected "
            "one of:"
        )
    if len(args) == 1 and isinstance(args[0], Tensor) and cls is not Tensor:
        created: Tensor = args[0].detach()
    else:
        created = _legacy_tensor(dtypes.default.floating, args, any_dtype=True)
    if device is not None:
        created = to(created, device)
    if cls is Tensor:
        return created
    out: Tensor = new(cls)
    out._array, out._version_counter, out._grad_edge, out._view, out._grad = (
        created._array,
        created._version_counter,
        None,
        None,
        None,
    )
    return out


Tensor._construct = staticmethod(_construct)


class _LegacyTypeMeta(type):
    """Metaclass of PyTorch's legacy tensor types, such as ``torch.FloatTensor``.

    Tensors are not instances of the legacy types. The metaclass therefore implements
    ``isinstance(x, torch.FloatTensor)`` as a comparison of the dtype and the device of ``x`` with those of the legacy
    type.
    """

    element: dtype
    place: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return (
            isinstance(instance, Tensor)
            and instance.layout is strided
            and instance.dtype is cls.element
            and instance.device.type == cls.place
        )

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _legacy_type(name: str, kind: dtype, place: str) -> Any:
    @strips_frames
    def construct(cls: Any, *args: Any, **kwargs: Any) -> Tensor:
        if cls.place == "cuda":
            return to(_legacy_tensor(kind, args), "cuda") if devices.cupy() else wrap(None)  # type: ignore[arg-type]
        return _legacy_tensor(kind, args)

    module = "torch" if place == "cpu" else "torch.cuda"
    doc = f"Legacy type that creates tensors of dtype ``{kind}`` from sizes or data."
    return _LegacyTypeMeta(
        name,
        (),
        {"__new__": construct, "element": kind, "dtype": kind, "place": place, "__module__": module, "__doc__": doc},
    )


DTYPE_BY_LEGACY_NAME = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32,
    "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8, "BoolTensor": dtypes.bool_,
    "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip
CPU_TYPES = {name: _legacy_type(name, kind, "cpu") for name, kind in DTYPE_BY_LEGACY_NAME.items()}
CUDA_TYPES = {name: _legacy_type(name, kind, "cuda") for name, kind in DTYPE_BY_LEGACY_NAME.items()}
LEGACY_TYPES.update({f"torch.{name}": each for name, each in CPU_TYPES.items()})
LEGACY_TYPES.update({f"torch.cuda.{name}": each for name, each in CUDA_TYPES.items()})


@public(method=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default floating dtype to the dtype of ``t``, a legacy type such as ``torch.FloatTensor`` or its name.

    >>> import retrograd as torch
    >>> torch.set_default_tensor_type(torch.DoubleTensor)
    >>> torch.zeros(1).dtype
    torch.float64
    >>> torch.set_default_tensor_type(torch.FloatTensor)
    """
    warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use torch.set_default_dtype() and "
        "torch.set_default_device() as alternatives.",
    )
    dtypes.set_default_dtype((LEGACY_TYPES[t] if isinstance(t, str) else t).element)
