"""``torch._tensor_str``: print options of tensors, which are implemented in ``core/formatting.py``."""

from .core.formatting import OPTIONS as PRINT_OPTS
from .core.formatting import get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]
