"""Functions of many arrays on a GPU by few launches: the norm of all gradients, and their scaling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy

from .elements import F32, F64

#: Elements of an array that is copied beside others, and of the copy of several arrays, at most.
SMALL, TOGETHER = 2**20, 2**24


def same_floats(arrays: Sequence[Any]) -> bool:
    """Whether ``arrays`` are arrays on one GPU, of float32 or of float64 elements."""
    first = arrays[0]
    if first.__class__ is not cupy.ndarray or first.dtype not in (F32, F64):
        return False
    return all(each.__class__ is cupy.ndarray and each.dtype is first.dtype for each in arrays)


def norm(arrays: Sequence[Any]) -> Any:
    """Return the square root of the sum of all squares in ``arrays``, for which :func:`same_floats` is true.

    Small arrays are copied one after the other, so that there is one product for all of them.
    """
    lines: list[Any] = []
    together: list[Any] = []
    size = 0
    for each in arrays:
        line = each.ravel()
        if line.size > SMALL:
            lines.append(line)
            continue
        if size + line.size > TOGETHER:
            lines.append(cupy.concatenate(together))
            together, size = [], 0
        together.append(line)
        size += line.size
    if together:
        lines.append(together[0] if len(together) == 1 else cupy.concatenate(together))
    total = lines[0].dot(lines[0])
    for line in lines[1:]:
        total += line.dot(line)
    return cupy.sqrt(total, total)


def clip_factor(np: Any, norm: Any, largest: float) -> Any:
    """Return ``largest / (norm + 1e-6)``, at most 1."""
    return np.minimum(largest / (norm + 1e-6), 1)


__all__ = ["clip_factor", "norm", "same_floats"]
