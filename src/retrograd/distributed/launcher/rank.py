"""Program of one rank: runs the user's program as ``retrograd run`` does, and records an uncaught exception.

The launcher starts ``python -u -m retrograd.distributed.launcher.rank [-m] PROGRAM [arguments]``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys

from ... import cli, runner
from ..elastic.multiprocessing.errors.error_handler import ErrorHandler

#: Environment variable with the id of the process that has started this one.
STARTED_BY = "RETROGRAD_STARTED_BY"
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def end_with_parent(parent: int, signal_number: int = signal.SIGTERM) -> None:
    """Ask Linux to send ``signal_number`` to this process when the process ``parent``, which has started it, is gone.

    On other systems this function has no effect.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal_number), 0, 0, 0)
        if os.getppid() != parent:  # it has ended before the call
            os.kill(os.getpid(), signal_number)


def main() -> int:
    """Run the program that ``sys.argv`` names, and return the exit status."""
    parent = os.environ.pop(STARTED_BY, None)
    if parent is not None:
        end_with_parent(int(parent))
    try:
        return cli.run(sys.argv[1:])
    except (Exception, SystemExit) as error:
        if not isinstance(error, SystemExit) or error.code not in (None, 0):
            ErrorHandler()._record(error, runner.own_traceback(error.__traceback__))
        raise


if __name__ == "__main__":
    sys.exit(main())
