"""What training programs need around the numbers, as ``torch.utils``."""

from ..core.absent import absent, listed
from . import data

__all__ = ["data"]
__getattr__, __dir__ = absent(__name__), listed(globals())
