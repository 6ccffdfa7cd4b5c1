"""Storages, the memory of tensors (``torch.storage``)."""

from __future__ import annotations

from .operations.creation.storage import UntypedStorage

__all__ = ["UntypedStorage"]
