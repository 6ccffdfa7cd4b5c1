"""Functions of neural networks, as ``torch.nn``."""

from ..core.absent import absent, listed
from . import functional

__all__ = ["functional"]
__getattr__, __dir__ = absent(__name__), listed(globals())
