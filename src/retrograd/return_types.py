"""Classes of results with names, as ``torch.return_types``: ``isinstance(x.max(0), torch.return_types.max)``."""

from __future__ import annotations

from .compat.missing_names import absent, listed
from .dispatch.return_types import RESULTS

globals().update(RESULTS)
__all__ = sorted(RESULTS)
__getattr__, __dir__ = absent(__name__), listed(globals())
