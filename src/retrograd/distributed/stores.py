"""Stores: ``HashStore``, ``FileStore``, ``TCPStore`` and ``PrefixStore``, dictionaries that processes share.

All of them keep their keys in the memory of this process. The stores of one file or of one port share the keys.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict, deque
from datetime import timedelta
from typing import Any, NoReturn
from weakref import WeakValueDictionary

from .errors import DistNetworkError, DistStoreError, QueueEmptyError, several_processes_error


class _Memory:
    """Keys and queues of a store, and the condition that its threads wait for."""

    def __init__(self) -> None:
        self.values: dict[str, bytes] = {}
        self.queues: defaultdict[str, deque[bytes]] = defaultdict(deque)
        self.changed = threading.Condition()


#: The memories of files, by absolute path, and of ports.
_SHARED: WeakValueDictionary[str | int, _Memory] = WeakValueDictionary()


def _as_bytes(value: str | bytes) -> bytes:
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"a value of a store must be a str or bytes, not {type(value).__name__}")
    return value.encode() if isinstance(value, str) else value


class Store:
    """Base class of the stores. Values are bytes; a ``str`` is encoded."""

    __module__ = "torch.distributed.distributed_c10d"
    _memory: _Memory

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

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all ``keys`` are set; raise DistStoreError after ``timeout``."""
        limit = self._timeout if timeout is None else timeout
        memory = self._memory
        with memory.changed:
            if not memory.changed.wait_for(lambda: all(each in memory.values for each in keys), limit.total_seconds()):
                self._fail(keys, limit)

    def get(self, key: str) -> bytes:
        """Return the value of ``key``, after waiting until it is set."""
        with self._memory.changed:
            self.wait([key])
            return self._memory.values[key]

    def set(self, key: str, value: str | bytes) -> None:
        """Set the value of ``key``."""
        data = _as_bytes(value)
        with self._memory.changed:
            self._memory.values[key] = data
            self._memory.changed.notify_all()

    def add(self, key: str, amount: int) -> int:
        """Add ``amount`` to the number that is the value of ``key``, at first 0; return the sum."""
        with self._memory.changed:
            total = int(self._memory.values.get(key, b"0")) + amount
            self.set(key, str(total))
            return total

    def append(self, key: str, value: str | bytes) -> None:
        """Append ``value`` to the value of ``key``."""
        with self._memory.changed:
            self.set(key, self._memory.values.get(key, b"") + _as_bytes(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Set ``key`` to ``desired_value`` if its value is ``expected_value``, and return the value afterwards.

        A key that is not set is set if ``expected_value`` is empty; otherwise ``expected_value`` is returned.
        """
        expected = _as_bytes(expected_value)
        with self._memory.changed:
            found = self._memory.values.get(key)
            if found == expected or (found is None and not expected):
                self.set(key, desired_value)
                return _as_bytes(desired_value)
            return expected if found is None else found

    def check(self, keys: list[str]) -> bool:
        """Whether all ``keys`` are set."""
        return all(each in self._memory.values for each in keys)

    def delete_key(self, key: str) -> bool:
        """Delete ``key``; return whether it was set."""
        with self._memory.changed:
            return self._memory.values.pop(key, None) is not None

    def num_keys(self) -> int:
        """Return the number of keys."""
        return len(self._memory.values)

    def list_keys(self) -> list[str]:
        """Return a list of the keys."""
        return list(self._memory.values)

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return a list of the values of ``keys``, after waiting until they are set."""
        return [self.get(each) for each in keys]

    def multi_set(self, keys: list[str], values: list[str]) -> None:
        """Set each of ``keys`` to the corresponding value."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def queue_push(self, key: str, value: str | bytes) -> None:
        """Append ``value`` to the queue ``key``."""
        with self._memory.changed:
            self._memory.queues[key].append(_as_bytes(value))
            self._memory.changed.notify_all()

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Remove the first value of the queue ``key`` and return it; wait for a value if ``block`` is true."""
        memory = self._memory
        with memory.changed:
            if block and not memory.changed.wait_for(lambda: memory.queues[key], self._timeout.total_seconds()):
                self._fail([key], self._timeout)
            if not memory.queues[key]:
                raise QueueEmptyError("queue is empty")
            return memory.queues[key].popleft()

    def queue_len(self, key: str) -> int:
        """Return the number of values in the queue ``key``."""
        return len(self._memory.queues[key])

    def has_extended_api(self) -> bool:
        """Whether the store has :meth:`append`, :meth:`multi_get` and :meth:`multi_set`: True."""
        return True

    def clone(self) -> Store:
        """Return a store that shares the keys of this store."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
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
        self._memory = _Memory()

    def _fail(self, keys: list[str], timeout: timedelta) -> NoReturn:
        raise DistStoreError("Wait timeout")


class FileStore(Store):
    """Store of one file. The file is created, and the stores of the same file in this process share the keys."""

    __module__ = "torch._C._distributed_c10d"

    def __init__(self, file_name: Any, world_size: int = -1) -> None:
        super().__init__()
        if world_size > 1:
            raise several_processes_error(world_size)
        self.path = os.fspath(file_name)
        with open(self.path, "ab"):
            pass
        self._memory = _SHARED.setdefault(os.path.abspath(self.path), _Memory())


class TCPStore(Store):
    """Store of one port. The store with ``is_master=True`` and the other stores of the port share the keys.

    No socket is opened, because all stores are in this process. ``port=0`` selects an unused port.
    """

    __module__ = "torch._C._distributed_c10d"

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = timedelta(seconds=300), wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        if world_size is not None and world_size > 1:
            raise several_processes_error(world_size)
        self._timeout, self.host, self.port = timeout, host_name, port or _unused_port()
        if not is_master and self.port not in _SHARED:
            raise DistNetworkError(
                f"no TCPStore of this process is the master of port {self.port}; several processes need the extra "
                "retrograd[distributed], which this version does not have yet"
            )
        self._memory = _SHARED.setdefault(self.port, _Memory())

    def __repr__(self) -> str:
        return f"TCPStore(host={self.host}, port={self.port})"


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


def _unused_port() -> int:
    """Return a port that no program uses at the moment."""
    import socket  # not in Pyodide

    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])


__all__ = ["FileStore", "HashStore", "PrefixStore", "Store", "TCPStore"]
