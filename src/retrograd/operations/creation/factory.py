"""Functions that create tensors of a given shape: ``zeros``, ``ones``, ``empty``, ``full``, ``*_like``, ``new_*``.

Functions that create tensors from existing data are in ``creation/from_data.py``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...compat.lazy_imports import load_part
from ...compat.type_names import type_name
from ...core import devices, dtypes, promotion
from ...core.dtypes import dtype
from ...core.size import Size
from ...core.tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    layout,
    leaf_from_array,
    preserve_format,
    strided,
    wrap,
)
from ...dispatch.declare import public
from ...dispatch.intercept import GO_ON, HANDLERS, intercept_locals
from ...dispatch.operand_promotion import PLAIN, common_dtype, plain_number, stores_like_pytorch
from ...dispatch.transform_tensor import copy_per_slice
from ...kernels import copying, pinned_memory
from ..engine_ops import as_strided_of


def new_leaf(array: Any, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:
    """Return a leaf tensor that shares the memory of ``array`` and has the given ``requires_grad``.

    If ``pin_memory`` is true, the elements are copied to pinned memory; raise RuntimeError if this is not possible.
    """
    if pin_memory:
        array = _pinned(array)
    if requires_grad is False:
        return wrap(array)
    if requires_grad is not True:
        raise TypeError("requires_grad must be a bool")
    return leaf_from_array(array)


def _pinned(array: Any) -> Any:
    """Return a copy of ``array`` in pinned memory, for an argument ``pin_memory=True``."""
    if array.__class__ is not numpy.ndarray:
        raise RuntimeError("Only dense CPU tensors can be pinned")
    if not devices.gpu_count():
        raise RuntimeError(
            "pin_memory=True requires a CUDA or other accelerator backend; no pinned memory allocator is available on this "
            "system."
        )
    return pinned_memory.pinned(array)


def array_module_for(device: Any) -> Any:
    """Return the array module for ``device``: NumPy for the CPU, CuPy for a GPU.

    None means the default device.
    """
    if device is None and devices.get_default_device() is devices.CPU:
        return numpy
    return devices.array_module_for(devices.as_device(device))


def simple_shape(given: tuple[Any, ...]) -> tuple[int, ...] | None:
    """Return the shape that was passed to a function such as ``zeros``, or None if the arguments are not simple.

    Simple arguments are one or more non-negative ints, or one tuple of such ints, if the default device is the CPU. For
    them, the function creates a NumPy array without further checks. ``given`` is the tuple of its positional arguments.
    """
    if len(given) == 1:
        (size,) = given
        if size.__class__ is tuple or size.__class__ is Size:
            given = size
    elif not given:
        return None
    for each in given:
        if each.__class__ is not int or each < 0:
            return None
    return None if devices.default_changed and devices.get_default_device() is not devices.CPU else given


def parse_sizes(name: str, size: tuple[Any, ...], named: Any = None) -> tuple[int, ...]:
    """Return the shape that was passed to the function ``name``, as a tuple of ints.

    ``size`` holds the positional arguments: ints or one sequence of ints. If ``size`` is empty, the shape is ``named``,
    the keyword argument ``size`` of the function. Raise TypeError for sizes that are not ints. Raise RuntimeError for
    negative sizes and for 2**61 elements or more, whose number of bytes exceeds int64.
    """
    for each in size:
        if each.__class__ is not int or each < 0:
            break
    else:
        if size:
            return size
    if not size:
        if not isinstance(named, (tuple, list)):
            raise TypeError("the sizes must be in a tuple or a list")
        size = tuple(named)
    elif len(size) == 1 and isinstance(size[0], (tuple, list)):
        size = tuple(size[0])
    if size and isinstance(size[0], bool):
        raise TypeError("a size must be an int, not a bool")
    for position, each in enumerate(size):
        if not hasattr(each, "__index__"):
            raise _no_size(name, position, each)
    sizes = tuple([int(each.__index__()) for each in size])
    if sizes and min(sizes) < 0:
        if name == "zeros":
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        raise RuntimeError(f"Trying to create tensor with negative dimension {_first_negative(sizes)}: {list(sizes)}")
    if math.prod(sizes) >= 2**61:  # the size in bytes overflows int64
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(sizes)}")
    return sizes


def _no_size(name: str, position: int, value: Any) -> TypeError:
    if not position:
        problem = f"(position 1) must be tuple of ints, but found element of type {type_name(value)} at pos 0"
    else:
        problem = f"failed to unpack the object at pos {position + 1} with error"
        problem += f' "type must be tuple of ints,but got {type_name(value)}"'
    return TypeError(f"{name}(): argument 'size' {problem}")


def _first_negative(sizes: tuple[int, ...]) -> int:
    return next(each for each in sizes if each < 0)


def numpy_dtype_for(name: str, value: Any, default: dtype | None = None) -> Any:
    """Return the NumPy dtype that corresponds to ``value``, the argument ``dtype`` of the function ``name``.

    If ``value`` is None, ``default`` is used instead; if both are None, the default floating dtype is used. Raise
    TypeError, with ``name`` in the message, if ``value`` is neither None nor a ``torch.dtype``.
    """
    if value is None:
        return (default or dtypes.default.floating).numpy
    if value.__class__ is dtype:
        if value.numpy in dtypes.STORED_NUMPY:
            load_part("dispatch.stored_dtypes").check_created(name, value)
        return value.numpy
    if not isinstance(value, dtype) and value not in (float, int, bool, complex):
        raise TypeError(f"{name}(): argument 'dtype' must be torch.dtype, not {type(value).__name__}")
    return dtypes.as_dtype(value).numpy


def as_python_number(value: Any) -> Any:
    """Return ``value``, a number, a 0-d tensor or a NumPy scalar, as a Python number."""
    return value.item() if isinstance(value, Tensor) else plain_number(value)


# -- Filled with a value ---------------------------------------------------------------------------------------------


def _filled(
    name: str, size: tuple[int, ...], fill: Any, dtype: Any, layout_: Any, device: Any, requires_grad: bool,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    if layout_ is not strided and layout_ is not None and not isinstance(layout_, layout):
        raise TypeError("a layout must be a torch.layout")
    kind = numpy_dtype_for(name, dtype)
    np = array_module_for(device)
    if fill.__class__ is int and fill == 0:
        array = np.zeros(size, kind)
    else:
        array = np.empty(size, kind)
        value = fill if stores_like_pytorch(fill, kind) else dtypes.number_to_array(fill, kind).item()
        copying.fill(np, array, value)
    if requires_grad is False and not pin_memory:
        return wrap(array)
    return new_leaf(array, requires_grad, pin_memory)


def _common_filled(fill: int | None) -> Any:
    """Return a function that creates the array of ``zeros``, ``ones`` or ``empty`` for simple arguments.

    ``fill`` is the value of the elements: 0 for ``zeros``, 1 for ``ones``, and None for ``empty``. The returned
    function takes the tuple of positional arguments. If they are simple (see :func:`simple_shape`), it returns an array
    of the default floating dtype. Otherwise it returns None, and the general implementation of ``zeros``, ``ones`` or
    ``empty`` is used.
    """

    def common(given: tuple[Any, ...]) -> Any:
        size = simple_shape(given)
        if size is None:
            return None
        if fill == 0:
            return numpy.zeros(size, dtypes.default.floating.numpy)
        array = numpy.empty(size, dtypes.default.floating.numpy)
        return array if fill is None else copying.fill(numpy, array, fill)

    return common


@public(method=False, array_factory=_common_filled(0))
def zeros(
    *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a tensor of zeros of the shape ``shape``, which is passed as ints or as one sequence of ints.

    By default, the dtype is the default floating dtype.

    >>> import retrograd as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    if HANDLERS and (answer := intercept_locals(zeros, locals())) is not GO_ON:
        return answer
    return _filled("zeros", parse_sizes("zeros", shape, size), 0, dtype, layout, device, requires_grad, pin_memory)


@public(method=False, array_factory=_common_filled(1))
def ones(
    *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a tensor of ones of the shape ``shape``, which is passed as ints or as one sequence of ints.

    By default, the dtype is the default floating dtype.

    >>> import retrograd as torch
    >>> torch.ones(2, 3)
    tensor([[1., 1., 1.],
            [1., 1., 1.]])
    """
    if HANDLERS and (answer := intercept_locals(ones, locals())) is not GO_ON:
        return answer
    return _filled("ones", parse_sizes("ones", shape, size), 1, dtype, layout, device, requires_grad, pin_memory)


@public(method=False, array_factory=_common_filled(None))
def empty(
    *shape: Any, size: Any = None, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = None,
) -> Tensor:  # fmt: skip
    """Return an uninitialised tensor of the shape ``shape``, which is passed as ints or as one sequence of ints.

    By default, the dtype is the default floating dtype.

    >>> import retrograd as torch
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    if HANDLERS and (answer := intercept_locals(empty, locals())) is not GO_ON:
        return answer
    sizes = parse_sizes("empty", shape, size)
    if memory_format is preserve_format:
        raise RuntimeError("unsupported memory format Preserve")
    return new_leaf(
        _uninitialised(array_module_for(device), sizes, numpy_dtype_for("empty", dtype), memory_format),
        requires_grad,
        pin_memory=pin_memory,
    )


def _uninitialised(np: Any, sizes: tuple[int, ...], kind: Any, order: Any) -> Any:
    """Return an uninitialised array of shape ``sizes`` and dtype ``kind`` in the memory format ``order``."""
    if order in (channels_last, channels_last_3d):
        rank = 4 if order is channels_last else 5
        if len(sizes) != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {order.name} format")
        return np.moveaxis(np.empty((sizes[0], *sizes[2:], sizes[1]), kind), -1, 1)
    if order is not None and not isinstance(order, layout):
        raise TypeError("a memory format must be a torch.memory_format")
    return np.empty(sizes, kind)


@public(method=False)
def empty_strided(
    size: Any, stride: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return an uninitialised tensor of shape ``size`` with the strides ``stride``, counted in elements.

    >>> import retrograd as torch
    >>> x = torch.empty_strided((2, 3), (1, 2))
    >>> x.shape, x.stride()
    (torch.Size([2, 3]), (1, 2))
    """
    kind = numpy_dtype_for("empty_strided", dtype)
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})"
        )
    if any(each < 0 for each in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {_first_negative(size)}: {list(size)}")
    if any(each < 0 for each in stride):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(size)} and strides={list(stride)}")
    reach = 0 if 0 in size else 1 + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
    memory = array_module_for(device).empty(reach, kind)
    strides = tuple(each * kind.itemsize for each in stride)
    return new_leaf(
        as_strided_of(array_module_for(device))(memory, tuple(size), strides), requires_grad, pin_memory=pin_memory
    )


@public(method=False)
def empty_permuted(
    size: Any, physical_layout: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return an uninitialised tensor of shape ``size`` whose dimensions have the order ``physical_layout`` in memory.

    The first dimension in ``physical_layout`` has the largest stride, the last has stride 1. There are no gaps between
    the elements.

    >>> import retrograd as torch
    >>> torch.empty_permuted((2, 3, 4), (0, 2, 1)).stride()
    (12, 1, 3)
    """
    shape, order = parse_sizes("empty_permuted", (), size), tuple(physical_layout)
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
    np = array_module_for(device)
    array = np.empty(tuple(shape[axis] for axis in order), numpy_dtype_for("empty_permuted", dtype))
    return new_leaf(
        array.transpose(tuple(order.index(axis) for axis in range(len(order)))), requires_grad, pin_memory=pin_memory
    )


def _commonly_full(size: Any, fill_value: Any) -> Any:
    kind = FILL_DTYPES.get(fill_value.__class__)
    if kind is float and 65504 < abs(fill_value) < math.inf:
        return None  # it may be out of the range of the dtype
    shape = None if kind is None or size.__class__ is int else simple_shape((size,))
    if shape is None:
        return None
    array = numpy.empty(shape, dtypes.default.floating.numpy if kind is float else kind)
    return copying.fill(numpy, array, fill_value)


#: The dtype of a new tensor by the class of its fill value; ``float`` means the default floating dtype.
FILL_DTYPES: dict[type, Any] = {float: float, bool: numpy.dtype(bool)}


@public(method=False, array_factory=_commonly_full)
def full(
    size: Any, fill_value: Any, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a tensor of shape ``size`` with ``fill_value`` in every element.

    If ``dtype`` is None, the dtype follows from the type of ``fill_value``. Raise RuntimeError if the dtype cannot hold
    ``fill_value``.

    >>> import retrograd as torch
    >>> torch.full((2, 3), 7.5)
    tensor([[7.5000, 7.5000, 7.5000],
            [7.5000, 7.5000, 7.5000]])
    """
    if HANDLERS and (answer := intercept_locals(full, locals())) is not GO_ON:
        return answer
    value = as_python_number(fill_value)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")
    if not isinstance(value, (int, float, complex)):
        raise TypeError("a tensor is filled with a number")
    kind = promotion.dtype_of_number(value) if dtype is None else dtype
    return _filled("full", parse_sizes("full", (), size), value, kind, layout, device, requires_grad, pin_memory)


@public(method=False)
def scalar_tensor(
    s: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None, requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a 0-d tensor that holds the number ``s``. By default, the dtype is the default floating dtype.

    >>> import retrograd as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    return _filled("scalar_tensor", (), as_python_number(s), dtype, layout, device, requires_grad, pin_memory)


_AS_ROWS: Any = object()  # the default number of columns; None is refused


def _common_eye(n: Any, m: Any) -> Any:
    """Return ``eye(n, m)`` as an array if the arguments are simple, else None.

    The arguments are simple if ``n`` is a positive int, ``m`` is a positive int or not passed, and the default device is the
    CPU. For other arguments, the general implementation of ``eye`` is used, which is slower.
    """
    size = simple_shape((n, n if m is _AS_ROWS else m))
    if size is None or not all(size):
        return None
    matrix = numpy.zeros(size, dtypes.default.floating.numpy)
    columns = size[1]
    matrix.reshape(-1)[: columns * columns : columns + 1] = 1
    return matrix


@public(method=False, array_factory=_common_eye)
def eye(
    n: int, m: Any = _AS_ROWS, *, out: Tensor | None = None, dtype: Any = None, layout: Any = strided,
    device: Any = None, requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a matrix of ``n`` rows and ``m`` columns (default ``n``) with ones on the diagonal and zeros elsewhere.

    >>> import retrograd as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    if m is None:
        raise TypeError("m must be an int")
    m = n if m is _AS_ROWS else m
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    return new_leaf(
        array_module_for(device).eye(n, m, dtype=numpy_dtype_for("eye", dtype)), requires_grad, pin_memory=pin_memory
    )


# -- Like another tensor ---------------------------------------------------------------------------------------------


def _like(name: str, input: Tensor, dtype: Any, device: Any, memory_format: Any) -> tuple[Any, Any, Any]:
    kind = numpy_dtype_for(name, input.dtype if dtype is None else dtype)
    np = (
        devices.array_module_of(input._array) if device is None else devices.array_module_for(devices.as_device(device))
    )
    return np, kind, memory_format


def empty_array_like(np: Any, input: Tensor, kind: Any, order: Any) -> Any:
    """Return an uninitialised array with the shape of ``input``, the dtype ``kind`` and the memory format ``order``.

    ``np`` is the array module. If ``order`` is None or ``preserve_format``, the dimensions of the array have the same
    order in memory as those of ``input``. If ``input`` has a stride of 0, the array is C-contiguous instead.
    """
    array = input._array
    if order not in (None, preserve_format):
        return _uninitialised(np, array.shape, kind, order)
    if not array.flags.c_contiguous and 0 not in array.strides:
        return np.empty_like(array, dtype=kind, order="K")
    return np.empty(array.shape, kind)


def _like_function(name: str, fill: Any, doc: str) -> Any:
    def create_like(
        input: Tensor, *, dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
        pin_memory: bool = False, memory_format: Any = preserve_format,
    ) -> Tensor:  # fmt: skip
        if HANDLERS and (answer := intercept_locals(create_like, locals())) is not GO_ON:
            return answer
        np, kind, order = _like(name, input, dtype, device, memory_format)
        array = empty_array_like(np, input, kind, order)
        if fill is not None:
            stored = array.dtype in dtypes.STORED_NUMPY
            array.fill(dtypes.number_to_array(fill, array.dtype) if stored else fill)
        return copy_per_slice(input, new_leaf(array, requires_grad, pin_memory=pin_memory))

    def common(input: Any) -> Any:
        kind: Any = input.__class__
        if kind not in PLAIN:
            return None
        array = input._array
        if array.__class__ is not numpy.ndarray or not array.flags.c_contiguous:
            return None
        if array.dtype is not dtypes.float32.numpy and array.dtype in dtypes.STORED_NUMPY:
            return None
        if fill == 0:
            return numpy.zeros(array.shape, array.dtype)
        array = numpy.empty(array.shape, array.dtype)
        if fill is not None:
            array.fill(fill)
        return array

    create_like.__name__ = create_like.__qualname__ = name
    create_like.__doc__ = doc
    return public(method=False, name=name, array_factory=common)(create_like)


zeros_like = _like_function("zeros_like", 0, "Return a tensor of zeros with the shape, dtype and device of ``input``.")
ones_like = _like_function("ones_like", 1, "Return a tensor of ones with the shape, dtype and device of ``input``.")
empty_like = _like_function(
    "empty_like", None, "Return an uninitialised tensor with the shape, dtype and device of ``input``."
)


@public(method=False)
def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, layout: Any = None, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False, memory_format: Any = preserve_format,
) -> Tensor:  # fmt: skip
    """Return a tensor of the shape of ``input`` with ``fill_value`` in every element.

    By default, the tensor has the dtype and the device of ``input``.

    >>> import retrograd as torch
    >>> torch.full_like(torch.zeros(2, 3), 7.5)
    tensor([[7.5000, 7.5000, 7.5000],
            [7.5000, 7.5000, 7.5000]])
    """
    np, kind, order = _like("full_like", input, dtype, device, memory_format)
    array, value = empty_array_like(np, input, kind, order), as_python_number(fill_value)
    array[...] = value if stores_like_pytorch(value, kind) else dtypes.number_to_scalar(value, kind)
    return copy_per_slice(input, new_leaf(array, requires_grad, pin_memory=pin_memory))


def _options(input: Tensor, dtype: Any, device: Any) -> dict[str, Any]:
    return {"dtype": input.dtype if dtype is None else dtype, "device": input.device if device is None else device}


def _new(create: Any, doc: str) -> None:
    fill = {"zeros": 0, "ones": 1}.get(create.__name__)

    def new(
        input: Tensor, *shape: Any, size: Any = None, dtype: Any = None, layout: Any = strided, device: Any = None,
        requires_grad: bool = False, pin_memory: bool = False,
    ) -> Tensor:  # fmt: skip
        sizes, target = parse_sizes(new.__name__, shape, size), input.device if device is None else device
        kind = dtypes.dtype_of(input._array.dtype) if dtype is None else dtype
        if fill is None:
            created = empty(sizes, dtype=kind, layout=layout, device=target, requires_grad=requires_grad)
        else:
            created = _filled(new.__name__, sizes, fill, kind, layout, target, requires_grad, pin_memory)
        return copy_per_slice(input, created)

    new.__name__ = new.__qualname__ = f"new_{create.__name__}"
    new.__doc__ = f"Return {doc} of the shape ``shape`` with the dtype and device of ``input``."
    public(function=False, name=new.__name__)(new)


for _create, _doc in ((zeros, "a tensor of zeros"), (ones, "a tensor of ones"), (empty, "an uninitialised tensor")):
    _new(_create, _doc)


@public(function=False)
def new_full(
    input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return a tensor of shape ``size`` with ``fill_value`` in every element.

    By default, the tensor has the dtype and the device of ``input``.

    >>> import retrograd as torch
    >>> torch.zeros(2, dtype=torch.float64).new_full((3,), 7)
    tensor([7., 7., 7.], dtype=torch.float64)
    """
    return copy_per_slice(input, full(size, fill_value, **_options(input, dtype, device), requires_grad=requires_grad))


@public(function=False)
def new_empty_strided(
    input: Tensor, size: Any, stride: Any, *, dtype: Any = None, layout: Any = strided, device: Any = None,
    requires_grad: bool = False, pin_memory: bool = False,
) -> Tensor:  # fmt: skip
    """Return an uninitialised tensor of shape ``size`` with the strides ``stride``, counted in elements.

    By default, the tensor has the dtype and the device of ``input``.

    >>> import retrograd as torch
    >>> torch.zeros(2).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    return empty_strided(size, stride, **_options(input, dtype, device), requires_grad=requires_grad)


@public(method=False)
def result_type(tensor: Any, other: Any) -> dtype:
    """Return the dtype of an operation on ``tensor`` and ``other``, according to type promotion.

    ``tensor`` and ``other`` are tensors or numbers.

    >>> import retrograd as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    operands = tensor, other
    if not all(isinstance(each, (Tensor, int, float, complex, numpy.generic)) for each in operands):
        raise TypeError("only tensors and numbers have a dtype")
    return common_dtype(operands)
