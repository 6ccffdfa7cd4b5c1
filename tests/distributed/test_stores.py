"""Stores that several processes share: sockets, files, waiting, and what happens when a process is gone."""

from __future__ import annotations

import contextlib
import gc
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import retrograd.distributed as dist
from retrograd.distributed import store_server
from tests.distributed.launcher_process import variables
from tests.distributed.rank_processes import unused_port

pytestmark = pytest.mark.thread_unsafe
SHORT = timedelta(milliseconds=200)


def fails(kind: type[BaseException], words: str, call: Callable[[], object]) -> None:
    with pytest.raises(kind, match="^" + re.escape(words)):
        call()


@contextlib.contextmanager
def another_process(text: str) -> Iterator[subprocess.Popen[str]]:
    """Run ``text`` in another process, with the modules of stores only, which start quickly."""
    start = "import sys, time\nfrom datetime import timedelta\nimport retrograd.distributed as dist\n"
    process = subprocess.Popen(
        [sys.executable, "-c", start + text], env=variables(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_tcp_store_of_two_processes() -> None:
    text = """
master = dist.TCPStore("127.0.0.1", 0, is_master=True)
print(master.port, flush=True)
print(master.get("to master"), master.add("count", 2), master.queue_pop("queue"), flush=True)
master.set("late", b"\\0\\xff")
sys.stdin.read()
"""
    with another_process(text) as process:
        store = dist.TCPStore("localhost", int(said(process)), timeout=timedelta(seconds=20))
        assert store.add("count", 1) == 1
        store.queue_push("queue", "item")
        store.set("to master", "x" * 300_000)
        assert said(process) == f"{b'x' * 300_000} 3 b'item'"
        assert store.get("late") == b"\0\xff"
        fails(dist.DistStoreError, "wait timeout after 200ms, keys: /a, /b", lambda: store.wait(["a", "b"], SHORT))
        assert store.get("count") == b"3"  # the connection is in order after a timeout
        errors: list[BaseException] = []

        def wait() -> None:
            try:
                store.clone().get("never")
            except RuntimeError as error:
                errors.append(error)

        thread = threading.Thread(target=wait)
        thread.start()
        time.sleep(0.1)
        store.set("another key", "while a connection of this process waits")
        process.kill()
        thread.join(5)
        words = "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?"
        assert len(errors) == 1 and isinstance(errors[0], dist.DistNetworkError) and str(errors[0]).startswith(words)
        with pytest.raises(dist.DistNetworkError):
            store.set("count", "0")


def test_file_store_of_two_processes(tmp_path: Path) -> None:
    path = str(tmp_path / "store")
    text = f"""
store = dist.FileStore({path!r}, 2)
for _ in range(200):
    store.add("count", 1)
store.set("done", "1")
print(store.get("answer"))
"""
    with another_process(text) as process:
        store = dist.FileStore(path, 2)
        store.set_timeout(timedelta(seconds=20))
        for _ in range(200):
            store.add("count", 1)
        assert store.get("done") == b"1" and store.add("count", 0) == 400
        store.set("answer", "yes")
        assert said(process) == "b'yes'"
        process.wait(20)
    del store
    gc.collect()
    assert not os.path.exists(path), "the last store has removed it"
    store = dist.FileStore(path, 2)
    store.add("count", 400)
    with open(path, "ab") as file:
        file.write(store_server.pack([b"set", b"count", b"5"])[:-3])  # as a process that was killed while writing
    assert store.add("count", 1) == 401 and dist.FileStore(path).get("count") == b"401"
    store.wait(["count"], timedelta.max)


def test_master_waits_for_the_other_stores() -> None:
    port = unused_port()
    late = threading.Thread(target=lambda: (time.sleep(0.2), dist.TCPStore("127.0.0.1", port, timeout=SHORT)))
    late.start()
    dist.TCPStore("127.0.0.1", port, 2, is_master=True, timeout=timedelta(seconds=10))
    late.join()
    fails(
        dist.DistStoreError, "Timed out after 0.2 seconds waiting for clients. 1/3 clients joined.",
        lambda: dist.TCPStore("127.0.0.1", 0, 3, is_master=True, timeout=SHORT),
    )  # fmt: skip


def test_ports_of_tcp_stores() -> None:
    first = dist.TCPStore("127.0.0.1", 0, is_master=True, multi_tenant=True)
    port = first.port
    words = "The server socket has failed to listen on any local network address. "
    fails(dist.DistNetworkError, f"{words}port: {port}, ", lambda: dist.TCPStore("127.0.0.1", port, is_master=True))
    second = dist.TCPStore("127.0.0.1", port, is_master=True, multi_tenant=True)
    first.set("key", "value")
    del first
    assert second.get("key") == b"value"
    del second
    words = f"The client socket has timed out after 200ms while trying to connect to (127.0.0.1, {port})."
    fails(dist.DistNetworkError, words, lambda: dist.TCPStore("127.0.0.1", port, timeout=SHORT))
    dist.TCPStore("127.0.0.1", port, is_master=True)  # the port was closed with the last store
    words = "The client socket has timed out after 200ms while trying to connect to (no.such.host.invalid, 80)."
    fails(dist.DistNetworkError, words, lambda: dist.TCPStore("no.such.host.invalid", 80, timeout=SHORT))
    with pytest.raises(TypeError):
        dist.TCPStore("127.0.0.1", 70000)


@pytest.mark.parametrize("answer", [b"", b"SSH-2.0-OpenSSH_9.6\r\nand more"])
def test_port_of_another_program(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        thread = threading.Thread(target=lambda: opened.append(server.accept()[0]) or opened[0].sendall(answer))
        opened: list[Any] = []
        thread.start()
        with pytest.raises(dist.DistNetworkError, match=str(port)) as caught:
            dist.TCPStore("127.0.0.1", port, timeout=timedelta(seconds=1))
        thread.join()
        opened[0].close()
        assert ("is not a store of retrograd" if answer else "no store answered") in str(caught.value)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_store_in_a_forked_process() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    store.set("key", "value")
    child = os.fork()
    if child == 0:
        try:
            store.set("child", store.get("key") + b" of the child")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert store.get("child") == b"value of the child" and store.get("key") == b"value"


def test_errors_of_values() -> None:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True)
    store.set("word", "foo")
    with pytest.raises(ValueError, match="invalid literal"):
        store.add("word", 1)
    assert store.get("word") == b"foo"
    fails(
        dist.DistStoreError, "multiSet keys and values vectors must be of same size",
        lambda: store.multi_set(["a", "b"], ["1"]),
    )  # fmt: skip
    assert not store.check(["a"])
