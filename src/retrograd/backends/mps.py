"""Apple's GPUs, as ``torch.backends.mps``: there are none here."""

from __future__ import annotations

from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


def is_built() -> bool:
    """False."""
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Refused, as by a PyTorch that is built without them."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Refused, as by a PyTorch that is built without them."""
    raise RuntimeError("Cannot execute isOnMacOSorNewer() without MPS backend.")


__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]
__getattr__, __dir__ = absent(__name__), listed(globals())
