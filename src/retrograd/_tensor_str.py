"""PyTorch's name for the place of the print options."""

from .kernels.text import OPTIONS as PRINT_OPTS
from .kernels.text import get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
