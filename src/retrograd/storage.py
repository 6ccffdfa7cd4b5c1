"""Storages of tensors, as ``torch.storage``."""

from __future__ import annotations

from .operations.creation.storage import UntypedStorage

__all__ = ["UntypedStorage"]
