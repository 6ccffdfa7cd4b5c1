"""``torch.cuda.memory``: statistics of GPU memory, from the memory pool of CuPy; all are 0 without a GPU.

When CuPy first finds a GPU, :func:`record_allocations` replaces its allocator by one that calls the former allocator
and then compares the pool's number of used bytes with the peak. Memory that other allocators provide (after
``cupy.cuda.set_allocator`` by the program, or within ``cupy.cuda.using_allocator``) is not counted.
"""

from __future__ import annotations

import weakref
from collections import OrderedDict, deque
from typing import Any

from ..core import devices
from ..core.exceptions import OutOfMemoryError
from ..runtime.user_frame import warn

_SIZE_NAMES = ("B", "KiB", "MiB", "GiB", "TiB")


class _Usage:
    """Peaks and counts of the memory of one GPU, in bytes."""

    __slots__ = ("allocated", "allocation_count", "at_most", "failed", "peak", "reserved_peak")

    def __init__(self) -> None:
        self.peak = self.reserved_peak = 0
        #: No more bytes than these are in use: what was in use when the pool was last asked, and all allocations since.
        self.at_most = 0
        self.allocated = self.allocation_count = self.failed = 0


#: Usage of each GPU by its index.
_usage: list[_Usage] = []
#: Pairs of an event and of memory that must not be reused before the event: see :func:`hold_for_stream`.
_held: deque[tuple[Any, Any]] = deque()


def record_allocations(gpu: Any) -> None:
    """Replace the allocator of the module ``gpu``, CuPy, by one that records peaks and raises PyTorch's error."""
    _usage[:] = [_Usage() for _ in range(devices.gpu_count())]
    _held.clear()
    cuda = gpu.cuda
    inner = getattr(cuda, "get_allocator", lambda: None)()
    if inner is None:
        return
    pool = gpu.get_default_memory_pool()
    used_bytes, total_bytes, current = pool.used_bytes, pool.total_bytes, cuda.runtime.getDevice
    failure = cuda.memory.OutOfMemoryError

    alone = devices.gpu_count() == 1

    def allocate(size: int) -> Any:
        if _held:
            _release_held()
        usage = _usage[0 if alone else current()]
        try:
            found = inner(size)
        except failure as error:
            usage.failed += 1
            raise _out_of_memory(gpu, size, pool) from error
        usage.at_most += -(-size // 512) * 512  # what the pool allocates
        if usage.at_most > usage.peak:  # otherwise the peak is not exceeded, whatever was freed
            usage.at_most = used = used_bytes()
            if used > usage.peak:
                usage.peak = used
                usage.reserved_peak = max(usage.reserved_peak, total_bytes())
        usage.allocated += size
        usage.allocation_count += 1
        return found

    try:
        cuda.set_allocator(allocate)
    except ValueError:  # within cupy.cuda.using_allocator, whose memory is not counted
        return


def _shown_size(count: int) -> str:
    """Return ``count`` bytes as PyTorch shows them in its error, such as ``2.00 GiB``."""
    value, unit = float(count), 0
    while value >= 1024 and unit < len(_SIZE_NAMES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.2f} {_SIZE_NAMES[unit]}" if unit else f"{count} bytes"


def _out_of_memory(gpu: Any, size: int, pool: Any) -> OutOfMemoryError:
    """Return PyTorch's error for a failed allocation of ``size`` bytes on the current GPU."""
    free, total = gpu.cuda.runtime.memGetInfo()
    used, reserved = pool.used_bytes(), pool.total_bytes()
    return OutOfMemoryError(
        f"CUDA out of memory. Tried to allocate {_shown_size(size)}. GPU {gpu.cuda.runtime.getDevice()} has a total "
        f"capacity of {_shown_size(total)} of which {_shown_size(free)} is free. Of the allocated memory "
        f"{_shown_size(used)} is allocated by retrograd, and {_shown_size(max(reserved - used, 0))} is reserved by CuPy's "
        "memory pool but unallocated."
    )


def hold_for_stream(array: Any, stream: Any) -> None:
    """Keep the memory of ``array`` until ``stream`` has done the work that is submitted when ``array`` is deleted.

    ``array`` is an array of CuPy and ``stream`` one of its streams. CuPy's pool gives freed memory to the next array of
    the stream on which the memory was allocated, without regard to other streams that still read it.
    """
    owner = array if array.base is None else array.base
    memory = owner.data.mem
    index = int(owner.device.id)

    def mark() -> None:
        with devices.cupy().cuda.Device(index):
            _held.append((stream.record(), memory))

    weakref.finalize(owner, mark).atexit = False


def _release_held() -> None:
    """Release the memory whose events have completed."""
    for _ in range(len(_held)):
        event, memory = _held.popleft()
        if not event.done:
            _held.append((event, memory))


def _read(device: Any) -> tuple[int, int, _Usage]:
    """Return the bytes used by arrays on ``device``, those that CuPy's pool holds there, and the recorded usage.

    All are 0 without a GPU.
    """
    if not devices.gpu_count():
        return 0, 0, _Usage()
    gpu = devices.cupy()
    index = devices.gpu_index(device)
    pool = gpu.get_default_memory_pool()
    with gpu.cuda.Device(index):
        used, total = int(pool.used_bytes()), int(pool.total_bytes())
    usage = _usage[index]
    usage.at_most = used
    usage.peak, usage.reserved_peak = max(usage.peak, used), max(usage.reserved_peak, total)
    return used, total, usage


def empty_cache() -> None:
    """Release the GPU memory that CuPy's memory pool holds but does not use.

    The call has no effect without a GPU.
    """
    if devices.gpu_count():
        gpu = devices.cupy()
        _release_held()
        pool = gpu.get_default_memory_pool()
        for index in range(devices.gpu_count()):
            with gpu.cuda.Device(index):
                pool.free_all_blocks()


def memory_allocated(device: Any = None) -> int:
    """Return the number of bytes that tensors use on the GPU ``device`` (default: the current one); 0 without a GPU.

    Sizes of arrays are rounded up to multiples of 512 bytes, as in PyTorch.

    >>> import retrograd as torch
    >>> torch.cuda.memory_allocated() >= 0
    True
    """
    return _read(device)[0]


def memory_reserved(device: Any = None) -> int:
    """Return the number of bytes, used and unused, that CuPy's memory pool holds on the GPU ``device``; 0 without a GPU."""
    return _read(device)[1]


def max_memory_allocated(device: Any = None) -> int:
    """Return the peak of :func:`memory_allocated` since the first use of a GPU or the last reset; 0 without a GPU.

    >>> import retrograd as torch
    >>> torch.cuda.max_memory_allocated() >= torch.cuda.memory_allocated()
    True
    """
    return _read(device)[2].peak


def max_memory_reserved(device: Any = None) -> int:
    """Return the peak of :func:`memory_reserved` since the first use of a GPU or the last reset; 0 without a GPU."""
    return _read(device)[2].reserved_peak


def set_per_process_memory_fraction(fraction: float, device: Any = None) -> None:
    """Limit the memory of CuPy's pool on the GPU ``device`` to ``fraction`` of its memory.

    An allocation above the limit raises ``torch.OutOfMemoryError``. Raises TypeError if ``fraction`` is no float,
    ValueError if it is not between 0 and 1, and AssertionError without CuPy.
    """
    gpu = devices.cupy()
    index = devices.gpu_index(device)
    if not isinstance(fraction, float):
        raise TypeError("Invalid type for fraction argument, must be `float`")
    if not 0 <= fraction <= 1:
        raise ValueError(f"Invalid fraction value: {fraction}. Allowed range: 0~1")
    with gpu.cuda.Device(index):
        gpu.get_default_memory_pool().set_limit(fraction=fraction)


def get_per_process_memory_fraction(device: Any = None) -> float:
    """Return the limit of CuPy's pool on the GPU ``device`` as a fraction of its memory; 1.0 if there is no limit.

    Raises AssertionError without CuPy.
    """
    gpu = devices.cupy()
    with gpu.cuda.Device(devices.gpu_index(device)):
        limit = int(gpu.get_default_memory_pool().get_limit())
        total = int(gpu.cuda.runtime.memGetInfo()[1])
    return limit / total if limit else 1.0


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
    """Return the free memory and the total memory of the GPU ``device`` as a pair of numbers of bytes.

    Raises AssertionError without CuPy.
    """
    gpu = devices.cupy()
    with gpu.cuda.Device(devices.gpu_index(device)):
        free, total = gpu.cuda.runtime.memGetInfo()
    return int(free), int(total)


def reset_peak_memory_stats(device: Any = None) -> None:
    """Set the peak values of :func:`max_memory_allocated` and :func:`max_memory_reserved` to the current values.

    Raises AssertionError without CuPy.
    """
    devices.cupy()
    used, total, usage = _read(device)
    usage.peak, usage.reserved_peak = used, total


def reset_accumulated_memory_stats(device: Any = None) -> None:
    """Set the totals of :func:`memory_stats` (``allocated`` and ``freed``) and its counts of errors to 0.

    Raises AssertionError without CuPy.
    """
    devices.cupy()
    used, _, usage = _read(device)
    usage.allocated, usage.allocation_count, usage.failed = used, 0, 0


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
    """Return a dictionary of statistics of the memory of the GPU ``device`` under PyTorch's keys; empty without a GPU.

    The keys are ``"allocated_bytes.all.current"``, ``".peak"``, ``".allocated"`` and ``".freed"``,
    ``"reserved_bytes.all.current"`` and ``".peak"``, ``"allocation.all.allocated"`` (the number of allocations) and
    ``"num_ooms"`` (the number of failed ones). Other statistics of PyTorch are left out.
    """
    found: OrderedDict[str, Any] = OrderedDict()
    if devices.gpu_count():
        used, total, usage = _read(device)
        allocated = max(usage.allocated, used)
        found.update({
            "allocated_bytes.all.allocated": allocated, "allocated_bytes.all.current": used,
            "allocated_bytes.all.freed": allocated - used, "allocated_bytes.all.peak": usage.peak,
            "allocation.all.allocated": usage.allocation_count, "num_ooms": usage.failed,
            "reserved_bytes.all.current": total, "reserved_bytes.all.peak": usage.reserved_peak,
        })  # fmt: skip
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
    """Return a table of the memory of the GPU ``device`` as text; ``abbreviated`` has no effect.

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
    "empty_cache", "get_per_process_memory_fraction", "max_memory_allocated", "max_memory_cached",
    "max_memory_reserved", "mem_get_info", "memory_allocated", "memory_cached", "memory_reserved",
    "memory_snapshot", "memory_stats", "memory_stats_as_nested_dict", "memory_summary",
    "reset_accumulated_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached",
    "reset_peak_memory_stats", "set_per_process_memory_fraction",
]  # fmt: skip
