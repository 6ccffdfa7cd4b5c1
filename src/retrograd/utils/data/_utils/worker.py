"""``torch.utils.data._utils.worker``: information about the worker process."""

from __future__ import annotations

from ..worker import WorkerInfo, get_worker_info

_worker_info: WorkerInfo | None = None

__all__ = ["WorkerInfo", "get_worker_info"]
