"""Processes of the ranks of one node: started, watched by threads that wait, and ended with all that they started."""

from __future__ import annotations

import contextlib
import multiprocessing.connection
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from ... import import_hook
from ...multiprocessing.parent import STARTED_BY, end_with_parent
from ..elastic.multiprocessing import Std
from ..elastic.multiprocessing.errors import ProcessFailure
from ..elastic.multiprocessing.errors.error_handler import ErrorHandler
from . import output

#: Seconds for which the launcher waits for the last output of ranks that have ended. A process that a rank has started
#: and left behind may keep the pipe open.
LAST_OUTPUT = 2.0
#: Beginnings of the variables by which the launchers of MPI number their processes. This launcher numbers its own.
OTHER_LAUNCHERS = ("PMI_", "PMIX_", "OMPI_")
SOURCE = str(Path(import_hook.__file__).parents[1])


def environment(given: dict[str, str]) -> dict[str, str]:
    """Return the environment of a rank, without its own variables: Python finds retrograd in it, also as ``torch``."""
    kept = {name: value for name, value in given.items() if not name.startswith(OTHER_LAUNCHERS)}
    found = {**kept, **import_hook.environment_of_commands(kept), STARTED_BY: str(os.getpid())}
    if os.path.basename(SOURCE) not in ("site-packages", "dist-packages"):
        entries = found["PYTHONPATH"].split(os.pathsep)
        if SOURCE not in entries:
            found["PYTHONPATH"] = os.pathsep.join([entries[0], SOURCE, *entries[1:]])
    return found


class Command:
    """Process of one rank that runs a command."""

    def __init__(self, command: Sequence[str], variables: dict[str, str], streams: dict[str, Any]) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            command, env=environment({**os.environ, **variables}), start_new_session=os.name == "posix", **streams
        )  # fmt: skip
        self.pid: int = self.process.pid

    def wait(self) -> int:
        """Wait until the process has ended, and return its exit code.

        If it has failed, the processes that it has started and left behind are ended before its id is free again.
        """
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                ended = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
                if ended is not None and (ended.si_code != os.CLD_EXITED or ended.si_status != 0):
                    self.signal(signal.SIGTERM)
        return self.process.wait()

    def signal(self, number: int) -> None:
        """Send a signal to the process and to those that it has started."""
        with contextlib.suppress(OSError):
            if os.name == "posix":
                os.killpg(self.pid, number)
            else:
                self.process.terminate()


def _call(function: Callable[..., Any], arguments: Sequence[Any], variables: dict[str, str], result: str) -> None:
    """Call ``function`` in the process of a rank; write its result to the file ``result``."""
    os.environ.update(variables)
    end_with_parent()
    try:
        returned = function(*arguments)
    except Exception as error:
        ErrorHandler().record_exception(error)
        raise
    with open(result, "wb") as file:
        pickle.dump(returned, file)


class Call:
    """Process of one rank that calls a function."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        variables: dict[str, str],
        result: str,
        method: str,
    ) -> None:
        context: Any = multiprocessing.get_context(method)
        self.process: Any = context.Process(target=_call, args=(function, arguments, variables, result))
        self.process.start()
        self.pid: Any = self.process.pid

    def wait(self) -> int:
        """Wait until the process has ended, and return its exit code."""
        multiprocessing.connection.wait([self.process.sentinel])
        self.process.join()
        return int(self.process.exitcode)

    def signal(self, number: int) -> None:
        """Send a signal to the process."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, number)


class Processes:
    """Ranks of one node during one attempt.

    Each has a thread that waits for its end and puts ``("exit", self, local rank)`` into the queue ``events``.
    """

    console: output.Console
    events: SimpleQueue[tuple[Any, ...]]
    folder: str

    def __init__(self, events: SimpleQueue[tuple[Any, ...]], folder: str, console: output.Console) -> None:
        self.events, self.folder, self.console = events, folder, console
        self.processes: list[Command | Call] = []
        self.codes: dict[int, int] = {}
        self.times: dict[int, float] = {}
        self.asked_to_end: set[int] = set()
        self.signal: Any = None  # a signal to the launcher that has come while the ranks were ended
        self.readers: dict[int, list[threading.Thread]] = {}

    def file(self, local_rank: int, name: str) -> str:
        """Return the path of a file of a rank; its folder is created."""
        os.makedirs(os.path.join(self.folder, str(local_rank)), exist_ok=True)
        return os.path.join(self.folder, str(local_rank), name)

    def start_command(self, command: Sequence[str], variables: dict[str, str], logs: Any, prefix: str) -> None:
        """Start the next rank, which runs ``command`` with the environment variables ``variables``."""
        local_rank = len(self.processes)
        redirected, doubled = logs.of(local_rank)
        shown = logs.local_ranks_filter is None or local_rank in logs.local_ranks_filter
        streams: dict[str, Any] = {}
        copies: dict[str, Any] = {}
        for name, flag in zip(output.NAMES, (Std.OUT, Std.ERR), strict=True):
            if (redirected | doubled) & flag:
                copies[name] = open(self.file(local_rank, f"{name}.log"), "wb", buffering=0)  # noqa: SIM115
            streams[name] = copies.pop(name) if redirected & flag and not doubled & flag else subprocess.PIPE
        if self.console.same and not copies and set(streams.values()) == {subprocess.PIPE}:
            streams["stderr"] = subprocess.STDOUT
        process = Command(
            command, {**variables, "TORCHELASTIC_ERROR_FILE": self.file(local_rank, "error.json")}, streams
        )
        readers = self.readers[local_rank] = []
        for name in output.NAMES:
            pipe = getattr(process.process, name)
            if pipe is None:
                if streams[name] is not subprocess.STDOUT:
                    streams[name].close()
                continue
            pipe = open(os.dup(pipe.fileno()), "rb", buffering=0)  # noqa: SIM115 - a read returns what there is
            getattr(process.process, name).close()
            reader = partial(self._forward, pipe, local_rank, name, copies.get(name), shown, f"[{prefix}]:".encode())
            readers.append(threading.Thread(target=reader, daemon=True))
            readers[-1].start()
        self._watch(process)

    def start_call(
        self, function: Callable[..., Any], arguments: Sequence[Any], variables: dict[str, str], method: str
    ) -> None:
        """Start the next rank, which calls ``function(*arguments)``."""
        local_rank = len(self.processes)
        variables = {**variables, "TORCHELASTIC_ERROR_FILE": self.file(local_rank, "error.json")}
        self._watch(Call(function, arguments, variables, self.file(local_rank, "result"), method))

    def _forward(self, pipe: Any, local_rank: int, name: str, copy: Any, shown: bool, prefix: bytes) -> None:
        """Show what a rank writes to ``pipe``; with a file ``copy``, write it there, too, and show it with ``prefix``."""

        def write(data: bytes) -> None:
            if copy is not None:
                copy.write(data)
            if shown:
                self.console.write(local_rank, name, data if copy is None else output.prefixed(prefix, data))

        with copy or contextlib.nullcontext():
            output.forward(pipe, write, bars=copy is None)

    def _watch(self, process: Command | Call) -> None:
        local_rank = len(self.processes)
        self.processes.append(process)

        def wait() -> None:
            code = process.wait()
            self.times[local_rank] = time.time()
            self.codes[local_rank] = code
            self.events.put(("exit", self, local_rank))

        threading.Thread(target=wait, daemon=True).start()

    def show_the_rest(self) -> None:
        """Wait until the output of the ranks, all of which have ended, is written."""
        until = time.monotonic() + LAST_OUTPUT
        for readers in self.readers.values():
            for reader in readers:
                reader.join(max(0.0, until - time.monotonic()))

    def result(self, local_rank: int) -> Any:
        """Return what the function of a rank has returned."""
        with open(self.file(local_rank, "result"), "rb") as file:
            return pickle.load(file)

    def running(self) -> set[int]:
        """Return the local ranks that have not ended. Threads add exit codes: the dictionary is not iterated over."""
        return {place for place in range(len(self.processes)) if place not in self.codes}

    def end(self, number: int, grace: float) -> None:
        """Send the signal ``number`` to the ranks, and SIGKILL to those that run ``grace`` seconds later.

        A signal to the launcher meanwhile ends the grace.
        """
        self.asked_to_end |= self.running()
        for place in self.running():
            self.processes[place].signal(number)
        until, killed = time.monotonic() + grace, False
        while self.running():
            try:
                event = self.events.get(timeout=None if killed else max(0.0, until - time.monotonic()))
            except Empty:
                event = ("signal", None)
            if event[0] != "signal":
                continue
            self.signal = event[1] or self.signal
            if not killed:
                killed = True
                for place in self.running():
                    self.processes[place].signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    def failures(self, first_rank: int) -> dict[int, ProcessFailure]:
        """Return the failures of the ranks that have failed by themselves, by global rank."""
        found = {}
        for place, code in self.codes.copy().items():
            file = self.file(place, "error.json")
            recorded = os.path.exists(file)
            if code == 0 or (place in self.asked_to_end and not recorded):
                continue
            failure = ProcessFailure(place, self.processes[place].pid, code, file)
            if place in self.asked_to_end and code < 0 and isinstance(failure.message, dict):
                failure.exitcode = int(failure.message.get("errorCode", 1))  # it had failed, and was about to exit
            if not recorded:
                failure.timestamp = self.times[place]
            found[first_rank + place] = failure
        return found


def python_command() -> list[str]:
    """Return the command that starts Python for a rank, with unbuffered output."""
    return [os.environ.get("PYTHON_EXEC", sys.executable), "-u"]
