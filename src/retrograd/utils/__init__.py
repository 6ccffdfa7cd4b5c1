"""Data, checkpointing, nests of tensors, and what hooks return, as ``torch.utils``."""

from ..core.absent import absent, listed
from . import _pytree, checkpoint, data, hooks

__all__ = ["_pytree", "checkpoint", "data", "hooks"]
__getattr__, __dir__ = absent(__name__), listed(globals())
