"""``CheckpointException``: the failures of all ranks in a step of saving or loading."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

from ...compat.module_names import ModuleName

WRAPPED_EXCEPTION = tuple[BaseException, traceback.StackSummary]


class CheckpointException(BaseException):
    """Failure of one or several ranks while a checkpoint was saved or loaded; every rank raises it.

    ``failures`` maps the rank to its exception and traceback.

    >>> import tempfile
    >>> from retrograd.distributed import checkpoint
    >>> folder = tempfile.TemporaryDirectory()
    >>> try:
    ...     checkpoint.load({"w": torch.zeros(2)}, checkpoint_id=folder.name, no_dist=True)
    ... except checkpoint.CheckpointException as error:
    ...     {rank: type(failure[0]).__name__ for rank, failure in error.failures.items()}
    {0: 'FileNotFoundError'}
    >>> folder.cleanup()
    """

    __module__ = ModuleName("torch.distributed.checkpoint.api", __name__)

    def __init__(self, msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> None:
        super().__init__(msg, failures)
        self._failures = failures

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, self.args

    @property
    def failures(self) -> dict[int, WRAPPED_EXCEPTION]:
        """Dict of the exception and the traceback of each rank that has failed."""
        return self._failures

    def __str__(self) -> str:
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n" + "".join(traceback.format_list(trace))
            text += "".join(traceback.format_exception_only(type(error), error))
        return text


def _rebuilt(msg: str, failures: dict[int, WRAPPED_EXCEPTION]) -> CheckpointException:
    """Return a CheckpointException; pickles call this function."""
    return CheckpointException(msg, failures)


def wrap_exception(error: BaseException) -> WRAPPED_EXCEPTION:
    """Return ``error`` and its traceback in a form that can be sent to other ranks."""
    trace = traceback.extract_tb(error.__traceback__)
    for frame in trace:  # Python 3.13 keeps the code, which can not be pickled
        if hasattr(frame, "_code"):
            frame._code = None
    plain: BaseException = error.with_traceback(None)
    plain.__cause__ = plain.__context__ = None
    try:
        pickle.loads(pickle.dumps(plain))
    except Exception:
        plain = RuntimeError(f"{type(error).__name__}: {error}")
    return plain, trace


def is_wrapped(value: Any) -> bool:
    """Whether ``value`` is a result of :func:`wrap_exception`."""
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and isinstance(value[0], BaseException)
        and isinstance(value[1], traceback.StackSummary)
    )


__all__ = ["CheckpointException"]
