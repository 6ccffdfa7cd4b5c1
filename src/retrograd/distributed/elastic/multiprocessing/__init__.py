"""Streams of ranks (``Std``, ``DefaultLogsSpecs``) and the error for a signal to the launcher."""

from __future__ import annotations

import os
import signal
import tempfile
from enum import IntFlag
from typing import Any

from ....compat.lazy_imports import module_getattr


class SignalException(Exception):
    """Error for a signal that has ended the launcher; ``sigval`` is the signal."""

    __module__ = "torch.distributed.elastic.multiprocessing.api"

    def __init__(self, msg: str, sigval: signal.Signals) -> None:
        super().__init__(msg)
        self.sigval = sigval


class Std(IntFlag):
    """Standard streams of a rank: none, output, errors or both."""

    NONE = 0
    OUT = 1
    ERR = 2
    ALL = OUT | ERR

    @classmethod
    def from_str(cls, vm: str) -> Std | dict[int, Std]:
        """Return the streams for a text such as ``"3"``, or a dictionary by local rank for ``"0:1,1:2"``.

        >>> Std.from_str("0:1,1:3")
        {0: <Std.OUT: 1>, 1: <Std.ALL: 3>}
        """
        try:
            if vm.isdigit():
                return cls(int(vm))
            pairs = [each.split(":") for each in vm.split(",")]
            return {int(rank): cls(int(streams)) for rank, streams in pairs}
        except ValueError:
            raise ValueError(f"{vm} does not match: <0-3> or <local_rank>:<0-3>,<local_rank>:<0-3>") from None


class LogsSpecs:
    """Base class of :class:`DefaultLogsSpecs`."""

    __module__ = "torch.distributed.elastic.multiprocessing.api"


class DefaultLogsSpecs(LogsSpecs):
    """Destinations of the streams of the ranks.

    Args:
        log_dir: Folder in which :meth:`run_folder` creates a folder; by default in the system's folder for temporary
            files.
        redirects: Streams that are written to files only, for all ranks or by local rank.
        tee: Streams that are written to files and, with a prefix, to the console.
        local_ranks_filter: Local ranks whose streams are shown; by default all.
    """

    __module__ = "torch.distributed.elastic.multiprocessing.api"
    local_ranks_filter: set[int] | None
    redirects: Any
    tee: Any

    def __init__(
        self, log_dir: str | None = None, redirects: Any = Std.NONE, tee: Any = Std.NONE,
        local_ranks_filter: set[int] | None = None,
    ) -> None:  # fmt: skip
        if log_dir and os.path.isfile(log_dir):
            raise NotADirectoryError(f"log_dir: {log_dir} is a file")
        self.root_log_dir = log_dir
        self.redirects, self.tee, self.local_ranks_filter = redirects, tee, local_ranks_filter

    def run_folder(self, run_id: str) -> str:
        """Create a folder for the files of one job, and return its path."""
        if self.root_log_dir:
            os.makedirs(self.root_log_dir, exist_ok=True)
        return tempfile.mkdtemp(prefix=f"{run_id}_", dir=self.root_log_dir or None)

    def keeps_files(self) -> bool:
        """Whether the folder stays when the job has ended: a folder was named, or streams are written to it."""
        return bool(self.root_log_dir or self.redirects or self.tee)

    def of(self, local_rank: int) -> tuple[Std, Std]:
        """Return the redirected and the doubled streams of a local rank."""

        def pick(given: Any) -> Std:
            return Std(given.get(local_rank, 0) if isinstance(given, dict) else given)

        return pick(self.redirects), pick(self.tee)


__all__ = ["DefaultLogsSpecs", "LogsSpecs", "SignalException", "Std"]
__getattr__ = module_getattr(__name__, {"errors": "errors"})
