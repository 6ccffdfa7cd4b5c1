"""How long threads of libraries wait awake for more work; imported before NumPy is. Knows nothing else.

Note [Two teams of threads]. OpenBLAS, under NumPy, has threads of its own, and each of them looks for work for 26 ms after
a product of matrices before it sleeps. The threads of compiled loops (OpenMP's) need the same cores meanwhile: a step of a
small convolutional network took three times as long as with one thread. OpenBLAS reads how long it is to wait when it
starts its threads. If NumPy is there before us they run already: then they are ended when the first loop is loaded, as
OpenBLAS does itself before a fork, and with the next product it starts others (``threads.sleep_soon``). Where that can not
be done, threads of loops wait less, as they do harm by waiting too (Note [Threads of loops] in ``kernels/numba_dispatch.py``).
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec

#: What tells OpenBLAS for how long.
VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
#: The binary logarithm of the processor's cycles for which OpenBLAS's threads are to wait: some microseconds.
PATIENCE = 14


def _tell() -> bool:
    """Whether OpenBLAS's threads go to sleep soon."""
    told = os.environ.get(VARIABLE, "")
    if told:
        return told.isdigit() and int(told) <= PATIENCE + 4
    if "numpy" in sys.modules or os.environ.get("RETROGRAD_FAST", "1") == "0" or find_spec("numba") is None:
        return False
    os.environ[VARIABLE] = str(PATIENCE)
    return True


SHORT = _tell()
