"""``torch.cuda.streams``: CUDA streams and events, which wrap CuPy's streams and events."""

from __future__ import annotations

from typing import Any

from ..core import devices


def _require_gpu(missing: str) -> Any:
    """Return the module ``cupy``; raise RuntimeError with the message ``missing`` if there is no GPU."""
    if not devices.gpu_count():
        raise RuntimeError(missing)
    return devices.cupy()


class Stream:
    """CUDA stream: a queue of work for a GPU. The work in a stream is executed in the order of submission."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        gpu = _require_gpu("torch.cuda.Stream requires CUDA support")
        index = int(gpu.cuda.Device().id)
        if device is not None:
            place = devices.device("cuda", device) if isinstance(device, int) else devices.device(device)
            if place.type != "cuda":
                raise ValueError(f"Expected a cuda device, but got: {place}")
            index = index if place.index is None else place.index
        with gpu.cuda.Device(index):
            self._stream = kwargs.get("_stream") or gpu.cuda.Stream(non_blocking=True, priority=priority)
        self.device = devices.device("cuda", index)

    @property
    def cuda_stream(self) -> int:
        """Address of the CUDA stream as an integer."""
        return int(self._stream.ptr)

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
        """Make all work submitted to this stream after the call wait until ``event`` has completed."""
        self._stream.wait_event(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Make later work in this stream wait until ``stream`` has completed all work submitted to it so far."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """CUDA event: a position in the queue of a stream, whose completion other streams can wait for.

    If ``enable_timing`` is true for two events, :meth:`elapsed_time` returns the time between them.
    """

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        gpu = _require_gpu("Tried to instantiate dummy base class Event")
        self._event = gpu.cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Record the event in ``stream`` (default: the current stream), after all work submitted before the call."""
        self._event.record(None if stream is None else stream._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Make all work submitted to ``stream`` after the call wait for the event.

        ``stream`` is by default the current stream.
        """
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether the event has completed."""
        return bool(self._event.done)

    def synchronize(self) -> None:
        """Wait until the event has completed."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Return the time in milliseconds from this event to ``end_event``."""
        return float(devices.cupy().cuda.get_elapsed_time(self._event, end_event._event))


def current_stream(device: Any = None) -> Stream:
    """Return the current stream of the current GPU; ``device`` has no effect.

    Raises AssertionError without CuPy, as PyTorch does without CUDA.
    """
    gpu = devices.cupy()
    return Stream(_stream=gpu.cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """Return the default stream, which is the current stream until ``set_stream`` or ``stream`` selects another one.

    ``device`` has no effect.
    """
    gpu = devices.cupy()
    return Stream(_stream=gpu.cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Select ``stream`` as the current stream; None has no effect."""
    if stream is not None:
        stream._stream.use()


class StreamContext:
    """Context manager that selects ``stream`` as the current stream; None has no effect."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream._stream.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """Return a context manager that selects ``stream`` as the current stream: ``with torch.cuda.stream(s): …``."""
    return StreamContext(stream)


__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"]
