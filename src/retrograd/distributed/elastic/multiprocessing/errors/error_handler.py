"""``ErrorHandler``: writes an exception to the file that the launcher of the process reads."""

from __future__ import annotations

import faulthandler
import json
import os
import time
import traceback
import warnings
from types import TracebackType
from typing import Any


class ErrorHandler:
    """Writer of exceptions to the file that the environment variable ``TORCHELASTIC_ERROR_FILE`` names.

    Without the variable nothing is written. Subclasses may override :meth:`initialize` and :meth:`record_exception`.
    """

    __module__ = "torch.distributed.elastic.multiprocessing.errors.error_handler"

    def _get_error_file_path(self) -> str | None:
        return os.environ.get("TORCHELASTIC_ERROR_FILE")

    def initialize(self) -> None:
        """Enable Python's fault handler, which prints tracebacks at fatal signals."""
        try:
            faulthandler.enable(all_threads=True)
        except Exception as error:  # standard error may have no file descriptor
            warnings.warn(f"Unable to enable fault handler. {type(error).__name__}: {error}", stacklevel=2)

    def record_exception(self, e: BaseException) -> None:
        """Write ``e``, its traceback and the time to the file."""
        self._record(e, e.__traceback__)

    def _record(self, error: BaseException, shown: TracebackType | None) -> None:
        """Write ``error`` with the traceback ``shown``, unless the file has an error already: the first one counts."""
        path = self._get_error_file_path()
        if not path or os.path.exists(path):
            return
        described = {
            "py_callstack": "".join(traceback.format_exception(type(error), error, shown)),
            "timestamp": str(time.time()),
        }
        code = error.code if isinstance(error, SystemExit) and isinstance(error.code, int) else 1
        message = {"message": f"{type(error).__name__}: {error}", "extraInfo": described, "errorCode": code}
        self._write({"message": message})

    def _write(self, data: dict[str, Any]) -> None:
        path = self._get_error_file_path()
        if path:
            self._write_error_file(path, json.dumps(data))

    def _write_error_file(self, file_path: str, error_msg: str) -> None:
        try:
            with open(file_path + ".part", "w", encoding="utf-8") as file:
                file.write(error_msg)
            os.replace(file_path + ".part", file_path)  # the launcher never reads half a file
        except OSError as error:
            warnings.warn(f"Unable to write error to file. {type(error).__name__}: {error}", stacklevel=2)

    def dump_error_file(self, rootcause_error_file: str, error_code: int = 0) -> None:
        """Copy the error of a process that this process has started to the file, with its exit code ``error_code``."""
        with open(rootcause_error_file, encoding="utf-8") as file:
            data: dict[str, Any] = json.load(file)
        if error_code and isinstance(data.get("message"), dict):
            data["message"]["errorCode"] = error_code
        self._write(data)


__all__ = ["ErrorHandler"]
