"""Profiles of the operations that a program runs, as ``torch.autograd.profiler``."""

from __future__ import annotations

from ..compat.missing_names import absent, listed
from ..profiler.autograd_profiler import *  # noqa: F403
from ..profiler.autograd_profiler import __all__ as __all__

__getattr__, __dir__ = absent(__name__), listed(globals())
