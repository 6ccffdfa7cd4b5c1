"""``HuggingFaceStorageReader`` and ``HuggingFaceStorageWriter``: folders with ``model-00001-of-00002.safetensors`` …

These files contain whole tensors. Their index has no checksums, and they are replaced one after another.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from ...checkpoints.files import atomic_write
from ...checkpoints.safetensors import read_places
from ...core.size import Size
from .filesystem import FileSystemReader, FileSystemWriter, _StorageInfo, _StoragePrefix
from .metadata import (
    ChunkStorageMetadata,
    Metadata,
    MetadataIndex,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from .planner import SavePlan, WriteItem, WriteItemType

_INDEX = "model.safetensors.index.json"


class HuggingFaceStorageReader(FileSystemReader):
    """Reader of the safetensors files in the folder ``path``; DTensors get their parts of the tensors.

    ``thread_count`` has no effect.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     torch.serialization.save_safetensors({"w": torch.ones(2)}, f"{folder}/model.safetensors")
    ...     state = {"w": torch.zeros(2)}
    ...     reader = checkpoint.HuggingFaceStorageReader(folder)
    ...     checkpoint.load(state, storage_reader=reader, no_dist=True)
    >>> state
    {'w': tensor([1., 1.])}
    """

    def __init__(self, path: str | os.PathLike[str], thread_count: int = 1) -> None:
        super().__init__(path)
        self.thread_count = thread_count

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the description of the tensors in all files.

        Raises FileNotFoundError if there are no files, and ValueError if one is not valid or has parts of tensors.
        """
        found: dict[str, Any] = {}
        places: dict[MetadataIndex, _StorageInfo] = {}
        for path in sorted(self.path.glob("*.safetensors")):
            if path.name.startswith(("shard-", "__")):
                raise ValueError(f"{path} contains parts of tensors: it belongs to a checkpoint of another kind")
            try:
                with path.open("rb") as file:
                    header = read_places(file, os.fstat(file.fileno()).st_size)
            except ValueError as error:
                raise ValueError(f"{path} is not valid: {error}") from None
            for name, (kind, shape, count) in header.items():
                if name in found:
                    raise ValueError(f"{path} contains {name}, which another file contains, too")
                chunk = ChunkStorageMetadata(Size([0] * len(shape)), Size(shape))
                found[name] = TensorStorageMetadata(TensorProperties(dtype=kind), Size(shape), [chunk])
                places[MetadataIndex(name, chunk.offsets)] = _StorageInfo(path.name, name, count, None)
        if not found:
            raise FileNotFoundError(f"there are no safetensors files with tensors in {self.path}")
        return Metadata(found, None, places, StorageMeta(checkpoint_id=self.path, load_id=self.load_id))


class HuggingFaceStorageWriter(FileSystemWriter):
    """Writer of whole tensors to safetensors files in the folder ``path``.

    ``fqn_to_index_mapping`` maps the names to the numbers of the files, from 1 on; by default there is one file. DTensors
    raise ValueError: collect them first, with ``get_model_state_dict`` and ``full_state_dict=True``.
    ``save_distributed=True`` and ``enable_consolidation=True`` raise RuntimeError. One rank writes a file.

    >>> import pathlib, tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = checkpoint.HuggingFaceStorageWriter(folder, {"a": 1, "b": 2})
    ...     _ = checkpoint.save({"a": torch.ones(2), "b": torch.ones(3)}, storage_writer=writer, no_dist=True)
    ...     sorted(path.name for path in pathlib.Path(folder).glob("*.safetensors"))
    ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors']
    """

    def __init__(
        self, path: str | os.PathLike[str], fqn_to_index_mapping: dict[str, int] | None = None, thread_count: int = 1,
        save_distributed: bool = False, enable_consolidation: bool = False, thread_count_consolidation: int = 1,
    ) -> None:  # fmt: skip
        if save_distributed or enable_consolidation:
            raise RuntimeError(
                "HuggingFaceStorageWriter writes whole tensors only: save the parts of several ranks with FileSystemWriter"
            )
        super().__init__(path, thread_count=thread_count)
        self.fqn_to_index_mapping = fqn_to_index_mapping
        self.save_distributed, self.enable_consolidation = save_distributed, enable_consolidation

    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Give all items to the first rank; raise ValueError for parts of tensors and for other values."""
        items = [item for plan in plans for item in plan.items]
        for item in items:
            if item.type != WriteItemType.TENSOR:
                what = "a DTensor" if item.type == WriteItemType.SHARD else "not a tensor"
                raise ValueError(f"{item.index.fqn} is {what}: these files contain only whole tensors")
            if self.fqn_to_index_mapping is not None and item.index.fqn not in self.fqn_to_index_mapping:
                raise ValueError(f"{item.index.fqn} is not in fqn_to_index_mapping")
        storage = _StoragePrefix("model-", "")
        first, *others = plans
        return [
            dataclasses.replace(first, items=items, storage_data=storage),
            *[dataclasses.replace(each, items=[], storage_data=storage) for each in others],
        ]

    def _number(self, name: str) -> int:
        return 1 if self.fqn_to_index_mapping is None else self.fqn_to_index_mapping[name]

    def _files(self, items: Sequence[WriteItem]) -> Iterable[list[WriteItem]]:
        files: dict[int, list[WriteItem]] = {}
        for item in items:
            files.setdefault(self._number(item.index.fqn), []).append(item)
        return files.values()

    def _name(self, prefix: _StoragePrefix, items: list[WriteItem], position: int) -> str:
        count = max(self.fqn_to_index_mapping.values()) if self.fqn_to_index_mapping else 1
        return f"{prefix.prefix}{self._number(items[0].index.fqn):05}-of-{count:05}.safetensors"

    def finish(self, metadata: Metadata, results: list[list[Any]]) -> None:
        """Write the index, which maps the names to the files."""
        written = [each for rank in results for each in rank]
        index = {
            "metadata": {"total_size": sum(each.size_in_bytes for each in written)},
            "weight_map": {each.index.fqn: each.storage_data.relative_path for each in written},
        }
        with atomic_write(os.fspath(self.path / _INDEX), sync=self.sync_files) as file:
            file.write(json.dumps(index, indent=2).encode())
        self._written = []


__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]
