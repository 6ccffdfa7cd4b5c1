"""Functions of neural networks, as ``torch.nn``."""

from ..core.absent import absent
from . import functional

__all__ = ["functional"]
__getattr__ = absent(__name__)
