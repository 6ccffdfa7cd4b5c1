"""Modules and functions of neural networks, as ``torch.nn``."""

# ruff: noqa: F403 - the modules say themselves what they export

from ..core.absent import absent, listed
from . import functional, init, modules, parameter, utils
from .modules import *
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules", "parameter",
    "utils",
]  # fmt: skip
__all__ += [_name for _name in modules.__all__ if not _name.startswith("register_")]
__getattr__, __dir__ = absent(__name__), listed(globals())
