"""Agreement of the launchers of several nodes, through a store that the launcher of node 0 hosts.

Note [One job on several nodes]. Every attempt has its own keys, ``launch/<job>/<attempt>/…``:

    node/<n>     set by each launcher as it arrives: its host, its number of ranks
    members      set by node 0 when all have arrived: the first rank of each node, the number of ranks, the store's address
    alive/<n>    heartbeat: a number that each launcher raises every few seconds
    finished     the number of nodes all of whose ranks have ended well
    outcome      set once, by the first launcher that has it: success, the failure of a rank, or a signal
    failures/<n> the failures of the node's ranks, after a failure, when they have ended
    left/<n>     set by each launcher that needs the store no longer

A thread of each launcher waits for ``outcome`` (and for nothing else, so that the launcher need not poll). The ranks use
the same store: ``init_process_group`` connects to the launcher, with keys that begin with ``/worker/attempt_<attempt>``.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from queue import SimpleQueue
from typing import Any

from ..elastic.multiprocessing.errors import ProcessFailure
from ..errors import DistNetworkError, DistStoreError
from ..stores import PrefixStore, Store, TCPStore

HEARTBEAT_INTERVAL = 5.0  # seconds between two heartbeats of a launcher
HEARTBEAT_TIMEOUT = 30.0  # seconds without a heartbeat after which a launcher counts as failed
LEAVING = 5.0  # seconds that the launcher with the store waits for the others to have read the outcome
RETURN = 60.0  # seconds, beside those to end ranks, within which all launchers come to the next attempt


@dataclass
class Place:
    """Place of one node in the job during one attempt."""

    node: int
    nodes: int
    first_rank: int
    world_size: int
    master_addr: str
    master_port: int


def is_this_host(name: str) -> bool:
    """Whether ``name`` is a name or an address of this machine."""
    if name in ("localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()):
        return True
    with contextlib.suppress(OSError):
        for family, kind, protocol, _, address in socket.getaddrinfo(name, None):
            with contextlib.suppress(OSError), socket.socket(family, kind, protocol) as here:
                here.bind((address[0], 0))  # only an address of this machine can be bound
                return True
    return False


def from_json(data: dict[str, Any]) -> ProcessFailure:
    """Return the ProcessFailure whose attributes are ``data``."""
    failure = object.__new__(ProcessFailure)
    vars(failure).update(data)
    return failure


class Nodes:
    """The launchers of one job, seen from the launcher of one node.

    Args:
        config: The LaunchConfig.
        node: Number of this node, or None if the launchers are numbered as they arrive.
        endpoint: Host and port of the store.
        events: Queue for ``("decided", outcome)`` and ``("lost", text)``.
    """

    round: PrefixStore
    met: bool
    config: Any
    events: SimpleQueue[tuple[Any, ...]]
    host: str
    port: int

    def __init__(
        self, config: Any, node: int | None, endpoint: tuple[str, int], events: SimpleQueue[tuple[Any, ...]]
    ) -> None:
        self.config, self.events = config, events
        self.host, self.port = endpoint
        self.number, self.met = config.max_nodes, False
        self.patience: timedelta = timedelta(
            seconds=float(config.rdzv_configs.get("join_timeout", config.rdzv_configs["timeout"]))
        )
        self.hosting = (self.number == 1 or is_this_host(self.host)) if node is None else node == 0
        self.server: TCPStore = self._open(node)
        self.store: Store = PrefixStore(f"launch/{config.run_id}", self.server)
        self.node: int = self.store.add("arrivals", 1) - 1 if node is None else node
        if self.node >= self.number:
            raise RuntimeError(f"this launcher is number {self.node + 1}, but --nnodes is {self.number}")

    def _open(self, node: int | None) -> TCPStore:
        """Return the store: hosted here, or on another node."""
        if self.hosting:
            try:
                store = TCPStore(
                    self.host, self.port, is_master=True, timeout=self.patience, wait_for_workers=False
                )  # fmt: skip
            except RuntimeError as error:
                if self.number == 1 or node == 0:
                    raise DistNetworkError(
                        f"the launcher cannot host its store on port {self.port}: {error}"
                    ) from error
                self.hosting = False  # another launcher of this job, on the same machine, hosts it
            else:
                self.port = store.port
                return store
        return self._connect()

    def _connect(self) -> TCPStore:
        return TCPStore(self.host, self.port, is_master=False, timeout=self.patience)

    def _wait(self, store: Store, keys: list[str], names: dict[str, str], seconds: float) -> None:
        """Wait for ``keys``; the error after ``seconds`` says which of ``names`` are missing."""
        try:
            store.wait(keys, timedelta(seconds=seconds))
        except DistNetworkError:
            raise
        except DistStoreError:
            missing = [names[each] for each in keys if not store.check([each])]
            raise DistStoreError(
                f"after {seconds:.0f} s, {', '.join(missing)} of {self.number} nodes had not come to {self.host}:"
                f"{self.port} for the job {self.config.run_id!r} (--nnodes {self.number}, --rdzv-conf join_timeout=…)"
            ) from None

    def meet(self, attempt: int) -> Place:
        """Wait for the launchers of all nodes, and return the place of this node."""
        self.attempt = attempt
        store = self.round = PrefixStore(str(attempt), self.store)
        ranks = int(self.config.nproc_per_node)
        if self.number == 1:
            return Place(0, 1, 0, ranks, self._address(), self.port)
        mine = json.dumps({"host": socket.gethostname(), "pid": os.getpid(), "ranks": ranks})
        found = store.compare_set(f"node/{self.node}", "", mine).decode()
        if found != mine:
            other = json.loads(found)
            raise RuntimeError(
                f"two launchers have the --node-rank {self.node}: process {other['pid']} on {other['host']}, and process "
                f"{os.getpid()} on {socket.gethostname()}"
            )
        if self.node == 0:
            keys = self._arrivals(store, attempt)
            counts = [json.loads(each)["ranks"] for each in store.multi_get(keys)]
            members: dict[str, Any] = {"counts": counts, "address": self._address(), "port": self.port}
            store.set("members", json.dumps(members))
        else:
            self._wait(store, ["members"], {"members": "some"}, self._patience(attempt) + HEARTBEAT_INTERVAL)
            members = json.loads(store.get("members"))
            counts = members["counts"]
        self.number, self.met = len(counts), True
        if self.node >= self.number:
            raise RuntimeError(f"the job {self.config.run_id!r} has started with {self.number} nodes, without this one")
        return Place(
            self.node, self.number, sum(counts[: self.node]), sum(counts), str(members["address"]), int(members["port"])
        )

    def _arrivals(self, store: Store, attempt: int) -> list[str]:
        """Wait for the launchers of all nodes, and return their keys.

        At first, after ``config.min_nodes`` have come, wait for more until the last call is over.
        """
        least = self.config.min_nodes if attempt == 0 else self.number
        keys = [f"node/{each}" for each in range(least)]
        self._wait(store, keys, {key: key.replace("/", " ") for key in keys}, self._patience(attempt))
        until = time.monotonic() + float(self.config.rdzv_configs.get("last_call_timeout", 30))
        with contextlib.suppress(DistStoreError):
            while len(keys) < self.number:
                store.wait([f"node/{len(keys)}"], timedelta(seconds=max(0.001, until - time.monotonic())))
                keys.append(f"node/{len(keys)}")
        return keys

    def _patience(self, attempt: int) -> float:
        """Return the seconds to wait for the other launchers."""
        return self.patience.total_seconds() if attempt == 0 else float(self.config.shutdown_timeout) + RETURN

    def _address(self) -> str:
        return (self.config.local_addr if self.hosting else None) or self.host

    def watch(self) -> None:
        """Start the thread that waits for the outcome of this attempt and sends the heartbeats of this launcher."""
        if self.number > 1:
            threading.Thread(target=self._watch, args=(self.attempt,), daemon=True).start()

    def _watch(self, attempt: int) -> None:
        try:
            store = PrefixStore(f"launch/{self.config.run_id}/{attempt}", self._connect())
            seen = {each: (b"", time.monotonic()) for each in range(self.number) if each != self.node}
            while True:
                store.add(f"alive/{self.node}", 1)
                try:
                    store.wait(["outcome"], timedelta(seconds=HEARTBEAT_INTERVAL))
                except DistNetworkError:
                    raise
                except DistStoreError:
                    if self.node == 0 and (silent := self._silent(store, seen)):
                        self.events.put(
                            ("lost", f"the launcher of {silent} has sent no heartbeat for {HEARTBEAT_TIMEOUT:.0f} s")
                        )
                        return
                else:
                    self.events.put(("decided", attempt, json.loads(store.get("outcome"))))
                    return
        except (RuntimeError, OSError) as error:
            self.events.put(
                ("lost", f"the launcher that hosts the store, at {self.host}:{self.port}, is gone ({error})")
            )

    @staticmethod
    def _silent(store: Store, seen: dict[int, tuple[bytes, float]]) -> str:
        """Return the nodes without a heartbeat within ``HEARTBEAT_TIMEOUT``, as a text; update ``seen``."""
        for node, (before, _) in seen.items():
            key = f"alive/{node}"
            value = store.get(key) if store.check([key]) else b""
            if value != before:
                seen[node] = value, time.monotonic()
        now = time.monotonic()
        return ", ".join(f"node {node}" for node, (_, since) in seen.items() if now - since > HEARTBEAT_TIMEOUT)

    def finished(self) -> dict[str, Any] | None:
        """Report that the ranks of this node have ended well; return the outcome, or None if it is not known yet."""
        if self.number == 1:
            return {"kind": "success"}
        if self.round.add("finished", 1) == self.number:
            return self.decide({"kind": "success"})
        return None

    def decide(self, outcome: dict[str, Any]) -> dict[str, Any]:
        """Propose ``outcome``, and return the one that was proposed first."""
        if self.number == 1:
            return outcome
        found: dict[str, Any] = json.loads(self.round.compare_set("outcome", "", json.dumps(outcome)))
        return found

    def exchange(self, failures: dict[int, ProcessFailure], seconds: float) -> dict[int, ProcessFailure]:
        """Publish the failures of this node; return those of all nodes that publish theirs within ``seconds``."""
        if self.number == 1:
            return failures
        self.round.set(f"failures/{self.node}", json.dumps({rank: vars(each) for rank, each in failures.items()}))
        keys = [f"failures/{each}" for each in range(self.number)]
        with contextlib.suppress(DistStoreError):
            self.round.wait(keys, timedelta(seconds=seconds))
        told = [json.loads(self.round.get(key)) for key in keys if self.round.check([key])]
        return {int(rank): from_json(each) for found in told for rank, each in sorted(found.items())}

    def leave(self) -> None:
        """Report that this launcher ends; node 0, which hosts the store, waits for the others."""
        if self.number == 1 or not self.met:
            return
        with contextlib.suppress(RuntimeError, OSError):
            self.round.set(f"left/{self.node}", "1")
            if self.hosting:
                self.round.wait([f"left/{each}" for each in range(self.number)], timedelta(seconds=LEAVING))
