"""Discrete Fourier transforms (``torch.fft``)."""

from .dispatch import declare as _table
from .operations.signal.fft import *  # noqa: F403 - the module has __all__

__all__ = sorted(_name for _name in globals() if _name[0] != "_")
_table.publish(globals(), "fft")
