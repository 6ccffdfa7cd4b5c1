"""Profiler of the operations of a program (``torch.autograd.profiler``)."""

from __future__ import annotations

from ..compat.lazy_imports import module_dir, module_getattr
from ..profiler.autograd_profiler import *  # noqa: F403
from ..profiler.autograd_profiler import __all__ as __all__

__getattr__, __dir__ = module_getattr(__name__), module_dir(globals())
