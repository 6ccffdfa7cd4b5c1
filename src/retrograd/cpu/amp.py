"""Mixed precision by its old names, as ``torch.cpu.amp``; ``torch.amp`` has the new ones."""

from __future__ import annotations

from ..amp import old
from ..compat.missing_names import absent, listed
from ..core import dtypes

autocast, GradScaler = old.classes("cpu", dtypes.bfloat16)

__all__ = ["GradScaler", "autocast"]
__getattr__, __dir__ = absent(__name__), listed(globals())
