"""Optimiser steps of large parameters as compiled loops (``kernels/numba/optimizers.py``).

A compiled loop reads each array once; the same step by NumPy operations reads it about twelve times.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..kernels.numba_dispatch import F32, F64, LARGE, available, loops
from .fused import Decay


def with_loop(name: str, count: int, scalars: Callable[..., tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Return a decorator for update rules, by which large parameters are updated in a compiled loop.

    The decorator sets the attribute ``large`` of the rule to a function ``large(arrays, decay, numbers)``, which
    ``ArrayOps.run`` calls. The function returns the loop ``name`` of ``kernels/numba/optimizers.py``, which updates
    ``arrays``, and the arguments of the loop. If the number of arrays is not ``count``, or the loop does not support their
    dtype or layout, the function returns None.

    The arguments of the loop are the arrays, the sign of the gradient (-1 for ``maximize``), the weight decay, and the
    items of the tuple ``scalars(shrink, **numbers)``. ``shrink`` is the factor of decoupled weight decay, 1 if there is
    none.
    """

    def large(arrays: list[Any], decay: Decay, numbers: dict[str, Any]) -> tuple[Any, list[Any]] | None:
        first = arrays[0]
        if len(arrays) != count or first.size < LARGE or first.dtype not in (F32, F64) or not available(first.size):
            return None
        if any(array.__class__ is not numpy.ndarray or not array.flags.carray for array in arrays):
            return None
        weight_decay, maximize, shrink = decay or (0, False, None)
        given = (-1 if maximize else 1, weight_decay, *scalars(1 if shrink is None else shrink, **numbers))
        kind = first.dtype.type
        return getattr(loops("optimizers"), name), [*[array.reshape(-1) for array in arrays], *map(kind, given)]

    def mark(rule: Any) -> Any:
        rule.large = large
        return rule

    return mark
