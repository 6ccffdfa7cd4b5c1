"""Products of large matrices: by all threads that run loops, each with a part (``kernels/numba/gemm.py``), else by NumPy.

NumPy's own way to use several cores would wake threads of the BLAS beneath it, which get in the way of those of loops: see
Note [Two teams of threads] in ``runtime/blas_spin.py``. Knows no operation.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_dispatch

#: From so many products of two numbers on OpenBLAS would use several threads.
MUCH = 1 << 18
#: Up to so many one thread is as fast as two that are awake, and three times as fast as two of which one is asleep.
SHARED = 1 << 20
#: The same if no loop has run so far: for less Numba should not be loaded.
VERY_MUCH = 1 << 24
#: Elements of both matrices together up to which there is no need to ask.
FEW = 3 << 12


def product(a: Any, b: Any, out: Any = None) -> Any:
    """``a @ b`` of two matrices, or of two batches of as many; into ``out``, if it is given."""
    found = _by_loop(a, b, out)
    return _by_numpy(a, b, out) if found is None else found


def _by_numpy(a: Any, b: Any, out: Any) -> Any:
    return a.dot(b, out) if a.ndim == 2 == b.ndim else batched(a, b, out)


def batched(a: Any, b: Any, out: Any = None) -> Any:
    """The products of batches of matrices, by NumPy: of a column and a row by broadcasting, for which BLAS takes longer."""
    if a.shape[-1] == 1 == b.shape[-2]:
        return numpy.multiply(a, b, out=out)
    return numpy.matmul(a, b, out=out)


def _by_loop(a: Any, b: Any, out: Any) -> Any:
    work, kind = a.size * b.shape[-1], a.dtype
    if work < (MUCH if numba_dispatch.RUNNING.layer else VERY_MUCH) or not (
        kind is b.dtype and (kind is numba_dispatch.F32 or kind is numba_dispatch.F64)
    ):
        return None
    if not (a.__class__ is b.__class__ is numpy.ndarray) or a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2]:
        return None
    m, k, n, count = a.shape[-2], a.shape[-1], b.shape[-1], blas_threads.limit()
    if (
        k != b.shape[-2]
        or min(m, n) < 2
        or count == 1
        or numba_dispatch.RUNNING.layer == "workqueue"
        or not numba_dispatch.available()
    ):
        return None
    if work <= SHARED:
        with blas_threads.ALONE:
            return _by_numpy(a, b, out)
    straight, turned = _line(a), _line(b)
    address = blas_threads.gemm(kind.char)
    if straight is None or turned is None or not address:
        return None
    if out is None:
        out = numpy.empty((*a.shape[:-1], n), kind)
    batch = a.size // (m * k)
    pieces = (1, 1) if batch >= 2 * count else (count, 1) if m >= n else (1, count)
    sizes = (batch, m, n, k)
    with blas_threads.ALONE:
        loop = numba_dispatch.loops("gemm").products
        loop(straight[0], turned[0], (straight[1], turned[1]), sizes, pieces, address, out.reshape(-1))
    return out


def _line(x: Any) -> tuple[Any, bool] | None:
    """The elements of matrices as a line, and whether they are stored turned round; None if they do not lie in one piece."""
    if x.flags.c_contiguous:
        return x.reshape(-1), False
    turned = x.swapaxes(-1, -2)
    return (turned.reshape(-1), True) if turned.flags.c_contiguous else None
