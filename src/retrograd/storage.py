"""Storages, the memory of tensors (``torch.storage``)."""

from __future__ import annotations

from .operations.creation.storage import UntypedStorage
from .operations.creation.typed_storage import TypedStorage

__all__ = ["TypedStorage", "UntypedStorage"]
