"""``Join``: training with different numbers of inputs in the ranks of a group."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class JoinHook:
    """Functions that a rank without further inputs calls while other ranks have some."""

    def main_hook(self) -> None:
        """Take part in the operations of one step of the other ranks."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Do what is necessary after the last step of all ranks."""


class Joinable(ABC):
    """Base class of objects that :class:`Join` gets, such as modules and optimizers."""

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Return the hook of this object."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """Device of this object."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """Process group of this object."""


class Join:
    """Context manager for ranks with different numbers of inputs; in a group of one process it has no effect."""

    def __init__(
        self, joinables: Sequence[Any], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ) -> None:  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable = list(joinables), enable

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None

    @staticmethod
    def notify_join_context(joinable: Any) -> None:
        """Return None: no other rank waits for this one."""
        return None


__all__ = ["Join", "JoinHook", "Joinable"]
