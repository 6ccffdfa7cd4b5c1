"""NVIDIA's library for half-sparse matrices, as ``torch.backends.cusparselt``: it is not used."""

from __future__ import annotations

from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


def version() -> int | None:
    """None."""
    return None


def get_max_alg_id() -> int | None:
    """None."""
    return None


__all__ = ["get_max_alg_id", "is_available", "version"]
__getattr__, __dir__ = absent(__name__), listed(globals())
