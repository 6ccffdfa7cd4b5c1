"""Signals, as ``torch.signal``."""

from ..core.absent import absent
from . import windows

__all__ = ["windows"]
__getattr__ = absent(__name__)
