"""``torch.fx.experimental``: its module ``proxy_tensor``."""

from . import proxy_tensor

__all__ = ["proxy_tensor"]
