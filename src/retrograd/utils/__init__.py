"""Checkpointing and what hooks return, as ``torch.utils``."""

from ..core.absent import absent
from . import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
__getattr__ = absent(__name__)
