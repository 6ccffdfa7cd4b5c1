"""Classes of results that are named tuples, such as ``torch.return_types.max`` for ``x.max(0)``."""

from __future__ import annotations

from .dispatch.return_types import RESULTS

globals().update(RESULTS)
__all__ = sorted(RESULTS)
