"""``FileSystemWriter`` and ``FileSystemReader``: checkpoints in folders.

A checkpoint consists of one safetensors file for each rank and of the index ``.metadata`` in JSON, which names the files.
The files of a save have names of their own, and the index is replaced after all of them are complete and on disk: until
then the folder contains the former checkpoint. The index has a checksum of each block of 4 MiB, and of itself.
"""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import os
import re
import secrets
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from ...checkpoints.files import atomic_write, read_into
from ...checkpoints.safetensors import _NAMES as STORED_DTYPES
from ...checkpoints.safetensors import in_order, read_places, to_bytes
from ...core import devices
from ...core.dtypes import uint8
from ...core.size import Size
from ...core.tensor import Tensor, wrap
from ...futures import Future
from ._nested_dict import IntKey
from .default_planner import narrowed
from .metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import LoadItemType, LoadPlan, LoadPlanner, ReadItem, SavePlan, SavePlanner, WriteItem
from .storage import StorageReader, StorageWriter, WriteResult
from .values import dtype_named, from_text, to_text

_INDEX = ".metadata"
_FORMAT = "retrograd.distributed.checkpoint"
_BLOCK = 2**22  # bytes that have a checksum of their own
_PIECE = 2**26  # bytes that are read at once
_DATA_FILE = re.compile(r"__\d+_\d+\.[0-9a-f]{16}\.safetensors|\.[0-9a-f]{16}\.tmp")


@dataclass(frozen=True)
class _StoragePrefix:
    """Beginning and middle of the names of a rank's files."""

    prefix: str
    token: str


@dataclass(frozen=True)
class _StorageInfo:
    """File of a value, its name in the file, its number of bytes, and the checksums of its blocks or None."""

    relative_path: str
    key: str
    length: int
    crc32: str | None


def _checksums(line: Any) -> str:
    """Return the CRC-32 of each block of the bytes ``line``, in hexadecimal."""
    view = memoryview(line)
    return "".join(f"{zlib.crc32(view[begin : begin + _BLOCK]):08x}" for begin in range(0, len(view), _BLOCK))


class _InFolder:
    """Base class of the writer and the reader of a checkpoint in the folder ``path``."""

    path: Path

    @property
    def checkpoint_id(self) -> str | os.PathLike[str]:
        """The folder."""
        return self.path

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether ``checkpoint_id`` is the path of a folder that exists or can be created."""
        return _is_path(checkpoint_id)


class FileSystemWriter(_InFolder, StorageWriter):
    """Writer of a checkpoint in the folder ``path``, which is created.

    With ``overwrite``, an existing checkpoint is replaced when the new one is complete; the disk holds both until then.
    Without ``sync_files``, a checkpoint may be lost if the machine fails. ``thread_count`` files are written at the same
    time; without ``single_file_per_rank``, each value has a file. The other arguments have no effect.

    >>> import pathlib, tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = checkpoint.FileSystemWriter(folder, thread_count=2)
    ...     _ = checkpoint.save({"a": torch.ones(2), "b": torch.ones(3)}, storage_writer=writer, no_dist=True)
    ...     sorted(path.suffix for path in pathlib.Path(folder).iterdir())
    ['', '.safetensors', '.safetensors']
    """

    def __init__(
        self, path: str | os.PathLike[str], single_file_per_rank: bool = True, sync_files: bool = True,
        thread_count: int = 1, per_thread_copy_ahead: int = 10_000_000, cache_staged_state_dict: bool = False,
        overwrite: bool = True, _extensions: Any = None, serialization_format: Any = None,
    ) -> None:  # fmt: skip
        self.path = Path(path)
        self.single_file_per_rank, self.sync_files, self.thread_count = single_file_per_rank, sync_files, thread_count
        self.per_thread_copy_ahead, self.overwrite = per_thread_copy_ahead, overwrite
        self.save_id = secrets.token_hex(8)
        self._written: list[Path] = []
        self._lock = threading.Lock()

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare for another checkpoint, in the folder ``checkpoint_id`` if it is not None."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.save_id = secrets.token_hex(8)
        self._written = []

    def storage_meta(self) -> StorageMeta | None:
        """Return the folder and the identification of the save."""
        return StorageMeta(checkpoint_id=self.checkpoint_id, save_id=self.save_id)

    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Do nothing."""

    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Create the folder; raise RuntimeError if it has a checkpoint and ``overwrite`` is false."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / _INDEX).exists():
            raise RuntimeError(f"Checkpoint already exists and {self.overwrite=}.")
        return plan

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Add the names of the files to the plans."""
        return [
            dataclasses.replace(plan, storage_data=_StoragePrefix(f"__{rank}_", self.save_id))
            for rank, plan in enumerate(plans)
        ]

    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items of ``plan``."""
        files = list(self._files(plan.items))
        names = [self._name(plan.storage_data, items, position) for position, items in enumerate(files)]
        results: list[WriteResult] = []
        if self.thread_count > 1 and len(files) > 1:
            with ThreadPoolExecutor(self.thread_count) as pool:
                for each in pool.map(lambda name, items: self._write_file(name, items, planner), names, files):
                    results += each
        else:
            for name, items in zip(names, files, strict=True):
                results += self._write_file(name, items, planner)
        future: Future[list[WriteResult]] = Future()
        future.set_result(results)
        return future

    def _name(self, prefix: _StoragePrefix, items: list[WriteItem], position: int) -> str:
        """Return the name of the file number ``position`` of this rank, which contains ``items``."""
        return f"{prefix.prefix}{position}.{prefix.token}.safetensors"

    def _files(self, items: Sequence[WriteItem]) -> Iterable[list[WriteItem]]:
        if not self.single_file_per_rank:
            return [[item] for item in items]
        count = max(1, self.thread_count)
        files: list[list[WriteItem]] = [[] for _ in range(count)]
        sizes = [0] * count
        for item in sorted(items, key=lambda each: -(each.tensor_storage_size() or 0)):
            smallest = sizes.index(min(sizes))
            files[smallest].append(item)
            sizes[smallest] += item.tensor_storage_size() or 1
        return [each for each in files if each]

    def _write_file(self, name: str, items: list[WriteItem], planner: SavePlanner) -> list[WriteResult]:
        tensors: dict[str, Tensor] = {}
        keys: dict[str, WriteItem] = {}
        for item in items:
            key = item.index.fqn
            if item.index.offset is not None and any(item.index.offset):
                key += f"[{','.join(map(str, item.index.offset))}]"
            while key in tensors:
                key += "'"
            tensors[key], keys[key] = _storable(planner.resolve_data(item)), item
        parts = to_bytes(tensors, {"format": "pt"})
        path = self.path / name
        with self._lock:
            self._written.append(path)
        results = []
        with atomic_write(os.fspath(path), sync=self.sync_files) as file:
            file.write(parts[0])
            file.write(parts[1])
            for (key, _), line in zip(in_order(tensors), parts[2:], strict=True):
                file.write(line)
                info = _StorageInfo(name, key, len(line), _checksums(line))
                results.append(WriteResult(keys[key].index, len(line), info))
        return results

    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Replace the index, and remove the files of former checkpoints."""
        metadata.storage_data = {each.index: each.storage_data for rank in results for each in rank}
        metadata.storage_meta, metadata.version = self.storage_meta(), "1"
        names = {each.relative_path for each in metadata.storage_data.values()}
        for rank, found in enumerate(results):
            for name in {each.storage_data.relative_path for each in found}:
                if not (self.path / name).exists():
                    raise FileNotFoundError(
                        f"{self.path / name}, which rank {rank} has written, is not visible on the coordinator: the folder "
                        "of a checkpoint must be shared by all ranks"
                    )
        with atomic_write(os.fspath(self.path / _INDEX), sync=self.sync_files) as file:
            file.write(_index_text(metadata, self.save_id, len(results)))
        self._written = []
        for each in os.listdir(self.path):
            if _DATA_FILE.fullmatch(each) and each not in names:
                with contextlib.suppress(OSError):
                    os.unlink(self.path / each)

    def abandon(self) -> None:
        """Remove the files that this rank has written for a save that has failed."""
        for path in self._written:
            with contextlib.suppress(OSError):
                path.unlink()
        self._written = []


def _is_path(checkpoint_id: str | os.PathLike[str]) -> bool:
    if isinstance(checkpoint_id, Path):
        return True
    text = os.fspath(checkpoint_id)
    return "://" not in text and any(
        each.exists() and os.access(each, os.W_OK) for each in Path(text).absolute().parents
    )


def _storable(value: Tensor | io.BytesIO) -> Tensor:
    """Return ``value`` as a tensor on the CPU of a dtype that safetensors has; others are stored as bytes."""
    if isinstance(value, io.BytesIO):
        return wrap(numpy.frombuffer(value.getvalue(), numpy.uint8))
    array = devices.to_device(value._array, devices.CPU) if value.device.type != "cpu" else value._array
    if value.dtype in STORED_DTYPES:
        return wrap(array)
    return wrap(numpy.ascontiguousarray(array).reshape((*array.shape, 1)).view(numpy.uint8))


# -- The index ---------------------------------------------------------------------------------------------------------


def _index_text(metadata: Metadata, save_id: str, ranks: int) -> bytes:
    """Return the text of the index."""
    entries: dict[str, Any] = {}
    places = metadata.storage_data
    for name, entry in metadata.state_dict_metadata.items():
        if isinstance(entry, TensorStorageMetadata):
            chunks = [
                {
                    "offsets": list(each.offsets),
                    "sizes": list(each.sizes),
                    **_place(places[MetadataIndex(name, each.offsets)]),
                }
                for each in entry.chunks
            ]
            kind = str(entry.properties.dtype).removeprefix("torch.")
            entries[name] = {"dtype": kind, "shape": list(entry.size), "chunks": chunks}
        else:
            entries[name] = _place(places[MetadataIndex(name)])
    contents = {
        "save_id": save_id, "ranks": ranks, "planner_data": _planner_data(metadata.planner_data), "entries": entries,
    }  # fmt: skip
    text = json.dumps(contents, separators=(",", ":"))
    head = {"format": _FORMAT, "version": 1, "crc32": f"{zlib.crc32(text.encode()):08x}"}
    return f'{json.dumps(head)[:-1]}, "contents":\n{text}}}\n'.encode()


def _place(info: _StorageInfo) -> dict[str, Any]:
    return {"file": info.relative_path, "key": info.key, "bytes": info.length, "crc32": info.crc32}


def _planner_data(data: Any) -> Any:
    """Return the planner's data in JSON: the paths of the default planner, or any other value."""
    if isinstance(data, dict) and all(
        isinstance(path, tuple) and all(isinstance(each, (str, int)) for each in path) for path in data.values()
    ):
        shown = {
            name: [{"key": int(key)} if type(key) is IntKey else key for key in path] for name, path in data.items()
        }
        return {"paths": shown}
    return {"value": json.loads(to_text(data, "planner_data"))}


def _read_index(path: Path) -> Metadata:
    """Return the description of the checkpoint in the index file ``path``; raise ValueError if it is not valid."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"there is no checkpoint in {path.parent}: it has no file {_INDEX}") from None
    if text[:1] == b"\x80":
        raise ValueError(
            f"{path} is PyTorch's index, a pickle, which could execute code: convert the checkpoint with PyTorch's "
            "torch.distributed.checkpoint.format_utils.dcp_to_torch_save, and the result here with torch_save_to_dcp"
        )
    try:
        head = json.loads(text)
        if head["format"] != _FORMAT or head["version"] != 1:
            raise ValueError(f"format {head['format']!r}, version {head['version']}")
        contents = head["contents"]
        canonical = json.dumps(contents, separators=(",", ":"))
        if f"{zlib.crc32(canonical.encode()):08x}" != head["crc32"]:
            raise ValueError("the checksum is wrong")
        found: dict[str, Any] = {}
        places: dict[MetadataIndex, _StorageInfo] = {}
        for name, each in contents["entries"].items():
            if "chunks" not in each:
                found[name], places[MetadataIndex(name)] = BytesStorageMetadata(), _info(each)
                continue
            chunks = []
            for chunk in each["chunks"]:
                offsets = Size(chunk["offsets"])
                chunks.append(ChunkStorageMetadata(offsets, Size(chunk["sizes"])))
                places[MetadataIndex(name, offsets)] = _info(chunk)
            properties = TensorProperties(dtype=dtype_named(each["dtype"]))
            found[name] = TensorStorageMetadata(properties, Size(each["shape"]), chunks)
        data = contents["planner_data"]
        if "paths" in data:
            paths = data["paths"].items()
            planned: Any = {
                name: tuple(IntKey(key["key"]) if isinstance(key, dict) else key for key in path)
                for name, path in paths
            }
        else:
            planned = from_text(json.dumps(data["value"]).encode())
        meta = StorageMeta(checkpoint_id=path.parent, save_id=contents["save_id"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is not a valid index of a checkpoint: {type(error).__name__}: {error}") from error
    return Metadata(found, planned, places, meta, "1")


def _info(chunk: dict[str, Any]) -> _StorageInfo:
    name = chunk["file"]
    if not isinstance(name, str) or name != os.path.basename(name):
        raise ValueError(f"invalid name of a file {name!r}")
    return _StorageInfo(name, chunk["key"], int(chunk["bytes"]), chunk["crc32"])


# -- Reading -----------------------------------------------------------------------------------------------------------


class FileSystemReader(_InFolder, StorageReader):
    """Reader of the checkpoint in the folder ``path``.

    The checksums of all blocks that a rank needs are tested before any tensor is modified.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     reader = checkpoint.FileSystemReader(folder)
    ...     metadata = reader.read_metadata()
    ...     state = {"w": torch.zeros(2)}
    ...     checkpoint.load(state, storage_reader=reader, no_dist=True)
    >>> metadata.state_dict_metadata["w"].size, state
    (torch.Size([2]), {'w': tensor([1., 1.])})
    """

    def __init__(self, path: str | os.PathLike[str], _extension_registry: Any = None) -> None:
        self.path = Path(path)
        self.load_id = secrets.token_hex(8)
        self.storage_data: dict[MetadataIndex, _StorageInfo] = {}
        self._metadata: Metadata | None = None

    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare for another checkpoint, in the folder ``checkpoint_id`` if it is not None."""
        if checkpoint_id:
            self.path = Path(checkpoint_id)
        self.load_id = secrets.token_hex(8)
        self.storage_data = {}

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the description of the checkpoint.

        Raises FileNotFoundError if there is none, and ValueError if the index is not valid.
        """
        metadata = _read_index(self.path / _INDEX)
        assert metadata.storage_meta is not None
        metadata.storage_meta.load_id = self.load_id
        return metadata

    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Store ``metadata``."""
        self._metadata, self.storage_data = metadata, metadata.storage_data

    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Test the files that ``plan`` needs; raise FileNotFoundError or ValueError with the name of a bad file."""
        for file, items in self._by_file(plan):
            for item in items:
                info, begin = self.storage_data[item.storage_index], file.begins[item.storage_index]
                if info.crc32 is None:
                    continue
                first, last = self._byte_range(item)
                for number in range(first // _BLOCK, -(-last // _BLOCK)):
                    block = file.bytes(begin + number * _BLOCK, min(_BLOCK, info.length - number * _BLOCK))
                    if f"{zlib.crc32(block):08x}" != info.crc32[8 * number : 8 * number + 8]:
                        raise ValueError(f"{file.path}: the data of {info.key} are corrupt: a checksum is wrong")
        return plan

    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return ``plans``."""
        return plans

    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Copy the items of ``plan`` into the tensors of ``planner``."""
        for file, items in self._by_file(plan):
            for item in items:
                begin = file.begins[item.storage_index]
                if item.type == LoadItemType.BYTE_IO:
                    length = self.storage_data[item.storage_index].length
                    planner.load_bytes(item, io.BytesIO(file.bytes(begin, length).tobytes()))
                else:
                    target = planner.resolve_tensor(item).detach()
                    self._copy(file, begin, item, target)
                    planner.commit_tensor(item, target)
        future: Future[None] = Future()
        future.set_result(None)
        return future

    def _by_file(self, plan: LoadPlan) -> Iterator[tuple[_DataFile, list[ReadItem]]]:
        """Yield each file that ``plan`` needs, opened and checked against the index, with its items."""
        by_name: dict[str, list[ReadItem]] = {}
        for item in plan.items:
            by_name.setdefault(self.storage_data[item.storage_index].relative_path, []).append(item)
        for name, items in by_name.items():
            with _DataFile(self.path / name) as file:
                for item in items:
                    file.locate(item, self.storage_data[item.storage_index], *self._stored(item))
                yield file, items

    def _stored(self, item: ReadItem) -> tuple[Any, tuple[int, ...]]:
        """Return the dtype and the shape of the chunk from which ``item`` is read."""
        assert self._metadata is not None
        entry = self._metadata.state_dict_metadata[item.storage_index.fqn]
        if isinstance(entry, BytesStorageMetadata):
            return uint8, (self.storage_data[item.storage_index].length,)
        chunk = next(each for each in entry.chunks if each.offsets == item.storage_index.offset)
        return entry.properties.dtype, tuple(chunk.sizes)

    def _byte_range(self, item: ReadItem) -> tuple[int, int]:
        """Return the first and the last byte, in the chunk, of the rows that contain the elements of ``item``."""
        kind, shape = self._stored(item)
        length = self.storage_data[item.storage_index].length
        if item.type == LoadItemType.BYTE_IO or not shape:
            return 0, length
        row = math.prod(shape[1:]) * kind.itemsize
        first: int = item.storage_offsets[0] * row
        return first, first + item.lengths[0] * row

    def _copy(self, file: _DataFile, begin: int, item: ReadItem, target: Tensor) -> None:
        """Copy the elements of ``item`` from ``file``, in which the chunk begins at ``begin``, to ``target``."""
        kind, shape = self._stored(item)
        if tuple(target.shape) != tuple(item.lengths):
            raise ValueError(
                f"{item.storage_index.fqn}: the planner's tensor has the shape {target.shape}, not {item.lengths}"
            )
        first, last = self._byte_range(item)
        row = math.prod(shape[1:]) * kind.itemsize if shape else kind.itemsize
        step = max(1, _PIECE // max(row, 1)) * row
        for position in range(first, last, step or 1):
            line = file.bytes(begin + position, min(step, last - position))
            rows = wrap(line.view(kind.numpy).reshape((-1, *shape[1:]) if shape else ()))
            if not shape:
                target.copy_(rows)
                continue
            part = narrowed(rows, (0, *item.storage_offsets[1:]), (rows.shape[0], *item.lengths[1:]))
            target.narrow(0, (position - first) // row, rows.shape[0]).copy_(part)


class _DataFile:
    """A safetensors file of a checkpoint, opened for reading."""

    def __init__(self, path: Path) -> None:
        self.path = path
        #: Position in the file of each value that is read.
        self.begins: dict[MetadataIndex, int] = {}

    def __enter__(self) -> _DataFile:
        try:
            self._file = open(self.path, "rb")
        except FileNotFoundError:
            raise FileNotFoundError(f"{self.path}, a file of the checkpoint, is missing") from None
        try:
            self._places = read_places(self._file, os.fstat(self._file.fileno()).st_size)
        except ValueError as error:
            self._file.close()
            raise ValueError(f"{self.path}, a file of the checkpoint, is not valid: {error}") from None
        self._start = self._file.tell()
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def locate(self, item: ReadItem, info: _StorageInfo, kind: Any, shape: tuple[int, ...]) -> None:
        """Find the chunk of ``item`` in the file; raise ValueError unless it has the dtype and shape of the index."""
        begin = self._start
        for name, (found, extents, count) in self._places.items():
            if name == info.key:
                raw = kind not in STORED_DTYPES
                expected = (uint8, (*shape, kind.itemsize)) if raw else (kind, shape)
                sums = 8 * -(-count // _BLOCK) if info.crc32 is None else len(info.crc32)
                if (found, extents) != expected or count != info.length or sums != 8 * -(-count // _BLOCK):
                    break
                self.begins[item.storage_index] = begin
                return
            begin += count
        raise ValueError(f"{self.path}, a file of the checkpoint, does not fit its index ({info.key})")

    def bytes(self, begin: int, count: int) -> Any:
        """Return ``count`` bytes of the file from ``begin`` on, as an array."""
        line = numpy.empty(count, numpy.uint8)
        self._file.seek(begin)
        if read_into(self._file, line) < count:
            raise ValueError(f"{self.path}, a file of the checkpoint, is too short")
        return line


__all__ = ["FileSystemReader", "FileSystemWriter"]
