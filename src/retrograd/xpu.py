"""Intel's GPUs, as ``torch.xpu``: there are none here. A program may ask; what needs one is refused in PyTorch's words."""

from __future__ import annotations

from typing import Any, NoReturn

from .compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def empty_cache() -> None:
    """Nothing."""


def manual_seed(seed: int) -> None:
    """Nothing."""


def manual_seed_all(seed: int) -> None:
    """Nothing."""


def seed() -> None:
    """Nothing."""


def seed_all() -> None:
    """Nothing."""


def memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_allocated(device: Any = None) -> int:
    """0."""
    return 0


def max_memory_reserved(device: Any = None) -> int:
    """0."""
    return 0


def _refuse() -> NoReturn:
    raise AssertionError("Torch not compiled with XPU enabled")


def init() -> None:
    """Refused."""
    _refuse()


def current_device() -> int:
    """Refused."""
    _refuse()


def set_device(device: Any) -> None:
    """Refused."""
    _refuse()


def synchronize(device: Any = None) -> None:
    """Refused."""
    _refuse()


def get_device_name(device: Any = None) -> str:
    """Refused."""
    _refuse()


def get_device_properties(device: Any = None) -> Any:
    """Refused."""
    _refuse()


def current_stream(device: Any = None) -> Any:
    """Refused."""
    _refuse()


__all__ = [
    "current_device", "current_stream", "device_count", "empty_cache", "get_device_name", "get_device_properties", "init",
    "is_available", "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
    "max_memory_reserved", "memory_allocated", "memory_reserved", "seed", "seed_all", "set_device", "synchronize",
]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
