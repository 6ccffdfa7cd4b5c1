"""Checkpoint format of PyTorch before 1.6: several pickles in sequence, then the storages."""

from __future__ import annotations

import os
import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy

from ..core.dtypes import dtype
from .formatting import shortened
from .pickler import Pickler
from .storages import STORAGES, Storage, StorageTable, element_dtype, parse_persistent_id, to_native_byteorder
from .unpickler import Refused, Source

MAGIC = 0x1950A86A20F9469CFC6C
VERSION = 1001
_TAR = slice(257, 262)  # position of the signature of tar files
_SIZES = {"short": 2, "int": 4, "long": 4}


# -- Reading ---------------------------------------------------------------------------------------------------------


def read(file: Any, move: Callable[[Any, str], Any], reading: Any) -> Any:
    """Return the object stored in ``file``, a binary file in the legacy format.

    ``move(array, location)`` returns ``array`` on the device named ``location``, as in ``torch.load(map_location=…)``.
    ``reading.run(source, persistent)`` reads the next pickle in ``source`` and returns its object. During this, it
    calls ``persistent`` with each persistent id, a tuple by which a pickle refers to a storage, and uses the returned
    storage.

    Raises EOFError if the file is empty, and RuntimeError if it is truncated or not in the legacy format.
    """
    source = Source(_rest(file))
    if not source.data:
        raise EOFError("Ran out of input")
    if source.data[_TAR] == b"ustar":
        raise RuntimeError("files in the legacy .tar format can not be loaded")

    def nothing(identity: Any) -> Any:
        raise Refused("a storage before the storages")

    if reading.run(source, nothing) != MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = reading.run(source, nothing)
    if version != VERSION:
        raise RuntimeError(f"Invalid protocol version: {shortened(version)}")
    system = reading.run(source, nothing)
    order = "little" if not isinstance(system, dict) or system.get("little_endian", True) else "big"
    waiting: dict[str, tuple[Any, Storage]] = {}
    total = 0

    def persistent(found: Any) -> Storage:
        nonlocal total
        kind, key, place, count, part = parse_persistent_id(found, legacy=True)
        if key not in waiting:
            total += count * element_dtype(kind).itemsize
            if total > len(source.data):  # the length of the file bounds the memory of all storages
                raise RuntimeError(f"unexpected EOF, expected {count} more elements. The file might be corrupted.")
            array = numpy.empty(count, element_dtype(kind))
            storage = Storage(move(array, place), kind.kind)
            storage.pending = []
            waiting[key] = (array, storage)
        whole = waiting[key][1]
        if part is None:
            return whole
        _, offset, size = part
        if offset + size > whole.array.size:
            raise Refused(f"A view of {size} elements at {offset} is outside its storage")
        return Storage(whole.array[offset : offset + size], whole.kind, whole)

    result = reading.run(source, persistent)
    keys = reading.run(source, nothing)
    if not isinstance(keys, list) or any(type(key) is not str for key in keys) or sorted(keys) != sorted(waiting):
        raise RuntimeError("the storages that the file holds are not those that it names. The file might be corrupted.")
    for key in keys:
        array, storage = waiting[key]
        _fill(array, source, order)
        if storage.array is not array:  # it was moved to a GPU before it was filled
            storage.array[...] = type(storage.array)(array)
        for update in storage.pending or ():
            update()
    return result


def _rest(file: Any) -> bytes:
    """Return the bytes of ``file`` from its current position to its end, but not more than its size.

    A device can have no end, but its size is 0.
    """
    start = file.tell()
    try:
        size = max(0, file.seek(0, os.SEEK_END) - start)
    except (OSError, ValueError, TypeError):  # such as a compressed file, which can only be read from the beginning
        size = -1
    file.seek(start)
    data = file.read(size)
    if not isinstance(data, bytes):
        raise TypeError(f"expected a file opened in binary mode, but it returned {type(data).__name__}")
    return data


def _fill(array: Any, source: Source, order: str) -> None:
    header = source.read(8)
    wanted = array.nbytes
    if len(header) == 8:
        (count,) = struct.unpack("<q" if order == "little" else ">q", header)
        if count not in (array.size, array.nbytes):
            raise RuntimeError(
                f"a storage of {array.size} elements has {count} in the file. The file might be corrupted."
            )
    data = source.read(wanted)
    if len(header) < 8 or len(data) < wanted:
        missing = wanted - len(data) + 8 - len(header)
        raise RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
    if wanted:
        array[...] = to_native_byteorder(numpy.frombuffer(data, array.dtype), order)


# -- Writing ---------------------------------------------------------------------------------------------------------


def write(obj: Any, file: Any, protocol: int) -> None:
    """Write ``obj`` to the binary file ``file`` in the legacy format, with the pickle protocol ``protocol``."""
    memories = StorageTable()
    pickle.dump(MAGIC, file, protocol)
    pickle.dump(VERSION, file, protocol)
    little = sys.byteorder == "little"
    pickle.dump({"protocol_version": VERSION, "little_endian": little, "type_sizes": _SIZES}, file, protocol)
    Pickler(file, protocol, memories, lambda identity: (*identity, None)).dump(obj)
    records = memories.records()
    pickle.dump([key for key, _ in records], file, protocol)
    if hasattr(file, "flush"):
        file.flush()
    sizes = {key: _itemsize(kind) for key, _, kind in memories.found.values()}
    for key, line in records:
        file.write(struct.pack("=q", len(line) // sizes[key]))
        file.write(memoryview(line))


def _itemsize(kind: dtype | None) -> int:
    return kind.itemsize if kind in STORAGES.values() and kind is not None else 1
