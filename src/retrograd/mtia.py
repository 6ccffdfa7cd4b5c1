"""Meta's accelerators, as ``torch.mtia``: there are none here."""

from __future__ import annotations

from .compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


__all__ = ["device_count", "is_available", "is_initialized"]
__getattr__, __dir__ = absent(__name__), listed(globals())
