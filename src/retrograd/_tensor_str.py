"""PyTorch's name for the place of the print options."""

from .core.formatting import OPTIONS as PRINT_OPTS
from .core.formatting import get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
