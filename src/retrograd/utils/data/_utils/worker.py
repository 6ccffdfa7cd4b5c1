"""``torch.utils.data._utils.worker``: information about the worker process, and what worker processes exchange."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy

from ..worker import WorkerInfo, get_worker_info

_worker_info: WorkerInfo | None = None


class ManagerWatchdog:
    """Observer of the process that has started this one."""

    def __init__(self) -> None:
        self.manager_pid = os.getppid()

    def is_alive(self) -> bool:
        """Whether that process runs."""
        return os.getppid() == self.manager_pid


@dataclass(frozen=True)
class _IterableDatasetStopIteration:
    """Message of a worker whose data set has ended."""

    worker_id: int


@dataclass(frozen=True)
class _ResumeIteration:
    """Message with which a worker begins a new pass."""

    seed: int | None = None


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Return the seed of NumPy's generator in a worker, four numbers."""
    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    return [int(each) for each in numpy.random.SeedSequence(words).generate_state(4)]


__all__ = ["ManagerWatchdog", "WorkerInfo", "get_worker_info"]
