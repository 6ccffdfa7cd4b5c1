"""``torch.multiprocessing``: Python's ``multiprocessing``, with ``spawn``.

Tensors are pickled when they are sent to another process, which gets copies. A process that is created by ``fork``
shares the memory of tensors whose ``share_memory_`` was called before.
"""

# ruff: noqa: F403 - the names of Python's module

from __future__ import annotations

import multiprocessing as _python
from multiprocessing import *

from .spawn import (
    ENV_VAR_PARALLEL_START,
    ProcessContext,
    ProcessExitedException,
    ProcessRaisedException,
    SpawnContext,
    spawn,
    start_processes,
)

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = ["file_descriptor"]


def get_all_sharing_strategies() -> set[str]:
    """Return the set of the names that :func:`set_sharing_strategy` accepts."""
    return set(_STRATEGIES)


def get_sharing_strategy() -> str:
    """Return the name that was passed to :func:`set_sharing_strategy`."""
    return _strategy[0]


def set_sharing_strategy(new_strategy: str) -> None:
    """Store the name of a strategy to share memory, which has no effect."""
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    _strategy[0] = new_strategy


__all__ = [
    "ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessExitedException", "ProcessRaisedException", "SpawnContext",
    "get_all_sharing_strategies", "get_sharing_strategy", "set_sharing_strategy", "spawn", "start_processes",
]  # fmt: skip
__all__ += _python.__all__
