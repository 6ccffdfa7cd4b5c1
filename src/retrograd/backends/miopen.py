"""AMD's library of convolutions, as ``torch.backends.miopen``: it is not used. The setting is kept without effect."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from ..compat.config_module import Flag, flagged, swap, within
from ..compat.missing_names import absent, listed


def set_flags(_immediate: bool | None = None) -> tuple[Any, ...]:
    """Set it; what it was."""
    return tuple(swap(__name__, {"immediate": _immediate}).values())


def flags(immediate: bool = False) -> AbstractContextManager[None]:
    """A block with another setting."""
    return within(__name__, {"immediate": immediate})


__all__ = ["flags", "set_flags"]
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(__name__, immediate=Flag(False))
