"""Creating tensors: from data, from a rule, like others; PyTorch's old constructors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy

from ..core import devices, dtypes
from ..core.dtypes import c_name, dtype
from ..core.tensor import Tensor, new, preserve_format, strided, wrap
from .calls import write_array
from .cast import OLD_TYPES, to, type_name
from .inner import as_strided_of
from .promote import common_dtype
from .table import surface


def made(array: Any, requires_grad: bool = False) -> Tensor:
    """A fresh leaf of ``array``."""
    out = wrap(array)
    if not requires_grad:
        return out
    if array.dtype.kind not in "fcV":
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return out.requires_grad_()


def place_of(device: Any) -> Any:
    """The array module for a device."""
    return numpy if device is None and devices.get_default_device() is devices.CPU else devices.module_for(
        devices.as_device(device)
    )  # fmt: skip


def sizes_of(name: str, size: tuple[Any, ...], keyword: Any = None) -> tuple[int, ...]:
    """A shape given as ints or as one sequence of ints, or as such by ``keyword``."""
    if keyword is not None:
        size = (keyword,)
    if not size:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    if len(size) == 1 and (not isinstance(size[0], (int, numpy.integer, Tensor)) or isinstance(size[0], bool)):
        if isinstance(size[0], (str, bool)) or not hasattr(size[0], "__iter__"):
            raise TypeError(
                f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(size[0]).__name__}"
            )
        size = tuple(size[0])
    found = []
    for position, each in enumerate(size):
        if isinstance(each, bool) or not hasattr(each, "__index__"):
            raise TypeError(
                f"{name}(): argument 'size' (position 1) must be tuple of ints, but found element of type "
                f"{type(each).__name__} at pos {position}"
            )
        count = each.__index__()
        if count < 0:
            if name == "zeros":
                raise RuntimeError("zeros: Dimension size must be non-negative.")
            raise RuntimeError(f"Trying to create tensor with negative dimension {count}: {[int(one) for one in size]}")
        found.append(count)
    return tuple(found)


def dtype_of(name: str, value: Any, default: dtype | None = None) -> Any:
    if value is None:
        return (default or dtypes.default.floating).numpy
    if not isinstance(value, dtype) and value not in (float, int, bool, complex):
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")
    return dtypes.as_dtype(value).numpy


def _filled(
    name: str, shape: tuple[int, ...], fill: Any, out: Any, dtype: Any, device: Any, requires_grad: bool
) -> Tensor:
    if out is not None:
        target = out._array.dtype if dtype is None else dtype_of(name, dtype)
        write_array(out, numpy.full(shape, fill, target))
        return out
    np = place_of(device)
    kind = dtype_of(name, dtype)
    array = np.zeros(shape, kind) if fill == 0 else np.ones(shape, kind) if fill == 1 else np.full(shape, fill, kind)
    return made(array, requires_grad)


@surface(method=False)
def zeros(
    *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Zeros of shape ``size`` (ints or one sequence).

    >>> import retrograd as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _filled("zeros", sizes_of("zeros", shape, size), 0, out, dtype, device, requires_grad)


@surface(method=False)
def ones(
    *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Ones of shape ``size`` (ints or one sequence)."""
    return _filled("ones", sizes_of("ones", shape, size), 1, out, dtype, device, requires_grad)


@surface(method=False)
def empty(
    *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """A tensor of shape ``size`` whose elements are whatever the memory held."""
    sizes = sizes_of("empty", shape, size)
    if out is not None:
        return _filled("empty", sizes, 0, out, dtype, device, requires_grad)
    return made(_laid_out(place_of(device), sizes, dtype_of("empty", dtype), memory_format), requires_grad)


def _laid_out(np: Any, shape: tuple[int, ...], kind: Any, memory_format: Any) -> Any:
    """An empty array; in channels-last formats its dimension 1 comes last in memory."""
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    for name, rank in (("channels_last", 4), ("channels_last_3d", 5)):
        if str(memory_format) == f"torch.{name}":
            if len(shape) != rank:
                raise RuntimeError(f"required rank {rank} tensor to use {name} format")
            return np.moveaxis(np.empty((shape[0], *shape[2:], shape[1]), kind), -1, 1)
    return np.empty(shape, kind)


@surface(method=False)
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """An empty tensor with the given strides (in elements)."""
    shape, steps, kind = sizes_of("empty_strided", (size,)), tuple(stride), dtype_of("empty_strided", dtype)
    if len(shape) != len(steps):
        raise RuntimeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})"
        )
    if any(step < 0 for step in steps):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(steps)}"
        )  # fmt: skip
    reach = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, steps, strict=True))
    memory = place_of(device).empty(reach, kind)
    return made(
        as_strided_of(place_of(device))(memory, shape, tuple(step * kind.itemsize for step in steps)), requires_grad
    )


@surface(method=False)
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """An empty tensor without gaps whose dimensions follow each other in memory in the order ``physical_layout``.

    >>> import retrograd as torch
    >>> torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    shape, order = sizes_of("empty_permuted", (size,)), tuple(physical_layout)
    if len(shape) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    for index, axis in enumerate(order):
        if not 0 <= axis < len(shape):
            raise RuntimeError(
                f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {axis} at index {index})."
                "  NB: negative dims not currently supported; file an issue if you want it."
            )
        if axis in order[:index]:
            raise RuntimeError("Duplicate dim not allowed")
    np = place_of(device)
    array = np.empty(tuple(shape[axis] for axis in order), dtype_of("empty_permuted", dtype))
    return made(array.transpose(tuple(order.index(axis) for axis in range(len(order)))), requires_grad)


@surface(method=False)
def full(
    size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A tensor of shape ``size`` in which every element is ``fill_value``, which decides the dtype if none is given."""
    value = _number("full", fill_value)
    kind = dtype if dtype is not None else (dtypes.of_number(value) if out is None else None)
    if kind is not None:
        _fits(value, dtypes.as_dtype(kind))
    return _filled("full", sizes_of("full", (size,)), value, out, kind, device, requires_grad)


def _number(name: str, value: Any) -> Any:
    """A number given as such or as a tensor without dimensions."""
    if isinstance(value, Tensor) and not value._array.ndim:
        return value.item()
    if not isinstance(value, (int, float, complex, numpy.generic)):
        kind = type(value).__name__
        raise TypeError(f"{name}(): argument 'fill_value' (position 2) must be Number, not {kind}")
    return value


def _fits(value: Any, kind: dtype) -> None:
    if isinstance(value, complex) and value.imag and not kind.is_complex:
        raise RuntimeError(f"value cannot be converted to type {c_name(kind)} without overflow")


@surface(method=False)
def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A 0-d tensor of the number ``s``, of the default dtype if none is given."""
    _fits(s, dtypes.of(dtype_of("scalar_tensor", dtype)))
    return made(place_of(device).asarray(s).astype(dtype_of("scalar_tensor", dtype)), requires_grad)


@surface(method=False)
def eye(
    n: int, m: int | None = None, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """The n × m identity matrix (``m`` is ``n`` by default)."""
    for position, (name, value) in enumerate((("n", n), ("m", m))):
        if value is not None and not hasattr(value, "__index__"):
            raise TypeError(
                f"eye(): argument '{name}' (position {position + 1}) must be int, not {type(value).__name__}"
            )
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    return into(out, made(place_of(device).eye(n, m, dtype=dtype_of("eye", dtype)), requires_grad))


def into(out: Tensor | None, result: Tensor) -> Tensor:
    if out is None:
        return result
    write_array(out, result._array)
    return out


# -- From data -------------------------------------------------------------------------------------------------------


@surface(method=False)
def tensor(
    data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, pin_memory: bool = False
) -> Tensor:
    """A tensor with a copy of ``data``: numbers, nested sequences, NumPy arrays or tensors.

    The dtype is that of the data: bool, int64, the default float or complex dtype; of arrays their own.

    >>> import retrograd as torch
    >>> torch.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> torch.tensor(2.5, requires_grad=True)
    tensor(2.5000, requires_grad=True)
    """
    kind = data.__class__
    if kind is float and dtype is None and device is None:
        return made(place_of(None).array(data, dtypes.default.floating.numpy), requires_grad)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    if dtype is not None:
        dtype_of("tensor", dtype)
    array = array_of(data, None if dtype is None else dtypes.as_dtype(dtype))
    place = devices.as_device(device) if device is not None else _own_place(data)
    return made(devices.move(array, place), requires_grad)


def _own_place(data: Any) -> Any:
    return data.device if isinstance(data, Tensor) else devices.get_default_device()


def array_of(data: Any, target: dtype | None) -> Any:
    """A fresh array of what a user gives as data."""
    if isinstance(data, Tensor):
        array = data._array
        return array.astype(target.numpy) if target else array.copy()
    if isinstance(data, (numpy.ndarray, numpy.generic)):
        array = numpy.asarray(data)
        _check_array(array)
        return _converted(array, target) if target else array.copy()
    if isinstance(data, (bool, int, float, complex)):
        return _of_numbers(data, target or dtypes.of_number(data))
    if isinstance(data, str):
        raise TypeError("new(): invalid data type 'str'")
    if hasattr(data, "__array__") and not isinstance(data, Sequence):
        return array_of(numpy.asarray(data), target)
    if not isinstance(data, Sequence) and not hasattr(data, "__getitem__"):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    return _of_sequence(data, target)


def _of_numbers(data: Any, target: dtype) -> Any:
    try:
        if target.category == dtypes.INTEGER:
            return _integers(numpy.asarray(data), target)
        return numpy.array(data, target.numpy)
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long long") from None


def _integers(array: Any, target: dtype) -> Any:
    if array.dtype == object:
        raise RuntimeError("Overflow when unpacking long long")
    return array.astype(target.numpy)


def _converted(array: Any, target: dtype) -> Any:
    if array.dtype.kind == "c" and not target.is_complex:
        array = array.real
    return array.astype(target.numpy)


def _of_sequence(data: Any, target: dtype | None) -> Any:
    shape, flat = _flatten(data)
    kinds = {each.dtype if isinstance(each, Tensor) else None for each in flat}
    values = [each.item() if isinstance(each, (Tensor, numpy.generic)) else each for each in flat]
    if target is None:
        target = _inferred(flat, kinds, values)
    try:
        if target.category == dtypes.INTEGER:
            array = _integers(numpy.array([int(each) for each in values]), target)
        elif target is dtypes.bool_:
            array = numpy.array([bool(each) for each in values], bool)
        else:
            array = numpy.array(values, target.numpy) if values else numpy.zeros(0, target.numpy)
    except OverflowError:
        raise RuntimeError("Overflow when unpacking long long") from None
    return array.astype(target.numpy, copy=False).reshape(shape)


def _inferred(flat: list[Any], kinds: set[Any], values: list[Any]) -> dtype:
    found: dtype | None = None
    for each, value in zip(flat, values, strict=True):
        if isinstance(each, Tensor):
            own = each.dtype
        elif isinstance(each, numpy.generic):
            own = dtypes.of(each.dtype)
        elif isinstance(value, (bool, int, float, complex)):
            own = dtypes.of_number(value)
        else:
            raise TypeError(f"new(): invalid data type '{type(value).__name__}'")
        if found is None or own is not found:
            found = own if found is None else dtypes.promote_types(found, own)
    return found or dtypes.default.floating


def _flatten(data: Any) -> tuple[tuple[int, ...], list[Any]]:
    """The shape of nested sequences and their numbers in order."""
    shape: list[int] = []
    level = data
    while _is_sequence(level):
        shape.append(len(level))
        if not len(level):
            break
        level = level[0]
    flat: list[Any] = []
    _collect(data, shape, 0, flat)
    return tuple(shape), flat


def _is_sequence(value: Any) -> bool:
    if isinstance(value, (Tensor, numpy.ndarray)):
        return value.ndim > 0
    return isinstance(value, (list, tuple, range)) or (hasattr(value, "__len__") and hasattr(value, "__getitem__")
                                                       and not isinstance(value, str))  # fmt: skip


def _collect(level: Any, shape: list[int], depth: int, flat: list[Any]) -> None:
    if depth == len(shape):
        if _is_sequence(level):
            raise TypeError(f"only size-1 arrays can be converted to Python scalars, got {type(level).__name__}")
        if isinstance(level, str):
            raise ValueError(f"too many dimensions '{type(level).__name__}'")
        flat.append(level)
        return
    if not _is_sequence(level):
        raise TypeError(f"expected sequence of length {shape[depth]} at dim {depth} (got {type(level).__name__})")
    if len(level) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(level)})")
    if depth == len(shape) - 1 and isinstance(level, (list, tuple)) and all(
        each.__class__ in (float, int, bool) for each in level
    ):  # fmt: skip
        flat.extend(level)
        return
    for each in level:
        _collect(each, shape, depth + 1, flat)


def _check_array(array: Any) -> None:
    if array.dtype not in dtypes._BY_NUMPY:
        if not array.dtype.isnative:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion between byte orders "
                "is currently not supported."
            )
        dtypes.of(array.dtype)


@surface(method=False)
def from_numpy(ndarray: Any) -> Tensor:
    """A tensor on the memory of a NumPy array: what is written to one shows in the other."""
    if not isinstance(ndarray, numpy.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    _check_array(ndarray)
    if any(step < 0 for step in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. (You can probably work around this by making a copy of your array  with "
            "array.copy().) "
        )
    if any(step % ndarray.itemsize for step in ndarray.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy the numpy array to reallocate the "
            "memory."
        )
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. This means "
            "writing to this tensor will result in undefined behavior. You may want to copy the array to protect its "
            "data or make it writable before converting it to a tensor. This type of warning will be suppressed for the "
            "rest of this program.",
            UserWarning,
            stacklevel=2,
        )
    return wrap(numpy.asarray(ndarray))


@surface(method=False)
def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``data`` as a tensor, without copying where its memory, dtype and device will do."""
    if isinstance(data, Tensor):
        return to(data, device, dtype)
    if isinstance(data, numpy.ndarray) and all(step >= 0 for step in data.strides):
        return to(from_numpy(data), device, dtype)
    return tensor(data, dtype=dtype, device=device)


@surface(method=False)
def asarray(
    obj: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None, requires_grad: bool = False
) -> Tensor:
    """``obj`` as a tensor; ``copy`` says whether it must (True) or must not (False) be copied."""
    result = tensor(obj.detach() if isinstance(obj, Tensor) else obj, dtype=dtype, device=device) if copy and not \
        isinstance(obj, Tensor) else as_tensor(obj, dtype, device)  # fmt: skip
    if isinstance(obj, Tensor):
        result = result.detach() if not requires_grad else result
        result = result.clone() if copy else result
    return result.requires_grad_() if requires_grad and not result.requires_grad else result


@surface(method=False)
def frombuffer(buffer: Any, *, dtype: Any, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor on the memory of an object with the buffer protocol."""
    try:
        length = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    size = dtype_of("frombuffer", dtype).itemsize
    if not length or not count:
        raise ValueError(f"both buffer length ({length}) and count ({count}) must not be 0")
    if not 0 <= offset < length:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({length} bytes) minus 1"
        )
    if count > 0 and offset + count * size > length:
        raise ValueError(
            f"requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) must not be greater than "
            f"actual buffer length ({length} bytes)"
        )
    if count < 0 and (length - offset) % size:
        raise ValueError(
            f"buffer length ({length - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
            f"({size})"
        )
    return made(numpy.frombuffer(buffer, dtypes.as_dtype(dtype).numpy, count, offset), requires_grad)


@surface(method=False)
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor on the memory of another library's array (one with ``__dlpack__``)."""
    if isinstance(ext_tensor, Tensor):
        found = ext_tensor.detach()
    else:
        found = wrap(numpy.from_dlpack(ext_tensor))
    return to(found.clone() if copy else found, device)


@surface(method=False)
def from_file(
    filename: str, shared: bool | None = None, size: int | None = 0, *, dtype: Any = None, layout: Any = strided,
    device: Any = None, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """A 1-d tensor of ``size`` elements on a file; ``shared``: what is written to the tensor is written to the file."""
    kind = dtype_of("from_file", dtype)
    if shared:
        with open(filename, "ab") as file:  # as long as it has to be
            file.truncate(max(file.tell(), (size or 0) * kind.itemsize))
    return wrap(numpy.asarray(numpy.memmap(filename, kind, "r+" if shared else "c", shape=(size or 0,))))


# -- Like another ----------------------------------------------------------------------------------------------------


def _like(name: str, input: Tensor, dtype: Any, device: Any, memory_format: Any) -> tuple[Any, Any, Any]:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    kind = input._array.dtype if dtype is None else dtype_of(name, dtype)
    np = devices.module_for(input.device if device is None else devices.as_device(device))
    dense = memory_format in (None, preserve_format)
    return np, kind, None if dense else memory_format


def _blank(np: Any, input: Tensor, kind: Any, form: Any) -> Any:
    array = input._array
    if form is not None:
        return _laid_out(np, array.shape, kind, form)
    if not array.flags.c_contiguous and 0 not in array.strides:
        return np.empty_like(array, dtype=kind, order="K")
    return np.empty(array.shape, kind)


def _like_function(name: str, fill: Any, doc: str) -> Any:
    def create_like(
        input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        pin_memory: bool = False, memory_format: Any = preserve_format,
    ) -> Tensor:  # fmt: skip
        np, kind, form = _like(name, input, dtype, device, memory_format)
        array = _blank(np, input, kind, form)
        if fill is not None:
            array.fill(fill)
        return made(array, requires_grad)

    create_like.__name__ = create_like.__qualname__ = name
    create_like.__doc__ = doc
    return surface(method=False, name=name)(create_like)


zeros_like = _like_function("zeros_like", 0, "Zeros with the shape, dtype and device of ``input``.")
ones_like = _like_function("ones_like", 1, "Ones with the shape, dtype and device of ``input``.")
empty_like = _like_function("empty_like", None, "An empty tensor with the shape, dtype and device of ``input``.")


@surface(method=False)
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = preserve_format,
) -> Tensor:  # fmt: skip
    """A tensor like ``input`` in which every element is ``fill_value``."""
    np, kind, form = _like("full_like", input, dtype, device, memory_format)
    _fits(fill_value, dtypes.of(kind))
    array = _blank(np, input, kind, form)
    array[...] = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    return made(array, requires_grad)


def _options(input: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": input.dtype if dtype is None else dtype, "device": input.device if device is None else device}


@surface(function=False)
def new_zeros(
    input: Tensor,
    *shape: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **rest: Any,
) -> Tensor:
    """Zeros of shape ``size`` with the dtype and device of this tensor."""
    sizes = sizes_of("new_zeros", shape, size)
    return _filled("new_zeros", sizes, 0, None, **_options(input, dtype, device), requires_grad=requires_grad)


@surface(function=False)
def new_ones(
    input: Tensor,
    *shape: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **rest: Any,
) -> Tensor:
    """Ones of shape ``size`` with the dtype and device of this tensor."""
    sizes = sizes_of("new_ones", shape, size)
    return _filled("new_ones", sizes, 1, None, **_options(input, dtype, device), requires_grad=requires_grad)


@surface(function=False)
def new_empty(
    input: Tensor,
    *shape: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **rest: Any,
) -> Tensor:
    """An empty tensor of shape ``size`` with the dtype and device of this tensor."""
    return empty(sizes_of("new_empty", shape, size), **_options(input, dtype, device), requires_grad=requires_grad)


@surface(function=False)
def new_empty_strided(
    input: Tensor,
    size: Any,
    stride: Any,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **rest: Any,
) -> Tensor:
    """An empty tensor of shape ``size`` and of these strides, with the dtype and device of this tensor."""
    return empty_strided(size, stride, **_options(input, dtype, device), requires_grad=requires_grad)


@surface(function=False)
def new_full(
    input: Tensor,
    size: Any,
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
    **rest: Any,
) -> Tensor:
    """A tensor of shape ``size`` of ``fill_value`` with the dtype and device of this tensor."""
    return full(size, fill_value, **_options(input, dtype, device), requires_grad=requires_grad)


@surface(function=False)
def new_tensor(
    input: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False, **rest: Any
) -> Tensor:
    """A tensor of ``data`` with the dtype and device of this tensor."""
    return tensor(data, **_options(input, dtype, device), requires_grad=requires_grad)


@surface(function=False, name="new")
def _new(input: Tensor, *args: Any, device: Any = None) -> Tensor:
    """PyTorch's old constructor for a tensor of this one's type."""
    return _old(input.dtype, args)


# -- The old constructors --------------------------------------------------------------------------------------------


def _old(kind: dtype, args: tuple[Any, ...]) -> Tensor:
    """``FloatTensor(2, 3)``: of that shape, uninitialised; ``FloatTensor([1, 2])``: of that data."""
    if not args:
        return wrap(numpy.empty(0, kind.numpy))
    first = args[0]
    if isinstance(first, Tensor) and len(args) == 1:
        if first.dtype is not kind:
            raise TypeError(f"expected {_old_name(kind)} (got {type_name(first)})")
        return first.detach()
    if all(isinstance(each, (int, numpy.integer)) and not isinstance(each, bool) for each in args):
        return wrap(numpy.zeros(sizes_of("new", args), kind.numpy))
    if len(args) == 1 and first.__class__.__name__ == "Size":
        return wrap(numpy.zeros(tuple(first), kind.numpy))
    if len(args) == 1 and (_is_sequence(first) or isinstance(first, numpy.ndarray)):
        return wrap(array_of(first, kind))
    raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")


def _old_name(kind: dtype) -> str:
    return f"torch.{dtypes.scalar_name(kind)}Tensor"


def _construct(cls: Any, *args: Any, **kwargs: Any) -> Tensor:
    device = kwargs.pop("device", None)
    if "data" in kwargs:
        args = (kwargs.pop("data"), *args)
    if kwargs:
        raise TypeError(f"new() got an unexpected keyword argument '{next(iter(kwargs))}'")
    if len(args) == 1 and isinstance(args[0], Tensor) and cls is not Tensor:
        made_: Tensor = args[0].detach()
    else:
        made_ = _old(dtypes.default.floating, args)
    if device is not None:
        made_ = to(made_, device)
    if cls is Tensor:
        return made_
    out: Tensor = new(cls)
    out._array, out._cell, out._node, out._view, out._grad = made_._array, made_._cell, None, None, None
    return out


Tensor.construct = staticmethod(_construct)


class _OldTypes(type):
    """So that ``isinstance(x, torch.FloatTensor)`` asks for the dtype: the old types are no classes of their own."""

    element: dtype
    place: str

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.element and instance.device.type == cls.place

    def __repr__(cls) -> str:
        return f"<class '{cls.__module__}.{cls.__name__}'>"


def _old_type(name: str, kind: dtype, place: str) -> Any:
    def construct(cls: Any, *args: Any, **kwargs: Any) -> Tensor:
        if cls.place == "cuda":
            return to(_old(kind, args), "cuda") if devices.cupy() else wrap(None)
        return _old(kind, args)

    module = "torch" if place == "cpu" else "torch.cuda"
    doc = f"PyTorch's old constructor of tensors of ``{kind}``: of a shape or of data."
    return _OldTypes(
        name, (), {"__new__": construct, "element": kind, "place": place, "__module__": module, "__doc__": doc}
    )


NAMES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32,
    "ShortTensor": dtypes.int16, "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8, "BoolTensor": dtypes.bool_,
    "ComplexFloatTensor": dtypes.complex64, "ComplexDoubleTensor": dtypes.complex128,
}  # fmt: skip
CPU_TYPES = {name: _old_type(name, kind, "cpu") for name, kind in NAMES.items()}
CUDA_TYPES = {name: _old_type(name, kind, "cuda") for name, kind in NAMES.items()}
OLD_TYPES.update({f"torch.{name}": each for name, each in CPU_TYPES.items()})
OLD_TYPES.update({f"torch.cuda.{name}": each for name, each in CUDA_TYPES.items()})


@surface(method=False)
def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by an old type or its name."""
    dtypes.set_default_dtype((OLD_TYPES[t] if isinstance(t, str) else t).element)


@surface(method=False)
def result_type(tensor1: Any, tensor2: Any) -> dtype:
    """The dtype of arithmetic between two operands, tensors or numbers.

    >>> import retrograd as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    return common_dtype((tensor1, tensor2))
