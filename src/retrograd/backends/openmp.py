"""Threads of compiled loops, as ``torch.backends.openmp``: there are no compiled loops here."""

from __future__ import annotations

from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


__all__ = ["is_available"]
__getattr__, __dir__ = absent(__name__), listed(globals())
