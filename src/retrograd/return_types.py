"""Named tuple classes of results, as ``torch.return_types``: ``isinstance(x.max(0), torch.return_types.max)``."""

from __future__ import annotations

from .dispatch.return_types import RESULTS

globals().update(RESULTS)
__all__ = sorted(RESULTS)
