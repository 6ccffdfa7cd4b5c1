"""``Work``: handle of a collective operation that may still be running."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ..futures import Future


class Work:
    """Handle of an operation that was started with ``async_op=True``.

    ``future`` gets the result of the operation, a list of tensors, or its error. ``source`` is the rank from which a
    receiving operation gets its tensor.
    """

    __module__ = "torch.distributed.distributed_c10d"

    def __init__(self, future: Future[Any], source: int | None = None) -> None:
        self._future = future
        self._source = source

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait until the operation is complete; return True, or raise its error."""
        self._future.wait()
        return True

    synchronize = block_current_stream = wait

    def is_completed(self) -> bool:
        """Whether the operation is complete, with or without an error."""
        return self._future.done()

    def is_success(self) -> bool:
        """Whether the operation is complete without an error."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """Return the error of the complete operation, or None."""
        try:
            self._future.value()
        except Exception as error:
            return error
        return None

    def result(self) -> list[Any]:
        """Wait until the operation is complete, and return a list of its tensors."""
        return list(self._future.wait())

    def get_future(self) -> Future[Any]:
        """Return the future that gets a list of the operation's tensors."""
        return self._future

    def source_rank(self) -> int:
        """Return the rank that sent the tensor of a receiving operation; raise RuntimeError for another operation."""
        if self._source is None:
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to a recv or recv-from-any call."
            )
        return self._source


__all__ = ["Work"]
