"""``end_with_parent``: a process that ends when the process that has started it is gone."""

from __future__ import annotations

import contextlib
import os
import signal
import sys

#: Environment variable with the id of the launcher that has started this process as a rank.
STARTED_BY = "RETROGRAD_STARTED_BY"
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of <linux/prctl.h>


def end_with_parent(signal_number: int = signal.SIGTERM, parent: int | None = None) -> None:
    """Ask Linux to send ``signal_number`` to this process when the thread that has started it is gone.

    If ``parent``, the id of the process that has started this one, has ended before the call, send the signal at once.
    On other systems this function has no effect.
    """
    if sys.platform != "linux":
        return
    import ctypes

    with contextlib.suppress(OSError, AttributeError):  # another C library
        ctypes.CDLL(None).prctl(_DEATH_SIGNAL, int(signal_number), 0, 0, 0)
        if parent is not None and os.getppid() != parent:
            os.kill(os.getpid(), signal_number)
