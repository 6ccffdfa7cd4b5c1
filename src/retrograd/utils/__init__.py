"""``torch.utils``."""

from . import _pytree

__all__ = ["_pytree"]
