"""Base classes of what writes and reads checkpoints; :mod:`filesystem` has those for folders."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from ...futures import Future
from .metadata import Metadata, MetadataIndex, StorageMeta
from .planner import LoadPlan, LoadPlanner, SavePlan, SavePlanner


@dataclass(frozen=True)
class WriteResult:
    """Description of a written value: its index, its number of bytes, and its place.

    >>> result = WriteResult(MetadataIndex("w"), size_in_bytes=8, storage_data="file.bin")
    >>> result.index.fqn, result.size_in_bytes
    ('w', 8)
    """

    index: MetadataIndex
    size_in_bytes: int
    storage_data: Any


class StorageWriter(ABC):
    """Base class of writers; the methods are called in this order, ``finish`` on the coordinator only.

    >>> from retrograd.distributed import checkpoint
    >>> issubclass(checkpoint.FileSystemWriter, StorageWriter)
    True
    >>> checkpoint.FileSystemWriter.validate_checkpoint_id("s3://bucket")
    False
    """

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare for another checkpoint, ``checkpoint_id`` if it is not None."""

    @abstractmethod
    def set_up_storage_writer(self, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Prepare this rank."""

    @abstractmethod
    def prepare_local_plan(self, plan: SavePlan) -> SavePlan:
        """Return ``plan`` with data of this writer."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[SavePlan]) -> list[SavePlan]:
        """Return the plans of all ranks with data of this writer; called on the coordinator."""

    @abstractmethod
    def write_data(self, plan: SavePlan, planner: SavePlanner) -> Future[list[WriteResult]]:
        """Write the items of ``plan``, and return a future of their results."""

    @abstractmethod
    def finish(self, metadata: Metadata, results: list[list[WriteResult]]) -> None:
        """Complete the checkpoint after all ranks have written; called on the coordinator."""

    def abandon(self) -> None:  # noqa: B027 - a writer may have nothing to remove
        """Remove what this rank has written, because a rank has failed."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this class can write the checkpoint ``checkpoint_id``."""

    def storage_meta(self) -> StorageMeta | None:
        """Return where the checkpoint is, for the planner."""
        return None


class StorageReader(ABC):
    """Base class of readers; the methods are called in this order.

    >>> from retrograd.distributed import checkpoint
    >>> issubclass(checkpoint.FileSystemReader, StorageReader)
    True
    >>> checkpoint.FileSystemReader.validate_checkpoint_id("s3://bucket")
    False
    """

    @abstractmethod
    def reset(self, checkpoint_id: str | os.PathLike[str] | None = None) -> None:
        """Prepare for another checkpoint, ``checkpoint_id`` if it is not None."""

    @abstractmethod
    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:
        """Return the description of the checkpoint."""

    @abstractmethod
    def set_up_storage_reader(self, metadata: Metadata, is_coordinator: bool, *args: Any, **kwargs: Any) -> None:
        """Prepare this rank."""

    @abstractmethod
    def prepare_local_plan(self, plan: LoadPlan) -> LoadPlan:
        """Return ``plan`` with data of this reader."""

    @abstractmethod
    def prepare_global_plan(self, plans: list[LoadPlan]) -> list[LoadPlan]:
        """Return the plans of all ranks with data of this reader; called on the coordinator."""

    @abstractmethod
    def read_data(self, plan: LoadPlan, planner: LoadPlanner) -> Future[None]:
        """Read the items of ``plan`` into the tensors of ``planner``, and return a future."""

    @classmethod
    @abstractmethod
    def validate_checkpoint_id(cls, checkpoint_id: str | os.PathLike[str]) -> bool:
        """Whether this class can read the checkpoint ``checkpoint_id``."""


__all__ = ["StorageReader", "StorageWriter", "WriteResult"]
