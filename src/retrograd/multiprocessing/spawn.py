"""``spawn`` and ``start_processes``: a function that runs in several processes, and its errors."""

from __future__ import annotations

import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from ..runtime.user_frame import warn
from .parent import end_with_parent

#: Name of the environment variable with which PyTorch starts processes in parallel; it has no effect.
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """Base class of the errors of :func:`spawn`: process ``error_index``, with the id ``error_pid``, has failed."""

    __module__ = "torch.multiprocessing.spawn"
    error_index: int
    error_pid: int
    msg: str

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, error_pid

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """Error for a process whose function has raised an exception; the message has the traceback."""

    __module__ = "torch.multiprocessing.spawn"


class ProcessExitedException(ProcessException):
    """Error for a process that has exited with ``exit_code``, or that the signal ``signal_name`` has ended."""

    __module__ = "torch.multiprocessing.spawn"
    exit_code: int
    signal_name: str | None

    def __init__(
        self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None
    ) -> None:  # fmt: skip
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


def _wrap(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: str) -> None:
    """Call ``fn(i, *args)`` in a new process; write the traceback of an exception to ``error_file``."""
    end_with_parent(signal.SIGINT)
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent process gets it as well
    except Exception as error:
        sys.last_value = error  # as for any uncaught exception: the other ranks get it at the end of the process
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.exit(1)


class ProcessContext:
    """Processes started by :func:`start_processes`, in the list ``processes``."""

    __module__ = "torch.multiprocessing.spawn"
    error_files: list[str]
    processes: list[Any]

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        self.processes, self.error_files = processes, error_files
        self.sentinels: dict[Any, int] = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """Return a list of the ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Wait until all processes have ended; return True, or False if some are running after ``timeout`` seconds.

        If a process has failed, the others are terminated, and ProcessRaisedException or ProcessExitedException is
        raised. With ``grace_period``, they first have that many seconds to end by themselves.
        """
        if not self.sentinels:
            return True
        ended = multiprocessing.connection.wait(list(self.sentinels), timeout)
        failed = []
        for sentinel in ended:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                failed.append(index)
        if not failed:
            return not self.sentinels
        if grace_period is not None:
            self._join_all(grace_period)
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        self._join_all(30 if grace_period is None else grace_period)
        for process in self.processes:
            if process.is_alive():
                process.kill()
            process.join()
        raise self._error(self._first(failed))

    def _join_all(self, seconds: float) -> None:
        """Wait until all processes have ended, at most ``seconds``."""
        until = time.monotonic() + seconds
        for process in self.processes:
            process.join(max(0.0, until - time.monotonic()))

    def _first(self, failed: list[int]) -> int:
        """Return the process that has failed first: its end may be the reason of the others' errors.

        A process that has raised an exception may have been about to end when ``failed``, the others, had ended.
        """
        raised = [index for index, file in enumerate(self.error_files) if os.path.getsize(file)]

        def when(index: int) -> float:
            return os.stat(self.error_files[index]).st_mtime if index in raised else 0.0

        return min({*failed, *raised}, key=when)

    def _error(self, index: int) -> ProcessException:
        """Return the error for the process ``index``."""
        process = self.processes[index]
        name, code, pid = self.error_files[index], process.exitcode, process.pid
        if os.path.getsize(name):
            with open(name, "rb") as file:
                text = pickle.load(file)
            return ProcessRaisedException(
                f"\n\n-- Process {index} terminated with the following error:\n{text}", index, pid
            )
        if code < 0:
            ended_by = signal.Signals(-code).name
            words = f"process {index} terminated with signal {ended_by}"
            return ProcessExitedException(words, index, pid, code, ended_by)
        return ProcessExitedException(f"process {index} terminated with exit code {code}", index, pid, code)

    def __del__(self) -> None:
        for name in getattr(self, "error_files", ()):
            with contextlib.suppress(OSError):
                os.unlink(name)


class SpawnContext(ProcessContext):
    """Former name of :class:`ProcessContext`."""

    __module__ = "torch.multiprocessing.spawn"

    def __init__(self, processes: list[Any], error_files: list[str]) -> None:
        warn("SpawnContext is renamed to ProcessContext since 1.4 release.")
        super().__init__(processes, error_files)


def start_processes(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Start ``nprocs`` processes; process ``i`` calls ``fn(i, *args)``.

    If ``join`` is true, wait for them and return None; an error in one of them is raised, and ends the others.
    Otherwise return a ProcessContext. ``start_method`` is ``"spawn"``, ``"fork"`` or ``"forkserver"``.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, files = [], []
    for index in range(nprocs):
        handle, name = tempfile.mkstemp(prefix="retrograd-error-")
        os.close(handle)
        process = context.Process(target=_wrap, args=(fn, index, args, name), daemon=daemon)
        process.start()
        processes.append(process)
        files.append(name)
    started = ProcessContext(processes, files)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any], args: tuple[Any, ...] = (), nprocs: int = 1, join: bool = True, daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:  # fmt: skip
    """Call ``fn(i, *args)`` in ``nprocs`` new processes, as :func:`start_processes` does with the method ``"spawn"``."""
    if start_method != "spawn":
        warn(
            f"This method only supports start_method=spawn (got: {start_method}).\nTo use a different start_method use:\n"
            "\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
        )
    return start_processes(fn, args, nprocs, join, daemon)


__all__ = [
    "ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip
