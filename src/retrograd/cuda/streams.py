"""``torch.cuda.streams``: CUDA streams and events, which wrap CuPy's streams and events."""

from __future__ import annotations

from typing import Any

from ..compat.module_names import shown_in
from ..core import devices


def _require_gpu(missing: str) -> Any:
    """Return the module ``cupy``; raise RuntimeError with the message ``missing`` if there is no GPU."""
    if not devices.gpu_count():
        raise RuntimeError(missing)
    return devices.cupy()


class Stream:
    """CUDA stream: a queue of work for a GPU. The work in a stream is executed in the order of submission.

    ``device`` is by default the current GPU. A stream with a lower ``priority`` is preferred. Work of a new stream does
    not wait for that of the default stream.
    """

    __module__ = shown_in("torch.cuda", __name__)

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        gpu = _require_gpu("torch.cuda.Stream requires CUDA support")
        index = devices.gpu_index(device)
        made = kwargs.get("_stream")
        if made is None:
            with gpu.cuda.Device(index):
                made = gpu.cuda.Stream(non_blocking=True, priority=priority)
        self._stream = made
        self.device = devices.device("cuda", index)
        self.priority = priority

    @property
    def cuda_stream(self) -> int:
        """Address of the CUDA stream as an integer."""
        return int(self._stream.ptr)

    stream_id = cuda_stream

    @property
    def device_index(self) -> int:
        """Index of the GPU of the stream."""
        return self.device.index or 0

    def query(self) -> bool:
        """Whether all work submitted to this stream has completed."""
        return bool(self._stream.done)

    def synchronize(self) -> None:
        """Wait until all work submitted to this stream has completed."""
        self._stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """Record ``event`` (default: a new event) in this stream and return the event.

        The event completes when all work submitted to this stream before the call has completed.
        """
        found = Event() if event is None else event
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """Make all work submitted to this stream after the call wait until ``event`` has completed.

        An event that has not been recorded has no effect.
        """
        if event._event is not None:
            self._stream.wait_event(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work in this stream wait until ``stream`` has completed all work submitted to it so far."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Stream):
            return False
        return self.device == other.device and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash((self.cuda_stream, self.device))

    def __cuda_stream__(self) -> tuple[int, int]:
        """Version of the protocol for exchange of CUDA streams, and the address of the stream."""
        return 0, self.cuda_stream

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """CUDA event: a position in the queue of a stream, whose completion other streams can wait for.

    If ``enable_timing`` is true for two events, :meth:`elapsed_time` returns the time between them. With ``blocking``,
    :meth:`synchronize` sleeps while it waits. The event of the driver is created when the event is first recorded, on
    the GPU of the stream.
    """

    __module__ = shown_in("torch.cuda", __name__)

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        _require_gpu("Tried to instantiate dummy base class Event")
        if interprocess and enable_timing:
            raise ValueError("Timing must be disabled for interprocess events")
        self._event: Any = None
        self._stream: Stream | None = None
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}

    @property
    def device(self) -> devices.device | None:
        """GPU on which the event was recorded; None before."""
        return None if self._stream is None else self._stream.device

    def record(self, stream: Stream | None = None) -> None:
        """Record the event in ``stream`` (default: the current stream), after all work submitted before the call.

        Raises RuntimeError if the event was recorded on another GPU.
        """
        found = current_stream() if stream is None else stream
        gpu = devices.cupy()
        if self._stream is not None and self._stream.device != found.device:
            raise RuntimeError(
                f"Event device {self._stream.device_index} does not match recording stream's device {found.device_index}."
            )
        with gpu.cuda.Device(found.device_index):
            if self._event is None:
                self._event = gpu.cuda.Event(**self._options)
            self._event.record(found._stream)
        self._stream = found

    def wait(self, stream: Stream | None = None) -> None:
        """Make all work submitted to ``stream`` after the call wait for the event.

        ``stream`` is by default the current stream.
        """
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the event has completed, or has not been recorded."""
        return self._event is None or bool(self._event.done)

    def synchronize(self) -> None:
        """Wait until the event has completed."""
        if self._event is not None:
            self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time in milliseconds from this event to ``end_event``.

        Raises ValueError unless both events have timing and are recorded and completed.
        """
        events = self, end_event
        if any(each._options["disable_timing"] for each in events):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if any(each._event is None for each in events):
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        if not all(each.query() for each in events):
            raise ValueError("Both events must be completed before calculating elapsed time.")
        return float(devices.cupy().cuda.get_elapsed_time(self._event, end_event._event))

    @property
    def cuda_event(self) -> int:
        """Address of the CUDA event as an integer; 0 before it is recorded."""
        return 0 if self._event is None else int(self._event.ptr)

    def __repr__(self) -> str:
        return (
            f"<torch.cuda.Event {self.cuda_event:#x}>"
            if self._event is not None
            else "<torch.cuda.Event uninitialized>"
        )


def current_stream(device: Any = None) -> Stream:
    """Return the current stream of the GPU ``device`` (default: the current GPU).

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    gpu = devices.cupy()
    index = devices.gpu_index(device)
    return Stream(devices.device("cuda", index), _stream=gpu.cuda.get_current_stream(index))


def default_stream(device: Any = None) -> Stream:
    """Return the default stream of the GPU ``device``, current until ``set_stream`` or ``stream`` selects another one."""
    gpu = devices.cupy()
    return Stream(devices.device("cuda", devices.gpu_index(device)), _stream=gpu.cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Select ``stream`` as the current stream, and its GPU as the current GPU; None has no effect."""
    if stream is not None:
        devices.cupy().cuda.runtime.setDevice(stream.device_index)
        stream._stream.use()


class StreamContext:
    """Context manager that selects ``stream`` as the current stream, and its GPU as the current GPU.

    None has no effect. The former stream and GPU are selected again on exit.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: list[Any] = []

    def __enter__(self) -> None:
        if self.stream is not None:
            runtime = devices.cupy().cuda.runtime
            self._before.append(runtime.getDevice())
            runtime.setDevice(self.stream.device_index)
            self._before.append(devices.cupy().cuda.get_current_stream())
            self.stream._stream.use()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            runtime = devices.cupy().cuda.runtime
            runtime.setDevice(self.stream.device_index)
            self._before.pop().use()
            runtime.setDevice(self._before.pop())


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that selects ``stream`` as the current stream: ``with torch.cuda.stream(s): …``."""
    return StreamContext(stream)


__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"]
