"""Functions that create tensors from existing data: ``tensor``, ``as_tensor``, ``from_numpy``, ``from_dlpack``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from ...compat.type_names import type_name
from ...core import devices, dtypes, promotion
from ...core.dtypes import dtype
from ...core.shared_memory import share
from ...core.tensor import Tensor, strided, wrap
from ...dispatch.declare import public
from ...runtime.user_frame import mark_final, warn
from .conversion import to
from .factory import array_module_for, new_leaf, numpy_dtype_for
from .storage import map_file


@public(method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """Return a tensor with a copy of ``data``, which is a number, a nested sequence, a NumPy array or a tensor.

    If ``dtype`` is None, the dtype of an array or tensor is preserved, Python bools and ints become bool and int64, and
    floats and complex numbers get the default dtype of their kind. Raise an error if a number is out of the range of an
    integer ``dtype``.

    >>> import retrograd as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> torch.tensor(2.5, requires_grad=True)
    tensor(2.5000, requires_grad=True)
    """
    kind = data.__class__
    if dtype is None and device is None and (kind is float or kind is list):  # fast path
        array = _array_of_plain_numbers(data, kind)
        if array is not None and array_module_for(None) is numpy:
            return new_leaf(array, requires_grad, pin_memory=pin_memory)
    if isinstance(data, Tensor):
        _warn_of_copy("torch.tensor")
    array = array_from_data(data, None if dtype is None else dtypes.dtype_of(numpy_dtype_for("tensor", dtype)))
    place = devices.as_device(device) if device is not None else _device_of(data)
    return new_leaf(devices.to_device(array, place), requires_grad, pin_memory=pin_memory)


def _warn_of_copy(name: str) -> None:
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor).",
    )


def _device_of(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.device
    if _is_cuda_array(data):
        return devices.device_of(devices.cupy().asarray(data))
    return devices.get_default_device()


def _is_cuda_array(data: Any) -> bool:
    """Return whether ``data`` has a CUDA array interface; raise TypeError if the interface is not a dictionary."""
    if isinstance(data, (list, tuple, numpy.ndarray, numpy.generic, int, float, complex, str, bytes)):
        return False  # before an attribute is looked for in vain, which takes a microsecond
    try:
        interface = data.__cuda_array_interface__
    except Exception:  # as PyTorch: whatever the attribute raises
        return False
    if not isinstance(interface, dict):
        raise mark_final(TypeError("`__cuda_array_interface__` must be a dict"))
    return True


@public(function=False)
def new_tensor(
    input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a tensor with a copy of ``data``.

    By default, the tensor has the dtype and the device of ``input``.

    >>> import retrograd as torch
    >>> torch.zeros(2, dtype=torch.float64).new_tensor([1, 2])
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(data, Tensor):
        _warn_of_copy("tensor.new_tensor")
    array = array_from_data(
        data, input.dtype if dtype is None else dtypes.dtype_of(numpy_dtype_for("new_tensor", dtype))
    )
    place = input.device if device is None else devices.as_device(device)
    return new_leaf(devices.to_device(array, place), requires_grad, pin_memory=pin_memory)


_FLOATS, _INTEGERS, _LISTS = frozenset({float}), frozenset({int}), frozenset({list})


def _array_of_plain_numbers(data: Any, kind: Any) -> Any:
    """Return ``data`` as an array if it is a float or a simple list, else None.

    A simple list is a list of numbers, or a list of equally long lists of numbers, where the numbers are all floats or
    all ints in the range of int64. For other data, :func:`tensor` uses :func:`array_from_data`, which is slower.
    ``kind`` is the class of ``data``: ``float`` or ``list``.
    """
    kinds: Any = _FLOATS if kind is float else set(map(type, data))
    if kinds == _LISTS and len(set(map(len, data))) == 1:
        kinds = {type(each) for row in data for each in row}
    if kinds == _FLOATS:
        return numpy.array(data, dtypes.default.floating.numpy)
    try:
        return numpy.array(data, numpy.int64) if kinds == _INTEGERS else None
    except OverflowError:
        return None


# -- Arrays of data --------------------------------------------------------------------------------------------------


def array_from_data(data: Any, target: dtype | None) -> Any:
    """Return a new array with a copy of ``data`` in the dtype ``target``.

    ``data`` is a number, a nested sequence, an array or a tensor. If ``target`` is None, the dtype is inferred from
    ``data``.
    """
    if isinstance(data, Tensor):
        array = data._array
        return dtypes.cast(array, target.numpy) if target else array.copy("K")
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(data)
        _check_array(array)
        return _converted(array, target) if target else dtypes.with_shared_dtype(array.copy("K"))
    if _is_cuda_array(data):
        array = devices.cupy().array(data)
        return dtypes.cast(array, target.numpy) if target else dtypes.with_shared_dtype(array)
    if isinstance(data, (bool, int, float, complex)):
        return _array_of_numbers([data], target or promotion.dtype_of_number(data)).reshape(())
    if isinstance(data, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type_name(data)}'")
    if hasattr(data, "__array__") and not isinstance(data, Sequence):
        return array_from_data(numpy.asarray(data), target)
    if not _is_sequence(data):
        raise RuntimeError(f"Could not infer dtype of {type_name(data)}")
    return _array_of_sequence(data, target)


def _converted(array: Any, target: dtype) -> Any:
    if array.dtype.kind == "c" and not target.is_complex:
        array = array.real
    return dtypes.cast(array, target.numpy)


#: PyTorch's limit of nesting. It also ends the descent into a list that contains itself.
_MAX_DEPTH = 128


def _array_of_sequence(data: Any, target: dtype | None) -> Any:
    shape, first = [], data
    while _is_sequence(first):
        shape.append(len(first))
        if len(shape) > _MAX_DEPTH:
            raise ValueError(f"too many dimensions '{type_name(first)}'")
        if not shape[-1]:
            break
        first = first[0]
    if isinstance(first, (str, bytes)):
        raise ValueError(f"too many dimensions '{type_name(first)}'")
    if target is None:
        try:
            target = _inferred(data) or dtypes.default.floating
        except RecursionError:  # lists that contain each other after the first element
            raise ValueError(f"too many dimensions '{type_name(data)}'") from None
    if isinstance(data[0] if len(data) else None, numpy.ndarray) and isinstance(data, (list, tuple)):
        warn(
            "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to "
            "a single numpy.ndarray with numpy.array() before converting to a tensor.",
        )
    flat: list[Any] = []
    _collect(data, shape, 0, flat)
    return _array_of_numbers(flat, target).reshape(shape)


def _inferred(data: Any) -> dtype | None:
    """Return the dtype to which the elements of the nested sequence ``data`` promote, or None if it has no elements."""
    common: dtype | None = None
    if isinstance(data, (list, tuple)) and data and set(map(type, data)) <= {float, int}:
        return dtypes.default.floating if float in map(type, data) else dtypes.int64
    for each in data:
        own: dtype | None
        if isinstance(each, Tensor):
            own = each.dtype
        elif isinstance(each, (numpy.ndarray, numpy.generic)):
            own = dtypes.dtype_of(each.dtype)
        elif isinstance(each, (bool, int, float, complex)):
            own = promotion.dtype_of_number(each)
        elif isinstance(each, (str, bytes)):
            raise TypeError(f"new(): invalid data type '{type_name(each)}'")
        elif each is data:
            raise TypeError("new(): self-referential lists are incompatible")
        elif _is_sequence(each):
            own = _inferred(each)
        else:
            raise RuntimeError(f"Could not infer dtype of {type_name(each)}")
        if own is not None and own is not common:
            common = own if common is None else promotion.promote_types(common, own)
    return common


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (list, tuple, range)):
        return True
    if isinstance(value, (Tensor, str, bytes, dict)):
        return False
    if isinstance(value, numpy.ndarray):
        return value.ndim > 0
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def _collect(level: Any, shape: list[int], depth: int, flat: list[Any]) -> None:
    """Append the numbers in the nested sequence ``level`` to the list ``flat``.

    The function calls itself for the sequences in ``level``. ``depth`` is the number of sequences that contain
    ``level``, which is 0 for the argument ``data`` of ``tensor``. ``shape[i]`` is the expected length of each sequence
    at depth i. Raise ValueError for a sequence of another length.
    """
    if not _is_sequence(level):
        raise TypeError("not a sequence")
    if len(level) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(level)})")
    if depth == len(shape) - 1:
        flat.extend(level)
        return
    for each in level:
        _collect(each, shape, depth + 1, flat)


def _array_of_numbers(flat: list[Any], target: dtype) -> Any:
    """Return the numbers in ``flat`` as a 1-d array of the dtype ``target``.

    Raise an error for an integer that is out of the range of ``target``.
    """
    quick = {bool, int} if target.category < dtypes.FLOATING else {bool, int, float}
    values = flat if set(map(type, flat)) <= quick else [_number(each, target) for each in flat]
    if target in dtypes.FLOAT8:
        return dtypes.cast(numpy.array(values, numpy.float64), target.numpy)
    if target.category != dtypes.INTEGER:
        return numpy.array([*map(float, values)] if target.numpy.kind == "V" else values, target.numpy)
    limits = numpy.iinfo(target.numpy)
    if values:
        low, high = min(values), max(values)
        if target is dtypes.uint64:
            if low < 0:
                raise OverflowError("can't convert negative int to unsigned")
            if high > limits.max:
                raise OverflowError("int too big to convert")
        elif low < -(2**63) or high >= 2**63:
            raise ValueError("Overflow when unpacking long long")
        elif low < (limits.min if target.is_signed else -limits.max) or high > limits.max:
            raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
    return numpy.array(values, numpy.uint64 if target is dtypes.uint64 else numpy.int64).astype(target.numpy)


def _number(value: Any, target: dtype) -> Any:
    """Return ``value`` as a Python number that can be stored in an array of the dtype ``target``.

    ``value`` is an element of the argument ``data`` of ``tensor``. Raise TypeError or RuntimeError if ``value`` cannot
    be converted.
    """
    whole = target is dtypes.bool_ or target.category == dtypes.INTEGER
    if whole and isinstance(value, numpy.floating) and value.__class__ is not numpy.float64:  # float64 is a float
        raise TypeError(f"'{type_name(value)}' object cannot be interpreted as an integer")
    if isinstance(value, (Tensor, numpy.generic, numpy.ndarray)):
        if value.__class__ is Tensor and value._array.size != 1:
            _refuse_several(target)
        value = value.item()
    if target.category == dtypes.INTEGER:
        if isinstance(value, float) and target is not dtypes.uint64:
            limits = numpy.iinfo(target.numpy)
            if not float(limits.min) <= value <= float(limits.max):
                raise RuntimeError(f"value cannot be converted to type {target.name} without overflow")
            return int(value) if value < 2.0**63 else -(2**63)
        if not isinstance(value, int):
            if target is dtypes.uint64:
                raise TypeError("an integer is required")
            raise TypeError(f"'{type_name(value)}' object cannot be interpreted as an integer")
        return int(value)
    if target is dtypes.bool_:
        return bool(value)
    if not isinstance(value, (int, float) if target.is_floating_point else (int, float, complex)):
        raise TypeError(f"must be real number, not {type_name(value)}")
    return value


def _refuse_several(target: dtype) -> None:
    if target.category == dtypes.INTEGER:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    raise ValueError("only one element tensors can be converted to Python scalars")


# -- Sharing existing memory -----------------------------------------------------------------------------------------


def _check_array(array: Any) -> None:
    if array.dtype not in dtypes._BY_NUMPY:
        if not array.dtype.isnative:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders "
                "is currently not supported."
            )
        dtypes.dtype_of(array.dtype)
    if any(step < 0 for step in array.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if any(step % array.itemsize for step in array.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )


@public(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """Return a tensor that shares the memory of the NumPy array ``ndarray``.

    >>> import retrograd as torch
    >>> import numpy
    >>> array = numpy.array([1.0, 2.0])
    >>> x = torch.from_numpy(array)
    >>> array[0] = 9.0
    >>> x
    tensor([9., 2.], dtype=torch.float64)
    """
    if not isinstance(ndarray, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {type_name(ndarray)})")
    _check_array(ndarray)
    if not ndarray.flags.writeable:
        warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the "
            "rest of this program.",
        )
    return wrap(share(dtypes.with_shared_dtype(numpy.asarray(ndarray))))


@public(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return ``data`` as a tensor.

    The tensor shares the memory of ``data``, a tensor or NumPy array, if ``dtype`` and ``device`` do not require a
    copy. Other data are copied.

    >>> import retrograd as torch
    >>> import numpy
    >>> array = numpy.array([1, 2])
    >>> torch.as_tensor(array)  # shares the memory of the array
    tensor([1, 2])
    >>> torch.as_tensor([1.5, 2.5])
    tensor([1.5000, 2.5000])
    """
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else to(data, device, dtype)
    if isinstance(data, numpy.ndarray):
        return to(from_numpy(data), device, dtype)
    if _is_cuda_array(data):
        return to(wrap(devices.cupy().asarray(data)), device, dtype)
    return tensor(data, dtype=dtype, device=device)


@public(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """Return ``obj`` as a tensor that shares the memory of ``obj`` if possible, else as a copy.

    ``obj`` is a tensor, an array, an object with the buffer protocol, or data for :func:`tensor`. ``copy=True`` always
    copies. ``copy=False`` raises ValueError if a copy is necessary.

    >>> import retrograd as torch
    >>> x = torch.tensor([1.0, 2.0])
    >>> torch.asarray(x) is x
    True
    >>> torch.asarray([1, 2], dtype=torch.float32)
    tensor([1., 2.])
    """
    shared = _shared(obj, dtype)
    if shared is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        return tensor(obj, dtype=dtype, device=device, requires_grad=bool(requires_grad))
    place = shared.device if device is None else devices.as_device(device)
    target = shared.dtype if dtype is None else dtypes.as_dtype(dtype)
    if copy is False and place.type != shared.device.type:
        raise ValueError(f"can't alias tensor from device '{shared.device}' to '{place}'.")
    if copy is False and target is not shared.dtype:
        names = dtypes.scalar_name(shared.dtype), dtypes.scalar_name(target)
        raise ValueError(f"can't alias tensor with dtype '{names[0]}' into dtype '{names[1]}'.")
    result = to(shared, place, target)
    if copy and result is shared:
        result = shared.clone()
    if not isinstance(obj, Tensor) or requires_grad is not None:
        return _with_requires_grad(result, bool(requires_grad))
    if obj.requires_grad:
        warn(
            "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. Pass "
            "requires_grad=False explicitly to get the old behavior and silence this warning.",
        )
        return result.requires_grad_()
    return result


def _with_requires_grad(result: Tensor, requires_grad: bool) -> Tensor:
    if result.requires_grad == requires_grad:
        return result
    return new_leaf(result._array, True) if requires_grad else result.detach()


def _shared(obj: Any, dtype: Any) -> Tensor | None:
    """Return a tensor that shares the memory of ``obj``, or None if ``obj`` is not an array, a tensor or a buffer.

    If ``obj`` is a buffer such as ``bytes``, its memory is interpreted as elements of ``dtype``.
    """
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, numpy.ndarray):
        return from_numpy(obj)
    if isinstance(obj, numpy.generic):
        return wrap(numpy.asarray(obj))
    if isinstance(obj, (bytes, bytearray, memoryview)):
        return frombuffer(obj, dtype=dtype or dtypes.default.floating)
    return None


@public(method=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """Return a 1-d tensor that shares the memory of ``buffer``, an object with the buffer protocol.

    The tensor has ``count`` elements, or all elements if ``count`` is -1. ``offset`` is the number of bytes before the
    first element.

    >>> import retrograd as torch
    >>> torch.frombuffer(bytearray([1, 0, 2, 0]), dtype=torch.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    kind = numpy_dtype_for("frombuffer", dtype)
    try:
        memory = memoryview(buffer)
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    length, size = memory.nbytes, kind.itemsize
    if length == 0 or count == 0:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count < 0:
        if (length - offset) % size:
            raise ValueError(
                f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element "
                f"size ({size})"
            )
        count = (length - offset) // size
    elif offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if memory.readonly:
        warn(
            "The given buffer is not writable, and PyTorch does not support non-writable tensors. This means you can "
            "write to the underlying (supposedly non-writable) buffer using the tensor. You may want to copy the buffer "
            "to protect its data or make it writable before converting it to a tensor. This type of warning will be "
            "suppressed for the rest of this program.",
        )
    return new_leaf(share(numpy.frombuffer(buffer, kind, count, offset)), requires_grad)


class _CapsuleHolder:
    """Object whose method ``__dlpack__`` returns a given DLPack capsule.

    ``from_dlpack`` passes this object to ``numpy.from_dlpack``, which does not accept a capsule.
    """

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __dlpack__(self, **options: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class _WritableInterface:
    """Object from which NumPy creates a writable array that shares the memory of a read-only array.

    NumPy reads the attribute ``__array_interface__``, which describes the memory of ``array`` without the read-only
    flag. ``from_dlpack`` uses this class because NumPy marks every array from an unversioned DLPack capsule as
    read-only.
    """

    def __init__(self, array: Any) -> None:
        self.array = array
        shown = array.__array_interface__
        self.__array_interface__ = {**shown, "data": (shown["data"][0], False)}


def _writable(array: Any) -> Any:
    return array if array.flags.writeable else numpy.asarray(_WritableInterface(array))


#: Numbers of the types of device in ``__dlpack_device__`` whose memory CuPy reads: of a GPU, or managed.
_GPU_MEMORY = (2, 13)


@public(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of ``ext_tensor``, an object with ``__dlpack__`` or a DLPack capsule.

    With ``copy=True``, the tensor is a copy. A tensor from memory of a GPU is on this GPU. Work of the other library on
    this memory is complete before later work of the current stream. A capsule without its object must be of memory of
    the CPU.

    >>> import retrograd as torch
    >>> import numpy
    >>> torch.from_dlpack(numpy.array([1.0, 2.0]))
    tensor([1., 2.], dtype=torch.float64)
    """
    if isinstance(ext_tensor, Tensor):
        imported = ext_tensor.detach()
    elif hasattr(ext_tensor, "__dlpack_device__") and int(ext_tensor.__dlpack_device__()[0]) in _GPU_MEMORY:
        imported = wrap(devices.cupy().from_dlpack(ext_tensor))
    elif hasattr(ext_tensor, "__dlpack__"):
        imported = wrap(share(_writable(numpy.from_dlpack(ext_tensor))))
    elif type(ext_tensor).__name__ == "PyCapsule" and "used_" not in repr(ext_tensor):
        imported = wrap(share(_writable(numpy.from_dlpack(_CapsuleHolder(ext_tensor)))))
    else:
        raise RuntimeError(
            "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only once, so you might "
            "have already constructed a tensor from it once."
        )
    return to(imported.clone() if copy else imported, device)


@public(method=False)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, layout: Any = strided,
    device: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a 1-d tensor of ``size`` elements that is a memory map of the file ``filename``.

    With ``shared=True``, the file is created or extended if necessary, and writes to the tensor change the file.
    Otherwise writes to the tensor do not change the file.

    >>> import retrograd as torch
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "data")
    >>> _ = path.write_bytes(bytes([1, 2, 3]))
    >>> torch.from_file(str(path), size=3, dtype=torch.uint8)
    tensor([1, 2, 3], dtype=torch.uint8)
    """
    return wrap(map_file(filename, numpy_dtype_for("from_file", dtype), shared, size or 0))
