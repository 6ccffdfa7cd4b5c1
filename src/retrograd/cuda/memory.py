"""The memory of GPUs, as ``torch.cuda.memory``: what CuPy's pool says of it; without a GPU there is none in use.

CuPy keeps no record of the highest use. It is taken to be the highest that was seen whenever somebody asked.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..core import devices
from ..runtime.user_frame import warn

_highest = {"allocated": 0, "reserved": 0}


def _used() -> dict[str, int]:
    """Bytes in use by arrays, and bytes that the pool holds."""
    if not devices.gpu_count():
        return {"allocated": 0, "reserved": 0}
    pool = devices.cupy().get_default_memory_pool()
    found = {"allocated": int(pool.used_bytes()), "reserved": int(pool.total_bytes())}
    for name, value in found.items():
        _highest[name] = max(_highest[name], value)
    return found


def empty_cache() -> None:
    """Give back the GPU memory that is kept for reuse; nothing happens without a GPU."""
    if devices.gpu_count():
        devices.cupy().get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Bytes of GPU memory in use by tensors; 0 without a GPU."""
    return _used()["allocated"]


def memory_reserved(device: Any = None) -> int:
    """Bytes of GPU memory that are held, in use or for reuse; 0 without a GPU."""
    return _used()["reserved"]


def max_memory_allocated(device: Any = None) -> int:
    """The highest :func:`memory_allocated` that was seen since the last reset; 0 without a GPU."""
    return max(found, _highest["allocated"]) if (found := _used()["allocated"]) else 0


def max_memory_reserved(device: Any = None) -> int:
    """The highest :func:`memory_reserved` that was seen since the last reset; 0 without a GPU."""
    return max(found, _highest["reserved"]) if (found := _used()["reserved"]) else 0


def _renamed(old: str, new: str) -> None:
    warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


def memory_cached(device: Any = None) -> int:
    """:func:`memory_reserved`, by its old name."""
    _renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """:func:`max_memory_reserved`, by its old name."""
    _renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Free and total bytes of a GPU's memory. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    free, total = devices.cupy().cuda.runtime.memGetInfo()
    return int(free), int(total)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Begin anew with the highest use. Raises AssertionError without CuPy."""
    devices.cupy()
    _highest.update(allocated=0, reserved=0)
    _highest.update(_used())


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Nothing: no sums are kept of what was allocated. Raises AssertionError without CuPy."""
    devices.cupy()


def _reset_old(name: str) -> None:
    warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
    )
    reset_peak_memory_stats()


def reset_max_memory_allocated(device: Any = None) -> None:
    """:func:`reset_peak_memory_stats`, by its old name."""
    _reset_old("reset_max_memory_allocated")


def reset_max_memory_cached(device: Any = None) -> None:
    """:func:`reset_peak_memory_stats`, by its old name."""
    _reset_old("reset_max_memory_cached")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Bytes in use and held, now and at most, by PyTorch's names for them; empty without a GPU."""
    found: OrderedDict[str, Any] = OrderedDict()
    if devices.gpu_count():
        for name, value in _used().items():
            found[f"{name}_bytes.all.current"], found[f"{name}_bytes.all.peak"] = value, _highest[name]
    return found


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """:func:`memory_stats` as dictionaries of dictionaries."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        inner = nested
        for each in path:
            inner = inner.setdefault(each, {})
        inner[last] = value
    return nested


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """:func:`memory_stats` as a table. Raises KeyError without a GPU, as PyTorch does."""
    stats = memory_stats(device)
    rows = [("Allocated memory", "allocated"), ("GPU reserved memory", "reserved")]
    lines = [
        f"| {title:21} | {stats[f'{name}_bytes.all.current'] >> 10:>10} KiB | {stats[f'{name}_bytes.all.peak'] >> 10:>10} KiB |"
        for title, name in rows
    ]
    head = f"| {'Metric':21} | {'Cur Usage':>14} | {'Peak Usage':>14} |"
    rule = "-" * len(head)
    return "\n".join([rule, head, rule, *lines, rule])


def memory_snapshot(mempool_id: Any = None, include_traces: bool = True) -> list[Any]:
    """The segments of the pool: none, as CuPy does not tell of them. Raises AssertionError without CuPy."""
    devices.cupy()
    return []


__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats",
]  # fmt: skip
