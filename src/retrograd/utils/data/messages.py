"""Messages from a worker of a DataLoader to the loader: a pickle, and beside it the data of the arrays.

Note [Blocks of shared memory]

On Linux the data of a large message is copied to a block of memory that the worker and the loader share, except that of
small arrays, because a program that collects labels must not keep the blocks of all batches. The other arrays of
the received message are views of the block. After the last of them has been deleted, the loader returns the block's
number with its next request, and the worker uses the block for another message. New memory would cost more than the
copy, because the system clears its pages.

A block is a file without a name, created by ``memfd_create``. Its descriptor is sent once, through the socket that
carries the messages. The system frees the memory when no process has a descriptor or a mapping of it, also after a
process is killed. The number of blocks of a worker is limited, because each takes a descriptor in the loader. While all
are in use, for example because the loop collects the batches in a list, the data is sent through the socket.

After a fork of the loader's process the child has copies of the received arrays in the same memory, and the loader does
not know when the child deletes them. A block that is in use during a fork is not used for another message. What one of
both processes writes to the arrays, the other one sees.
"""

from __future__ import annotations

import os
import pickle
import threading
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

if TYPE_CHECKING:
    from multiprocessing.connection import Connection  # not in Pyodide

#: Minimum number of bytes of a message's arrays for which a block is used.
LARGE = 128 * 1024
#: Minimum number of bytes of an array in a block; smaller ones are sent through the socket.
SHARED = 16 * 1024
#: Maximum number of blocks of a worker.
LIMIT = 16
#: The offset of an array in a block is a multiple of this number of bytes.
ALIGNMENT = 64

_SUPPORTED = hasattr(os, "memfd_create")
_NOTHING = numpy.empty(0, numpy.uint8)

_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_count_fork, after_in_parent=_count_fork)


def _offsets(lengths: list[int]) -> list[int]:
    """Return the offset in a block of each array, given their sizes in bytes, and the size of the block.

    Small arrays are not in the block.
    """
    offsets = [0]
    for length in lengths:
        offsets.append(offsets[-1] + (-(-length // ALIGNMENT) * ALIGNMENT if length >= SHARED else 0))
    return offsets


class TransferError(RuntimeError):
    """Error while a block was received; the rest of the message has not been read."""


class Sender:
    """The worker's end of a connection."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._blocks: list[Any] = []  # arrays of bytes
        self._free: list[int] = []

    def send(self, message: Any) -> None:
        """Send ``message``, which can be pickled; :meth:`Receiver.receive` returns it at the other end."""
        pieces: list[Any] = []
        body = pickle.dumps(message, 5, buffer_callback=lambda piece: pieces.append(piece.raw()))
        lengths = [len(piece) for piece in pieces]
        number, file = self._take(_offsets(lengths)[-1])
        try:
            if number is not None:
                block = self._blocks[number]
                for offset, piece in zip(_offsets(lengths), pieces, strict=False):
                    if len(piece) >= SHARED:
                        numpy.copyto(block[offset : offset + len(piece)], piece)  # other threads run during the copy
            self._pipe.send((lengths, number, file is not None))
            if file is not None:
                from multiprocessing.reduction import send_handle

                send_handle(self._pipe, file, None)
        finally:
            if file is not None:
                os.close(file)
        self._pipe.send_bytes(body)
        for piece in pieces:
            if number is None or len(piece) < SHARED:
                self._pipe.send_bytes(piece)

    def release(self, returned: list[tuple[int, bool]]) -> None:
        """Take blocks back that the loader has returned: pairs of a number and whether the block can be used again."""
        for number, usable in returned:
            if not usable:
                self._blocks[number] = _NOTHING
            self._free.append(number)

    def _take(self, size: int) -> tuple[int | None, int | None]:
        """Return the number of a block of at least ``size`` bytes, and the descriptor of its file if the file is new.

        The number is None if a block is not worthwhile or not available.
        """
        if size < LARGE or not _SUPPORTED:
            return None, None
        free = list(self._free)  # release is called by another thread
        number = next((each for each in free if len(self._blocks[each]) >= size), None)
        if number is not None:
            self._free.remove(number)
            return number, None
        if not free and len(self._blocks) >= LIMIT:
            return None, None
        try:
            file, block = _created(size)
        except OSError:  # too many open files, or not permitted
            return None, None
        if free:  # a block that is too small is replaced
            self._blocks[free[0]] = block
            self._free.remove(free[0])
            return free[0], file
        self._blocks.append(block)
        return len(self._blocks) - 1, file


def _created(size: int) -> tuple[int, Any]:
    """Return the descriptor of a new file of at least ``size`` bytes and its memory."""
    file = os.memfd_create("retrograd", os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, 1 << (size - 1).bit_length())  # pages that are not written take no memory
        return file, _mapped(file)
    except BaseException:
        os.close(file)
        raise


def _mapped(file: int) -> Any:
    import mmap  # not in Pyodide

    return numpy.frombuffer(mmap.mmap(file, 0), numpy.uint8)


class Receiver:
    """The loader's end of a connection."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._blocks: dict[int, Any] = {}  # buffers of the mapped files
        self._used: dict[int, weakref.ref[Any]] = {}
        self._returned: list[tuple[int, bool]] = []

    def receive(self) -> Any:
        """Return the next message, sent by :meth:`Sender.send`; NumPy arrays in the message are writable."""
        lengths, number, new = self._pipe.recv()
        if new:
            self._map(number)
        body = self._pipe.recv_bytes()
        block = None if number is None else memoryview(self._lent(number))
        pieces = []
        for start, length in zip(_offsets(lengths), lengths, strict=False):
            if block is not None and length >= SHARED:
                pieces.append(block[start : start + length])
                continue
            piece = bytearray(max(length, 1))
            self._pipe.recv_bytes_into(piece)
            pieces.append(memoryview(piece)[:length])
        return pickle.loads(body, buffers=pieces)

    def returned(self) -> list[tuple[int, bool]]:
        """Return the argument of :meth:`Sender.release`: the blocks whose arrays have been deleted since the last call."""
        returned = list(self._returned)
        del self._returned[: len(returned)]
        return returned

    def _map(self, number: int) -> None:
        """Receive the descriptor of a new file and map it.

        A thread does it, because KeyboardInterrupt, which could lose the descriptor, is raised only in the main thread.
        """
        errors: list[Exception] = []
        thread = threading.Thread(target=_receive_file, args=(self._pipe, self._blocks, number, errors), daemon=True)
        thread.start()
        thread.join()
        if errors:
            raise TransferError(
                f"DataLoader could not map the shared memory of a worker ({errors[0]}). The limit of open files may have "
                "been reached: see `ulimit -n`."
            )

    def _lent(self, number: int) -> Any:
        """Return an array of the bytes of a block; its deletion returns the block."""
        block = numpy.frombuffer(self._blocks[number], numpy.uint8)  # arrays made of it keep it alive
        self._used[number] = weakref.ref(block, partial(_give_back, self._returned, self._blocks, number, _forks))
        return block


def _receive_file(pipe: Connection, blocks: dict[int, Any], number: int, errors: list[Exception]) -> None:
    from multiprocessing.reduction import recv_handle

    try:
        file = recv_handle(pipe)
        try:
            blocks[number] = _mapped(file).base
        finally:
            os.close(file)
    except Exception as error:
        errors.append(error)


def _give_back(
    returned: list[tuple[int, bool]], blocks: dict[int, Any], number: int, forks: int, _: weakref.ref[Any]
) -> None:
    """Add a block to ``returned``; ``forks`` is the number of forks when it was lent."""
    usable = forks == _forks
    if not usable:
        blocks.pop(number, None)
    returned.append((number, usable))
