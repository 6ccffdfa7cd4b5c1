"""``Writer`` and ``Reader`` of PyTorch's checkpoints, which are zip archives.

The files in the archive are called records: one record contains the pickle, and each storage has a record. Records are
not compressed, and their data begins at multiples of 64 bytes, so that records can be mapped into memory. This module
does not depend on tensors.
"""

from __future__ import annotations

import hashlib
import mmap
import struct
import zipfile
import zlib
from typing import Any, BinaryIO

import numpy

from .formatting import shortened_text

ALIGNMENT = 64
_HEADER = 30  # bytes of a record's own header before its name
_ZIP64 = 20  # bytes that zipfile adds to the header of a record of more than 2 GB

_CORRUPTED = (
    " This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint "
    "file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the "
    "file was modified after saving."
)


def corrupted(what: str) -> RuntimeError:
    """Return a RuntimeError with PyTorch's text for a damaged zip archive; ``what`` describes the damage."""
    return RuntimeError(f"PytorchStreamReader failed {shortened_text(what)}.{_CORRUPTED}")


class Writer:
    """Zip archive to which ``torch.save`` writes one checkpoint; a record is a file in the archive."""

    def __init__(self, file: Any, name: str) -> None:
        self.zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.name = name
        self.digest = hashlib.blake2b(digest_size=16)

    def record(self, name: str, data: Any) -> None:
        """Write ``data``, bytes or a uint8 array, as the record (file in the archive) ``name``."""
        full = f"{self.name}/{name}"
        info = zipfile.ZipInfo(full, (1980, 1, 1, 0, 0, 0))
        info.file_size = len(data)
        large = info.file_size * 1.05 > zipfile.ZIP64_LIMIT
        begin = self.zip.start_dir + _HEADER + len(full.encode()) + 4 + (_ZIP64 if large else 0)
        padding = -begin % ALIGNMENT
        info.extra = struct.pack("<2sH", b"FB", padding) + b"Z" * padding
        self.digest.update(full.encode())
        self.digest.update(zlib.crc32(data).to_bytes(4, "little"))
        with self.zip.open(info, "w") as record:
            record.write(memoryview(data))

    def close(self) -> None:
        """Write the records ``version`` and ``.data/serialization_id`` and the central directory of the zip archive."""
        self.record("version", b"3\n")
        self.record(".data/serialization_id", f"{int.from_bytes(self.digest.digest()):040d}"[:40].encode())
        self.zip.close()

    def abandon(self) -> None:
        """Leave the archive incomplete after an error.

        This prevents ``ZipFile`` from writing the central directory when the object is deleted, which would make the
        archive look complete.
        """
        self.zip.fp = None


class Reader:
    """Zip archive from which ``torch.load`` reads one checkpoint; a record is a file in the archive.

    Raises RuntimeError if the file is not a complete zip archive.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        try:
            self.zip = zipfile.ZipFile(file)
            infos = self.zip.infolist()
        except (zipfile.BadZipFile, ValueError, struct.error, OverflowError, NotImplementedError, EOFError) as error:
            raise corrupted("reading zip archive: failed finding central directory") from error
        if not infos:
            raise corrupted("reading zip archive: it holds no records")
        self.name = infos[0].filename.partition("/")[0]
        self.infos = {info.filename: info for info in infos}
        if not self.has("version"):
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this error message be improved?  If '
                "so, please report an enhancement request to PyTorch.)"
            )
        if self.has("byteorder"):
            self.order = self.bytes("byteorder").decode("ascii", "replace")
            if self.order not in ("little", "big"):
                raise ValueError(f"Unknown endianness type: {shortened_text(self.order)}")
        else:
            self.order = "little"

    def has(self, name: str) -> bool:
        """Whether the archive has a record named ``name``."""
        return f"{self.name}/{name}" in self.infos

    def _open(self, name: str) -> Any:
        info = self.infos.get(f"{self.name}/{name}")
        if info is None:
            raise corrupted(f"locating file {name}: file not found")
        if info.CRC == 0:
            del info.CRC  # PyTorch writes 0 if the checksum is disabled
        return self.zip.open(info)

    def bytes(self, name: str) -> bytes:
        """Return all bytes of the record ``name``."""
        try:
            with self._open(name) as record:
                return record.read()
        except _BROKEN as error:
            raise corrupted(f"reading file {name}: {error}") from error

    def array(self, name: str, dtype: Any, count: int) -> Any:
        """Return the record ``name`` as a new array of ``count`` elements of ``dtype``."""
        self._check_size(name, dtype, count)
        array = numpy.empty(count, dtype)
        target: Any = array.view(numpy.uint8)
        done = 0
        try:
            with self._open(name) as record:
                while chunk := record.read(2**20):
                    target[done : done + len(chunk)] = numpy.frombuffer(chunk, numpy.uint8)
                    done += len(chunk)
        except _BROKEN as error:
            raise corrupted(f"reading file {name}: {error}") from error
        if done != len(target):
            raise corrupted(f"reading file {name}: it ends after {done} of {len(target)} bytes")
        return array

    def mapped(self, name: str, dtype: Any, count: int, memory: mmap.mmap) -> Any:
        """Return the record ``name`` as an array of ``count`` elements of ``dtype``, without a copy.

        The array shares the memory of ``memory``, the memory-mapped file.
        """
        self._check_size(name, dtype, count)
        info = self.infos[f"{self.name}/{name}"]
        begin = info.header_offset + _HEADER
        header = memory[info.header_offset : begin]
        if len(header) < _HEADER or info.compress_type != zipfile.ZIP_STORED:
            raise corrupted(f"reading file {name}: it can not be mapped into memory")
        begin += sum(struct.unpack("<HH", header[26:30]))
        return numpy.frombuffer(memory, dtype, count, begin) if count else numpy.empty(0, dtype)

    def _check_size(self, name: str, dtype: Any, count: int) -> None:
        info = self.infos.get(f"{self.name}/{name}")
        if info is None:
            raise corrupted(f"locating file {name}: file not found")
        expected = count * dtype.itemsize
        if info.file_size != expected:
            raise RuntimeError(
                f"record size ({info.file_size} bytes) does not match expected size ({expected} bytes = {expected} "
                "elements * 1 bytes/element) for dtype Byte"
            )


_BROKEN = (
    zipfile.BadZipFile, zlib.error, EOFError, ValueError, struct.error, OSError, NotImplementedError, OverflowError,
    RuntimeError,
)  # fmt: skip
