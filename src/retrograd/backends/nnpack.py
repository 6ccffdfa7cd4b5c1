"""A library of convolutions, as ``torch.backends.nnpack``: it is not used. The setting is kept without effect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..compat.config_module import Flag, flagged, swap, within
from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """False."""
    return False


def set_flags(_enabled: bool | None) -> tuple[Any, ...]:
    """Set it; what it was."""
    return tuple(swap(__name__, {"enabled": _enabled}).values())


def flags(enabled: bool = False) -> AbstractContextManager[None]:
    """A block with another setting."""
    return within(__name__, {"enabled": enabled})


__all__ = ["flags", "is_available", "set_flags"]
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(__name__, enabled=Flag(True))
