"""``Writer`` and ``Reader`` of PyTorch's checkpoints, which are zip archives.

The files in the archive are called records: one record contains the pickle, and each storage has a record. Records are
not compressed, and their data begins at multiples of 64 bytes, so that records can be mapped into memory. This module
does not depend on tensors.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy

from .files import read_into
from .formatting import shortened, shortened_text

if TYPE_CHECKING:
    import mmap  # not in Pyodide

ALIGNMENT = 64
_OLDEST, _NEWEST = 1, 10  # versions of checkpoints that PyTorch 2.13 reads
_CHUNK = 2**20  # bytes
_MAX_RATIO = 128

_HEADER = struct.Struct("<4s5H3I2H")  # a record's own header before its name
_ENTRY = struct.Struct("<4s6H3I5H2I")  # a record's entry in the central directory, before its name
_END = struct.Struct("<4s4H2I2x")  # end of the central directory
_END64 = struct.Struct("<4sQ2H2I4Q")  # end of the central directory in large archives
_END64_PLACE = struct.Struct("<4sIQI")  # position of the preceding structure
_LARGE = 0xFFFFFFFF  # a number that is in the extra field of 64 bits
_ENCRYPTED, _PATCHED = 1 | 0x40 | 0x2000, 0x20  # flags of a record
_FOLDER = 0x10  # attribute of a record
_STORED, _DEFLATED = 0, 8  # compression methods
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
        self.zip: zipfile.ZipFile = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self.name = name
        self.digest: hashlib.blake2b = hashlib.blake2b(digest_size=16)

    def record(self, name: str, data: Any) -> None:
        """Write ``data``, bytes or a uint8 array, as the record (file in the archive) ``name``."""
        full = f"{self.name}/{name}"
        info = zipfile.ZipInfo(full, (1980, 1, 1, 0, 0, 0))
        info.file_size = len(data)
        large = info.file_size * 1.05 > zipfile.ZIP64_LIMIT
        begin = self.zip.start_dir + _HEADER.size + len(full.encode()) + 4 + (_ZIP64 if large else 0)
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


class _Record(NamedTuple):
    """Entry of the central directory of a zip archive, which describes the record ``name``.

    ``size`` and ``packed`` are the numbers of bytes of the record and of its data in the file. ``offset`` is the position
    of the record's own header, and ``limit`` is the position at which its data must have ended.
    """

    name: str
    flags: int
    method: int
    checksum: int
    packed: int
    size: int
    offset: int
    limit: int


def _directory(read: Callable[[int, int], bytes], length: int) -> list[_Record]:
    """Return the records of the zip archive of ``length`` bytes that ``read(position, count)`` reads.

    Raises RuntimeError if the central directory is damaged, or if records overlap.
    """
    tail_length = min(length, _END.size + 0xFFFF)
    tail = read(length - tail_length, tail_length)
    at = tail.rfind(b"PK\x05\x06", 0, len(tail) - _END.size + 4)
    if at < 0:
        raise corrupted("reading zip archive: failed finding central directory")
    _, disk, first_disk, here, count, size, begin = _END.unpack_from(tail, at)
    end = length - tail_length + at
    if end >= _END64_PLACE.size:
        signature, _, place, _ = _END64_PLACE.unpack(read(end - _END64_PLACE.size, _END64_PLACE.size))
        if signature == b"PK\x06\x07" and place <= end - _END64_PLACE.size - _END64.size:
            signature, *_, disk, first_disk, here, count, size, begin = _END64.unpack(read(place, _END64.size))
            if signature != b"PK\x06\x06":
                raise _invalid()
    if here != count or disk or first_disk:
        raise corrupted("reading zip archive: unsupported multidisk archive")
    if begin + size > end or count * _ENTRY.size > size:
        raise _invalid()
    entries = read(begin, size)
    records = []
    position = 0
    for _ in range(count):
        if position + _ENTRY.size > size:
            raise _invalid()
        fields = _ENTRY.unpack_from(entries, position)
        signature, _, _, flags, method, _, _, checksum, packed, unpacked, *lengths, disk, _, attributes, offset = fields
        name_end = position + _ENTRY.size + lengths[0]
        extra_end = name_end + lengths[1]
        if signature != b"PK\x01\x02" or extra_end + lengths[2] > size:
            raise _invalid()
        packed, unpacked, offset = _sizes_of_64_bits(entries[name_end:extra_end], packed, unpacked, offset)
        if flags & (_PATCHED | _ENCRYPTED):
            raise corrupted(f"reading zip archive: unsupported {'encryption' if flags & _ENCRYPTED else 'feature'}")
        if disk:
            raise corrupted("reading zip archive: unsupported multidisk archive")
        if method not in (_STORED, _DEFLATED):
            raise corrupted("reading zip archive: unsupported method")
        name = entries[position + _ENTRY.size : name_end].decode("utf-8", "surrogateescape")
        if (method == _STORED and packed != unpacked) or (unpacked and (name.endswith("/") or attributes & _FOLDER)):
            raise _invalid()
        records.append(_Record(name, flags, method, checksum, packed, unpacked, offset, begin))
        position = extra_end + lengths[2]
    ordered = sorted(records, key=lambda record: record.offset)
    limits = [record.offset for record in ordered[1:]] + [begin] * bool(ordered)
    found = {}
    for record, limit in zip(ordered, limits, strict=True):
        found[id(record)] = limit
        if record.offset + _HEADER.size + len(record.name) + record.packed > limit:
            raise corrupted(f"reading zip archive: the record {record.name} overlaps the next one")
    return [record._replace(limit=found[id(record)]) for record in records]


def _invalid() -> RuntimeError:
    return corrupted("reading zip archive: invalid header or archive is corrupted")


def _sizes_of_64_bits(extra: bytes, packed: int, size: int, offset: int) -> tuple[int, int, int]:
    """Return ``packed``, ``size`` and ``offset``; those that do not fit in 32 bits are replaced by fields of ``extra``."""
    position = 0
    while position + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, position)
        field = extra[position + 4 : position + 4 + length]
        position += 4 + length
        if kind != 1:
            continue
        values = iter(struct.unpack(f"<{len(field) // 8}Q", field[: len(field) // 8 * 8]))
        try:
            size = next(values) if size == _LARGE else size
            packed = next(values) if packed == _LARGE else packed
            offset = next(values) if offset == _LARGE else offset
        except StopIteration:
            raise _invalid() from None
        break
    return packed, size, offset


class Reader:
    """Zip archive from which ``torch.load`` reads one checkpoint; a record is a file in the archive.

    The archive begins at the current position of ``file``, a seekable binary file, and extends to its end. All records
    must be in one folder. Raises RuntimeError if the file is not a complete zip archive of a version that PyTorch reads,
    and ValueError if the record of the byte order or of the alignment is not valid.
    """

    name: str

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.start: int = file.tell()
        length = file.seek(0, os.SEEK_END) - self.start
        records = _directory(self._read, length)
        if not records:
            raise RuntimeError("archive does not contain any files")
        self.name, slash, _ = records[0].name.partition("/")
        if not slash:
            raise RuntimeError(f"file in archive is not in a subdirectory: {shortened_text(self.name)}")
        self.records: dict[str, _Record] = {}
        known = set()
        for record in records:
            if record.name.lower() in known:  # PyTorch ignores the case, and finds an arbitrary one of equal names
                raise corrupted(f"reading zip archive: the name {shortened_text(record.name)} occurs twice")
            known.add(record.name.lower())
            self.records[record.name] = record
        if not self.has("version"):
            raise RuntimeError(
                'Expected hasRecord("version") to be true, but got false.  (Could this error message be improved?  If '
                "so, please report an enhancement request to PyTorch.)"
            )
        _check_version(self.bytes("version"))
        for record in records:
            if not record.name.startswith(f"{self.name}/"):
                raise RuntimeError(
                    f"file in archive is not in a subdirectory {shortened_text(self.name)}/: "
                    f"{shortened_text(record.name)}"
                )
        self.order: str = self._text("byteorder", "little")
        if self.order not in ("little", "big"):
            raise ValueError(f"Unknown endianness type: {shortened_text(self.order)}")
        alignment = self._text(".storage_alignment", str(ALIGNMENT))
        try:
            int(alignment)
        except ValueError:
            raise ValueError(f"invalid literal for int() with base 10: {shortened_text(alignment)}") from None
        if self.has(".format_version"):
            self.bytes(".format_version")
        self._text(".data/serialization_id", "")

    def _text(self, name: str, missing: str) -> str:
        if not self.has(name):
            return missing
        try:
            return self.bytes(name).decode()
        except UnicodeDecodeError:
            raise ValueError(f"the record {name} is not text in UTF-8") from None

    def has(self, name: str) -> bool:
        """Whether the archive has a record named ``name``."""
        return f"{self.name}/{name}" in self.records

    def bytes(self, name: str) -> bytes:
        """Return all bytes of the record ``name``.

        Raises RuntimeError for a compressed record that is more than 128 times as large as its data in the file: the
        time to read a checkpoint is proportional to the size of its pickle.
        """
        record = self._record(name)
        if record.size > _MAX_RATIO * record.packed + _CHUNK:
            raise corrupted(f"reading file {name}: {record.packed} bytes expand to {record.size}")
        array = numpy.empty(record.size, numpy.uint8)
        self._fill(name, record, array)
        return array.tobytes()

    def array(self, name: str, dtype: Any, count: int) -> Any:
        """Return the record ``name`` as a new array of ``count`` elements of ``dtype``."""
        record = self._record(name, count * dtype.itemsize)
        array = numpy.empty(count, dtype)
        self._fill(name, record, array.view(numpy.uint8))
        return array

    def mapped(self, name: str, dtype: Any, count: int, memory: mmap.mmap) -> Any:
        """Return the record ``name`` as an array of ``count`` elements of ``dtype``, without a copy.

        The array shares the memory of ``memory``, the memory-mapped file. It is a copy if the record is not aligned to
        the size of the elements.
        """
        record = self._record(name, count * dtype.itemsize)
        if record.method != _STORED:
            raise corrupted(f"reading file {name}: it can not be mapped into memory")
        begin = self._begin(name, record)
        array = numpy.frombuffer(memory, dtype, count, begin) if count else numpy.empty(0, dtype)
        return array if begin % dtype.itemsize == 0 else array.copy()

    def _record(self, name: str, expected: int | None = None) -> _Record:
        record = self.records.get(f"{self.name}/{name}")
        if record is None:
            raise corrupted(f"locating file {shortened_text(name)}: file not found")
        if expected is not None and record.size != expected:
            raise RuntimeError(
                f"record size ({record.size} bytes) does not match expected size ({expected} bytes = {expected} "
                "elements * 1 bytes/element) for dtype Byte"
            )
        return record

    def _read(self, position: int, count: int) -> builtins.bytes:
        self.file.seek(self.start + position)
        data = self.file.read(count)
        if len(data) != count:
            raise corrupted("reading zip archive: file read failed")
        return data

    def _begin(self, name: str, record: _Record) -> int:
        """Return the position of the data of ``record`` in the archive."""
        signature, _, _, _, _, _, _, _, _, name_length, extra_length = _HEADER.unpack(
            self._read(record.offset, _HEADER.size)
        )
        begin = record.offset + _HEADER.size + name_length + extra_length
        if signature != b"PK\x03\x04" or begin + record.packed > record.limit:
            raise corrupted(f"reading file {name}: invalid header or archive is corrupted")
        if self._read(record.offset + _HEADER.size, name_length) != record.name.encode("utf-8", "surrogateescape"):
            raise corrupted(f"reading file {name}: the name in its header is not the name in the central directory")
        return begin

    def _fill(self, name: str, record: _Record, target: Any) -> None:
        """Read ``record`` into the uint8 array ``target`` of its size."""
        self.file.seek(self.start + self._begin(name, record))
        done = checksum = 0
        if record.method == _STORED:
            while count := read_into(self.file, target[done : done + _CHUNK]):
                checksum = zlib.crc32(target[done : done + count], checksum)  # while the bytes are in the cache
                done += count
        else:
            try:
                done = _inflate(self.file, record.packed, target)
            except zlib.error as error:
                raise corrupted(f"reading file {name}: {error}") from error
            checksum = zlib.crc32(target)
        if done != len(target):
            raise corrupted(f"reading file {name}: it has {done} of {len(target)} bytes")
        # PyTorch writes 0 if the checksum is disabled.
        if record.checksum and checksum != record.checksum:
            raise corrupted(f"reading file {name}: Bad CRC-32 for file {shortened_text(record.name)!r}")


def _inflate(file: BinaryIO, packed: int, target: Any) -> int:
    """Decompress the next ``packed`` bytes of ``file`` into ``target``, and return the number of bytes.

    The result is larger than the length of ``target`` if the decompressed data do not fit in it.
    """
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    done = 0
    while not stream.eof:
        chunk = stream.unconsumed_tail
        if not chunk and packed:
            chunk = file.read(min(packed, _CHUNK))
            packed = packed - len(chunk) if chunk else 0
        part = stream.decompress(chunk, min(len(target) - done, _CHUNK) + 1)
        if done + len(part) > len(target):
            return len(target) + 1
        if not chunk and not part:
            break
        target[done : done + len(part)] = numpy.frombuffer(part, numpy.uint8)
        done += len(part)
    return done


def _check_version(text: bytes) -> None:
    found = re.match(rb"\s*([+-]?)(\d{1,18})(?!\d)", text)
    if found is None:
        raise RuntimeError(f"Couldn't parse the version {shortened(text)} as Long Long.")
    version = int(found[1] + found[2])
    if version < _OLDEST:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the minimum supported version for reading is "
            f"{_OLDEST}. Your PyTorch script module file is too old. Please regenerate it with latest version of PyTorch "
            "to mitigate this issue."
        )
    if version > _NEWEST:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the maximum supported version for reading is "
            f"{_NEWEST}. The version of your PyTorch installation may be too old, please upgrade PyTorch to latest "
            "version to mitigate this issue."
        )
