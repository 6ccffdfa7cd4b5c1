"""Steps of saving and loading that all ranks do together; a failure of one rank is raised by all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .. import groups
from ..object_collectives import all_gather_object, broadcast_object_list, gather_object, scatter_object_list
from .api import CheckpointException, is_wrapped, wrap_exception

T = TypeVar("T")
R = TypeVar("R")


class _DistWrapper:
    """Ranks of ``group``, of which ``coordinator_rank`` is the coordinator; one process without ``use_dist``."""

    def __init__(self, group: Any, use_dist: bool, coordinator_rank: int) -> None:
        self.group, self.use_dist, self.coordinator_rank = group, use_dist, coordinator_rank
        self.rank = groups.get_rank(group) if use_dist else 0
        self.size = groups.get_world_size(group) if use_dist else 1
        self.is_coordinator = not use_dist or self.rank == coordinator_rank

    def get_rank(self) -> int:
        """Return the rank of this process in the group."""
        return self.rank

    def get_world_size(self) -> int:
        """Return the number of ranks."""
        return self.size

    def _attempt(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args)
        except Exception as error:
            return wrap_exception(error)
        except CheckpointException as error:
            return wrap_exception(error)

    def _at_coordinator(self, step: str, results: list[Any] | None, function: Callable[[list[Any]], Any]) -> Any:
        """Return ``function(results)``, or a CheckpointException if it or a rank has failed; None on other ranks."""
        if results is None:
            return None
        failures = {rank: each for rank, each in enumerate(results) if is_wrapped(each)}
        if not failures:
            value = self._attempt(function, results)
            if not is_wrapped(value):
                return value
            failures[self.rank] = value
        return CheckpointException(step, failures)

    def _gathered(self, value: Any) -> list[Any] | None:
        if self.size == 1:
            return [value]
        results = [None] * self.size if self.is_coordinator else None
        gather_object(value, results, group=self.group, group_dst=self.coordinator_rank)
        return results

    def reduce_scatter(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], list[R]]) -> R:
        """Return this rank's item of ``reduce_fun(values)``, where ``values`` are the results of ``map_fun`` of all ranks."""
        results = self._gathered(self._attempt(map_fun))
        reduced = self._at_coordinator(step, results, reduce_fun)
        if isinstance(reduced, CheckpointException):
            reduced = [reduced] * self.size
        if self.size > 1:
            received = [None]
            scatter_object_list(received, reduced, group=self.group, group_src=self.coordinator_rank)
            mine: Any = received[0]
        else:
            mine = reduced[0]
        return self._checked(mine)

    def all_reduce(self, step: str, map_fun: Callable[[], T], reduce_fun: Callable[[list[T]], R]) -> R:
        """Return ``reduce_fun(values)``, computed by the coordinator; ``values`` are the results of ``map_fun``."""
        results = self._gathered(self._attempt(map_fun))
        return self._broadcast(self._at_coordinator(step, results, reduce_fun))

    def all_gather(self, step: str, map_fun: Callable[[], T]) -> list[T]:
        """Return the results of ``map_fun`` of all ranks."""
        value = self._attempt(map_fun)
        results: list[Any] = [value]
        if self.size > 1:
            results = [None] * self.size
            all_gather_object(results, value, group=self.group)
        failures = {rank: each for rank, each in enumerate(results) if is_wrapped(each)}
        if failures:
            raise CheckpointException(step, failures)
        return results

    def broadcast(self, step: str, map_fun: Callable[[], T]) -> T:
        """Return the result of ``map_fun``, called by the coordinator."""
        value: Any = self._attempt(map_fun) if self.is_coordinator else None
        if is_wrapped(value):
            value = CheckpointException(step, {self.rank: value})
        return self._broadcast(value)

    def _broadcast(self, value: Any) -> Any:
        if self.size > 1:
            values = [value]
            broadcast_object_list(values, group=self.group, group_src=self.coordinator_rank)
            value = values[0]
        return self._checked(value)

    def _checked(self, value: Any) -> Any:
        if isinstance(value, CheckpointException):
            raise value
        return value


__all__: list[str] = []
