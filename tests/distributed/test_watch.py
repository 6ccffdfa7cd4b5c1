"""The coordinator and the connections of ranks to it, in one process and without MPI."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from retrograd.distributed.coordinator import Coordinator
from retrograd.distributed.watch import Watch
from tests.distributed.launcher_process import until

pytestmark = pytest.mark.thread_unsafe
SIZE = 3


def hello(port: int, kind: str, rank: int, token: str = "secret") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    words = {"token": token, "kind": kind, "rank": rank, "process": 100 + rank, "host": "node", "node": "node"}
    connection.sendall(json.dumps(words).encode() + b"\n")
    return connection


@pytest.fixture
def port() -> Iterator[int]:
    """Port of a coordinator of three ranks, which runs in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        coordinator = Coordinator(listener, SIZE, "job", "secret", 20.0)
        coordinator.parent_lives = False  # it is not started with a pipe
        thread = threading.Thread(target=coordinator.run)
        thread.start()
        yield int(listener.getsockname()[1])
        thread.join(10)
        assert not thread.is_alive(), "it ends with the last rank"
        coordinator.selector.close()


@pytest.fixture
def watches(port: int) -> Iterator[list[Watch]]:
    made = [Watch(hello(port, "watch", rank), rank, SIZE) for rank in range(SIZE)]
    for each in made:
        each.wait_for_all(timedelta(seconds=20))
        each.report(do="ready")
    yield made
    for each in made:
        each.close()
        each._thread.join(5)
        each._connection.close()


class Waiting:
    def describe(self) -> str:
        return "all_reduce at train.py:37"


def test_ranks_tell_where_they_are(watches: list[Watch]) -> None:
    watches[1].position = Waiting()
    for each in watches[:2]:
        each.ask()
    until(lambda: None not in (watches[0].answers, watches[1].answers))
    assert watches[2].answers is None
    for each in watches[:2]:  # asked one after the other: the program may be at another line
        assert each.answers is not None and sorted(each.answers) == [0, 1, 2]
        assert each.answers[1] == "all_reduce at train.py:37"
        assert each.answers[0].startswith("its program at ") and each.answers[2].startswith("its program at ")


def test_closed_connection_is_told_to_the_others(watches: list[Watch]) -> None:
    watches[2]._closing = True
    watches[2]._connection.shutdown(socket.SHUT_RDWR)
    until(lambda: bool(watches[0].failure and watches[1].failure))
    assert watches[0].failure == watches[1].failure == "rank 2 (process 102 on node) is gone: its connection closed"
    assert not watches[0].leave()


def test_ranks_that_end_in_good_order(watches: list[Watch]) -> None:
    threads = [threading.Thread(target=each.leave) for each in watches[:2]]
    for each in threads:
        each.start()
    until(lambda: watches[2].left is not None)
    assert "has ended its program" in str(watches[2].left)
    assert watches[2].leave() and all(each.failure is None for each in watches)
    for each in threads:
        each.join()


def test_rank_that_fails_says_why(watches: list[Watch]) -> None:
    watches[1].close("its program has ended by ValueError: bad")
    until(lambda: watches[0].failure is not None)
    assert watches[0].failure == "rank 1 (process 101 on node) is gone: its program has ended by ValueError: bad"
    assert watches[1].failure is None


def test_coordinator_refuses_strangers_and_wrong_messages(watches: list[Watch], port: int) -> None:
    for text in (b"GET / HTTP/1.1\r\n\r\n", b'{"kind": "watch"}\n', b"\xff\xfe\n", b"[]\n"):
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(text)
            assert stranger.recv(10) == b""
    with hello(port, "watch", 1, token="guess") as stranger:
        assert stranger.recv(10) == b""
    assert all(each.failure is None for each in watches)


def test_pmi_requests(port: int) -> None:
    watches = [hello(port, "watch", rank) for rank in range(SIZE)]
    ranks = [hello(port, "pmi", rank) for rank in range(SIZE)]
    assert json.loads(watches[0].makefile().readline()) == {"welcome": SIZE}
    lines = [each.makefile("rw", newline="\n") for each in ranks]

    def ask(rank: int, text: str) -> str:
        lines[rank].write(text + "\n")
        lines[rank].flush()
        return lines[rank].readline().strip()

    for request, answer in (
        ("cmd=init pmi_version=1 pmi_subversion=1", "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"),
        ("cmd=get_my_kvsname", "cmd=my_kvsname kvsname=job rc=0"),
        ("cmd=get kvsname=job key=PMI_process_mapping", "cmd=get_result rc=0 msg=success value=(vector,(0,1,3))"),
        ("cmd=put kvsname=job key=a value=b=c", "cmd=put_result rc=0 msg=success"),
        ("cmd=get kvsname=job key=b", "cmd=get_result rc=-1 msg=key_b_not_found value=unknown"),
        ("cmd=lookup_name service=x", "cmd=lookup_result rc=-1 msg=not_supported"),
    ):
        assert ask(0, request) == answer
    assert ask(1, "cmd=get kvsname=job key=a") == "cmd=get_result rc=0 msg=success value=b=c"
    for each in lines:
        each.write("cmd=barrier_in\n")
        each.flush()
    assert [each.readline() for each in lines] == ["cmd=barrier_out rc=0\n"] * SIZE
    assert [ask(rank, "cmd=finalize") for rank in range(SIZE)] == ["cmd=finalize_ack rc=0"] * SIZE
    for each in [*lines, *ranks, *watches]:
        each.close()
