"""Output of ranks: the lines that they write to pipes, shown one whole line at a time."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import IO, Any

#: Streams of the launcher, by the names that ``Popen`` has for them.
NAMES = ("stdout", "stderr")


def _file(name: str) -> tuple[int, int] | None:
    """Return the device and the number of the file that is the stream ``name`` of this process, or None."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        status = os.fstat(getattr(sys, name).fileno())
        return status.st_dev, status.st_ino
    return None


class Console:
    """Standard output and standard error of the launcher, which the threads of all ranks write to.

    A piece without a newline at its end, such as a progress bar, leaves its line open. If another rank writes next, a
    newline is inserted, so that the output of two ranks is never in one line.
    """

    def __init__(self) -> None:
        self.lock: threading.Lock = threading.Lock()
        self.open_lines: dict[str, tuple[int, str]] = {}
        #: Whether both streams are the same terminal or file. Then a rank's streams share a pipe, which keeps their order.
        self.same: bool = _file("stdout") is not None and _file("stdout") == _file("stderr")

    def write(self, rank: int, name: str, data: bytes) -> None:
        """Write ``data``, lines of ``rank``, to the stream ``name``."""
        stream = "stdout" if self.same else name
        with self.lock:
            if self.open_lines.get(stream, (rank, name)) != (rank, name):
                data = b"\n" + data
            self._put(name, data)
            if data.endswith(b"\n"):
                self.open_lines.pop(stream, None)
            else:
                self.open_lines[stream] = rank, name

    @staticmethod
    def _put(name: str, data: bytes) -> None:
        stream: Any = getattr(sys, name)
        if hasattr(stream, "buffer"):
            stream.flush()
            stream.buffer.write(data)
        else:  # a stream that a program or a notebook has put in place
            stream.write(data.decode("utf-8", "replace"))
        stream.flush()


def forward(pipe: IO[bytes], write: Callable[[bytes], None], bars: bool = True) -> None:
    """Call ``write`` with the whole lines that come out of ``pipe``, until its other end is closed.

    With ``bars``, a piece after a carriage return, as progress bars write them, is passed on at once. If ``write``
    fails, the pipe is closed, so that the rank's next output fails as well.
    """
    rest = b""
    with pipe, contextlib.suppress(OSError, ValueError):
        while data := pipe.read(65536):
            rest += data
            end = rest.rfind(b"\n") + 1
            if end:
                write(rest[:end])
                rest = rest[end:]
            if bars and b"\r" in rest:
                write(rest)
                rest = b""
        if rest:
            write(rest if bars else rest + b"\n")


def prefixed(prefix: bytes, data: bytes) -> bytes:
    """Return ``data``, whole lines, with ``prefix`` before each."""
    return b"".join(prefix + line for line in data.splitlines(keepends=True))
