"""PyTorch's name for the place of the print options."""

from .kernels.text import get_printoptions, printoptions, set_printoptions

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]
