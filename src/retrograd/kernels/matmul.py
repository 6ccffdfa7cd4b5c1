"""Kernel of large matrix products (matmul, mm, bmm, linear), computed on Numba's threads or by NumPy.

On Numba's threads (``kernels/numba/gemm.py``) each thread calls BLAS for a part of the product. If NumPy computes the
product, BLAS uses its own thread pool, which competes with Numba's threads for the cores: see Note [Two thread pools]
in ``runtime/blas_threads.py``.
"""

from __future__ import annotations

from typing import Any

import numpy

from ..runtime import blas_threads
from . import numba_dispatch

#: Multiplications from which on OpenBLAS would use several threads.
MUCH = 1 << 18
#: Multiplications up to which one thread is as fast as two running threads, and three times as fast as two of which one
#: has to wake up.
SHARED = 1 << 20
#: MUCH while no Numba loop has run: smaller products do not load Numba.
VERY_MUCH = 1 << 24
#: Elements of both matrices together up to which callers use NumPy's ``dot`` instead of `product`.
FEW = 3 << 12


def product(a: Any, b: Any, out: Any = None) -> Any:
    """Return ``a @ b`` for two matrices, or for two batches of equal length.

    The result is written to ``out`` if ``out`` is not None.
    """
    result = _by_loop(a, b, out)
    return _by_numpy(a, b, out) if result is None else result


def _by_numpy(a: Any, b: Any, out: Any) -> Any:
    return a.dot(b, out) if a.ndim == 2 == b.ndim else batched(a, b, out)


def batched(a: Any, b: Any, out: Any = None) -> Any:
    """Return ``a @ b`` for two batches of matrices, computed by NumPy and written to ``out`` if ``out`` is not None.

    The product of a matrix of one column and a matrix of one row is computed by broadcasting, which is faster than
    BLAS.
    """
    if a.shape[-1] == 1 == b.shape[-2]:
        return numpy.multiply(a, b, out=out)
    return numpy.matmul(a, b, out=out)


def _by_loop(a: Any, b: Any, out: Any) -> Any:
    """Return ``a @ b`` computed on Numba's threads, or None if the product is small or the layout is not supported.

    The result is written to ``out`` if ``out`` is not None.
    """
    work, kind = a.size * b.shape[-1], a.dtype
    if work < (MUCH if numba_dispatch.RUNNING.layer else VERY_MUCH) or not (
        kind is b.dtype and (kind is numba_dispatch.F32 or kind is numba_dispatch.F64)
    ):
        return None
    if not (a.__class__ is b.__class__ is numpy.ndarray) or a.ndim != b.ndim or a.shape[:-2] != b.shape[:-2]:
        return None
    m, k, n, count = a.shape[-2], a.shape[-1], b.shape[-1], blas_threads.max_threads()
    if (
        k != b.shape[-2]
        or min(m, n) < 2
        or count == 1
        or numba_dispatch.RUNNING.layer == "workqueue"
        or not numba_dispatch.available()
    ):
        return None
    if work <= SHARED:
        with blas_threads.SINGLE_THREADED:
            return _by_numpy(a, b, out)
    straight, turned = _line(a), _line(b)
    address = blas_threads.gemm_address(kind.char)
    if straight is None or turned is None or not address:
        return None
    if out is None:
        out = numpy.empty((*a.shape[:-1], n), kind)
    batch = a.size // (m * k)
    pieces = (1, 1) if batch >= 2 * count else (count, 1) if m >= n else (1, count)
    sizes = (batch, m, n, k)
    with blas_threads.SINGLE_THREADED:
        loop = numba_dispatch.loops("gemm").products
        loop(straight[0], turned[0], (straight[1], turned[1]), sizes, pieces, address, out.reshape(-1))
    return out


def _line(x: Any) -> tuple[Any, bool] | None:
    """Return the memory of the matrices ``x`` as a 1-d view, and whether each matrix is stored transposed.

    The result is None if the memory is not contiguous.
    """
    if x.flags.c_contiguous:
        return x.reshape(-1), False
    turned = x.swapaxes(-1, -2)
    return (turned.reshape(-1), True) if turned.flags.c_contiguous else None
