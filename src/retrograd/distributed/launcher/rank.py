"""Program of one rank: runs the user's program as ``retrograd run`` does, and records an uncaught exception.

The launcher starts ``python -u -m retrograd.distributed.launcher.rank [-m] PROGRAM [arguments]``.
"""

from __future__ import annotations

import os
import sys

from ... import cli, runner
from ...multiprocessing.parent import STARTED_BY, end_with_parent
from ..elastic.multiprocessing.errors.error_handler import ErrorHandler


def main() -> int:
    """Run the program that ``sys.argv`` names, and return the exit status."""
    parent = os.environ.pop(STARTED_BY, None)
    if parent is not None:
        end_with_parent(parent=int(parent))
    ErrorHandler().initialize()
    try:
        return cli.run(sys.argv[1:])
    except (Exception, SystemExit) as error:
        if not isinstance(error, SystemExit) or error.code not in (None, 0):
            ErrorHandler()._record(error, runner.own_traceback(error.__traceback__))
            sys.last_value = error  # Python does not set it for SystemExit; the other ranks get this error
        raise


if __name__ == "__main__":
    sys.exit(main())
