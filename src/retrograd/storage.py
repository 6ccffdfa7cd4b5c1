"""The memory of tensors, as ``torch.storage``."""

from __future__ import annotations

from .compat.missing_names import absent, listed
from .operations.creation.storage import UntypedStorage

__all__ = ["UntypedStorage"]
__getattr__, __dir__ = absent(__name__), listed(globals())
