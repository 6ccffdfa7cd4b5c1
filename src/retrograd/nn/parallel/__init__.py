"""``torch.nn.parallel``: ``DataParallel`` and ``data_parallel``, which call a module on a single device."""

from __future__ import annotations

from .data_parallel import DataParallel, data_parallel

__all__ = ["DataParallel", "data_parallel"]
