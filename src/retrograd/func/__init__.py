"""``torch.func``: functions made of functions."""

from .vmap import vmap

__all__ = ["vmap"]
