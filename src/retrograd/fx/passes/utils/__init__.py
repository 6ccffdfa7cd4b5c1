"""``torch.fx.passes.utils``: the search for patterns in graphs."""

from . import matcher_utils

__all__ = ["matcher_utils"]
