"""``cupy.cuda`` of the stand-in: devices, streams, events, memory pools."""

from __future__ import annotations

import contextlib
import threading
import time
import types
import weakref
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy

from .array import ALLOC, CURRENT, USED, Memory, MemoryPointer, synchronise

#: The number of devices that the stand-in shows.
COUNT = [1]


class CUDARuntimeError(RuntimeError):
    def __init__(self, status: int, text: str) -> None:
        self.status = status
        super().__init__(text)


class Device:
    """``cupy.cuda.Device``: current within ``with``, or after ``use``."""

    def __init__(self, device: Any = None) -> None:
        self.id = CURRENT.device if device is None else int(device)
        self._before: list[int] = []

    def _checked(self) -> None:
        if not 0 <= self.id < COUNT[0]:
            raise CUDARuntimeError(101, "cudaErrorInvalidDevice: invalid device ordinal")

    def __enter__(self) -> Device:
        self._checked()
        self._before.append(CURRENT.device)
        CURRENT.device = self.id
        return self

    def __exit__(self, *args: object) -> None:
        CURRENT.device = self._before.pop()

    def __int__(self) -> int:
        return self.id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"<CUDA Device {self.id}>"

    def use(self) -> None:
        self._checked()
        CURRENT.device = self.id

    def synchronize(self) -> None:
        synchronise("Device.synchronize")
        for each in list(Stream.every):
            if each.device_id in (-1, self.id):
                each.completed = each.submitted

    compute_capability = "90"

    @property
    def mem_info(self) -> tuple[int, int]:
        return TOTAL - USED[self.id], TOTAL


TOTAL = 2**34


class Event:
    """``cupy.cuda.Event``: a position in the work of a stream."""

    def __init__(self, block: bool = False, disable_timing: bool = False, interprocess: bool = False) -> None:
        if interprocess and not disable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        self.stream: Stream | None = None
        self.position, self.time = 0, 0.0
        self.disable_timing = disable_timing
        self.ptr = id(self)

    @property
    def done(self) -> bool:
        return self.stream is None or self.stream.completed >= self.position

    def record(self, stream: Any = None) -> None:
        self.stream = get_current_stream() if stream is None else stream
        self.position, self.time = self.stream.submitted, time.perf_counter()

    def synchronize(self) -> None:
        synchronise("Event.synchronize")
        if self.stream is not None:
            self.stream.completed = max(self.stream.completed, self.position)


def get_elapsed_time(start: Event, end: Event) -> float:
    if start.disable_timing or end.disable_timing or start.stream is None or end.stream is None:
        raise CUDARuntimeError(400, "cudaErrorInvalidResourceHandle: invalid resource handle")
    if not (start.done and end.done):
        raise CUDARuntimeError(600, "cudaErrorNotReady: device not ready")
    return 1000 * (end.time - start.time)


class Stream:
    """``cupy.cuda.Stream``: current within ``with``, or after ``use``.

    Work is done at once, but counts as pending until the host waits for the stream: ``submitted`` is the number of
    allocations while the stream was current, and ``completed`` how many of them the host knows to be complete.
    """

    null: Any = None
    every: ClassVar[weakref.WeakSet[Stream]] = weakref.WeakSet()

    def __init__(
        self, null: bool = False, non_blocking: bool = False, ptds: bool = False, priority: Any = None
    ) -> None:
        self.ptr = 0 if null else 2 if ptds else id(self)
        self.device_id = -1 if null or ptds else CURRENT.device
        self.priority, self.is_non_blocking = priority or 0, non_blocking
        self.submitted = self.completed = 0
        #: Events that the stream was made to wait for.
        self.waited: list[Event] = []
        Stream.every.add(self)

    def _check_device(self) -> int:
        if self.device_id not in (-1, CURRENT.device):
            raise RuntimeError(
                f"The device that the stream is created on ({self.device_id}) does not match with the current device "
                f"({CURRENT.device})"
            )
        return CURRENT.device

    def __enter__(self) -> Stream:
        STREAMS.setdefault(self._check_device(), [Stream.null]).append(self)
        return self

    def __exit__(self, *args: object) -> None:
        STREAMS[CURRENT.device if self.device_id == -1 else self.device_id].pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.ptr == other.ptr

    def __hash__(self) -> int:
        return hash(self.ptr)

    @property
    def done(self) -> bool:
        return self.completed == self.submitted

    def use(self) -> Stream:
        STREAMS.setdefault(self._check_device(), [Stream.null])[-1] = self
        return self

    def synchronize(self) -> None:
        synchronise("Stream.synchronize")
        self.completed = self.submitted

    def record(self, event: Any = None) -> Event:
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        self.waited.append(event)


class ExternalStream(Stream):
    """``cupy.cuda.ExternalStream``."""

    def __init__(self, ptr: int, device_id: int = -1) -> None:
        super().__init__()
        self.ptr, self.device_id = ptr, device_id


Stream.null, Stream.ptds = Stream(null=True), Stream(ptds=True)
#: The current stream of each device is the last of its list.
STREAMS: dict[int, list[Stream]] = {}


def get_current_stream(device_id: int = -1) -> Stream:
    found = STREAMS.get(CURRENT.device if device_id == -1 else device_id)
    return found[-1] if found else Stream.null


# --- Memory ---------------------------------------------------------------------------------------------------------


class OutOfMemoryError(MemoryError):
    """``cupy.cuda.memory.OutOfMemoryError``."""

    def __init__(self, size: int, total: int, limit: int = 0) -> None:
        text = f"Out of memory allocating {size:,} bytes (allocated so far: {total:,} bytes"
        super().__init__(text + (f", limit set to: {limit:,} bytes)." if limit else ")."))


class PooledMemory:
    """Block of the pool, which is returned when the object is deleted."""

    def __init__(self, size: int) -> None:
        self.size, self.device_id = size, CURRENT.device
        USED[self.device_id] += size

    def __del__(self, used: Any = USED) -> None:  # the module may be gone when the interpreter exits
        used[self.device_id] -= self.size


class MemoryPool:
    """``cupy.cuda.MemoryPool``: freed memory stays reserved until ``free_all_blocks``."""

    def __init__(self, allocator: Any = None) -> None:
        self._reserved: dict[int, int] = {}
        self._limits: dict[int, int] = {}

    def malloc(self, size: int) -> PooledMemory:
        rounded, device = -(-size // 512) * 512, CURRENT.device
        limit = self._limits.get(device, 0)
        if limit and USED[device] + rounded > limit:
            raise OutOfMemoryError(rounded, self.total_bytes(), limit)
        made = PooledMemory(rounded)
        self.total_bytes()
        return made

    def used_bytes(self) -> int:
        return USED[CURRENT.device]

    def total_bytes(self) -> int:
        device = CURRENT.device
        self._reserved[device] = max(self._reserved.get(device, 0), USED[device])
        return self._reserved[device]

    def free_bytes(self) -> int:
        return self.total_bytes() - self.used_bytes()

    def n_free_blocks(self) -> int:
        return int(self.free_bytes() > 0)

    def free_all_blocks(self, stream: Any = None) -> None:
        self._reserved[CURRENT.device] = USED[CURRENT.device]

    def get_limit(self) -> int:
        return self._limits.get(CURRENT.device, 0)

    def set_limit(self, size: Any = None, fraction: Any = None) -> None:
        self._limits[CURRENT.device] = int(TOTAL * fraction) if size is None else size


POOL = MemoryPool()


class _Allocator(threading.local):
    own: Any = None


_ALLOCATOR = _Allocator()
_GLOBAL_ALLOCATOR: list[Any] = [POOL.malloc]


def get_allocator() -> Any:
    return _ALLOCATOR.own or _GLOBAL_ALLOCATOR[0]


def set_allocator(allocator: Any = None) -> None:
    if _ALLOCATOR.own is not None:
        raise ValueError("Can't change the global allocator inside `using_allocator` context manager")
    _GLOBAL_ALLOCATOR[0] = PooledMemory if allocator is None else allocator


@contextlib.contextmanager
def using_allocator(allocator: Any = None) -> Iterator[None]:
    before, _ALLOCATOR.own = _ALLOCATOR.own, allocator
    try:
        yield
    finally:
        _ALLOCATOR.own = before


def alloc(size: int) -> Any:
    get_current_stream().submitted += 1
    return get_allocator()(size)


ALLOC[:] = [alloc]


class PinnedMemoryPointer(bytearray):
    """``cupy.cuda.PinnedMemoryPointer``: page-locked memory of the host."""

    alive: ClassVar[dict[int, int]] = {}

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self.ptr = numpy.frombuffer(self, numpy.uint8).__array_interface__["data"][0] if size else 0
        self.alive[self.ptr] = size

    def __del__(self) -> None:
        self.alive.pop(self.ptr, None)


def is_memory_pinned(data: int) -> bool:
    return any(start <= data < start + size for start, size in list(PinnedMemoryPointer.alive.items()))


def reset() -> None:
    """Restore the state of a new process."""
    CURRENT.device = 0
    STREAMS.clear()
    POOL._limits.clear()
    POOL._reserved.clear()
    _GLOBAL_ALLOCATOR[0], _ALLOCATOR.own = POOL.malloc, None
    SYNCDETECT._declare_synchronize = lambda: None  # type: ignore[attr-defined]


#: The module ``cupy._core.syncdetect``.
SYNCDETECT = types.ModuleType("cupy._core.syncdetect")
SYNCDETECT._declare_synchronize = lambda: None  # type: ignore[attr-defined]


PROPERTIES = {
    "name": b"Stand-in", "major": 9, "minor": 0, "totalGlobalMem": TOTAL, "multiProcessorCount": 4, "warpSize": 32,
    "maxThreadsPerMultiProcessor": 2048, "sharedMemPerBlock": 49152, "l2CacheSize": 1, "integrated": 0,
}  # fmt: skip


def _get_device_properties(index: int) -> dict[str, Any]:
    if not 0 <= index < COUNT[0]:
        raise CUDARuntimeError(101, "cudaErrorInvalidDevice: invalid device ordinal")
    return dict(PROPERTIES)


def _set_device(index: int) -> None:
    Device(index).use()


def build(cupy: Any) -> types.ModuleType:
    """Return the module ``cupy.cuda``."""
    made = types.ModuleType("cupy.cuda")
    made.__path__ = []
    runtime = types.ModuleType("cupy.cuda.runtime")
    runtime.__dict__.update(
        getDeviceCount=lambda: COUNT[0], getDeviceProperties=_get_device_properties, getDevice=lambda: CURRENT.device,
        setDevice=_set_device, memGetInfo=lambda: Device().mem_info, deviceSynchronize=lambda: synchronise("deviceSynchronize"),
        runtimeGetVersion=lambda: 13000, driverGetVersion=lambda: 13000, CUDARuntimeError=CUDARuntimeError,
        deviceCanAccessPeer=lambda one, other: 0,
    )  # fmt: skip
    made.__dict__.update(
        Device=Device, Event=Event, Stream=Stream, ExternalStream=ExternalStream, Memory=Memory, MemoryPointer=MemoryPointer,
        MemoryPool=MemoryPool, runtime=runtime,
        is_available=lambda: True, get_device_id=lambda: CURRENT.device,
        get_current_stream=get_current_stream, get_elapsed_time=get_elapsed_time, alloc=alloc,
        get_allocator=get_allocator, set_allocator=set_allocator, using_allocator=using_allocator,
        PinnedMemoryPointer=PinnedMemoryPointer, alloc_pinned_memory=PinnedMemoryPointer,
        memory=types.SimpleNamespace(OutOfMemoryError=OutOfMemoryError, alloc=alloc),
        pinned_memory=types.SimpleNamespace(is_memory_pinned=is_memory_pinned, PinnedMemoryPointer=PinnedMemoryPointer),
    )  # fmt: skip
    cupy.get_default_memory_pool = lambda: POOL
    cupy.is_available = lambda: True
    return made
