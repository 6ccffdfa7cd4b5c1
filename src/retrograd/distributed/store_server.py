"""Keys of stores: in the memory of a process (``Keys``), behind a socket (``RemoteKeys``), and in a file (``FileKeys``).

All three have one method, ``call``. It takes the name of an operation, its arguments as bytes, and a number of seconds
for which it may wait, and returns a list of bytes. An operation that waits in vain raises TimeoutError. ``Server`` lets
other processes call the operations of its ``Keys``; ``FileKeys`` repeats those that all processes record in one file.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
import threading
import time
from collections import defaultdict, deque
from contextlib import suppress
from datetime import timedelta
from typing import BinaryIO

from .errors import DistNetworkError

#: First bytes of a connection, from both sides.
GREETING = b"retrograd store 1\n"
#: Operations that change keys or queues.
CHANGES = frozenset({"add", "append", "compare_set", "delete", "pop", "push", "set"})


class Keys:
    """Keys and queues in the memory of this process. Threads may call operations at the same time."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: defaultdict[bytes, deque[bytes]] = defaultdict(deque)
        self._lock = threading.Lock()
        self._arrivals: dict[bytes, threading.Event] = {}

    def call(self, name: str, arguments: tuple[bytes, ...], seconds: float) -> list[bytes]:
        """Return the result of the operation ``name``, after waiting for what it needs."""
        end = time.monotonic() + seconds
        while True:
            with self._lock:
                missing = self.missing(name, arguments)
                if missing is None:
                    return self.run(name, arguments)
                arrival = self._arrivals.setdefault(missing, threading.Event())
            if not arrival.wait(max(0.0, end - time.monotonic())):
                raise TimeoutError

    def missing(self, name: str, arguments: tuple[bytes, ...]) -> bytes | None:
        """Return the key for which the operation has to wait, or None."""
        if name in ("get", "wait"):
            return next((each for each in arguments if each not in self.values), None)
        return arguments[0] if name == "pop" and not self.queues[arguments[0]] else None

    def run(self, name: str, arguments: tuple[bytes, ...]) -> list[bytes]:
        """Return the result of an operation that does not have to wait."""
        match name, arguments:
            case "get", (key,):
                return [self.values[key]]
            case "wait", _:
                return []
            case "set", (key, value):
                self._set(key, value)
                return []
            case "add", (key, amount):
                self._set(key, str(int(self.values.get(key, b"0")) + int(amount)).encode())
                return [self.values[key]]
            case "append", (key, value):
                self._set(key, self.values.get(key, b"") + value)
                return []
            case "compare_set", (key, expected, desired):
                found = self.values.get(key)
                if found == expected or (found is None and not expected):
                    self._set(key, desired)
                    return [desired]
                return [expected if found is None else found]
            case "check", keys:
                return [b"1" if all(each in self.values for each in keys) else b""]
            case "delete", (key,):
                return [b"" if self.values.pop(key, None) is None else b"1"]
            case "list", ():
                return list(self.values)
            case "push", (key, value):
                self.queues[key].append(value)
                self._arrived(key)
                return []
            case "pop", (key,):
                return [self.queues[key].popleft()]
            case "length", (key,):
                return [str(len(self.queues[key])).encode()]
        raise ValueError(f"stores have no operation {name} of {len(arguments)} arguments")

    def _set(self, key: bytes, value: bytes) -> None:
        self.values[key] = value
        self._arrived(key)

    def _arrived(self, key: bytes) -> None:
        event = self._arrivals.pop(key, None)
        if event is not None:
            event.set()


# -- Over a socket -----------------------------------------------------------------------------------------------------
# A message is a number of fields, and for each field its length and its bytes. A request consists of the operation, the
# seconds and the arguments; a reply of "ok" and the result, of "timeout", or of "error" and a text.


def pack(fields: list[bytes]) -> bytes:
    """Return the message that consists of ``fields``."""
    return b"".join([struct.pack("!I", len(fields)), *(struct.pack("!Q", len(each)) + each for each in fields)])


def unpack(stream: BinaryIO) -> list[bytes] | None:
    """Read a message; return None if the stream has ended before its end."""

    def read(count: int) -> bytes:
        data = stream.read(count)
        if len(data) < count:
            raise EOFError
        return data

    try:
        count = struct.unpack("!I", read(4))[0]
        return [read(struct.unpack("!Q", read(8))[0]) for _ in range(count)]
    except EOFError:
        return None


def in_seconds(timeout: timedelta) -> float:
    """Return the number of seconds of ``timeout``, at most some years, which sockets and locks accept."""
    return min(timeout.total_seconds(), 1e8)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on ``port``; port 0 selects an unused one, and host "" all addresses."""
    try:
        if not host and socket.has_dualstack_ipv6():
            with suppress(OSError):
                return socket.create_server(
                    ("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=socket.SOMAXCONN
                )
        return socket.create_server((host, port), backlog=socket.SOMAXCONN)
    except OSError as error:
        code = error.errno or 0
        raise DistNetworkError(
            "The server socket has failed to listen on any local network address. "
            f"port: {port}, useIpv6: false, code: {-code}, name: {errno.errorcode.get(code, 'unknown')}, "
            f"message: {os.strerror(code).lower()}"
        ) from None


class Server:
    """Threads that carry out the operations of other processes on ``keys``."""

    keys: Keys
    users: int

    def __init__(self, port: int, descriptor: int | None = None) -> None:
        self.keys, self.users = Keys(), 0
        self._listener = listen("", port) if descriptor is None else socket.socket(fileno=descriptor)
        self.port: int = int(self._listener.getsockname()[1])
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        _start_thread(self._accept)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            with self._lock:
                self._connections.add(connection)
            _start_thread(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as stream:
            set_options(connection)
            connection.sendall(GREETING)
            if stream.readline(len(GREETING)) == GREETING:
                while (request := unpack(stream)) is not None:
                    connection.sendall(pack(self._reply(request)))
        with self._lock:
            self._connections.discard(connection)

    def _reply(self, request: list[bytes]) -> list[bytes]:
        try:
            name, seconds, *arguments = request
            return [b"ok", *self.keys.call(name.decode(), tuple(arguments), float(seconds))]
        except TimeoutError:
            return [b"timeout"]
        except Exception as error:
            return [b"error", str(error).encode()]

    def close(self) -> None:
        """Close the port and all connections."""
        # Another thread waits in accept and in recv: shutdown wakes it, close alone does not.
        with self._lock:
            sockets = [self._listener, *self._connections]
        for each in sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class RemoteKeys:
    """Keys of the server at ``host`` and ``port``, by one connection, which serves one call at a time."""

    host: str
    port: int

    def __init__(self, host: str, port: int, seconds: float) -> None:
        self._connection: socket.socket | None = None
        self.host, self.port, self._seconds = host, port, seconds
        self._lock = threading.Lock()
        self._process = 0
        self._connect()

    def clone(self) -> RemoteKeys:
        """Return the same keys by a connection of their own."""
        return RemoteKeys(self.host, self.port, self._seconds)

    @property
    def local_address(self) -> str:
        """Address of this machine towards the server."""
        return "" if self._connection is None else str(self._connection.getsockname()[0])

    def _connect(self) -> None:
        self.close()  # after fork, the connection of the parent process
        self._connection = connection = connect(self.host, self.port, self._seconds)
        self._process, self._stream = os.getpid(), connection.makefile("rb")
        try:
            connection.settimeout(max(1.0, self._seconds))
            connection.sendall(GREETING)
            answer = self._stream.readline(len(GREETING))
            connection.settimeout(None)
        except OSError as error:
            self.close()
            raise DistNetworkError(
                f"connected to ({self.host}, {self.port}), but no store answered within {self._seconds:g} s: {error}"
            ) from None
        if answer != GREETING:
            self.close()
            raise DistNetworkError(f"({self.host}, {self.port}) is not a store of retrograd; it answered {answer!r}")

    def call(self, name: str, arguments: tuple[bytes, ...], seconds: float) -> list[bytes]:
        """Return the result of the operation ``name`` of the server."""
        with self._lock:
            if self._process != os.getpid() or self._connection is None:  # after fork, and after an interrupted call
                self._connect()
            assert self._connection is not None
            try:
                self._connection.sendall(pack([name.encode(), repr(seconds).encode(), *arguments]))
                reply = unpack(self._stream)
            except BaseException as error:
                self.close()  # the reply may still come: the connection cannot be used again
                if isinstance(error, OSError):
                    raise DistNetworkError(f"{error.strerror or error} (store at {self.host}:{self.port})") from None
                raise
            if reply is None:
                self.close()
                raise DistNetworkError(
                    "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash? "
                    f"(store at {self.host}:{self.port})"
                )
        status, *result = reply
        if status == b"timeout":
            raise TimeoutError
        if status != b"ok":
            raise ValueError(b" ".join(result).decode())
        return result

    def close(self) -> None:
        """Close the connection; a later call opens another one."""
        if self._connection is not None:
            self._stream.close()
            self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        self.close()


def connect(host: str, port: int, seconds: float) -> socket.socket:
    """Return a socket that is connected to ``port`` of ``host``; try again until ``seconds`` have passed."""
    start, attempts, pause, reason = time.monotonic(), 0, 0.01, "no attempt was made"
    while (left := seconds - (time.monotonic() - start)) > 0:
        attempts += 1
        try:
            connection = socket.create_connection((host, port), timeout=left)
            connection.settimeout(None)
            set_options(connection)
            return connection
        except (OSError, OverflowError) as error:
            reason = str(error)
            if isinstance(error, OverflowError):
                break
        time.sleep(min(pause, max(0.0, seconds - (time.monotonic() - start))))
        pause = min(2 * pause, 0.25)
    raise DistNetworkError(
        f"The client socket has timed out after {round(1000 * seconds)}ms while trying to connect to ({host}, {port}). "
        f"Attempts: {attempts}; the last error: {reason}."
    )


def set_options(connection: socket.socket) -> None:
    """Send small messages at once, and notice a machine that has gone without closing its connections."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _start_thread(function: object, *arguments: object) -> None:
    threading.Thread(target=function, args=arguments, name="retrograd store", daemon=True).start()  # type: ignore[arg-type]


# -- In a file ---------------------------------------------------------------------------------------------------------


class FileKeys:
    """Keys of a file, to which each process appends the operations that change them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._keys, self._position, self._identity = Keys(), 0, -1
        self._lock = threading.Lock()

    def clone(self) -> FileKeys:
        """Return the same keys."""
        return FileKeys(self.path)

    def call(self, name: str, arguments: tuple[bytes, ...], seconds: float) -> list[bytes]:
        """Return the result of the operation ``name`` after all operations of the file, and append it to them."""
        end, pause = time.monotonic() + seconds, 0.001
        while True:
            with self._lock, open(self.path, "a+b") as file:
                _lock_file(file)  # until it is closed
                if self._read(file):
                    if self._keys.missing(name, arguments) is None:
                        return self._run(file, name, arguments)
                else:
                    continue
            if time.monotonic() >= end:
                raise TimeoutError
            time.sleep(min(pause, max(0.0, end - time.monotonic())))
            pause = min(1.5 * pause, 0.02)

    def _read(self, file: BinaryIO) -> bool:
        """Repeat the operations that other processes have recorded; return False if ``file`` has just been removed."""
        identity = os.fstat(file.fileno()).st_ino
        try:
            if os.stat(self.path).st_ino != identity:
                return False
        except FileNotFoundError:
            return False
        if identity != self._identity:
            self._keys, self._position, self._identity = Keys(), 0, identity
        file.seek(self._position)
        while (record := unpack(file)) is not None:
            self._keys.run(record[0].decode(), tuple(record[1:]))
            self._position = file.tell()
        return True

    def _run(self, file: BinaryIO, name: str, arguments: tuple[bytes, ...]) -> list[bytes]:
        result = self._keys.run(name, arguments)
        if name in CHANGES:
            file.truncate(self._position)  # without the rest of a record whose process was killed
            file.seek(0, os.SEEK_END)
            file.write(pack([name.encode(), *arguments]))
            file.flush()
            self._position = file.tell()
        return result

    def open(self) -> None:
        """Count a store of this file."""
        self.call("push", (_OPEN, b""), 0.0)

    def close(self, world_size: int) -> None:
        """Count a store less, and remove the file with the last one of at least ``world_size``."""
        with suppress(OSError), self._lock, open(self.path, "r+b") as file:
            _lock_file(file)
            if self._read(file):
                self._run(file, "pop", (_OPEN,))
                self._run(file, "push", (_CLOSED, b""))
                if not self._keys.queues[_OPEN] and len(self._keys.queues[_CLOSED]) >= world_size:
                    os.remove(self.path)


#: Queues with an item for each store of a file that is open, and for each that has been closed.
_OPEN, _CLOSED = b"\0open", b"\0closed"


def _lock_file(file: BinaryIO) -> None:
    """Wait until no other process has locked ``file``, and lock it until it is closed."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0x7FFFFFFF)
        msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
