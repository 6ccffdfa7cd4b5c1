"""Signals, as ``torch.signal``."""

from ..compat.missing_names import absent, listed
from . import windows

__all__ = ["windows"]
__getattr__, __dir__ = absent(__name__), listed(globals())
