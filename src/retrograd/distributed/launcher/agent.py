"""The launcher of one node: starts its ranks, waits for an event, and ends or restarts them together.

Events come from threads (a rank has ended, the nodes have agreed on an outcome) and from signal handlers, through one
queue, so that the launcher sleeps until something happens.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import count
from queue import SimpleQueue
from string import Template
from typing import Any

from ..elastic.multiprocessing import SignalException
from ..elastic.multiprocessing.errors import NOT_AVAILABLE, ChildFailedError, ProcessFailure
from .api import LaunchConfig
from .nodes import Nodes, Place, from_json
from .output import Console
from .processes import Processes

DEFAULT_PORTS = {"static": 29500}


def host_and_port(endpoint: str, backend: str) -> tuple[str, int]:
    """Return the host and the port of ``"host:port"``; an IPv6 address is written in brackets.

    >>> host_and_port("localhost:0", "c10d")
    ('localhost', 0)
    """
    host, colon, port = endpoint.strip().rpartition(":")
    if not colon or endpoint.strip().endswith("]"):
        host, port = endpoint.strip(), str(DEFAULT_PORTS.get(backend, 29400))
    host = host.strip("[]")
    if not host:
        raise ValueError("Endpoint is missing in endpoint. Try to add --master-addr and --master-port")
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"port is missing in endpoint: {endpoint}. Try to specify --master-port")
    return host, int(port)


def say(text: str) -> None:
    """Print a message of the launcher to standard error."""
    print(f"retrograd launch: {text}", file=sys.stderr, flush=True)


class Agent:
    """Launcher of the ranks of this node, with the options ``config``."""

    args: list[Any]
    config: LaunchConfig

    def __init__(self, config: LaunchConfig, entrypoint: Callable[..., Any] | str | None, args: Sequence[Any]) -> None:
        self.config, self.entrypoint, self.args = config, entrypoint, list(args)
        self.events: SimpleQueue[tuple[Any, ...]] = SimpleQueue()
        self.console: Console = Console()
        self.grace: float = float(config.shutdown_timeout or 0)
        self.at_work: bool = False

    @property
    def name(self) -> str:
        """Name of the program or of the function, for messages."""
        if callable(self.entrypoint):
            return getattr(self.entrypoint, "__name__", repr(self.entrypoint))
        words = [each for each in self.args if isinstance(each, str) and not each.startswith("-")]
        if self.entrypoint == sys.executable and words:
            return words[1] if words[0].startswith(f"{__package__}.") and len(words) > 1 else words[0]
        return str(self.entrypoint)

    def run(self) -> dict[int, Any]:
        """Run the ranks until they have ended well, restart them after failures, and return their results."""
        config = self.config
        node = int(config.rdzv_configs.get("rank", 0)) if config.rdzv_backend == "static" else None
        if node is not None and not 0 <= node < config.max_nodes:
            raise ValueError(f"--node-rank is {node}, but --nnodes is {config.max_nodes}")
        endpoint = host_and_port(config.rdzv_endpoint or "localhost:0", config.rdzv_backend)
        with self._signals():
            nodes = Nodes(config, node, endpoint, self.events)
            folder = config.logs_specs.run_folder(config.run_id)
            try:
                return self._attempts(nodes, folder)
            finally:
                nodes.leave()
                if not config.logs_specs.keeps_files():
                    shutil.rmtree(folder, ignore_errors=True)

    def _attempts(self, nodes: Nodes, folder: str) -> dict[int, Any]:
        for attempt in count():
            place = nodes.meet(attempt)
            processes = Processes(self.events, os.path.join(folder, f"attempt_{attempt}"), self.console)
            self.at_work = True
            try:
                outcome = self._attempt(nodes, place, processes, attempt)
            except BaseException as error:
                with contextlib.suppress(RuntimeError, OSError):
                    nodes.decide(
                        {"kind": "stop", "why": f"the launcher on {socket.gethostname()} has stopped: {error}"}
                    )
                raise
            finally:
                processes.end(signal.SIGTERM, self.grace)
                processes.show_the_rest()
                self.at_work = False
            if outcome["kind"] == "success":
                return self._results(place, processes)
            if processes.signal is not None:
                raise stopped_by(processes.signal)
            if outcome["kind"] == "stop":
                raise RuntimeError(outcome["why"])
            known = {int(outcome["rank"]): from_json(outcome["failure"])}
            known |= nodes.exchange(processes.failures(place.first_rank), self.grace + 5.0)
            if not self.config.logs_specs.keeps_files():
                for failure in known.values():
                    failure.error_file = NOT_AVAILABLE  # the folder will be removed
            failed = ChildFailedError(self.name, known)
            if attempt == self.config.max_restarts:
                raise failed
            rank, first = failed.get_first_failure()
            say(
                f"{ended(rank, first)}; all ranks start again (restart {attempt + 1} of {self.config.max_restarts}):\n"
                f"{first.traceback().rstrip()}"
            )
        raise AssertionError

    def _attempt(self, nodes: Nodes, place: Place, processes: Processes, attempt: int) -> dict[str, Any]:
        """Start the ranks, and return the outcome of the attempt; ranks may be running still."""
        nodes.watch()
        for local_rank in range(self.config.nproc_per_node):
            self._start(place, processes, local_rank, attempt)
        while True:
            event = self.events.get()
            if event[0] == "exit" and event[1] is processes:
                failures = processes.failures(place.first_rank)
                if failures:
                    rank, failure = min(failures.items(), key=lambda each: each[1].order)
                    return nodes.decide({"kind": "failure", "rank": rank, "failure": vars(failure)})
                if len(processes.codes) == self.config.nproc_per_node:
                    outcome = nodes.finished()
                    if outcome is not None:
                        return outcome
            elif event[0] == "decided" and event[1] == attempt:
                return dict(event[2])
            elif event[0] == "lost":
                raise RuntimeError(event[1])
            elif event[0] == "signal":
                processes.end(event[1], self.grace)
                raise stopped_by(event[1])

    def _start(self, place: Place, processes: Processes, local_rank: int, attempt: int) -> None:
        config, rank = self.config, place.first_rank + local_rank
        variables = {
            "RANK": rank,
            "LOCAL_RANK": local_rank,
            "WORLD_SIZE": place.world_size,
            "LOCAL_WORLD_SIZE": config.nproc_per_node,
            "GROUP_RANK": place.node,
            "GROUP_WORLD_SIZE": place.nodes,
            "ROLE_RANK": rank,
            "ROLE_WORLD_SIZE": place.world_size,
            "ROLE_NAME": config.role,
            "MASTER_ADDR": place.master_addr,
            "MASTER_PORT": place.master_port,
            "TORCHELASTIC_RESTART_COUNT": attempt,
            "TORCHELASTIC_MAX_RESTARTS": config.max_restarts,
            "TORCHELASTIC_RUN_ID": config.run_id,
            "TORCHELASTIC_USE_AGENT_STORE": True,
            "TORCHELASTIC_SIGNALS_TO_HANDLE": config.signals_to_handle,
        }
        if config.virtual_local_rank:
            devices = os.environ.get("CUDA_VISIBLE_DEVICES", "")
            visible = devices.split(",") if devices else [str(each) for each in range(config.nproc_per_node)]
            variables |= {"LOCAL_RANK": 0, "CUDA_VISIBLE_DEVICES": visible[local_rank % len(visible)]}
        texts = {name: str(value) for name, value in variables.items()}
        arguments = [
            each.replace("${local_rank}", texts["LOCAL_RANK"]) if isinstance(each, str) else each for each in self.args
        ]
        if callable(self.entrypoint):
            processes.start_call(self.entrypoint, arguments, texts, config.start_method)
            return
        template = config.log_line_prefix_template or "${role_name}${rank}"
        prefix = Template(template).safe_substitute(role_name=config.role, rank=rank, local_rank=local_rank)
        processes.start_command([str(self.entrypoint), *map(str, arguments)], texts, config.logs_specs, prefix)

    def _results(self, place: Place, processes: Processes) -> dict[int, Any]:
        ranks = range(self.config.nproc_per_node)
        return {
            place.first_rank + each: processes.result(each) if callable(self.entrypoint) else None for each in ranks
        }

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Return a context in which the signals of the configuration become events."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def received(number: int, frame: Any) -> None:
            if not self.at_work:  # it waits for other launchers
                raise stopped_by(signal.Signals(number))
            self.events.put(("signal", signal.Signals(number)))

        before = {}
        for name in filter(None, self.config.signals_to_handle.split(",")):
            number = getattr(signal, name.strip(), None)
            if number is not None:  # Windows lacks some
                before[number] = signal.signal(number, received)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def stopped_by(number: signal.Signals) -> SignalException:
    """Return the error for a signal to the launcher."""
    return SignalException(f"Process {os.getpid()} got signal: {int(number)}", number)


def ended(rank: int, failure: ProcessFailure) -> str:
    """Return a text about the end of a rank."""
    how = f"signal {failure.signal_name()}" if failure.exitcode < 0 else f"exit code {failure.exitcode}"
    return f"rank {rank} (process {failure.pid} on {failure.host}) has ended with {how}"
