"""Arm's library of products, as ``torch.backends.kleidiai``: it is not used."""

from __future__ import annotations

from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


__all__ = ["is_available"]
__getattr__, __dir__ = absent(__name__), listed(globals())
