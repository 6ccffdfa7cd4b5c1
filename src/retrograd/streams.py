"""``torch.Stream`` and ``torch.Event``: for a GPU, the classes of ``torch.cuda``; for the CPU, classes without effect.

The CPU has one stream. All work on the CPU is complete when it is submitted.
"""

from __future__ import annotations

from typing import Any

from . import cuda
from .compat.module_names import shown_in
from .core import devices


def _place(device: Any) -> devices.device:
    place = devices.as_device(device)
    if place.type != "cpu" and not (place.type == "cuda" and devices.gpu_count()):
        raise RuntimeError(f"PyTorch is not linked with support for {place.type} devices")
    return place


class Stream:
    """Queue of work of a device, which executes the work in order.

    >>> import retrograd as torch
    >>> stream = torch.Stream("cpu")
    >>> stream.synchronize()
    >>> stream.query()
    True
    """

    __module__ = shown_in("torch", __name__)
    stream_id, device_index, device_type = 0, -1, 0

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Any:
        """Return the stream of the CPU, or a new ``torch.cuda.Stream`` with ``priority`` if ``device`` is a GPU."""
        place = _place(device)
        if place.type == "cuda":
            return cuda.Stream(place, priority)
        return super().__new__(cls)

    @property
    def device(self) -> devices.device:
        """Device of the stream: the CPU."""
        return devices.CPU

    def query(self) -> bool:
        """Return True, because all work on the CPU is complete when it is submitted."""
        return True

    def synchronize(self) -> None:
        """Return immediately, because all work on the CPU is complete when it is submitted."""

    def record_event(self, event: Any = None) -> Any:
        """Raise RuntimeError, because the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")

    def wait_event(self, event: Any) -> None:
        """Return immediately, because all work on the CPU is complete when it is submitted."""

    def wait_stream(self, stream: Any) -> None:
        """Raise RuntimeError, because the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream)

    def __hash__(self) -> int:
        return hash((Stream, self.stream_id))

    def __repr__(self) -> str:
        return "torch.Stream device_type=cpu, device_index=-1, stream_id=0"


class Event:
    """Marker in the work of a device; a program can wait until the work before the marker is complete."""

    __module__ = shown_in("torch", __name__)
    event_id = 0

    def __new__(
        cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Any:
        """Return an event of the CPU, or a new ``torch.cuda.Event`` if ``device`` is a GPU.

        ``enable_timing``, ``blocking`` and ``interprocess`` are the options of ``torch.cuda.Event``.
        """
        if _place(device).type == "cuda":
            return cuda.Event(enable_timing, blocking, interprocess)
        made = super().__new__(cls)
        made.timed = enable_timing
        return made

    timed: bool

    @property
    def device(self) -> devices.device:
        """Device of the event: the CPU."""
        return devices.CPU

    def query(self) -> bool:
        """Return True, because all work on the CPU is complete when it is submitted."""
        return True

    def record(self, stream: Any = None) -> None:
        """Raise RuntimeError, because the CPU has no events."""
        raise RuntimeError("cpu backend doesn't support events.")

    def wait(self, stream: Any = None) -> None:
        """Return immediately, because all work on the CPU is complete when it is submitted."""

    def synchronize(self) -> None:
        """Return immediately, because all work on the CPU is complete when it is submitted."""

    def elapsed_time(self, end_event: Event) -> float:
        """Raise ValueError, because events of the CPU cannot be recorded."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        return "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"


__all__ = ["Event", "Stream"]
