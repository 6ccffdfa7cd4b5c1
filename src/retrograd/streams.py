"""``torch.Stream`` and ``torch.Event``: of a GPU those of ``torch.cuda``; the processor has one stream, always done."""

from __future__ import annotations

from typing import Any

from . import cuda
from .core import devices


def _place(device: Any) -> devices.device:
    place = devices.as_device(device)
    if place.type != "cpu" and not (place.type == "cuda" and devices.gpu_count()):
        raise RuntimeError(f"PyTorch is not linked with support for {place.type} devices")
    return place


class Stream:
    """A queue of work of a device; what stands in one is done in order."""

    __module__ = "torch"
    stream_id, device_index, device_type = 0, -1, 0

    def __new__(cls, device: Any = None, *, priority: int = 0) -> Any:
        """A GPU's stream is a ``torch.cuda.Stream``."""
        place = _place(device)
        if place.type == "cuda":
            return cuda.Stream(place, priority)
        return super().__new__(cls)

    @property
    def device(self) -> devices.device:
        """The processor."""
        return devices.CPU

    def query(self) -> bool:
        """Whether all work is done: True."""
        return True

    def synchronize(self) -> None:
        """Return at once: all work is done."""

    def record_event(self, event: Any = None) -> Any:
        """Refused: on the processor there is nothing to wait for."""
        raise RuntimeError("cpu backend doesn't support events.")

    def wait_event(self, event: Any) -> None:
        """Return at once."""

    def wait_stream(self, stream: Any) -> None:
        """Refused, as :meth:`record_event`."""
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
    """A moment in the work of a device, to be waited for."""

    __module__ = "torch"
    event_id = 0

    def __new__(
        cls, device: Any = None, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> Any:
        """A GPU's event is a ``torch.cuda.Event``."""
        if _place(device).type == "cuda":
            return cuda.Event(enable_timing, blocking, interprocess)
        made = super().__new__(cls)
        made.timed = enable_timing
        return made

    timed: bool

    @property
    def device(self) -> devices.device:
        """The processor."""
        return devices.CPU

    def query(self) -> bool:
        """Whether it has happened: True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Refused: on the processor there is nothing to wait for."""
        raise RuntimeError("cpu backend doesn't support events.")

    def wait(self, stream: Any = None) -> None:
        """Return at once."""

    def synchronize(self) -> None:
        """Return at once."""

    def elapsed_time(self, end_event: Event) -> float:
        """Refused, as :meth:`record`."""
        if not (self.timed and end_event.timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        raise ValueError("Both events must be recorded before calculating elapsed time.")

    def __repr__(self) -> str:
        return "torch.Event device_type=cpu, device_index=-1, event_flag=0, event_id=0"


__all__ = ["Event", "Stream"]
