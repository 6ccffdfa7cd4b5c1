"""``torch.utils.data._utils.signal_handling``: the end of a worker is noticed by its pipe, without signal handlers."""

from __future__ import annotations

from typing import Any


def _set_worker_signal_handlers(*args: Any) -> None:
    """Do nothing."""


def _set_worker_pids(loader_id: int, child_pids: Any) -> None:
    """Do nothing."""


def _remove_worker_pids(loader_id: int) -> None:
    """Do nothing."""


def _error_if_any_worker_fails() -> None:
    """Do nothing."""


def _set_SIGCHLD_handler() -> None:
    """Do nothing."""


__all__: list[str] = []
