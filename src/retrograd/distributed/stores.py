"""Stores: ``HashStore``, ``FileStore``, ``TCPStore`` and ``PrefixStore``, dictionaries that processes share.

The stores check arguments and raise PyTorch's errors. ``store_server.py`` has the operations on the keys.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from datetime import timedelta
from typing import Any, NoReturn

from .errors import DistStoreError, QueueEmptyError
from .store_server import FileKeys, Keys, RemoteKeys, Server, in_seconds


def _as_bytes(value: str | bytes) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"a value of a store must be a str or bytes, not {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


class Store:
    """Base class of the stores. Values are bytes; a ``str`` is encoded."""

    __module__ = "torch.distributed.distributed_c10d"
    _keys: Keys | RemoteKeys | FileKeys

    def __init__(self) -> None:
        self._timeout = timedelta(seconds=300)

    @property
    def timeout(self) -> timedelta:
        """Time for which :meth:`get` and :meth:`wait` wait for a key."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the time for which :meth:`get` and :meth:`wait` wait for a key."""
        self._timeout = timeout

    def _fail(self, keys: list[str], timeout: timedelta) -> NoReturn:
        raise DistStoreError(
            f"wait timeout after {round(timeout / timedelta(milliseconds=1))}ms, keys: "
            + ", ".join("/" + each for each in keys)
        )

    def _call(self, name: str, *arguments: str | bytes, timeout: timedelta | None = None) -> list[bytes]:
        """Return the result of the operation ``name``; raise DistStoreError if it waits longer than ``timeout``."""
        limit = self._timeout if timeout is None else timeout
        encoded = tuple([_as_bytes(each) for each in arguments])
        try:
            return self._keys.call(name, encoded, in_seconds(limit))
        except TimeoutError:
            self._fail([each.decode() for each in encoded], limit)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all ``keys`` are set; raise DistStoreError after ``timeout``."""
        self._call("wait", *keys, timeout=timeout)

    def get(self, key: str) -> bytes:
        """Return the value of ``key``, after waiting until it is set."""
        return self._call("get", key)[0]

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of ``key``."""
        self._call("set", key, value)

    def add(self, key: str, amount: int) -> int:
        """Add ``amount`` to the number that is the value of ``key``, at first 0; return the sum."""
        return int(self._call("add", key, str(int(amount)))[0])

    def append(self, key: str, value: str | bytes) -> None:
        """Append ``value`` to the value of ``key``."""
        self._call("append", key, value)

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set ``key`` to ``desired_value`` if its value is ``expected_value``, and return the value afterwards.

        A key that is not set is set if ``expected_value`` is empty; otherwise ``expected_value`` is returned.
        """
        return self._call("compare_set", key, expected_value, desired_value)[0]

    def check(self, keys: list[str]) -> bool:
        """Whether all ``keys`` are set."""
        return self._call("check", *keys) == [b"1"]

    def delete_key(self, key: str) -> bool:
        """Delete ``key``; return whether it was set."""
        return self._call("delete", key) == [b"1"]

    def num_keys(self) -> int:
        """Return the number of keys."""
        return len(self._call("list"))

    def list_keys(self) -> list[str]:
        """Return a list of the keys."""
        return [each.decode() for each in self._call("list")]

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return a list of the values of ``keys``, after waiting until they are set."""
        return [self.get(each) for each in keys]

    def multi_set(self, keys: list[str], values: list[str]) -> None:
        """Set each of ``keys`` to the corresponding value."""
        if len(keys) != len(values):
            raise DistStoreError("multiSet keys and values vectors must be of same size")
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append ``value`` to the queue ``key``."""
        self._call("push", key, value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Remove the first value of the queue ``key`` and return it; wait for a value if ``block`` is true."""
        if block:
            return self._call("pop", key)[0]
        try:
            return self._keys.call("pop", (_as_bytes(key),), 0.0)[0]
        except TimeoutError:
            raise QueueEmptyError("queue is empty") from None

    def queue_len(self, key: str) -> int:
        """Return the number of values in the queue ``key``."""
        return int(self._call("length", key)[0])

    def has_extended_api(self) -> bool:
        """Whether the store has :meth:`append`, :meth:`multi_get` and :meth:`multi_set`: True."""
        return True

    def clone(self) -> Store:
        """Return a store that shares the keys of this store."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        if not isinstance(getattr(self, "_keys", None), (Keys, type(None))):
            other._keys = self._keys.clone()  # type: ignore[union-attr]
        return other


class HashStore(Store):
    """Store in the memory of this process.

    >>> import retrograd as torch
    >>> store = torch.distributed.HashStore()
    >>> store.set("key", "value")
    >>> store.get("key"), store.add("count", 2)
    (b'value', 2)
    """

    __module__ = "torch._C._distributed_c10d"

    def __init__(self) -> None:
        super().__init__()
        self._keys = Keys()

    def _fail(self, keys: list[str], timeout: timedelta) -> NoReturn:
        raise DistStoreError("Wait timeout")


class FileStore(Store):
    """Store of one file, which the processes of one or of several machines have in common.

    The file is created. It is removed with the last store of it, if at least ``world_size`` stores have been opened. It
    must not be left from an earlier job whose processes were killed.

    >>> import tempfile
    >>> from retrograd import distributed as dist
    >>> folder = tempfile.TemporaryDirectory()
    >>> first, second = dist.FileStore(f"{folder.name}/store", 2), dist.FileStore(f"{folder.name}/store", 2)
    >>> first.set("key", "value")
    >>> second.get("key"), second.add("count", 2), first.add("count", 3)
    (b'value', 2, 5)
    >>> del first, second
    >>> folder.cleanup()
    """

    __module__ = "torch._C._distributed_c10d"

    def __init__(self, file_name: Any, world_size: int = -1) -> None:
        super().__init__()
        self.path = os.fspath(file_name)
        self._keys = FileKeys(os.path.abspath(self.path))
        self._keys.open()
        weakref.finalize(self, _close_file, self._keys, world_size if world_size > 0 else sys.maxsize, os.getpid())


def _close_file(keys: FileKeys, world_size: int, process: int) -> None:
    if process == os.getpid():
        keys.close(world_size)


#: The servers of this process that further stores may use, by port.
_SERVERS: dict[int, Server] = {}
#: Reentrant, because the garbage collector may release another store at any point of a thread that holds the lock.
_servers_lock = threading.RLock()
#: Queue in which each store of a port leaves a value.
_JOINED = b"\0joined"


class TCPStore(Store):
    """Store of the process that has it with ``is_master=True``; the stores of other processes connect to its port.

    ``port=0`` selects an unused port. The master waits until ``world_size`` stores, itself included, have connected,
    if ``wait_for_workers`` is true; it raises DistStoreError after ``timeout``. A store that is not the master tries
    to connect until ``timeout`` has passed, and then raises DistNetworkError. With ``multi_tenant=True`` several masters
    of one process share a port. The port is closed with the last master.

    >>> from datetime import timedelta
    >>> import retrograd as torch
    >>> master = torch.distributed.TCPStore("127.0.0.1", 0, is_master=True)
    >>> other = torch.distributed.TCPStore("127.0.0.1", master.port, timeout=timedelta(seconds=5))
    >>> master.set("key", "value")
    >>> other.get("key")
    b'value'
    """

    __module__ = "torch._C._distributed_c10d"
    host: str

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if not 0 <= port < 65536:
            raise TypeError(f"the port of a TCPStore must be in the interval [0, 65535], not {port}")
        self._timeout, self.host = timeout, host_name
        if is_master:
            with _servers_lock:
                server = _SERVERS.get(port) if multi_tenant else None
                if server is None:
                    server = Server(port, master_listen_fd)
                server.users += 1
                if multi_tenant:
                    _SERVERS[server.port] = server
            weakref.finalize(self, _release, server)
            port = server.port
        self.port = port
        # The master's own host name need not be known to the master, for example in a container.
        self._keys = RemoteKeys("127.0.0.1" if is_master else host_name, port, in_seconds(timeout))
        self._keys.call("push", (_JOINED, b""), 0.0)
        if is_master and wait_for_workers and world_size is not None:
            self._wait_for(world_size, timeout)

    def _wait_for(self, world_size: int, timeout: timedelta) -> None:
        end = time.monotonic() + in_seconds(timeout)
        while (joined := int(self._keys.call("length", (_JOINED,), 0.0)[0])) < world_size:
            if time.monotonic() > end:
                raise DistStoreError(
                    f"Timed out after {timeout.total_seconds():g} seconds waiting for clients. "
                    f"{joined}/{world_size} clients joined."
                )
            time.sleep(0.01)

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host}, port={self.port})"


def _release(server: Server) -> None:
    """Close ``server`` if no store of this process is its master any more."""
    with _servers_lock:
        server.users -= 1
        if not server.users:
            server.close()
            if _SERVERS.get(server.port) is server:
                del _SERVERS[server.port]


class PrefixStore(Store):
    """View of the store ``store``, in which each key is preceded by ``prefix`` and a slash."""

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """Store that contains the keys."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        """Timeout of the underlying store."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Set the timeout of the underlying store."""
        self._store.set_timeout(timeout)

    def num_keys(self) -> int:
        """Return the number of keys of the underlying store."""
        return self._store.num_keys()

    def list_keys(self) -> list[str]:
        """Return a list of the keys with the prefix, without it."""
        start = self._prefix + "/"
        return [each.removeprefix(start) for each in self._store.list_keys() if each.startswith(start)]

    def has_extended_api(self) -> bool:
        """Whether the underlying store has :meth:`append`, :meth:`multi_get` and :meth:`multi_set`."""
        return self._store.has_extended_api()


def _prefixed(name: str) -> Any:
    """Return the method ``name`` of :class:`PrefixStore`, which calls the underlying store with prefixed keys."""

    def method(self: PrefixStore, keys: str | list[str], *args: Any, **kwargs: Any) -> Any:
        start = self._prefix + "/"
        full = start + keys if isinstance(keys, str) else [start + each for each in keys]
        return getattr(self._store, name)(full, *args, **kwargs)

    method.__name__, method.__qualname__ = name, f"PrefixStore.{name}"
    method.__doc__ = getattr(Store, name).__doc__
    return method


for _name in (
    "add", "append", "check", "compare_set", "delete_key", "get", "multi_get", "multi_set", "queue_len", "queue_pop",
    "queue_push", "set", "wait",
):  # fmt: skip
    setattr(PrefixStore, _name, _prefixed(_name))


__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
