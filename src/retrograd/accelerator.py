"""The accelerator in use, whatever it is, as ``torch.accelerator``: the GPU if CuPy reaches one, else none."""

from __future__ import annotations

from typing import Any

from . import cuda
from .compat.missing_names import absent, listed
from .core import devices, dtypes
from .runtime.user_frame import warn


def is_available() -> bool:
    """Whether there is a GPU."""
    return cuda.is_available()


def device_count() -> int:
    """How many GPUs there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> devices.device | None:
    """The device ``cuda`` if there is a GPU, else None."""
    return devices.device("cuda") if is_available() else None


def _there_is_one() -> None:
    if not is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")


def current_device_index() -> int:
    """The number of the GPU in use. Raises RuntimeError without a GPU, as all below do."""
    _there_is_one()
    return cuda.current_device()


def set_device_index(device: Any, /) -> None:
    """Use another GPU from now on."""
    _there_is_one()
    cuda.set_device(device)


def current_device_idx() -> int:
    """:func:`current_device_index`, by its old name."""
    warn("Use `current_device_index` instead.", FutureWarning)
    return current_device_index()


def set_device_idx(device: Any, /) -> None:
    """:func:`set_device_index`, by its old name."""
    warn("Use `set_device_index` instead.", FutureWarning)
    set_device_index(device)


class device_index:
    """A block in which the GPU of this number is in use; None: nothing happens."""

    def __init__(self, device: int | None, /) -> None:
        self.idx = device

    def __enter__(self) -> None:
        if self.idx is not None:
            self.before = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *error: object) -> None:
        if self.idx is not None:
            set_device_index(self.before)


def get_device_capability(device: Any = None, /) -> dict[str, Any]:
    """What the GPU can do: the dtypes that it calculates with."""
    _there_is_one()
    return {"supported_dtypes": set(dtypes.ALL)}


def current_stream(device: Any = None, /) -> Any:
    """The stream in use."""
    _there_is_one()
    return cuda.current_stream(device)


def set_stream(stream: Any) -> None:
    """Use a stream from now on."""
    _there_is_one()
    cuda.set_stream(stream)


def synchronize(device: Any = None, /) -> None:
    """Wait until the GPU has done everything asked of it."""
    _there_is_one()
    cuda.synchronize(device)


def empty_cache() -> None:
    """Give back the memory that is kept for reuse."""
    _there_is_one()
    cuda.empty_cache()


def empty_host_cache() -> None:
    """Nothing: no memory of the processor is kept for the GPU."""
    _there_is_one()


def get_memory_info(device_index: Any = None, /) -> tuple[int, int]:
    """Free and total bytes of the GPU's memory."""
    _there_is_one()
    return cuda.mem_get_info(device_index)


def memory_allocated(device_index: Any = None, /) -> int:
    """Bytes of memory in use by tensors."""
    _there_is_one()
    return cuda.memory_allocated(device_index)


def memory_reserved(device_index: Any = None, /) -> int:
    """Bytes of memory that are held."""
    _there_is_one()
    return cuda.memory_reserved(device_index)


def max_memory_allocated(device_index: Any = None, /) -> int:
    """The highest :func:`memory_allocated` that was seen."""
    _there_is_one()
    return cuda.max_memory_allocated(device_index)


def max_memory_reserved(device_index: Any = None, /) -> int:
    """The highest :func:`memory_reserved` that was seen."""
    _there_is_one()
    return cuda.max_memory_reserved(device_index)


def memory_stats(device_index: Any = None, /) -> dict[str, Any]:
    """Bytes in use and held, now and at most."""
    _there_is_one()
    return cuda.memory_stats(device_index)


def reset_peak_memory_stats(device_index: Any = None, /) -> None:
    """Begin anew with the highest use."""
    _there_is_one()
    cuda.reset_peak_memory_stats(device_index)


def reset_accumulated_memory_stats(device_index: Any = None, /) -> None:
    """Nothing: no sums are kept."""
    _there_is_one()


__all__ = [
    "current_accelerator", "current_device_idx", "current_device_index", "current_stream", "device_count",
    "device_index", "empty_cache", "empty_host_cache", "get_device_capability", "get_memory_info", "is_available",
    "max_memory_allocated", "max_memory_reserved", "memory_allocated", "memory_reserved", "memory_stats",
    "reset_accumulated_memory_stats", "reset_peak_memory_stats", "set_device_idx", "set_device_index", "set_stream",
    "synchronize",
]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
