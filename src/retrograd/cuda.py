"""GPUs, as ``torch.cuda``: truthful answers with CuPy and without."""

from __future__ import annotations

from typing import Any

from .core import devices as _devices
from .core.absent import absent, listed
from .ops.oldtypes import CUDA_TYPES as _TYPES

FloatTensor, DoubleTensor, HalfTensor = _TYPES["FloatTensor"], _TYPES["DoubleTensor"], _TYPES["HalfTensor"]
LongTensor, IntTensor, BoolTensor = _TYPES["LongTensor"], _TYPES["IntTensor"], _TYPES["BoolTensor"]
ByteTensor, BFloat16Tensor = _TYPES["ByteTensor"], _TYPES["BFloat16Tensor"]
ShortTensor, CharTensor = _TYPES["ShortTensor"], _TYPES["CharTensor"]


def is_available() -> bool:
    """Whether there is a GPU that CuPy can reach."""
    return device_count() > 0


def device_count() -> int:
    """How many GPUs there are."""
    return _devices.gpu_count()


def current_device() -> int:
    """The number of the GPU in use."""
    return int(_devices.cupy().cuda.Device().id)


def get_device_name(device: Any = None) -> str:
    """The name of a GPU."""
    index = current_device() if device is None else _devices.device(device).index or 0
    return str(_devices.cupy().cuda.runtime.getDeviceProperties(index)["name"].decode())


def synchronize(device: Any = None) -> None:
    """Wait until the GPU has done everything asked of it."""
    _devices.cupy().cuda.Device().synchronize()


def empty_cache() -> None:
    """Give back the GPU memory that is kept for reuse; nothing happens without a GPU."""
    if is_available():
        _devices.cupy().get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory in use; 0 without a GPU."""
    return int(_devices.cupy().get_default_memory_pool().used_bytes()) if is_available() else 0


def manual_seed(seed: int) -> None:
    """Accepted: random numbers are drawn on the CPU, from its generator, and moved."""


manual_seed_all = manual_seed
__all__ = [
    "BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor", "DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor",
    "LongTensor", "ShortTensor", "current_device", "device_count", "empty_cache", "get_device_name", "is_available",
    "manual_seed", "manual_seed_all", "memory_allocated", "synchronize",
]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
