"""Coordinator of a job: the PMI server of its ranks, which also detects ranks that have failed.

It is a process beside the ranks, started by rank 0. Each rank has two connections to it. Over the first one its MPI
library sends requests in PMI-1, the protocol between MPICH or Intel MPI and their ``mpiexec``: lines of ``name=value``
words. The second one, the watch connection, stays open. When it closes without notice, the coordinator reports to the
other ranks that this one is gone. Messages on it are JSON objects, one a line; ``watch.py`` is the other side.

The program runs by ``python -I -S`` and imports the standard library only, because the job waits for its start.

References: PMI-1 as documented in the source of MPICH, ``src/pmi``, and P. Balaji et al., "PMI: A Scalable Parallel
Process-Management Interface for Extreme-Scale Systems", EuroMPI 2010.
"""

from __future__ import annotations

import json
import os
import selectors
import socket
import sys
import time
from contextlib import suppress
from itertools import groupby

#: Seconds for which ranks may answer the question where they are.
ANSWER_TIME = 2.0
#: Seconds for which the processes of ranks may exist after their programs have ended.
EXIT_TIME = 60.0
Message = dict[str, object]


class Client:
    """Connection of one rank: ``kind`` is "pmi", "watch", or "" before its first line."""

    connection: socket.socket
    kind: str
    rank: int
    received: bytes

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.kind, self.rank, self.received = connection, "", -1, b""

    def write(self, text: str) -> None:
        """Send a line. A connection that is closed meanwhile is noticed by the next read."""
        with suppress(OSError):
            self.connection.sendall(text.encode() + b"\n")

    def send(self, **message: object) -> None:
        """Send a message."""
        self.write(json.dumps(message))


class Coordinator:
    """Ranks of a job of ``size`` ranks, and what they wait for.

    ``token`` is the secret of the job. ``seconds`` is the time within which all ranks have to start MPI.
    """

    listener: socket.socket
    name: str
    size: int
    token: str

    def __init__(self, listener: socket.socket, size: int, name: str, token: str, seconds: float) -> None:
        self.listener, self.size, self.name, self.token = listener, size, name, token
        self.deadline: float | None = time.monotonic() + seconds
        self.selector: selectors.DefaultSelector = selectors.DefaultSelector()
        self.watched: dict[int, Client] = {}
        self.mpi: dict[int, Client] = {}
        self.who: dict[int, str] = {}  # "rank 1 (process 123 on node4)"
        self.hosts: dict[int, str] = {}
        self.values: dict[str, str] = {}
        self.in_barrier: list[Client] = []
        self.ready: set[int] = set()
        self.leaving: set[int] = set()
        self.gone: dict[int, str] = {}
        self.askers: dict[int, int] = {}  # rank -> number of its question
        self.answers: dict[int, str] = {}
        self.answer_deadline: float | None = None
        # Set when all ranks have gone. MPICH sends one more request at the very end of a process; processes that were forked from
        # a rank may keep its pipe and its connection open for ever.
        self.end: float | None = None
        self.parent_lives: bool = (
            os.name != "nt"
        )  # Windows cannot select a pipe: there the deadline of the start counts

    def run(self) -> None:
        """Serve until the ranks have gone."""
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        if self.parent_lives:
            self.selector.register(sys.stdin, selectors.EVENT_READ, self.read_parent)
        while self.parent_lives or self.deadline is not None or self.watched or self.mpi:
            deadlines = [each for each in (self.deadline, self.answer_deadline, self.end) if each is not None]
            wait = max(0.0, min(deadlines) - time.monotonic()) if deadlines else None
            for key, _ in self.selector.select(wait):
                key.data() if not isinstance(key.data, Client) else self.read(key.data)
            if self.answer_deadline is not None and time.monotonic() >= self.answer_deadline:
                self.send_answers()
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.fail_start()
            if self.end is not None and (not self.mpi or time.monotonic() >= self.end):
                return

    def read_parent(self) -> None:
        """Notice that rank 0, which holds the other end of the standard input, has ended."""
        if not os.read(sys.stdin.fileno(), 64):
            self.parent_lives = False
            self.selector.unregister(sys.stdin)
            if 0 not in self.watched and 0 not in self.gone:
                self.tell_gone(0, "rank 0 is gone: it ended before the start of MPI")

    def accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.settimeout(10)  # for writing; reads follow the selector
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        self.selector.register(connection, selectors.EVENT_READ, Client(connection))

    def read(self, client: Client) -> None:
        try:
            data = b"" if client.connection.fileno() < 0 else client.connection.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self.close(client)
            return
        *lines, client.received = (client.received + data).split(b"\n")
        for line in lines:
            text = line.decode(errors="replace")
            try:
                if client.kind == "pmi":
                    self.answer_mpi(client, dict(word.split("=", 1) for word in text.split() if "=" in word))
                elif client.kind == "watch":
                    self.answer_rank(client, json.loads(text))
                else:
                    self.greet(client, json.loads(text))
            except (KeyError, TypeError, ValueError) as error:
                print(f"retrograd coordinator: rank {client.rank} sent {text[:200]!r}: {error}", file=sys.stderr)
                self.close(client)
                return

    def greet(self, client: Client, hello: Message) -> None:
        """Admit a connection that has sent the token of the job."""
        if hello["token"] != self.token:
            raise ValueError("wrong token")
        client.kind, client.rank = str(hello["kind"]), int(str(hello["rank"]))
        self.who[client.rank] = f"rank {client.rank} (process {hello['process']} on {hello['host']})"
        if client.kind == "watch":
            self.watched[client.rank] = client
            self.hosts[client.rank] = str(hello["node"])
            for rank, why in self.gone.items():
                client.send(gone=rank, why=why)
            if (
                len(self.hosts) == self.size
            ):  # MPI requests which ranks share a machine, and holds the interpreter's lock
                for each in self.watched.values():
                    each.send(welcome=self.size)
        else:
            self.mpi[client.rank] = client

    def close(self, client: Client) -> None:
        if client.connection.fileno() < 0:  # closed for another reason in the same round
            return
        self.selector.unregister(client.connection)
        client.connection.close()
        if client.kind == "pmi":
            self.mpi.pop(client.rank, None)
        elif client.kind == "watch" and self.watched.get(client.rank) is client:
            del self.watched[client.rank]
            if not self.watched and len(self.hosts) == self.size:
                self.end, self.deadline = time.monotonic() + EXIT_TIME, None
            if client.rank not in self.gone:
                self.tell_gone(client.rank, f"{self.who[client.rank]} is gone: its connection closed")

    def tell_gone(self, rank: int, why: str) -> None:
        """Report to the other ranks that ``rank`` is gone; stop those that wait for it in MPI_Init."""
        self.gone[rank] = why
        for each in self.watched.values():
            if each.rank != rank:
                each.send(gone=rank, why=why)
        if self.deadline is not None and len(self.ready) < self.size:
            self.stop_start(why)

    # -- Messages of ranks ---------------------------------------------------------------------------------------------

    def answer_rank(self, client: Client, message: Message) -> None:
        """Answer a message of a watch connection."""
        rank = client.rank
        match message["do"]:
            case "ready":  # MPI_Init has returned
                self.ready.add(rank)
                if len(self.ready) == self.size:
                    self.deadline = None
            case "leaving":  # the program has ended, and waits for the others to finalize MPI
                self.leaving.add(rank)
                for each in self.watched.values():
                    if each is not client:
                        each.send(left=rank, why=f"{self.who[rank]} has ended its program")
                if len(self.leaving) == self.size:
                    for each in self.watched.values():
                        each.send(finalize=True)
            case "failed":  # the program has ended by an exception
                self.tell_gone(rank, f"{self.who[rank]} is gone: {message['why']}")
            case "bye":
                self.gone.setdefault(rank, "")
            case "ask":
                self.askers[rank] = int(str(message["number"]))
                if self.answer_deadline is None:
                    self.answer_deadline = time.monotonic() + ANSWER_TIME
                    for each in self.watched.values():
                        each.send(where=True)
            case "here":
                self.answers[rank] = str(message["text"])
                if self.answer_deadline is not None and self.watched.keys() <= self.answers.keys():
                    self.send_answers()
            case other:
                raise ValueError(f"unknown message {other}")

    def send_answers(self) -> None:
        """Send all answers to the ranks that have asked."""
        for rank, number in self.askers.items():
            if rank in self.watched:
                self.watched[rank].send(answers=self.answers, number=number)
        self.askers, self.answers, self.answer_deadline = {}, {}, None

    # -- Start of MPI --------------------------------------------------------------------------------------------------

    def fail_start(self) -> None:
        """Say which ranks have not started within the time."""
        missing = sorted(set(range(self.size)) - self.ready)
        self.stop_start(f"ranks {', '.join(map(str, missing))} did not start MPI within the timeout")

    def stop_start(self, why: str) -> None:
        """End the MPI_Init of ranks that wait in it: MPI ends a process whose connection closes."""
        self.deadline = None
        if self.mpi:
            print(f"retrograd: the start of MPI failed: {why}", file=sys.stderr, flush=True)
        for each in self.watched.values():
            if each.rank not in self.gone:
                each.send(gone=-1, why=f"the start of MPI failed: {why}")
        for each in list(self.mpi.values()):
            if each.rank not in self.ready:
                each.write("cmd=barrier_out rc=-1 msg=rank_is_gone")
                self.close(each)

    def mapping(self) -> str:
        """Return which ranks share a machine, in blocks of successive ranks: first machine, machines, ranks on each."""
        numbers = {
            node: number for number, node in enumerate(dict.fromkeys(self.hosts[each] for each in range(self.size)))
        }
        blocks: list[list[int]] = []
        for node, ranks in groupby(numbers[self.hosts[each]] for each in range(self.size)):
            count = len(list(ranks))
            if blocks and blocks[-1][2] == count and node == blocks[-1][0] + blocks[-1][1]:
                blocks[-1][1] += 1
            else:
                blocks.append([node, 1, count])
        return "(vector," + ",".join("({},{},{})".format(*each) for each in blocks) + ")"

    def answer_mpi(self, client: Client, request: dict[str, str]) -> None:
        """Answer a request in PMI-1."""
        match request["cmd"]:
            case "init":
                client.write("cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0")
            case "get_maxes":
                client.write("cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024 rc=0")
            case "get_appnum":
                client.write("cmd=appnum appnum=0 rc=0")
            case "get_my_kvsname":  # MPICH names its shared memory after it: unique for each job
                client.write(f"cmd=my_kvsname kvsname={self.name} rc=0")
            case "get_universe_size":
                client.write(f"cmd=universe_size size={self.size} rc=0")
            case "put":
                self.values[request["key"]] = request.get("value", "")
                client.write("cmd=put_result rc=0 msg=success")
            case "get":
                key = request["key"]
                if key == "PMI_process_mapping" and key not in self.values:
                    self.values[key] = self.mapping()
                value = self.values.get(key)
                if value is None:
                    client.write(f"cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown")
                else:
                    client.write(f"cmd=get_result rc=0 msg=success value={value}")
            case "barrier_in":
                self.in_barrier.append(client)
                if len(self.in_barrier) == self.size:
                    for each in self.in_barrier:
                        each.write("cmd=barrier_out rc=0")
                    self.in_barrier = []
            case "finalize":
                client.write("cmd=finalize_ack rc=0")
            case "abort":
                why = f"{self.who[client.rank]} is gone: MPI_Abort with exit status {request.get('exitcode', '?')}"
                self.tell_gone(client.rank, why)
            case "publish_name" | "unpublish_name" | "lookup_name" as name:
                client.write(f"cmd={name.replace('_name', '')}_result rc=-1 msg=not_supported")
            case other:
                raise ValueError(f"unknown PMI request {other}")


def main() -> None:
    """Listen on a free port, print it, and serve: ``coordinator.py host size name seconds``; the token is the first line
    of the standard input."""
    host, size, name, seconds = sys.argv[1:]
    token = ""
    while not token.endswith("\n"):
        token += os.read(sys.stdin.fileno(), 1).decode() or "\n"
    if host or not socket.has_dualstack_ipv6():
        listener = socket.create_server((host, 0), backlog=socket.SOMAXCONN)
    else:
        try:
            listener = socket.create_server(
                ("", 0), family=socket.AF_INET6, dualstack_ipv6=True, backlog=socket.SOMAXCONN
            )
        except OSError:
            listener = socket.create_server(("", 0), backlog=socket.SOMAXCONN)
    print(listener.getsockname()[1], flush=True)
    sys.stdout.close()
    Coordinator(listener, int(size), name, token.strip(), float(seconds)).run()


if __name__ == "__main__":
    main()
