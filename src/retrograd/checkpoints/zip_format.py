"""Checkpoint format of PyTorch since 1.6: a zip archive of a pickle and the storages (``archive.py``)."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from typing import Any

from .archive import Reader, Writer
from .pickler import Pickler
from .storages import Storage, StorageTable, element_dtype, parse_persistent_id, to_native_byteorder
from .unpickler import Source


def read(file: Any, move: Callable[[Any, str], Any], reading: Any, mapped: bool) -> Any:
    """Return the object stored in ``file``, a binary file in the zip format.

    ``move`` and ``reading`` are the same as in :func:`retrograd.checkpoints.legacy.read`; in addition,
    ``reading.torchscript_error`` is the message of the RuntimeError for an archive of TorchScript. If ``mapped`` is
    true, the storages are mapped into memory, so that only the parts that the program uses are read.
    """
    reader = Reader(file)
    if reader.has("constants.pkl"):
        raise RuntimeError(reading.torchscript_error)
    memory = None
    if mapped:
        import mmap  # not in Pyodide

        memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    loaded: dict[str, Storage] = {}

    def persistent(found: Any) -> Storage:
        kind, key, place, count, _ = parse_persistent_id(found)
        if key not in loaded:
            name = f"data/{key}"
            if memory is not None:
                array = reader.mapped(name, element_dtype(kind), count, memory)
            else:
                array = reader.array(name, element_dtype(kind), count)
            loaded[key] = Storage(move(to_native_byteorder(array, reader.order), place), kind.kind)
        return loaded[key]

    return reading.run(Source(reader.bytes("data.pkl")), persistent)


def write(obj: Any, file: Any, name: str, protocol: int, order: bool) -> None:
    """Write ``obj`` to the binary file ``file``; ``name`` is the name of the folder in the archive.

    ``protocol`` is the pickle protocol. If ``order`` is true, the archive has a record of the byte order.
    """
    memories, data = StorageTable(), io.BytesIO()
    Pickler(data, protocol, memories).dump(obj)
    writer = Writer(file, name)
    try:
        writer.record("data.pkl", data.getvalue())
        writer.record(".format_version", b"1")
        writer.record(".storage_alignment", b"64")
        if order:
            writer.record("byteorder", sys.byteorder.encode())
        for key, line in memories.records():
            writer.record(f"data/{key}", line)
        writer.close()
    except BaseException:
        writer.abandon()
        raise
