"""Numba loops of cross_entropy with class targets and its gradient, for small matrices, on one thread.

The loops are called by compiled programs (``compiler/cross_entropy_pattern.py``).
"""

from __future__ import annotations

from math import log
from typing import Any

from .jit import loop_in_order
from .math import decay, larger, like


@loop_in_order
def likelihood(x: Any, target: Any, logs: Any) -> Any:
    """Write the log-softmax of each row of ``x`` to ``logs``.

    Returns the sum over the rows of ``logs[row, target[row]]``, and whether every target is a valid class. Invalid
    targets are left out of the sum.
    """
    whole, known = 0.0, True
    for r in range(x.shape[0]):
        here, into = x[r], logs[r]
        top, total = here[0], like(here[0], 0)
        for i in range(here.size):
            top = larger(top, here[i])
        for i in range(here.size):
            total += decay(here[i] - top)
        rest = log(total)
        for i in range(here.size):
            into[i] = (here[i] - top) - rest
        if 0 <= target[r] < here.size:
            whole += into[target[r]]
        else:
            known = False
    return whole, known


@loop_in_order
def likelihood_slope(logs: Any, target: Any, share: Any, out: Any) -> Any:
    """Write ``share * (softmax - one_hot(target))``, the gradient of cross_entropy, to ``out``.

    ``logs`` is the log-softmax of the scores. Returns whether every target is a valid class.
    """
    known = True
    for r in range(logs.shape[0]):
        here, into = logs[r], out[r]
        for i in range(here.size):
            into[i] = share * decay(here[i])
        if 0 <= target[r] < here.size:
            into[target[r]] -= share
        else:
            known = False
    return known
