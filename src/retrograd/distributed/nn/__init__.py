"""``torch.distributed.nn``: collective operations with gradients."""

from . import functional
from .functional import *  # noqa: F403

__all__ = functional.__all__
