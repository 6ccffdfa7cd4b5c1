"""Modules for several devices: what of ``torch.nn.parallel`` programs use on one, too."""

from __future__ import annotations

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
