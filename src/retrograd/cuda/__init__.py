"""GPUs by CuPy, as ``torch.cuda``.

Without CuPy or a GPU, queries return that there is no device and no memory in use, and functions that need a GPU raise
PyTorch's error. CuPy is accessed only through ``core/devices.py``.
"""

from __future__ import annotations

from typing import Any

from ..compat.lazy_imports import module_getattr
from ..core import devices as _devices
from ..core.exceptions import AcceleratorError, OutOfMemoryError
from ..operations.creation.legacy_types import CUDA_TYPES as _TYPES
from . import memory, random, streams
from .memory import *  # noqa: F403 - the module has __all__
from .random import *  # noqa: F403 - the module has __all__
from .streams import *  # noqa: F403 - the module has __all__

FloatTensor, DoubleTensor, HalfTensor = _TYPES["FloatTensor"], _TYPES["DoubleTensor"], _TYPES["HalfTensor"]
LongTensor, IntTensor, BoolTensor = _TYPES["LongTensor"], _TYPES["IntTensor"], _TYPES["BoolTensor"]
ByteTensor, BFloat16Tensor = _TYPES["ByteTensor"], _TYPES["BFloat16Tensor"]
ShortTensor, CharTensor = _TYPES["ShortTensor"], _TYPES["CharTensor"]

default_generators: tuple[Any, ...] = ()  # the CPU's generator draws all random numbers
has_half = True
has_magma = False


def is_available() -> bool:
    """Whether there is a GPU that CuPy can reach."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs."""
    return _devices.gpu_count()


def is_initialized() -> bool:
    """Whether a GPU is available; no initialisation is necessary."""
    return is_available()


def init() -> None:
    """Do nothing if there is a GPU. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    _devices.cupy()


def current_device() -> int:
    """Return the index of the current GPU."""
    return int(_devices.cupy().cuda.Device().id)


def _index(device: Any) -> int:
    """Return the index of a GPU from a device, a string, an index or None (the current GPU)."""
    place = None if device is None else _devices.device(device)
    if place is not None and place.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {place}")
    return current_device() if place is None or place.index is None else place.index


def set_device(device: Any) -> None:
    """Make a GPU current; a negative index has no effect."""
    index = device if isinstance(device, int) else _index(device)
    if index >= 0:
        _devices.cupy().cuda.Device(index).use()


class device:
    """Context manager that makes a GPU current: ``with torch.cuda.device(1): …``."""

    def __init__(self, device: Any) -> None:
        place = None if device is None or (isinstance(device, int) and device < 0) else _devices.device(device)
        if place is not None and place.type != "cuda":
            raise ValueError(f"Expected a cuda device, but got: {place}")
        self.idx = -1 if place is None or place.index is None else place.index
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = current_device()
            set_device(self.idx)

    def __exit__(self, *error: object) -> None:
        if self.idx >= 0:
            set_device(self.prev_idx)


class device_of(device):
    """Context manager that makes the GPU of a tensor current; it has no effect for a tensor on the CPU."""

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


class _Properties:
    """Properties of a GPU: ``name``, ``major``, ``minor``, ``total_memory``, ``multi_processor_count`` …"""

    def __init__(self, found: dict[str, Any]) -> None:
        self.name = found["name"].decode()
        self.major, self.minor = int(found["major"]), int(found["minor"])
        self.total_memory = int(found["totalGlobalMem"])
        self.multi_processor_count = int(found["multiProcessorCount"])
        self.warp_size = int(found["warpSize"])
        self.max_threads_per_multi_processor = int(found["maxThreadsPerMultiProcessor"])
        self.shared_memory_per_block = int(found["sharedMemPerBlock"])
        self.L2_cache_size = int(found["l2CacheSize"])
        self.is_integrated, self.is_multi_gpu_board = bool(found["integrated"]), bool(found.get("isMultiGpuBoard", 0))

    def __repr__(self) -> str:
        memory = self.total_memory // 2**20
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, total_memory={memory}MB, "
            f"multi_processor_count={self.multi_processor_count})"
        )


def get_device_properties(device: Any = None) -> Any:
    """Return the properties of a GPU: name, compute capability, memory and others."""
    gpu = _devices.cupy()
    return _Properties(gpu.cuda.runtime.getDeviceProperties(_index(device)))


def get_device_name(device: Any = None) -> str:
    """Return the name of a GPU."""
    name: str = get_device_properties(device).name
    return name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability of a GPU: its major and minor number."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU supports bfloat16; False without a GPU."""
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current GPU supports TF32 products; False without a GPU."""
    return is_available() and get_device_capability()[0] >= 8


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has completed all submitted work."""
    gpu = _devices.cupy()
    gpu.cuda.Device(_index(device)).synchronize()


__all__ = [
    "AcceleratorError", "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "current_device", "default_generators",
    "device", "device_count", "device_of", "get_device_capability", "get_device_name", "get_device_properties",
    "has_half", "has_magma", "init", "is_available", "is_bf16_supported", "is_initialized", "is_tf32_supported",
    "set_device", "synchronize", *memory.__all__, *random.__all__, *streams.__all__,
]  # fmt: skip
__getattr__ = module_getattr(__name__, {"amp": "amp"})
