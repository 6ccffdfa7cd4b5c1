"""Streams and events of GPUs, as ``torch.cuda.streams``: CuPy's, by PyTorch's names."""

from __future__ import annotations

from typing import Any

from ..core import devices


def _gpu(missing: str) -> Any:
    """CuPy, or the error with which PyTorch says that there is none."""
    if not devices.gpu_count():
        raise RuntimeError(missing)
    return devices.cupy()


class Stream:
    """A queue of work for a GPU; what stands in one is done in order."""

    def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
        gpu = _gpu("torch.cuda.Stream requires CUDA support")
        self._stream = kwargs.get("_stream") or gpu.cuda.Stream(non_blocking=True, priority=priority)
        self.device = devices.device("cuda", int(gpu.cuda.Device().id))

    @property
    def cuda_stream(self) -> int:
        """The address of the stream."""
        return int(self._stream.ptr)

    def query(self) -> bool:
        """Whether all work is done."""
        return bool(self._stream.done)

    def synchronize(self) -> None:
        """Wait until all work is done."""
        self._stream.synchronize()

    def record_event(self, event: Event | None = None) -> Event:
        """An event that has happened when all work asked for until now is done."""
        found = Event() if event is None else event
        found.record(self)
        return found

    def wait_event(self, event: Event) -> None:
        """Have what is asked for from now on wait for an event."""
        self._stream.wait_event(event._event)

    def wait_stream(self, stream: Stream) -> None:
        """Have what is asked for from now on wait for what another stream has to do."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and self.cuda_stream == other.cuda_stream

    def __hash__(self) -> int:
        return hash(self.cuda_stream)

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class Event:
    """A moment in the work of a stream, to be waited for or (``enable_timing``) to measure times by."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False, external: bool = False
    ) -> None:
        gpu = _gpu("Tried to instantiate dummy base class Event")
        self._event = gpu.cuda.Event(block=blocking, disable_timing=not enable_timing, interprocess=interprocess)

    def record(self, stream: Stream | None = None) -> None:
        """Let it happen when the stream has done what it was asked for until now."""
        self._event.record(None if stream is None else stream._stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Have a stream wait for it."""
        (current_stream() if stream is None else stream).wait_event(self)

    def query(self) -> bool:
        """Whether it has happened."""
        return bool(self._event.done)

    def synchronize(self) -> None:
        """Wait for it."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds from this event to another."""
        return float(devices.cupy().cuda.get_elapsed_time(self._event, end_event._event))


def current_stream(device: Any = None) -> Stream:
    """The stream in use. Raises AssertionError without CuPy, as PyTorch does without CUDA."""
    gpu = devices.cupy()
    return Stream(_stream=gpu.cuda.get_current_stream())


def default_stream(device: Any = None) -> Stream:
    """The stream in use if no other was chosen."""
    gpu = devices.cupy()
    return Stream(_stream=gpu.cuda.Stream.null)


def set_stream(stream: Stream | None) -> None:
    """Use a stream from now on; None: nothing happens."""
    if stream is not None:
        stream._stream.use()


class StreamContext:
    """A block in which another stream is in use; None: nothing happens."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        if self.stream is not None:
            self.stream._stream.__enter__()

    def __exit__(self, *error: object) -> None:
        if self.stream is not None:
            self.stream._stream.__exit__(*error)


def stream(stream: Stream | None) -> StreamContext:
    """A block in which another stream is in use: ``with torch.cuda.stream(s): …``."""
    return StreamContext(stream)


__all__ = ["Event", "Stream", "StreamContext", "current_stream", "default_stream", "set_stream", "stream"]
