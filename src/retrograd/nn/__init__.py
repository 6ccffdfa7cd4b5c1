"""Modules and functions of neural networks, as ``torch.nn``."""

# ruff: noqa: F403 - the modules say themselves what they export

from ..core.absent import absent
from . import functional, init, modules, parameter, utils
from .modules import *
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parameter",
    "utils",
]
__all__ += modules.__all__
__getattr__ = absent(__name__)
