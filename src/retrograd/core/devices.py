"""The class ``device``, the default device, and the array module (NumPy, CuPy or ``kernels.meta``) of each device.

CuPy is imported on first use. Without CuPy, any use of a GPU raises an error with the package to install. The module of
the device ``meta``, whose arrays have no elements, is also imported on first use.
"""

from __future__ import annotations

import sys
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Final

import numpy

from ..compat.lazy_imports import load_part
from ..compat.module_names import shown_in
from ..compat.pickle_names import pickled_as
from ..compat.type_names import type_name
from ..runtime.user_frame import strips_frames
from .exceptions import AcceleratorError
from .torch_function import GO_ON, HANDLERS, intercepted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .typing import Args, Array, ArrayModule, Device, Kwargs

_KINDS: Final = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, "
    "mtia, privateuseone"
)


class device:
    """Device of a tensor's memory: ``device("cpu")``, ``device("cuda:1")``, ``device("cuda", 1)``, ``device(1)``.

    As a context manager, it sets the default device within the block.

    >>> import retrograd as torch
    >>> device = torch.device("cuda", 1)
    >>> device.type, device.index
    ('cuda', 1)
    >>> torch.zeros(1, device="cpu").device == torch.device("cpu")
    True
    """

    __slots__ = ("index", "type")
    __module__ = shown_in("torch", __name__)
    type: str
    index: int | None

    @strips_frames
    def __init__(self, *args: Any, **named: Any) -> None:  # Note [Any in public signatures]
        type, index = _parse_arguments(args, named)
        if isinstance(type, device):
            kind, index = type.type, type.index
        elif isinstance(type, int):
            if type < 0:
                raise RuntimeError("Device index must not be negative")
            kind, index = "cuda", type
        else:
            kind, index = _parse_name(type, index)
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:  # Note [Any in public signatures]
        if name in device.__slots__:
            raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __getattr__(self, name: str) -> Any:  # Note [Any in public signatures]
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __repr__(self) -> str:
        return (
            f"device(type='{self.type}')" if self.index is None else f"device(type='{self.type}', index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __lt__(self, other: object) -> bool:
        raise TypeError("comparison not implemented")

    def __le__(self, other: object) -> bool:
        return self < other

    def __gt__(self, other: object) -> bool:
        return self < other

    def __ge__(self, other: object) -> bool:
        return self < other

    def __reduce__(self) -> tuple[Any, ...]:  # Note [Any in public signatures]
        return device_at, (self.type, self.index)

    def __enter__(self) -> device:
        _set_default(stack=(*_defaults.stack, self))
        return self

    def __exit__(self, *error: object) -> None:
        _defaults.stack = _defaults.stack[:-1]


def _parse_arguments(args: Args, named: Kwargs) -> tuple[device | str | int, int | None]:
    """Return the arguments ``type`` and ``index`` of the call ``device(*args, **named)``.

    Raises TypeError if the arguments are wrong.
    """
    every = {**dict(zip(("type", "index"), args, strict=False)), **named}
    if len(args) > 2 or set(every) - {"type", "index"} or not isinstance(every.get("type"), (str, int, device)):
        got = [type_name(each) for each in args] + [
            f"{name}={type_name(value)}" for name, value in reversed(named.items())
        ]
        shown = ", ".join(got) + ", " * (bool(named) and not args)
        raise TypeError(f"device() received an invalid combination of arguments - got ({shown}), but expected one of:")
    index = every.get("index")
    if "index" in every and (not isinstance(index, int) or isinstance(index, bool)):
        position = "" if "index" in named else " (position 2)"
        raise TypeError(f"device(): argument 'index'{position} must be int, not {type_name(index)}")
    return every["type"], index


def _parse_name(name: str, index: int | None) -> tuple[str, int | None]:
    """Return the type and the index of the device ``name``, such as ``cuda:1``.

    ``index`` is the index passed as a separate argument, or None. Raises RuntimeError for an invalid name.
    """
    kind, colon, number = name.partition(":")
    if not name:
        raise RuntimeError("Device string must not be empty")
    if not kind.replace("_", "").isalpha():
        raise RuntimeError(f"Invalid device string: '{name}'")
    if kind not in _KINDS.split(", "):
        raise RuntimeError(f"Expected one of {_KINDS} device type at start of device string: {kind}")
    if index is not None and index < 0:
        raise RuntimeError("Device index must not be negative")
    if not colon:
        return kind, index
    if index is not None:
        raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {name}")
    if not number.isdigit() or (len(number) > 1 and number[0] == "0"):
        raise RuntimeError(f"Invalid device string: '{name}'")
    return kind, int(number)


@pickled_as("device")
def device_at(type: str, index: int | None) -> device:
    """Return the device with a ``type`` such as ``cuda`` and an ``index`` (or None); pickles call this function."""
    return device(type) if index is None else device(type, index)


CPU: Final = device("cpu")


class _Defaults(threading.local):
    """Default devices of one thread, for tensors created without ``device=``.

    ``stack`` is the list of the devices of the active ``with device(…)`` blocks. ``default`` is the device set by
    :func:`set_default_device`.
    """

    stack: tuple[device, ...] = ()
    default: device = CPU


_defaults = _Defaults()
default_changed = (
    False  # whether any thread has set a default device; if not, the slow access to thread-local data is skipped
)


def _set_default(**fields: object) -> None:
    """Change the default device of the current thread: set the attributes ``fields`` of its :class:`_Defaults`."""
    global default_changed
    default_changed = True
    for name, value in fields.items():
        setattr(_defaults, name, value)


def get_default_device() -> device:
    """Return the device of tensors created without ``device=``.

    >>> import retrograd as torch
    >>> torch.get_default_device()
    device(type='cpu')
    """
    if not default_changed:
        return CPU
    stack = _defaults.stack
    return stack[-1] if stack else _defaults.default


@strips_frames
def set_default_device(device: Any) -> None:  # Note [Any in public signatures]
    """Set the device of tensors created without ``device=`` (None: the CPU).

    >>> import retrograd as torch
    >>> torch.set_default_device("meta")
    >>> torch.zeros(2).device
    device(type='meta')
    >>> torch.set_default_device(None)
    """
    if HANDLERS and (answer := intercepted(set_default_device, device)) is not GO_ON:
        return answer
    default = CPU if device is None else as_device(device)
    if default.type != "cuda":  # CUDA may be set before it is known whether a GPU is present
        array_module_for(default)
    _set_default(default=default)


def as_device(value: Device) -> device:
    """Return the device given by ``value``: a device, a name, the index of a GPU, or None for the default device."""
    if value is None:
        return get_default_device()
    return value if value.__class__ is device else device(value)


class _Found:
    """CuPy, once it has found a GPU: the module, the number of GPUs, and the ``device`` of each index."""

    module: ArrayModule | None = None
    count = 0
    places: tuple[device, ...] = ()


#: Whether CuPy has found more than one GPU, so that the current GPU may be another one than that of an array.
several_gpus = False


def cupy() -> ArrayModule:
    """Return the module ``cupy``; raise PyTorch's error if CuPy or a GPU is missing."""
    if (found := _Found.module) is not None and sys.modules.get("cupy") is found:
        return found
    try:
        import cupy
    except ImportError:
        raise AssertionError(
            "Torch not compiled with CUDA enabled: retrograd reaches CUDA GPUs through CuPy, which is not installed: "
            + load_part("runtime.extras").how_to_install("gpu")
        ) from None
    count = gpu_count()
    if not count:
        raise RuntimeError("No CUDA GPUs are available")
    _Found.module, _Found.count = cupy, count
    _Found.places = tuple([device("cuda", index) for index in range(count)])
    load_part("cuda.memory").record_allocations(cupy)
    global several_gpus
    several_gpus = count > 1
    if several_gpus:
        load_part("core.device_selection").observe_backward_passes()
    return cupy


def gpu_count() -> int:
    """Return the number of GPUs that CuPy finds: 0 without CuPy or a driver."""
    if _Found.module is not None and sys.modules.get("cupy") is _Found.module:
        return _Found.count
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # CuPy or the driver is missing
        return 0


def gpu_index(target: Device) -> int:
    """Return the index of the GPU ``target``: a device, a name, an index, or None.

    None and a device without an index mean the current GPU. Raises ValueError for other devices, and AcceleratorError if
    there is no GPU with this index.
    """
    place = target if target.__class__ is device else device("cuda" if target is None else target)
    if place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    gpu = cupy()
    if place.index is None:
        return int(gpu.cuda.runtime.getDevice())
    if place.index >= _Found.count:
        raise AcceleratorError(
            "CUDA error: invalid device ordinal\nGPU device may be out of range, do you have enough GPUs?\n"
            f"The number of GPUs is {_Found.count}."
        )
    return place.index


def selected(target: device | None) -> AbstractContextManager[object]:
    """Return a context manager that makes the GPU ``target`` the current GPU, if it is another one than this.

    It has no effect for other devices, and for None.
    """
    if target is None or target.type != "cuda" or target.index is None:
        return _UNCHANGED
    index = gpu_index(target)
    gpu = cupy()
    return _UNCHANGED if index == gpu.cuda.runtime.getDevice() else gpu.cuda.Device(index)


_UNCHANGED: Final = nullcontext()


def selected_for(arrays: Sequence[object]) -> AbstractContextManager[object] | None:
    """Return a context manager that makes the GPU of the first array on a GPU the current one, or None if it is."""
    for each in arrays:
        index = getattr(getattr(each, "device", None), "id", None)  # arrays of CuPy have it, and no Tensors
        if index is not None:
            gpu = cupy()
            return None if index == gpu.cuda.runtime.getDevice() else gpu.cuda.Device(index)
    return None


def array_module_of(array: object) -> ArrayModule:
    """Return the array module of ``array``: ``numpy``, or that of CUDA or meta arrays.

    Raises NotImplementedError for the ``_array`` of a sparse tensor, which is no array.
    """
    if isinstance(array, (numpy.ndarray, numpy.generic)):
        return numpy
    if not several_gpus and (found := CUDA_MODULES.get(array.__class__)) is not None:
        return found
    if hasattr(array, "not_an_array"):
        raise array.not_an_array()
    if is_meta(array):
        return meta()
    if several_gpus and (index := array.device.id) != cupy().cuda.runtime.getDevice():  # type: ignore[attr-defined]
        return _OnOtherGpu(cuda(), index)  # type: ignore[return-value]
    found = CUDA_MODULES[array.__class__] = cuda()
    return found


#: The array module of CUDA devices by the class of an array, once an array has been met.
CUDA_MODULES: Final[dict[type, ArrayModule]] = {}


def meta() -> ArrayModule:
    """Return the array module of the device ``meta``, which is imported by the first call."""
    return load_part("kernels.meta").META


def cuda() -> ArrayModule:
    """Return the array module of CUDA devices, CuPy with the functions that it lacks; the first call imports it."""
    return load_part("kernels.cuda").CUDA


def is_meta(array: object) -> bool:
    """Whether ``array`` is on the device ``meta``."""
    return hasattr(array, "layout_only")


def on_gpu(array: object) -> bool:
    """Whether ``array`` is on a GPU. Its values are not checked: reading one would wait for the device."""
    return not isinstance(array, (numpy.ndarray, numpy.generic)) and hasattr(array, "dtype") and not is_meta(array)


def on_cpu(array: Array) -> Array:
    """Return ``array`` itself, or a copy in host memory if it is on a GPU, which waits for the device."""
    return cuda().asnumpy(array) if on_gpu(array) else array


NO_DATA: Final = "Cannot copy out of meta tensor; no data!"
NO_ITEM: Final = "Tensor.item() cannot be called on meta tensors"


def array_module_for(target: device) -> ArrayModule:
    """Return the array module of ``target``; raise RuntimeError for devices other than the CPU, CUDA and ``meta``."""
    if target.type == "cpu":
        return numpy
    if target.type == "cuda":
        gpu = cupy()
        if target.index is not None and gpu_index(target) != gpu.cuda.runtime.getDevice():
            return _OnOtherGpu(cuda(), target.index)  # type: ignore[return-value]
        return cuda()
    if target.type == "meta":
        return meta()
    raise RuntimeError(
        f"retrograd has no device of type '{target.type}': it has 'cpu', 'meta' and, through CuPy, 'cuda'"
    )


class _OnOtherGpu:
    """The module CuPy, whose functions run on the GPU ``index`` instead of the current one."""

    def __init__(self, module: ArrayModule, index: int) -> None:
        self._module, self._index = module, index

    def __getattr__(self, name: str) -> Any:  # Note [Any by attribute name]
        found = getattr(self._module, name)
        if isinstance(found, type) or not callable(found):
            return found

        def call(*args: object, **named: object) -> object:
            with self._module.cuda.Device(self._index):
                return found(*args, **named)

        return call


def device_of(array: object) -> device:
    """Return the device on which ``array`` is stored."""
    if isinstance(array, (numpy.ndarray, numpy.generic)):
        return CPU
    if is_meta(array):
        return array.place or device("meta")  # type: ignore[attr-defined]
    index = int(array.device.id)  # type: ignore[attr-defined]
    return _Found.places[index] if index < len(_Found.places) else device("cuda", index)


def to_device(array: Array, target: device, non_blocking: bool = False) -> Array:
    """Return ``array`` on the device ``target``: ``array`` itself if it is on this device, else a copy.

    A copy between the CPU and a GPU is complete when the function returns, unless ``non_blocking`` is true: then the
    array on the CPU is, or must be, in pinned memory (see ``kernels/pinned_memory.py``). Otherwise CuPy copies the
    elements to a pinned buffer first, so that the elements on the CPU may be changed after the call.
    """
    source = device_of(array)
    if target.type == "meta":
        return array if source.type == "meta" else meta().asarray(array)
    if source.type == "meta":
        raise NotImplementedError(NO_DATA)
    if target.type == "cpu":
        if source.type == "cpu":
            return array
        with selected(source):
            return load_part("kernels.pinned_memory").fetch(array) if non_blocking else _to_host(array)
    gpu = array_module_for(target)
    index = gpu_index(target)
    if source.type == "cuda" and index == source.index:
        return array
    with selected(_Found.places[index]):
        if source.type == "cuda":
            return _between_gpus(gpu, array, source)
        if not non_blocking and load_part("kernels.pinned_memory").is_pinned(array):
            return gpu.array(array, blocking=True)
        return gpu.asarray(array)


def _to_host(array: Array) -> Array:
    """Copy ``array`` on the current GPU to host memory, in the same memory order if it has no gaps."""
    asnumpy = sys.modules["cupy"].asnumpy
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        rows = array.transpose(order)
        if rows.flags.c_contiguous:
            return asnumpy(rows).transpose(numpy.argsort(order))
    return asnumpy(array, order="A")


def _between_gpus(gpu: ArrayModule, array: Array, source: device) -> Array:
    """Return a copy on the current GPU of ``array``, which is on another GPU, ``source``.

    The copy waits for the work submitted on ``source``, and later work on ``source`` waits for the copy, because the
    memory of a temporary array may be reused there.
    """
    there = gpu.cuda.Device(source.index)
    with there:
        dense = gpu.ascontiguousarray(array).reshape(array.shape)  # CuPy's result has a dimension at least
        ready = gpu.cuda.get_current_stream().record()
    here = gpu.cuda.get_current_stream()
    here.wait_event(ready)
    copied = gpu.array(dense)
    done = here.record()
    with there:
        gpu.cuda.get_current_stream().wait_event(done)
    return copied
