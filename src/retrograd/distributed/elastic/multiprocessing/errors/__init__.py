"""Errors of ranks: ``record`` writes an exception to the file that the launcher reads, ``ChildFailedError`` shows it.

The file is the one that the environment variable ``TORCHELASTIC_ERROR_FILE`` names. It holds JSON:
``{"message": {"message": "ValueError: x", "extraInfo": {"py_callstack": traceback, "timestamp": seconds}}}``.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import re
import signal
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from .error_handler import ErrorHandler

NOT_AVAILABLE = "<N/A>"
_LOG = logging.getLogger("torch.distributed.elastic.multiprocessing.errors")
#: Part of the errors (``watch.py``) that a rank raises when another one has ended.
_ANOTHER_RANK = re.compile(r"rank \d+ \(process \d+ on [^)]*\) (is gone|has ended)")
NO_TRACEBACK = "no exception was recorded: the process has called os._exit, or is not a Python program"


def get_error_handler() -> ErrorHandler:
    """Return a new :class:`ErrorHandler`."""
    return ErrorHandler()


@dataclass
class ProcessFailure:
    """Failure of the process ``pid`` of a rank, which has ended with ``exitcode`` (negative: by a signal).

    ``message`` and ``timestamp`` are read from ``error_file``, if it exists; otherwise they are a text about the exit
    code, and the current time.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    error_file_data: dict[str, Any] = field(init=False)
    message: Any = field(init=False)
    timestamp: float = field(init=False)

    def __post_init__(self) -> None:
        self.host: str = socket.gethostname()
        self.error_file_data, self.message, self.timestamp = {"message": "<NONE>"}, "", time.time()
        if os.path.isfile(self.error_file):
            with open(self.error_file, encoding="utf-8") as file:
                self.error_file_data = json.load(file)
            self.message = self.error_file_data["message"]
            described = self.message.get("extraInfo", {}) if isinstance(self.message, dict) else self.error_file_data
            self.timestamp = float(described.get("timestamp", 0))
        else:
            self.error_file = NOT_AVAILABLE
        if not self.message and self.exitcode < 0:
            self.message = f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        elif not self.message:
            self.message = NO_TRACEBACK

    def signal_name(self) -> str:
        """Return the name of the signal that has ended the process, or ``"<N/A>"``."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return NOT_AVAILABLE

    def timestamp_isoformat(self) -> str:
        """Return the local time of the failure, in the form ``2026-01-31_12:00:00``."""
        return datetime.fromtimestamp(int(self.timestamp)).isoformat(sep="_")

    @property
    def order(self) -> tuple[bool, float]:
        """Key by which failures are sorted: those that only report another rank's end come last, then the time counts."""
        told = self.message.get("message", "") if isinstance(self.message, dict) else ""
        return _ANOTHER_RANK.search(told) is not None, self.timestamp

    def traceback(self) -> str:
        """Return the recorded traceback, or the text about the failure."""
        if not isinstance(self.message, dict):
            return str(self.message)
        return str(self.message.get("extraInfo", {}).get("py_callstack") or self.message.get("message", NOT_AVAILABLE))


class ChildFailedError(Exception):
    """Error for the program ``name``, some of whose ranks have failed; ``failures`` maps ranks to ProcessFailure.

    The text ends with the failure that came first, and its traceback.
    """

    __module__ = "torch.distributed.elastic.multiprocessing.errors"
    failures: dict[int, ProcessFailure]
    name: str

    def __init__(self, name: str, failures: dict[int, ProcessFailure]) -> None:
        if not failures:
            raise AssertionError
        self.name, self.failures = name, failures
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """Return the rank that has failed first, and its failure: not one that failed because another had ended."""
        rank = min(self.failures, key=lambda each: self.failures[each].order)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim: str = "=", section_delim: str = "-") -> str:
        """Return the text of the error."""
        root, _ = self.get_first_failure()
        shown = {rank: self._describe(place, rank) for place, rank in enumerate(self.failures)}
        title = f"{self.name} FAILED"
        width = min(60, max(len(line) for text in (title, *shown.values()) for line in text.split("\n")))
        others = [text for rank, text in shown.items() if rank != root] or ["  <NO_OTHER_FAILURES>"]
        border, line = boarder_delim * width, section_delim * width
        return "\n".join(
            [
                "",
                border,
                title,
                line,
                "Failures:",
                *others,
                line,
                "Root Cause (first observed failure):",
                shown[root],
                border,
            ]
        )

    def _describe(self, place: int, rank: int) -> str:
        failure = self.failures[rank]
        ended_by = failure.signal_name()
        rows = {
            "time": failure.timestamp_isoformat(),
            "host": failure.host,
            "rank": f"{rank} (local_rank: {failure.local_rank})",
            "exitcode": f"{failure.exitcode} (pid: {failure.pid})" + (f" ({ended_by})" * (failure.exitcode < 0)),
            "error_file": failure.error_file,
            "traceback": failure.traceback().rstrip("\n").replace("\n", "\n  "),
        }
        return f"[{place}]:\n" + "\n".join(f"  {name:<10}: {value}" for name, value in rows.items())


def record(fn: Callable[..., Any], error_handler: ErrorHandler | None = None) -> Callable[..., Any]:
    """Decorate ``fn``, the main function of a program, so that its exceptions are recorded for the launcher.

    ``error_handler``, by default of :func:`get_error_handler`, writes them. Exceptions are raised again. Programs under
    ``retrograd launch`` need no decorator: their exceptions are recorded in any case.

    >>> @record
    ... def main():
    ...     return 1
    >>> main()
    1
    """
    handler = get_error_handler() if error_handler is None else error_handler

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as error:
            if error.code == 0:
                return None
            raise
        except ChildFailedError as error:
            rank, failure = error.get_first_failure()
            if os.path.isfile(failure.error_file):
                handler.dump_error_file(failure.error_file, failure.exitcode)
            elif isinstance(failure.message, dict):
                handler._write(failure.error_file_data)
            else:
                _LOG.info("rank %s has failed and has recorded no exception", rank)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return recorded


__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]
