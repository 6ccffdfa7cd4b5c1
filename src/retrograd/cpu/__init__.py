"""The processor by the names that GPUs have too, as ``torch.cpu``."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy

from ..compat.missing_names import absent, listed


class Stream:
    """The processor's one stream; what is asked of it is done at once."""

    def __init__(self, priority: int = -1) -> None:
        pass

    def wait_stream(self, stream: Any) -> None:
        """Return at once."""

    def record_event(self) -> None:
        """Nothing."""

    def wait_event(self, event: Any) -> None:
        """Return at once."""


class Event:
    """A moment in the processor's work: it has always happened."""

    def query(self) -> bool:
        """True."""
        return True

    def record(self, stream: Any = None) -> None:
        """Nothing."""

    def synchronize(self) -> None:
        """Return at once."""

    def wait(self, stream: Any = None) -> None:
        """Return at once."""


class StreamContext:
    """A block in which a stream is in use; there is only one."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


_stream = Stream()


def stream(stream: Any) -> StreamContext:
    """A block in which a stream is in use."""
    return StreamContext(stream)


def current_stream(device: Any = None) -> Stream:
    """The one stream."""
    return _stream


def is_available() -> bool:
    """True: there is a processor."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1: the processors of a machine count as one."""
    return 1


def current_device() -> str:
    """``"cpu"``."""
    return "cpu"


def set_device(device: Any) -> None:
    """Nothing: there is only one."""


def synchronize(device: Any = None) -> None:
    """Return at once: the processor has done what was asked."""


def get_capabilities() -> Mapping[str, Any]:
    """What the processor can do, as NumPy has found out: extensions by name, and its architecture and number of cores."""
    found: dict[str, Any] = {"architecture": platform.machine(), "num_logical_cores": os.cpu_count()}
    simd: Any = numpy.show_config("dicts")["SIMD Extensions"]
    for group, names in simd.items():
        found.update({name.lower(): group in ("baseline", "found") for name in names})
    return MappingProxyType(found)


__all__ = ["Event", "Stream", "StreamContext", "current_device", "current_stream", "device_count", "get_capabilities",
           "is_available", "is_initialized", "set_device", "stream", "synchronize"]  # fmt: skip
__getattr__, __dir__ = absent(__name__, {"amp": "amp"}), listed(globals())
