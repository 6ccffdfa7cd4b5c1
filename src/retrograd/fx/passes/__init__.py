"""``torch.fx.passes``: computations over graphs."""

from . import shape_prop

__all__ = ["shape_prop"]
