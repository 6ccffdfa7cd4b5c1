"""``torch.distributed.checkpoint.hf_storage``: classes of files of tensors that are split over several processes."""

from __future__ import annotations

from typing import Any


class HuggingFaceStorageReader:
    """Reader of a checkpoint by several processes; the constructor raises RuntimeError."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("a checkpoint is split over several processes, which this version does not support")


class HuggingFaceStorageWriter(HuggingFaceStorageReader):
    """Writer of a checkpoint by several processes; the constructor raises RuntimeError."""


__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]
