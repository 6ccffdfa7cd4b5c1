"""``Work``: handle of a collective operation that may still be running."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from ..futures import Future, collect_all
from .engine import Operation


class Work:
    """Handle of an operation that was started with ``async_op=True``.

    ``operations`` are what the engine has started, and ``results`` the list of tensors that is their result. ``ranks``
    are the global ranks of the group of an operation that receives a tensor.

    >>> from retrograd import distributed as dist
    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> x = torch.tensor([1.0, 2.0])
    >>> work = dist.all_reduce(x, async_op=True)
    >>> work.wait(), work.is_completed(), work.result()
    (True, True, [tensor([1., 2.])])
    >>> dist.destroy_process_group()
    """

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(
        self, operations: Sequence[Operation], results: Sequence[Any] = (), ranks: Sequence[int] | None = None
    ) -> None:  # fmt: skip
        self._operations = operations
        self._results = results
        self._ranks = ranks
        self._future: Future[Any] | None = None
        self._lock = threading.Lock()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is complete; return True, or raise its error.

        After ``timeout``, RuntimeError is raised, and the operation continues.
        """
        for each in self._operations:
            each.wait(timeout)
        return True

    def synchronize(self, timeout: timedelta | None = None) -> bool:
        """Wait as :meth:`wait` does."""
        return self.wait(timeout)

    def block_current_stream(self, timeout: timedelta | None = None) -> bool:
        """Wait as :meth:`wait` does."""
        return self.wait(timeout)

    def is_completed(self) -> bool:
        """Whether the operation is complete, with or without an error."""
        return all(each.done() for each in self._operations)

    def is_success(self) -> bool:
        """Whether the operation is complete without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error of the complete operation, or None."""
        return next((each.error for each in self._operations if each.error is not None), None)

    def result(self) -> list[Any]:
        """Wait until the operation is complete, and return a list of its tensors."""
        self.wait()
        return list(self._results)

    def get_future(self) -> Future[Any]:
        """Return the future that gets a list of the operation's tensors."""
        with self._lock:
            if self._future is None:
                parts: list[Future[Any]] = [Future() for _ in self._operations]
                for each, part in zip(self._operations, parts, strict=True):
                    each.when_done(part, list(self._results))
                if len(parts) == 1:
                    self._future = parts[0]
                else:
                    results = list(self._results)
                    self._future = collect_all(parts).then(lambda done: (done.value(), results)[1])
            return self._future

    def source_rank(self) -> int:
        """Return the rank that sent the tensor of a receiving operation; raise RuntimeError for another operation."""
        if self._ranks is None:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._ranks[self._operations[0].wait()]

    _source_rank = source_rank


__all__ = ["Work"]
