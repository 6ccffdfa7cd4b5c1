"""Functions of many arrays on a GPU by few launches: the norm of all gradients, and their scaling."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import cupy

from .elements import F32, F64
from .source import preamble

#: Elements of an array that is copied beside others, and of the copy of several arrays, at most.
SMALL, TOGETHER = 2**20, 2**24
#: Arrays that one kernel scales.
AT_ONCE = 16


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


def scale(arrays: Sequence[Any], factor: Any) -> None:
    """Multiply ``arrays`` by ``factor``, an array of no dimension, in place; :func:`same_floats` is true for all."""
    first = 0
    while first < len(arrays):
        given = arrays[first : first + AT_ONCE]
        lines = [each.reshape(-1) for each in given if each.flags.c_contiguous]
        for each in given if len(lines) < 2 else [each for each in given if not each.flags.c_contiguous]:
            cupy.multiply(each, factor, each)
        if len(lines) > 1:
            lines += [lines[0][:0]] * (AT_ONCE - len(lines))
            sizes = [each.size for each in lines]
            _scaling(factor.dtype == F64)(factor.reshape(1), *sizes, *lines, size=max(sizes))
        first += AT_ONCE


@cache
def _scaling(double: bool) -> Any:
    """Return the kernel that multiplies ``AT_ONCE`` arrays of any sizes by a number."""
    kind = "float64" if double else "float32"
    inputs = ", ".join([f"raw {kind} factor", *[f"int64 n{k}" for k in range(AT_ONCE)]])
    outputs = ", ".join([f"raw {kind} y{k}" for k in range(AT_ONCE)])
    lines = "\n".join([f"if (i < n{k}) y{k}[i] = y{k}[i] * factor[0];" for k in range(AT_ONCE)])
    return cupy.ElementwiseKernel(inputs, outputs, lines, "retrograd_scale", preamble=preamble(double))


def clip_factor(np: Any, norm: Any, largest: float) -> Any:
    """Return ``largest / (norm + 1e-6)``, at most 1."""
    return np.minimum(largest / (norm + 1e-6), 1)


__all__ = ["clip_factor", "norm", "same_floats", "scale"]
