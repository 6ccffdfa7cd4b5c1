"""Where a tensor's memory lies: ``device``, and the array module (NumPy or CuPy) that works there.

CuPy is imported on first use only. Without it, whatever asks for a GPU gets an error that says what to install.
"""

from __future__ import annotations

import sys
import threading
from types import ModuleType
from typing import Any, Final

import numpy

from ..compat.pickle_names import pickled_as
from ..compat.type_names import type_name
from ..runtime.user_frame import strips_frames

_KINDS: Final = (
    "cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, meta, hpu, "
    "mtia, privateuseone"
)


class device:
    """A place where tensors live: ``device("cpu")``, ``device("cuda:1")``, ``device("cuda", 1)``, ``device(1)``.

    As a context manager it is the place of tensors that are created inside without a ``device=``.
    """

    __slots__ = ("index", "type")
    __module__ = "torch"
    type: str
    index: int | None

    @strips_frames
    def __init__(self, *args: Any, **named: Any) -> None:
        type, index = _given(args, named)
        if isinstance(type, device):
            kind, index = type.type, type.index
        elif isinstance(type, int):
            kind, index = "cuda", type
        else:
            kind, index = _parsed(type, index)
        object.__setattr__(self, "type", kind)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in device.__slots__:
            raise AttributeError(f"attribute '{name}' of 'torch.device' objects is not writable")
        raise AttributeError(f"'torch.device' object has no attribute '{name}'")

    def __getattr__(self, name: str) -> Any:
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

    __le__ = __gt__ = __ge__ = __lt__

    def __reduce__(self) -> tuple[Any, ...]:
        return device_at, (self.type, self.index)

    def __enter__(self) -> device:
        _choose(stack=(*_chosen.stack, self))
        return self

    def __exit__(self, *error: object) -> None:
        _chosen.stack = _chosen.stack[:-1]


def _given(args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
    """The type and the index, out of whatever ways to give them."""
    every = {**dict(zip(("type", "index"), args, strict=False)), **named}
    if len(args) > 2 or set(every) - {"type", "index"} or not isinstance(every.get("type"), (str, int, device)):
        got = [type_name(each) for each in args] + [
            f"{name}={type_name(value)}" for name, value in reversed(named.items())
        ]
        shown = ", ".join(got) + ", " * (bool(named) and not args)
        raise TypeError(f"device() received an invalid combination of arguments - got ({shown}), but expected one of:")
    index = every.get("index")
    if "index" in every and (not isinstance(index, int) or isinstance(index, bool)):
        place = "" if "index" in named else " (position 2)"
        raise TypeError(f"device(): argument 'index'{place} must be int, not {type_name(index)}")
    return every["type"], index


def _parsed(name: str, index: int | None) -> tuple[str, int | None]:
    """The kind of a device and its number, of a text like ``cuda:1``."""
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
    """A device from what a pickle holds."""
    return device(type) if index is None else device(type, index)


CPU: Final = device("cpu")


class _Chosen(threading.local):
    stack: tuple[device, ...] = ()
    default: device = CPU


_chosen = _Chosen()
asked = False  # whether any thread has ever chosen one: most never do, and looking into their own variables takes time


def _choose(**fields: Any) -> None:
    global asked
    asked = True
    for name, value in fields.items():
        setattr(_chosen, name, value)


def get_default_device() -> device:
    """The device of tensors that are created without a ``device=``."""
    if not asked:
        return CPU
    stack = _chosen.stack
    return stack[-1] if stack else _chosen.default


@strips_frames
def set_default_device(device: Any) -> None:
    """Set the device of tensors that are created without a ``device=`` (None: the CPU)."""
    place = CPU if device is None else as_device(device)
    if place.type != "cuda":  # which may be chosen before it is known whether there is one
        module_for(place)
    _choose(default=place)


def as_device(value: Any) -> device:
    """``value`` (a device, a name, a GPU's number or None for the default) as a device."""
    if value is None:
        return get_default_device()
    return value if value.__class__ is device else device(value)


def cupy() -> Any:
    """The module ``cupy``, with a GPU behind it; else torch's kind of error, which says what to install."""
    try:
        import cupy
    except ImportError:
        raise AssertionError(
            "Torch not compiled with CUDA enabled: retrograd reaches CUDA GPUs through CuPy, which is not installed; "
            "pip install 'retrograd[gpu]' brings it"
        ) from None
    if not gpu_count():
        raise RuntimeError("No CUDA GPUs are available")
    return cupy


def gpu_count() -> int:
    """How many GPUs CuPy sees: 0 without CuPy or without a driver."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # CuPy missing, or no driver: both mean that there is none
        return 0


def module_of(array: Any) -> ModuleType:
    """The array module (``numpy`` or ``cupy``) that works on ``array``."""
    if isinstance(array, (numpy.ndarray, numpy.generic)):
        return numpy
    return sys.modules["cupy"]


def module_for(place: device) -> Any:
    """The array module that makes arrays on ``place``."""
    if place.type == "cpu":
        return numpy
    if place.type == "cuda":
        return cupy()
    raise RuntimeError(f"retrograd has no device of type '{place.type}': it has 'cpu' and, through CuPy, 'cuda'")


def device_of(array: Any) -> device:
    """The place of an array."""
    if isinstance(array, (numpy.ndarray, numpy.generic)):
        return CPU
    return device("cuda", int(array.device.id))


def move(array: Any, place: device) -> Any:
    """``array`` on ``place``: itself if it is there, else a copy."""
    here = device_of(array)
    if place.type == "cpu":
        return array if here.type == "cpu" else sys.modules["cupy"].asnumpy(array)
    gpu = module_for(place)
    if here.type == "cuda" and place.index in (None, here.index):
        return array
    with gpu.cuda.Device(place.index or 0):
        return gpu.asarray(array)
