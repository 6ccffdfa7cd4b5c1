"""Checkpoint format of PyTorch before 1.6: several pickles in sequence, then the storages."""

from __future__ import annotations

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
    source = Source(file.read())
    if not source.data:
        raise EOFError("Ran out of input")

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

    def persistent(found: Any) -> Storage:
        kind, key, place, count, part = parse_persistent_id(found)
        if key not in waiting:
            # The file's length bounds the allocation.
            if count * element_dtype(kind).itemsize > len(source.data):
                raise RuntimeError(f"unexpected EOF, expected {count} more elements. The file might be corrupted.")
            array = numpy.empty(count, element_dtype(kind))
            waiting[key] = (array, Storage(move(array, place), kind.kind))
        whole = waiting[key][1]
        if part is None:
            return whole
        _, offset, size = part
        return Storage(whole.array[offset : offset + size], whole.kind)

    result = reading.run(source, persistent)
    keys = reading.run(source, nothing)
    if not isinstance(keys, list) or any(type(key) is not str for key in keys) or sorted(keys) != sorted(waiting):
        raise RuntimeError("the storages that the file holds are not those that it names. The file might be corrupted.")
    for key in keys:
        array, storage = waiting[key]
        _fill(array, source, order)
        if storage.array is not array:  # it was moved to a GPU before it was filled
            storage.array[...] = type(storage.array)(array)
    return result


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
