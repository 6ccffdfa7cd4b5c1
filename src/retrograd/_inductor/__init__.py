"""What programs say to the second half of PyTorch's compiler, as ``torch._inductor``: its settings; nothing is compiled."""

from __future__ import annotations

from ..compat.missing_names import absent, listed
from . import config

__all__ = ["config"]
__getattr__, __dir__ = absent(__name__), listed(globals())
