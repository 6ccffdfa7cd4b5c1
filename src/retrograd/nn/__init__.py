"""Modules and functions of neural networks, as ``torch.nn``."""

from ..core.absent import absent, listed
from . import functional, init, modules, parameter
from .modules import *  # noqa: F403 - the list of all modules is gathered there
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules", "parameter",
    *[_name for _name in modules.__all__ if not _name.startswith("register_")],
]  # fmt: skip
__getattr__, __dir__ = absent(__name__), listed(globals())
