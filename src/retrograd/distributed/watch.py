"""``Watch``: connection of a rank to the coordinator, which reports failures of other ranks."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from datetime import timedelta
from typing import Any, Protocol

from ..runtime.codegen import MARK
from .errors import DistBackendError
from .store_server import in_seconds


class Position(Protocol):
    """Operation that a rank waits for."""

    def describe(self) -> str:
        """Return a description of the collective operation for error messages."""


class Watch:
    """Connection to the coordinator of this process, which is ``rank``, one of ``size`` ranks.

    ``failure`` is None, or says which rank is gone and how; the job cannot go on. ``left`` is None, or says which rank has
    ended its program in good order: an operation that waits for it does not complete. ``position`` is the collective
    operation in which this rank is, or None. ``answers`` has what the ranks answered to :meth:`ask`, or is None.
    """

    rank: int
    size: int

    def __init__(self, connection: socket.socket, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self.failure: str | None = None
        self.left: str | None = None
        self.position: Position | None = None
        self.answers: dict[int, str] | None = None
        self._connection = connection
        self._changed = threading.Condition()
        self._send_lock = threading.Lock()
        self._all_there = self._finalize = self._closing = False
        self._asked = 0
        self._main = threading.main_thread().ident
        self._thread = threading.Thread(target=self._read, name="retrograd watch", daemon=True)
        self._thread.start()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def wait_for_all(self, timeout: timedelta) -> None:
        """Wait until all ranks have connected to the coordinator."""
        with self._changed:
            self._changed.wait_for(lambda: self._all_there or self.failure, in_seconds(timeout))
        if not self._all_there:
            raise DistBackendError(self.failure or "not all ranks have connected to the coordinator within the timeout")

    def _send(self, **message: Any) -> None:
        with suppress(OSError), self._send_lock:
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _read(self) -> None:
        """Read messages until the connection closes."""
        with suppress(OSError), self._connection.makefile("rb") as lines:
            for line in lines:
                self._receive(json.loads(line))
        if not self._closing:
            with self._changed:
                self.failure = (
                    self.failure or "the connection to the coordinator of the job, a process beside rank 0, is lost"
                )
                self._changed.notify_all()

    def _receive(self, message: dict[str, Any]) -> None:
        if "where" in message:
            self._send(do="here", text=self._where())
            return
        with self._changed:
            if "gone" in message and message["why"]:
                self.failure = self.failure or message["why"]
            elif "welcome" in message:
                self._all_there = True
            elif "left" in message:
                self.left = self.left or message["why"]
            elif "answers" in message:
                self.answers = {int(rank): text for rank, text in message["answers"].items()}
            elif "finalize" in message:
                self._finalize = True
            self._changed.notify_all()

    def _where(self) -> str:
        """Return a description of what this rank does at the moment."""
        position = self.position
        if position is not None:
            with suppress(Exception):  # it may have ended meanwhile
                return position.describe()
        frame = sys._current_frames().get(self._main or 0)
        innermost = frame
        while frame is not None and (
            MARK in frame.f_globals or frame.f_globals.get("__name__") in sys.stdlib_module_names
        ):
            frame = frame.f_back
        frame = frame or innermost
        return "its program" if frame is None else f"its program at {frame.f_code.co_filename}:{frame.f_lineno}"

    def ask(self) -> None:
        """Request the position of all ranks. The answers come into ``answers`` within about two seconds."""
        self._asked += 1
        self._send(do="ask", number=self._asked)

    def report(self, **message: Any) -> None:
        """Send the state of this rank to the coordinator."""
        self._send(**message)

    def leave(self, timeout: float | None = None) -> bool:
        """Report that the program has ended, wait for the others, and return whether MPI may be finalized."""
        self._send(do="leaving")
        with self._changed:
            self._changed.wait_for(lambda: self._finalize or self.failure, timeout)
            return self._finalize

    def close(self, why: str | None = None) -> None:
        """Close the connection; ``why`` is the failure of this rank, if there is one."""
        self._closing = True
        self._send(do="failed", why=why) if why else self._send(do="bye")
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def _after_fork(self) -> None:
        """Close the connection in a child process, so that the coordinator notices the end of this process."""
        self._closing = True
        self._send_lock = threading.Lock()
        self.failure = (
            f"this process was forked from rank {self.rank} after init_process_group: MPI does not work in it"
        )
        with suppress(OSError):
            os.close(
                self._connection.detach()
            )  # close waits for the file of the reading thread, which does not run here
