"""``torch.signal``: the module ``windows`` with the window functions for spectral analysis."""

from . import windows

__all__ = ["windows"]
