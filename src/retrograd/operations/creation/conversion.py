"""Functions that copy tensors, and that convert dtype, device or class: ``to``, ``clone``, ``contiguous``, ``item``."""

from __future__ import annotations

from typing import Any

import numpy

from ...compat.missing_names import torch_name
from ...core import devices, dtypes
from ...core.dtypes import dtype
from ...core.error_context import with_remedy
from ...core.grad_mode import is_grad_enabled
from ...core.rule_namespace import RULE_NAMESPACES
from ...core.shared_memory import share
from ...core.tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    preserve_format,
)
from ...dispatch.declare import op, public
from ...dispatch.generic_path import apply
from ...kernels import copying
from ...runtime.user_frame import warn
from ..engine_ops import to_dtype


@op(backward="CloneBackward0", function=False, method=False, linear=True, vmap="leading", scalar=lambda self, _: self)
def clone_block(np: Any, self: Any, /, memory_format: Any) -> Any:
    """Return a copy of ``self`` in the memory format ``memory_format``."""
    if memory_format is contiguous_format:
        return copying.c_copy(np, self)
    if memory_format in CHANNELS_LAST_RANKS:
        check_rank(self.ndim, memory_format)
        return np.moveaxis(np.array(np.moveaxis(self, 1, -1), order="C"), -1, 1)
    if memory_format is not preserve_format and memory_format is not None:
        raise TypeError("a memory format must be a torch.memory_format")
    return copying.same_order_copy(np, self)


#: The formats in which dimension 1 is innermost in memory, with the number of dimensions that each is for.
CHANNELS_LAST_RANKS = {channels_last: 4, channels_last_3d: 5}


def check_rank(rank: int, memory_format: Any) -> None:
    """Raise RuntimeError if a tensor of ``rank`` dimensions cannot have the memory format ``memory_format``."""
    if rank != CHANNELS_LAST_RANKS.get(memory_format, rank):
        raise RuntimeError(
            f"required rank {CHANNELS_LAST_RANKS[memory_format]} tensor to use {memory_format.name} format"
        )


clone_block.derivative(self=1)


@public()
def clone(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """Return a copy of ``input`` in the memory format ``memory_format``.

    The copy is differentiable: its gradient is passed on to ``input``.
    """
    return clone_block(input, memory_format)


@public(function=False)
def contiguous(input: Tensor, *, memory_format: Any = contiguous_format) -> Tensor:
    """Return ``input``, or a copy of ``input`` that is contiguous in the memory format ``memory_format``.

    ``input`` itself is returned if it is already contiguous in this format.
    """
    if memory_format is contiguous_format and input._array.flags.c_contiguous:
        return input
    if not isinstance(memory_format, contiguous_format.__class__):
        raise TypeError("a memory format must be a torch.memory_format")
    check_rank(input._array.ndim, memory_format)
    if memory_format is not preserve_format and input.is_contiguous(memory_format=memory_format):
        return input
    return clone(input, memory_format=memory_format)


@op(backward="ToCopyBackward0", function=False, method=False, linear=True, vmap="leading", event="_to_copy")
def to_device(np: Any, self: Any, /, place: Any, non_blocking: bool = False) -> Any:
    """Return the array ``self`` itself if it is on the device ``place``, else a copy on this device."""
    return devices.to_device(self, place, non_blocking)


to_device.derivative(self=lambda F, g, self_device: F.to_device(g, self_device))


# -- to --------------------------------------------------------------------------------------------------------------


@public(function=False)
def to(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Return ``input`` converted to another dtype, to another device, or to both.

    Call it as ``to(dtype)``, ``to(device)``, ``to(device, dtype)`` or ``to(other)``, where ``other`` is a tensor whose
    dtype and device are used. The keyword arguments are ``copy``, ``memory_format`` and ``non_blocking``. If no
    conversion is necessary, ``input`` itself is returned, or a copy if ``copy`` is true. With ``non_blocking=True``, a
    copy between pinned memory and a GPU goes on after the function has returned: the elements of a result on the CPU are
    valid after ``torch.cuda.synchronize()``.
    """
    if len(args) == 1 and args[0].__class__ is dtype and not kwargs:
        return input if args[0].numpy is input._array.dtype else cast_to(input, args[0])
    if len(args) == 1 and not kwargs and input._array.__class__ is numpy.ndarray:
        where = args[0].type if args[0].__class__ is devices.device else args[0]
        if where.__class__ is str and where == "cpu":
            return input
    flags = [each for each in args if each.__class__ is bool]
    non_blocking = bool(kwargs.get("non_blocking") or (flags and flags[0]))
    place, target, force, layout = parse_to_arguments(args, kwargs)
    result = input
    if place is not None and _elsewhere(place, input):
        if place.type == "cuda" and place.index is None:
            place = devices.device("cuda", devices.gpu_index(place))
        result = apply(to_device.op, (result,), (place, non_blocking))
    if target is not None and target is not result.dtype:
        result = cast_to(result, target)
    if layout is not preserve_format:
        result = contiguous(result, memory_format=layout)
    return to_dtype(input, input.dtype) if result is input and force else result


def cast_to(input: Tensor, target: dtype) -> Tensor:
    """Return ``input`` converted to the dtype ``target``.

    The result is detached from the graph if ``target`` is an integer dtype or bool.
    """
    if target.category < dtypes.FLOATING and input.requires_grad:
        input = input.detach()
    if input._array.dtype.kind in "cW" and not target.is_complex and target is not dtypes.bool_:
        warn("Casting complex values to real discards the imaginary part")
    return to_dtype(input, target)


def _elsewhere(place: Any, input: Tensor) -> bool:
    here = input.device
    if place.type == here.type != "cuda":
        return False
    if place.type == "cuda":
        return here.type != "cuda" or here.index != devices.gpu_index(place)
    devices.array_module_for(place)
    return True


def parse_to_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Return the tuple (device, dtype, copy, memory format) from the arguments of ``Tensor.to``.

    ``args`` and ``kwargs`` are the positional and the keyword arguments. The device or dtype is None if it is not
    passed. Raise TypeError for arguments that ``Tensor.to`` does not accept.
    """
    place, target = kwargs.pop("device", None), kwargs.pop("dtype", None)
    force, layout = kwargs.pop("copy", False), kwargs.pop("memory_format", None) or preserve_format
    kwargs.pop("non_blocking", None)
    other = kwargs.pop("tensor", None)
    rest = list(args)
    if rest and isinstance(rest[0], Tensor):
        other = rest.pop(0)
    elif rest and (rest[0] is None or isinstance(rest[0], (str, devices.device)) or _is_count(rest[0])):
        place = rest.pop(0)
        if rest:  # after a device, a dtype or None comes before the flags
            target = rest.pop(0)
            if not (target is None or _is_dtype(target)):
                raise TypeError("to() received an invalid combination of arguments")
    elif rest and _is_dtype(rest[0]):
        target = rest.pop(0)
    if kwargs or len(rest) > 2 or not all(isinstance(each, bool) for each in (*rest, force)):
        raise TypeError("to() received an invalid combination of arguments")
    if other is not None:
        place, target = other.device, other.dtype
    if len(rest) > 1:
        force = rest[1]
    return None if place is None else devices.as_device(place), None if target is None else dtypes.as_dtype(target), \
        bool(force), layout  # fmt: skip


def _is_dtype(value: Any) -> bool:
    return isinstance(value, dtype) or value in (float, int, bool, complex)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _caster(name: str, target: dtype) -> None:
    def cast(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
        if memory_format is not preserve_format and memory_format is not None:
            return to(input, target, memory_format=memory_format)
        return input if input.dtype is target else cast_to(input, target)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"Return ``input`` converted to ``{target}``, or ``input`` itself if it has this dtype."
    public(
        function=False, name=name, fast_path=to_dtype, identity_if=lambda _d, dtype: _d is dtype.numpy, dtype=target
    )(cast)


for _name, _target in {**dtypes.ALIASES, "bool": dtypes.bool_, "byte": dtypes.uint8, "char": dtypes.int8,
                       "bfloat16": dtypes.bfloat16}.items():  # fmt: skip
    _caster(_name, _target)


#: PyTorch's legacy tensor types by name, as ``Tensor.type()`` returns it. ``legacy_types.py`` adds them.
LEGACY_TYPES: dict[str, Any] = {}


@public(function=False)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """Return ``input`` converted to the dtype and the device of ``other``, or ``input`` itself if both are the same.

    >>> import retrograd as torch
    >>> torch.tensor([1.5]).type_as(torch.tensor([1]))
    tensor([1])
    """
    return to(input, other)


@public(function=False)
def type(input: Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
    """Return ``input`` converted to ``dtype``, or the name of its legacy type if ``dtype`` is None.

    A legacy type is a class such as ``torch.FloatTensor``. ``dtype`` may also be a legacy type or the name of one. The
    other arguments have no effect.

    >>> import retrograd as torch
    >>> torch.tensor([1.5]).type()
    'torch.FloatTensor'
    >>> torch.tensor([1.5]).type(torch.int64)
    tensor([1])
    """
    if dtype is None:
        return legacy_type_name(input)
    if dtype is Tensor or dtype == "torch.Tensor":
        dtype = dtypes.get_default_dtype()
    if isinstance(dtype, str):
        if dtype not in LEGACY_TYPES:
            raise ValueError(f"invalid type: '{dtype}'")
        dtype = LEGACY_TYPES[dtype]
    if not _is_dtype(dtype) and not hasattr(dtype, "element"):
        raise TypeError("dtype must be a type, str, or dtype object")
    return to(input, getattr(dtype, "element", dtype))


def legacy_type_name(x: Tensor) -> str:
    """Return the name of the legacy type of ``x``, such as ``torch.FloatTensor`` or ``torch.cuda.LongTensor``."""
    return f"torch.{'' if x.is_cpu else f'{x.device.type}.'}{dtypes.scalar_name(x.dtype)}Tensor"


@public(function=False)
def cpu(input: Tensor, *, memory_format: Any = preserve_format) -> Tensor:
    """Return a copy of ``input`` on the CPU, or ``input`` itself if it is on the CPU.

    >>> import retrograd as torch
    >>> x = torch.ones(2)
    >>> x.cpu() is x
    True
    """
    return to(input, devices.CPU)


@public(function=False)
def cuda(
    input: Tensor, device: Any = None, non_blocking: bool = False, *, memory_format: Any = preserve_format
) -> Tensor:
    """Return a copy of ``input`` on the GPU ``device``, or ``input`` itself if it is on this GPU.

    ``device`` is by default the current GPU. ``non_blocking`` is that of ``to``. If CuPy is not installed, raise an
    error that names the package to install. Raise RuntimeError for another device than a GPU.
    """
    place = devices.as_device("cuda" if device is None else device)
    devices.cupy()
    if place.type != "cuda":
        raise RuntimeError(f"Invalid device, must be cuda device but got {place}")
    return to(input, place, non_blocking=non_blocking, memory_format=memory_format)


# -- Conversion to Python and NumPy ----------------------------------------------------------------------------------


def numpy_array_of(x: Tensor) -> Any:
    """Return the elements of ``x`` as a NumPy array.

    The array shares the memory of ``x`` if ``x`` is on the CPU. Otherwise it is a copy.
    """
    array = x._array
    return array if array.__class__ is numpy.ndarray else devices.to_device(array, devices.CPU)


@public(function=False)
def item(input: Tensor) -> Any:
    """Return the only element of ``input`` as a Python number. Raise RuntimeError unless ``input`` has one element.

    >>> import retrograd as torch
    >>> torch.tensor([2.5]).item()
    2.5
    """
    array = input._array
    if array.size != 1:
        raise RuntimeError(f"a Tensor with {array.size} elements cannot be converted to Scalar")
    if array.__class__ is not numpy.ndarray and devices.is_meta(array):
        raise RuntimeError(devices.NO_ITEM)
    return array.item() if array.dtype not in dtypes.EXTENSIONS else dtypes.native(array).item()


@public(function=False)
def tolist(input: Tensor) -> Any:
    """Return the elements of ``input`` as nested lists of Python numbers.

    If ``input`` is 0-d, the result is a single number.

    >>> import retrograd as torch
    >>> torch.tensor([[1, 2], [3, 4]]).tolist()
    [[1, 2], [3, 4]]
    """
    array = numpy_array_of(input)
    return array.tolist() if array.dtype not in dtypes.EXTENSIONS else dtypes.native(array).tolist()


@public(function=False, name="numpy")
def numpy_(input: Tensor, *, force: bool = False) -> Any:
    """Return a NumPy array that shares the memory of ``input``.

    Raise RuntimeError if ``input`` requires gradients and recording is on, and TypeError if it is on a GPU or has a dtype
    that NumPy lacks. With ``force=True``, these errors are not raised, and the elements of a tensor on a GPU are copied to
    the CPU.

    >>> import retrograd as torch
    >>> x = torch.zeros(2)
    >>> array = x.numpy()
    >>> array[0] = 9.0
    >>> x
    tensor([9., 0.])
    """
    if input.requires_grad and not force and is_grad_enabled():
        text = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        raise RuntimeError(with_remedy(text, "detach() it", input._grad_edge))
    array = input._array
    if array.__class__ is numpy.ndarray and array.dtype not in dtypes.EXTENSIONS:
        return share(array)
    if not input.is_cpu and not force:
        raise TypeError(
            f"can't convert {input.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if array.dtype in dtypes.EXTENSIONS and not force:
        raise TypeError(f"Got unsupported ScalarType {dtypes.scalar_name(input.dtype)}")
    return numpy_array_of(input)


@public(function=False)
def as_subclass(input: Tensor, cls: Any) -> Tensor:
    """Return a tensor of the class ``cls``, a subclass of Tensor, that shares the memory of ``input``.

    For autograd, the result is a view of ``input``: a gradient of the result is passed on to ``input``. Raise TypeError
    if ``cls`` is not a subclass of Tensor.

    >>> import retrograd as torch
    >>> class Named(torch.Tensor):
    ...     name = "no name"
    >>> torch.ones(2).as_subclass(Named).name
    'no name'
    """
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your "
            "class inherits from Tensor."
        )
    return _instance_of(input, cls)


def _instance_of(input: Tensor, cls: Any) -> Tensor:
    """Return the result of :func:`as_subclass`."""
    shown = RULE_NAMESPACES[Tensor].alias(input)
    out: Tensor = object.__new__(cls)
    out._array, out._grad_edge, out._counter, out._grad = shown._array, shown._grad_edge, shown._counter, None
    out._view = shown._view
    if shown._view is not None:
        out._creation_meta, out._view_version = shown._creation_meta, shown._view_version
    return out


Tensor._instance_of = staticmethod(_instance_of)


@public()
def is_nonzero(input: Tensor) -> bool:
    """Whether the only element of ``input`` is not zero. Raise RuntimeError unless ``input`` has one element.

    >>> import retrograd as torch
    >>> torch.is_nonzero(torch.tensor([0.0])), torch.is_nonzero(torch.tensor(2))
    (False, True)
    """
    if input._array.size != 1:
        what = "no values" if input._array.size == 0 else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(input)


@public()
def numel(input: Tensor) -> int:
    """Return the number of elements of ``input``.

    >>> import retrograd as torch
    >>> torch.numel(torch.zeros(2, 3))
    6
    """
    return int(input._array.size)


@public(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether ``input`` has a floating-point dtype.

    >>> import retrograd as torch
    >>> torch.is_floating_point(torch.zeros(2)), torch.is_floating_point(torch.tensor([1, 2]))
    (True, False)
    """
    return input.is_floating_point()


@public(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether ``input`` has a complex dtype.

    >>> import retrograd as torch
    >>> torch.is_complex(torch.tensor([1j]))
    True
    """
    return input.is_complex()


@public(method=False)
def typename(obj: Any) -> str:
    """Return the qualified name of the type of ``obj``.

    For a tensor, return the name of its legacy type, such as ``torch.FloatTensor``. For a class or function, return the
    qualified name of ``obj`` itself.

    >>> import retrograd as torch
    >>> torch.typename(torch.zeros(2)), torch.typename("text")
    ('torch.FloatTensor', 'str')
    """
    if isinstance(obj, Tensor):
        return legacy_type_name(obj)
    named: Any = obj if hasattr(obj, "__qualname__") else obj.__class__
    module = torch_name(getattr(named, "__module__", "") or "")
    return str(named.__qualname__) if module in ("", "builtins") else f"{module}.{named.__qualname__}"


@public(method=False)
def is_tensor(obj: Any) -> bool:
    """Whether ``obj`` is a Tensor.

    >>> import retrograd as torch
    >>> torch.is_tensor(torch.zeros(2)), torch.is_tensor([0.0])
    (True, False)
    """
    return isinstance(obj, Tensor)
