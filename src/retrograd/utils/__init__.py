"""Checkpointing and what hooks return, as ``torch.utils``."""

from ..core.absent import absent, listed
from . import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]
__getattr__, __dir__ = absent(__name__), listed(globals())
