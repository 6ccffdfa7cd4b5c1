"""Description of a checkpoint: its tensors, their chunks, other values, and where they are stored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ...core.dtypes import dtype, get_default_dtype
from ...core.size import Size
from ...core.tensor import Tensor, contiguous_format, layout, memory_format, strided


@dataclass
class ChunkStorageMetadata:
    """Rectangular part of a tensor: the index of its first element, and its shape.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metadata = checkpoint.save({"w": torch.ones(2, 3), "step": 3}, checkpoint_id=folder, no_dist=True)
    >>> metadata.state_dict_metadata["w"].chunks
    [ChunkStorageMetadata(offsets=torch.Size([0, 0]), sizes=torch.Size([2, 3]))]
    """

    offsets: Size
    sizes: Size


@dataclass
class TensorProperties:
    """Properties of a tensor; only ``dtype`` is stored.

    >>> TensorProperties.create_from_tensor(torch.ones(2, dtype=torch.float16)).dtype
    torch.float16
    """

    dtype: dtype = field(default_factory=get_default_dtype)
    layout: layout = field(default=strided)
    requires_grad: bool = False
    memory_format: memory_format = field(default=contiguous_format)
    pin_memory: bool = False

    @staticmethod
    def create_from_tensor(tensor: Tensor) -> TensorProperties:
        """Return the properties of ``tensor``."""
        return TensorProperties(dtype=tensor.dtype, layout=tensor.layout, requires_grad=tensor.requires_grad)


@dataclass
class TensorStorageMetadata:
    """Properties, shape and chunks of a tensor in a checkpoint.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metadata = checkpoint.save({"w": torch.ones(2, 3), "step": 3}, checkpoint_id=folder, no_dist=True)
    >>> tensor = metadata.state_dict_metadata["w"]
    >>> tensor.size, tensor.properties.dtype, len(tensor.chunks)
    (torch.Size([2, 3]), torch.float32, 1)
    """

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """A value of a checkpoint that is not a tensor.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     metadata = checkpoint.save({"w": torch.ones(2, 3), "step": 3}, checkpoint_id=folder, no_dist=True)
    >>> metadata.state_dict_metadata["step"]
    BytesStorageMetadata()
    """


STORAGE_TYPES = TensorStorageMetadata | BytesStorageMetadata
STATE_DICT_TYPE = dict[str, Any]


@dataclass
class StorageMeta:
    """Location of a checkpoint, and identification of the call that saved it.

    >>> from retrograd.distributed import checkpoint
    >>> writer = checkpoint.FileSystemWriter("folder")
    >>> str(writer.storage_meta().checkpoint_id)
    'folder'
    """

    checkpoint_id: str | os.PathLike[str] | None = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """Contents of a checkpoint.

    ``state_dict_metadata`` describes each value by its flat name. ``planner_data`` maps the flat names to the keys in
    nested dicts and lists. ``storage_data`` maps a :class:`MetadataIndex` to the place in a file.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     state = {"model": {"w": torch.ones(2)}, "steps": [3]}
    ...     metadata = checkpoint.save(state, checkpoint_id=folder, no_dist=True)
    >>> list(metadata.state_dict_metadata), metadata.planner_data
    (['model.w', 'steps'], {'model.w': ('model', 'w'), 'steps': ('steps',)})
    """

    state_dict_metadata: dict[str, STORAGE_TYPES]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None


@dataclass(frozen=True)
class MetadataIndex:
    """Name of a value, and, of a chunk of a tensor, the index of its first element in the tensor.

    ``index`` is the probable position in the list of chunks; it is not compared.

    >>> MetadataIndex("w", (0, 2)) == MetadataIndex("w", (0, 2), index=1)
    True
    >>> MetadataIndex("w").offset is None
    True
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(hash=False, compare=False, default=None)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None) -> None:
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        if offset is not None:
            object.__setattr__(self, "offset", Size(offset))


__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip
