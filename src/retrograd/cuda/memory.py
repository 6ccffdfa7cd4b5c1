"""``torch.cuda.memory``: statistics of GPU memory, from the memory pool of CuPy; all are 0 without a GPU.

CuPy does not record peak values. The functions of this module therefore read the current values when they are called,
and the peak is the highest value that was read.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from ..core import devices
from ..runtime.user_frame import warn

_peaks = {"allocated": 0, "reserved": 0}


def _update_usage() -> dict[str, int]:
    """Return the number of bytes used by arrays (``"allocated"``) and held by CuPy's memory pool (``"reserved"``).

    The peak values in ``_peaks`` are updated.
    """
    if not devices.gpu_count():
        return {"allocated": 0, "reserved": 0}
    pool = devices.cupy().get_default_memory_pool()
    found = {"allocated": int(pool.used_bytes()), "reserved": int(pool.total_bytes())}
    for name, value in found.items():
        _peaks[name] = max(_peaks[name], value)
    return found


def empty_cache() -> None:
    """Release the GPU memory that CuPy's memory pool holds but does not use.

    The call has no effect without a GPU.
    """
    if devices.gpu_count():
        devices.cupy().get_default_memory_pool().free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors use on the current GPU; 0 without a GPU. ``device`` has no effect."""
    return _update_usage()["allocated"]


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes, used and unused, that CuPy's memory pool holds on the current GPU; 0 without a GPU.

    ``device`` has no effect.
    """
    return _update_usage()["reserved"]


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of :func:`memory_allocated` since the last reset; 0 without a GPU.

    The peak is the highest value that a function of this module has read. The result is also 0 if no memory is
    allocated at the time of the call. ``device`` has no effect.
    """
    return max(found, _peaks["allocated"]) if (found := _update_usage()["allocated"]) else 0


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of :func:`memory_reserved` since the last reset; 0 without a GPU.

    The peak is the highest value that a function of this module has read. The result is also 0 if no memory is
    reserved at the time of the call. ``device`` has no effect.
    """
    return max(found, _peaks["reserved"]) if (found := _update_usage()["reserved"]) else 0


def _warn_renamed(old: str, new: str) -> None:
    warn(f"`torch.cuda.{old}` has been renamed to `torch.cuda.{new}`", FutureWarning)


def memory_cached(device: Any = None) -> int:
    """Deprecated alias of :func:`memory_reserved`."""
    _warn_renamed("memory_cached", "memory_reserved")
    return memory_reserved(device)


def max_memory_cached(device: Any = None) -> int:
    """Deprecated alias of :func:`max_memory_reserved`."""
    _warn_renamed("max_memory_cached", "max_memory_reserved")
    return max_memory_reserved(device)


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """Return the free memory and the total memory of the current GPU as a pair of numbers of bytes.

    ``device`` has no effect. Raises AssertionError without CuPy.
    """
    free, total = devices.cupy().cuda.runtime.memGetInfo()
    return int(free), int(total)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Set the peak values of :func:`max_memory_allocated` and :func:`max_memory_reserved` to the current values.

    ``device`` has no effect. Raises AssertionError without CuPy.
    """
    devices.cupy()
    _peaks.update(allocated=0, reserved=0)
    _peaks.update(_update_usage())


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Check that a GPU is available. No statistics are reset, because accumulated statistics are not recorded.

    Raises AssertionError without CuPy.
    """
    devices.cupy()


def _reset_old(name: str) -> None:
    warn(
        f"torch.cuda.{name} now calls torch.cuda.reset_peak_memory_stats, which resets /all/ peak memory stats.",
        FutureWarning,
    )
    reset_peak_memory_stats()


def reset_max_memory_allocated(device: Any = None) -> None:
    """Deprecated function that calls :func:`reset_peak_memory_stats`; ``device`` has no effect."""
    _reset_old("reset_max_memory_allocated")


def reset_max_memory_cached(device: Any = None) -> None:
    """Deprecated function that calls :func:`reset_peak_memory_stats`; ``device`` has no effect."""
    _reset_old("reset_max_memory_cached")


def memory_stats(device: Any = None) -> dict[str, Any]:
    """Return a dictionary of the allocated and reserved memory in bytes, current and peak, under PyTorch's keys.

    An example of a key is ``"allocated_bytes.all.peak"``. The dictionary is empty without a GPU. ``device`` has no
    effect.
    """
    found: OrderedDict[str, Any] = OrderedDict()
    if devices.gpu_count():
        for name, value in _update_usage().items():
            found[f"{name}_bytes.all.current"], found[f"{name}_bytes.all.peak"] = value, _peaks[name]
    return found


def memory_stats_as_nested_dict(device: Any = None) -> dict[str, Any]:
    """Return the result of :func:`memory_stats` as nested dictionaries: the key ``"a.b"`` becomes ``["a"]["b"]``."""
    nested: dict[str, Any] = {}
    for name, value in memory_stats(device).items():
        *path, last = name.split(".")
        inner = nested
        for each in path:
            inner = inner.setdefault(each, {})
        inner[last] = value
    return nested


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """Return a table of :func:`memory_stats` as text; ``device`` and ``abbreviated`` have no effect.

    Raises KeyError without a GPU, as PyTorch does.
    """
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
    """Return an empty list, because CuPy does not list the segments of its memory pool.

    Raises AssertionError without CuPy.
    """
    devices.cupy()
    return []


__all__ = [
    "empty_cache", "max_memory_allocated", "max_memory_cached", "max_memory_reserved", "mem_get_info",
    "memory_allocated", "memory_cached", "memory_reserved", "memory_snapshot", "memory_stats",
    "memory_stats_as_nested_dict", "memory_summary", "reset_accumulated_memory_stats", "reset_max_memory_allocated",
    "reset_max_memory_cached", "reset_peak_memory_stats",
]  # fmt: skip
