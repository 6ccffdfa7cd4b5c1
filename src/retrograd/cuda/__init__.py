"""``torch.cuda``: GPU support, implemented with CuPy.

Without CuPy or a GPU, functions that query the number of devices or the memory in use return 0 or False, and functions
that need a GPU raise PyTorch's error. CuPy is imported only in ``core/devices.py``.
"""

from __future__ import annotations

from typing import Any

from ..compat.lazy_imports import module_getattr
from ..compat.module_names import shown_in
from ..core import devices as _devices
from ..core.exceptions import AcceleratorError, OutOfMemoryError
from ..operations.creation.legacy_types import CUDA_TYPES as _TYPES
from ..runtime.user_frame import warn
from . import memory, random, streams, synchronization
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
    """Whether CuPy is installed and finds a GPU."""
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs that CuPy finds; 0 without CuPy."""
    return _devices.gpu_count()


#: Whether GPUs have random states of their own, which libraries save if it is true.
_initialized = False


def is_initialized() -> bool:
    """Whether a GPU is available; the same as :func:`is_available`, because GPUs need no initialisation."""
    return is_available()


class CUDAGraph:
    """Class of recorded work of a GPU; the constructor raises RuntimeError, because work is not recorded."""

    __module__ = shown_in("torch.cuda", __name__)

    def __init__(self, keep_graph: bool = False) -> None:
        raise RuntimeError("the work of GPUs is not captured in graphs")


class graph:
    """Context manager that records work of a GPU; the constructor raises RuntimeError, because work is not recorded."""

    __module__ = shown_in("torch.cuda", __name__)

    def __init__(
        self, cuda_graph: Any, pool: Any = None, stream: Any = None, capture_error_mode: str = "global"
    ) -> None:
        raise RuntimeError("the work of GPUs is not captured in graphs")


def is_current_stream_capturing() -> bool:
    """Return False, because work on GPUs is not captured in graphs."""
    return False


def init() -> None:
    """Check that a GPU is available; GPUs need no initialisation.

    Raises AssertionError without CuPy, as PyTorch does without CUDA, and RuntimeError without a GPU.
    """
    _devices.cupy()


def current_device() -> int:
    """Return the index of the current GPU."""
    return int(_devices.cupy().cuda.runtime.getDevice())


def set_device(device: Any) -> None:
    """Select ``device`` as the current GPU.

    ``device`` is an index, or a ``torch.device`` or a string with an index. A negative index has no effect. Raises
    ValueError for a device without an index.
    """
    if isinstance(device, int):
        index = device
    else:
        place = _devices.device(device)
        if place.index is None:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        index = _devices.gpu_index(place)
    if index >= 0:
        _devices.cupy().cuda.runtime.setDevice(_devices.gpu_index(_devices.device(index)))


class device:
    """Context manager that selects a GPU as the current GPU, for example ``with torch.cuda.device(1): …``.

    The previous GPU is selected again on exit. None and a negative index have no effect.
    """

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
    """Context manager that selects the GPU of the tensor ``obj`` as the current GPU.

    The context manager has no effect if ``obj`` is on the CPU.
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.get_device() if obj.is_cuda else -1)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether the GPU ``device`` can read the memory of the GPU ``peer_device``.

    Raises AssertionError for an index that no GPU has.
    """
    gpu = _devices.cupy()
    indices = [each if isinstance(each, int) else _devices.gpu_index(each) for each in (device, peer_device)]
    for index, name in zip(indices, ("Invalid device id", "Invalid peer device id"), strict=True):
        if not 0 <= index < device_count():
            raise AssertionError(name)
    return bool(gpu.cuda.runtime.deviceCanAccessPeer(*indices))


#: Names of the modes of :func:`set_sync_debug_mode`, by number.
_SYNC_MODES = ("default", "warn", "error")
_sync_mode = 0


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Warn or raise an error whenever the program waits for a GPU: ``"default"`` (0), ``"warn"`` (1) or ``"error"`` (2).

    Such synchronisations are copies to the CPU, which ``item()``, ``tolist()``, ``if tensor:`` and printing cause, too,
    and waiting for all work of a GPU. Waiting for an event or a stream is not reported. Raises RuntimeError for other
    modes, and AssertionError without CuPy.
    """
    global _sync_mode
    gpu = _devices.cupy()
    if isinstance(debug_mode, str):
        if debug_mode not in _SYNC_MODES:
            raise RuntimeError("invalid value of debug_mode, expected one of `default`, `warn`, `error`")
        debug_mode = _SYNC_MODES.index(debug_mode)
    if debug_mode not in range(len(_SYNC_MODES)):
        raise RuntimeError("invalid value of debug_mode, expected one of 0,1,2")
    synchronization.observe(gpu, {0: None, 1: _warn_of_synchronization, 2: _refuse_synchronization}[debug_mode])
    _sync_mode = debug_mode


def get_sync_debug_mode() -> int:
    """Return the mode that :func:`set_sync_debug_mode` has set, as a number.

    Raises AssertionError without CuPy.
    """
    _devices.cupy()
    return _sync_mode


def _warn_of_synchronization() -> None:
    warn("called a synchronizing CUDA operation")


def _refuse_synchronization() -> None:
    raise RuntimeError("called a synchronizing CUDA operation")


class _Properties:
    """Properties of a GPU: ``name``, compute capability (``major``, ``minor``), ``total_memory`` (bytes) and others."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.name = found["name"].decode()
        self.major, self.minor = int(found["major"]), int(found["minor"])
        self.total_memory = int(found["totalGlobalMem"])
        self.multi_processor_count = int(found["multiProcessorCount"])
        self.warp_size = int(found["warpSize"])
        self.regs_per_multiprocessor = int(found.get("regsPerMultiprocessor", 0))
        self.shared_memory_per_multiprocessor = int(found.get("sharedMemPerMultiprocessor", 0))
        self.shared_memory_per_block_optin = int(found.get("sharedMemPerBlockOptin", 0))
        self.max_threads_per_block = int(found.get("maxThreadsPerBlock", 1024))
        self.pci_bus_id, self.pci_device_id = int(found.get("pciBusID", 0)), int(found.get("pciDeviceID", 0))
        self.clock_rate, self.memory_clock_rate = int(found.get("clockRate", 0)), int(found.get("memoryClockRate", 0))
        self.memory_bus_width = int(found.get("memoryBusWidth", 0))
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
    """Return an object with the attributes ``name``, ``total_memory`` and others, which describe the GPU ``device``.

    ``device`` is by default the current GPU.
    """
    gpu = _devices.cupy()
    return _Properties(gpu.cuda.runtime.getDeviceProperties(_devices.gpu_index(device)))


def get_device_name(device: Any = None) -> str:
    """Return the name of the GPU ``device`` (default: the current GPU)."""
    name: str = get_device_properties(device).name
    return name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Return the compute capability ``(major, minor)`` of the GPU ``device`` (default: the current GPU)."""
    found = get_device_properties(device)
    return found.major, found.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether the current GPU supports bfloat16; False without a GPU.

    If ``including_emulation`` is false, the compute capability must be at least 8.0.
    """
    return is_available() and (including_emulation or get_device_capability()[0] >= 8)


def is_tf32_supported() -> bool:
    """Whether the current GPU supports matrix products in the number format TF32; False without a GPU."""
    return is_available() and get_device_capability()[0] >= 8


def synchronize(device: Any = None) -> None:
    """Wait until the GPU ``device`` (default: the current GPU) has completed all submitted work."""
    gpu = _devices.cupy()
    gpu.cuda.Device(_devices.gpu_index(device)).synchronize()


__all__ = [
    "AcceleratorError", "BFloat16Tensor", "BoolTensor", "ByteTensor", "CUDAGraph", "CharTensor", "DoubleTensor", "FloatTensor",
    "HalfTensor", "IntTensor", "LongTensor", "OutOfMemoryError", "ShortTensor", "can_device_access_peer", "current_device",
    "default_generators", "device", "device_count", "device_of", "get_device_capability", "get_device_name",
    "get_device_properties", "get_sync_debug_mode", "graph",
    "has_half", "has_magma", "init", "is_available", "is_bf16_supported",
    "is_current_stream_capturing", "is_initialized", "is_tf32_supported",
    "set_device", "set_sync_debug_mode", "synchronize", *memory.__all__, *random.__all__, *streams.__all__,
]  # fmt: skip


def get_arch_list() -> list[str]:
    """Return an empty list: no code is compiled for GPUs in advance."""
    return []


def ipc_collect() -> None:
    """Do nothing: processes do not share memory of GPUs."""
    _devices.array_module_for(_devices.device("cuda"))


__getattr__ = module_getattr(__name__, {"amp": "amp", "nvtx": "nvtx", "profiler": "profiler"})
