"""The package that finds cheap orders of products, as ``torch.backends.opt_einsum``: used by ``einsum`` if installed."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import AbstractContextManager
from typing import Any

from ..compat.config_module import Flag, flagged, swap, within
from ..compat.missing_names import absent, listed


def is_available() -> bool:
    """Whether it is installed."""
    return importlib.util.find_spec("opt_einsum") is not None


def get_opt_einsum() -> Any:
    """The package, or None."""
    return importlib.import_module("opt_einsum") if is_available() else None


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[Any, ...]:
    """Set whether it is used, and its strategy; what they were. A cheap order is found in all cases."""
    return tuple(swap(__name__, {"enabled": _enabled, "strategy": _strategy}).values())


def flags(enabled: bool | None = None, strategy: str | None = None) -> AbstractContextManager[None]:
    """A block with other settings."""
    return within(__name__, {"enabled": enabled, "strategy": strategy})


__all__ = ["flags", "get_opt_einsum", "is_available", "set_flags"]
__getattr__, __dir__ = absent(__name__), listed(globals())
flagged(__name__, enabled=Flag(is_available()), strategy=Flag("auto" if is_available() else None))
