"""``torch.distributed.distributed_c10d``: the module in which PyTorch defines process groups and their operations."""

# ruff: noqa: F403 - the package defines ``__all__``

from . import *
from . import __all__ as __all__
from .groups import _State

_pg_map = _State.groups
