"""The short way of transformers in evaluation, as ``torch.backends.mha``: there is none, whatever is set."""

from __future__ import annotations

from ..compat.missing_names import absent, listed

_enabled = [True]


def get_fastpath_enabled() -> bool:
    """What :func:`set_fastpath_enabled` has set."""
    return _enabled[0]


def set_fastpath_enabled(value: bool) -> None:
    """Allow the short way."""
    _enabled[0] = value


__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]
__getattr__, __dir__ = absent(__name__), listed(globals())
