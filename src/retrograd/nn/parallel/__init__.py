"""Modules for several devices: what of ``torch.nn.parallel`` programs use on one, too."""

from __future__ import annotations

from ...compat.missing_names import absent, listed
from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
__getattr__, __dir__ = absent(__name__), listed(globals())
