"""Plans of what each rank writes and reads, and the base classes of the planners that make them."""

from __future__ import annotations

import io
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from ...core.size import Size
from ...core.tensor import Tensor
from .metadata import STATE_DICT_TYPE, ChunkStorageMetadata, Metadata, MetadataIndex, StorageMeta, TensorProperties


class WriteItemType(Enum):
    """Kind of a value to be written: a whole tensor, a chunk of a tensor, or another value.

    >>> from retrograd.distributed.checkpoint.default_planner import create_default_local_save_plan
    >>> plan = create_default_local_save_plan({"w": torch.ones(2, 3), "step": 3}, is_coordinator=True)
    >>> [item.type.name for item in plan.items]
    ['TENSOR', 'BYTE_IO']
    """

    TENSOR = auto()
    SHARD = auto()
    BYTE_IO = auto()


class LoadItemType(Enum):
    """Kind of a value to be read: a tensor or a part of one, or another value.

    >>> from retrograd.distributed.checkpoint import default_planner as planner
    >>> state = {"w": torch.ones(2, 3)}
    >>> _, metadata = planner.create_default_global_save_plan([planner.create_default_local_save_plan(state, True)])
    >>> plan = planner.create_default_local_load_plan(state, metadata)
    >>> [item.type.name for item in plan.items]
    ['TENSOR']
    """

    TENSOR = auto()
    BYTE_IO = auto()


@dataclass(frozen=True)
class BytesIOWriteData:
    """Number of bytes of a value that is not a tensor.

    >>> item = WriteItem(MetadataIndex("step"), WriteItemType.BYTE_IO, BytesIOWriteData(8))
    >>> item.bytes_io_data.nbytes
    8
    """

    nbytes: int


@dataclass(frozen=True)
class TensorWriteData:
    """Chunk to be written, and properties and shape of the whole tensor.

    >>> from retrograd.distributed.checkpoint.default_planner import create_default_local_save_plan
    >>> plan = create_default_local_save_plan({"w": torch.ones(2, 3), "step": 3}, is_coordinator=True)
    >>> data = plan.items[0].tensor_data
    >>> data.size, data.chunk.offsets, data.chunk.sizes
    (torch.Size([2, 3]), torch.Size([0, 0]), torch.Size([2, 3]))
    """

    chunk: ChunkStorageMetadata
    properties: TensorProperties
    size: Size


@dataclass(frozen=True)
class WriteItem:
    """A value, or a chunk of a tensor, that a rank writes.

    >>> from retrograd.distributed.checkpoint.default_planner import create_default_local_save_plan
    >>> plan = create_default_local_save_plan({"w": torch.ones(2, 3), "step": 3}, is_coordinator=True)
    >>> [(item.index.fqn, item.tensor_storage_size()) for item in plan.items]
    [('w', 24), ('step', None)]
    """

    index: MetadataIndex
    type: WriteItemType
    bytes_io_data: BytesIOWriteData | None = None
    tensor_data: TensorWriteData | None = None

    def tensor_storage_size(self) -> int | None:
        """Return the number of bytes of the chunk, or None if this is not a tensor."""
        data = self.tensor_data
        return None if data is None else math.prod(data.chunk.sizes) * data.properties.dtype.itemsize


@dataclass(frozen=True)
class ReadItem:
    """Rectangular part that a rank reads: from which chunk, and to which place of which tensor.

    >>> from retrograd.distributed.checkpoint import default_planner as planner
    >>> state = {"w": torch.ones(2, 3)}
    >>> _, metadata = planner.create_default_global_save_plan([planner.create_default_local_save_plan(state, True)])
    >>> plan = planner.create_default_local_load_plan(state, metadata)
    >>> (item,) = plan.items
    >>> item.dest_index.fqn, item.dest_offsets, item.lengths
    ('w', torch.Size([0, 0]), torch.Size([2, 3]))
    """

    type: LoadItemType
    dest_index: MetadataIndex
    dest_offsets: Size
    storage_index: MetadataIndex
    storage_offsets: Size
    lengths: Size


@dataclass(frozen=True)
class SavePlan:
    """Items that a rank writes.

    >>> from retrograd.distributed.checkpoint.default_planner import create_default_local_save_plan
    >>> plan = create_default_local_save_plan({"w": torch.ones(2, 3), "step": 3}, is_coordinator=True)
    >>> len(plan.items), plan.usable
    (2, True)
    """

    items: list[WriteItem]
    storage_data: Any = None
    planner_data: Any = None
    usable: bool = True


@dataclass
class LoadPlan:
    """Items that a rank reads.

    >>> from retrograd.distributed.checkpoint import default_planner as planner
    >>> state = {"w": torch.ones(2, 3)}
    >>> _, metadata = planner.create_default_global_save_plan([planner.create_default_local_save_plan(state, True)])
    >>> plan = planner.create_default_local_load_plan(state, metadata)
    >>> [item.storage_index.fqn for item in plan.items]
    ['w']
    """

    items: list[ReadItem]
    storage_data: Any = None
    planner_data: Any = None


class SavePlanner(ABC):
    """Base class of objects that decide what is saved; the methods are called in this order.

    Programs derive from :class:`DefaultSavePlanner` and override single methods.

    >>> from retrograd.distributed import checkpoint
    >>> issubclass(checkpoint.DefaultSavePlanner, SavePlanner)
    True
    >>> sorted(SavePlanner.__abstractmethods__)
    ['create_global_plan', 'create_local_plan', 'finish_plan', 'resolve_data', 'set_up_planner']
    """

    @abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, storage_meta: StorageMeta | None = None, is_coordinator: bool = False
    ) -> None:
        """Prepare to save ``state_dict``; called on all ranks."""

    @abstractmethod
    def create_local_plan(self) -> SavePlan:
        """Return what this rank could write; called on all ranks."""

    @abstractmethod
    def create_global_plan(self, all_plans: list[SavePlan]) -> tuple[list[SavePlan], Metadata]:
        """Return the plan of each rank, and the description of the checkpoint; called on the coordinator."""

    @abstractmethod
    def finish_plan(self, new_plan: SavePlan) -> SavePlan:
        """Return the final plan of this rank; called on all ranks."""

    @abstractmethod
    def resolve_data(self, write_item: WriteItem) -> Tensor | io.BytesIO:
        """Return the tensor, or the bytes of another value, to be written for ``write_item``."""


class LoadPlanner:
    """Base class of objects that decide what is loaded; the methods are called in this order.

    Programs derive from :class:`DefaultLoadPlanner` and override single methods.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> class Counting(checkpoint.DefaultLoadPlanner):
    ...     count = 0
    ...     def commit_tensor(self, read_item, tensor):
    ...         self.count += 1
    >>> planner = Counting()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = checkpoint.save({"w": torch.ones(2), "step": 3}, checkpoint_id=folder, no_dist=True)
    ...     checkpoint.load({"w": torch.zeros(2), "step": 0}, checkpoint_id=folder, planner=planner, no_dist=True)
    >>> planner.count
    1
    """

    @abstractmethod
    def set_up_planner(
        self, state_dict: STATE_DICT_TYPE, metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        """Prepare to load into ``state_dict``; called on all ranks."""

    @abstractmethod
    def create_local_plan(self) -> LoadPlan:
        """Return what this rank reads; called on all ranks."""

    @abstractmethod
    def create_global_plan(self, global_plan: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans of all ranks; called on the coordinator."""

    @abstractmethod
    def finish_plan(self, central_plan: LoadPlan) -> LoadPlan:
        """Return the final plan of this rank; called on all ranks."""

    @abstractmethod
    def load_bytes(self, read_item: ReadItem, value: io.BytesIO) -> None:
        """Store the value, which is not a tensor, whose bytes are ``value``."""

    def resolve_bytes(self, read_item: ReadItem) -> io.BytesIO:
        """Return the buffer into which the bytes of a value are read."""
        return io.BytesIO()

    @abstractmethod
    def resolve_tensor(self, read_item: ReadItem) -> Tensor:
        """Return the tensor into which the elements of ``read_item`` are copied."""

    @abstractmethod
    def commit_tensor(self, read_item: ReadItem, tensor: Tensor) -> None:
        """Note that ``tensor``, a result of :meth:`resolve_tensor`, is filled."""


__all__ = [
    "BytesIOWriteData", "LoadItemType", "LoadPlan", "LoadPlanner", "ReadItem", "SavePlan", "SavePlanner", "TensorWriteData",
    "WriteItem", "WriteItemType",
]  # fmt: skip
