"""Apple's GPUs, as ``torch.mps``: there are none here. A program may ask; what needs one is refused in PyTorch's words."""

from __future__ import annotations

from typing import Any, NoReturn

from .compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def _refuse(what: str) -> NoReturn:
    raise RuntimeError(f"Cannot execute {what}() without MPS backend.")


def synchronize() -> None:
    """Refused."""
    _refuse("deviceSynchronize")


def empty_cache() -> None:
    """Refused."""
    _refuse("emptyCache")


def manual_seed(seed: int) -> None:
    """Nothing."""


def seed() -> None:
    """Refused."""
    _refuse("getDefaultGenerator")


def get_rng_state(device: Any = "mps") -> Any:
    """Refused."""
    _refuse("getDefaultGenerator")


def set_rng_state(new_state: Any, device: Any = "mps") -> None:
    """Refused."""
    _refuse("getDefaultGenerator")


def current_allocated_memory() -> int:
    """Refused."""
    _refuse("getCurrentAllocatedMemory")


def driver_allocated_memory() -> int:
    """Refused."""
    _refuse("getDriverAllocatedMemory")


def recommended_max_memory() -> int:
    """Refused."""
    _refuse("getRecommendedMaxMemory")


__all__ = ["current_allocated_memory", "device_count", "driver_allocated_memory", "empty_cache", "get_rng_state",
           "is_available", "manual_seed", "recommended_max_memory", "seed", "set_rng_state", "synchronize"]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
