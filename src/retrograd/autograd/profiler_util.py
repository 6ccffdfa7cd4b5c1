"""Events of a profiler, lists of events and their averages (``torch.autograd.profiler_util``)."""

from __future__ import annotations

from ..compat.lazy_imports import module_dir, module_getattr
from ..profiler.events import *  # noqa: F403
from ..profiler.events import __all__ as __all__

__getattr__, __dir__ = module_getattr(__name__), module_dir(globals())
