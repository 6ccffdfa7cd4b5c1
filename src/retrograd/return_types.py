"""Classes of results that are named tuples, as ``torch.return_types``: ``x.max(0)`` is a ``torch.return_types.max``."""

from __future__ import annotations

from .dispatch.return_types import RESULTS

globals().update(RESULTS)
__all__ = sorted(RESULTS)
