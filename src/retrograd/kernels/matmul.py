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
from .select import NUMBA, at_least, kernel
from .thresholds import (
    BLAS_THREADS,
    BLAS_THREADS_WITHOUT_NUMBA,
    LARGE,
    PRODUCT,
    SINGLE_THREAD,
    TRANSPOSED_ROWS,
    TRANSPOSED_WORK,
)

# -- Products --------------------------------------------------------------------------------------------------------


def _transposed_product(a: Any, b: Any) -> Any:
    """Return ``a @ b``, stored transposed, if ``a`` has few rows and ``b`` is stored transposed, as in ``linear``.

    The result is None for other operands, and for small ones: see ``TRANSPOSED_ROWS`` in ``thresholds.py``.
    """
    if (
        a.ndim != 2
        or b.ndim != 2
        or not TRANSPOSED_ROWS[0] <= len(a) <= TRANSPOSED_ROWS[1]
        or len(a) * b.size < TRANSPOSED_WORK
    ):
        return None
    if a.dtype is not numba_dispatch.F32 or b.dtype is not a.dtype or not (a.__class__ is b.__class__ is numpy.ndarray):
        return None
    if not (a.flags.c_contiguous and b.flags.f_contiguous) or b.flags.c_contiguous or a.shape[1] != len(b):
        return None
    return product(b.T, a.T).T


@at_least(PRODUCT)
def _product_of_few_rows(np: Any, a: Any, b: Any) -> Any:
    transposed = _transposed_product(a, b)
    return None if transposed is None else numpy.ascontiguousarray(transposed)


@at_least(PRODUCT)
def _product_by_loop(np: Any, a: Any, b: Any) -> Any:
    return _by_loop(a, b, None)


@kernel(_product_of_few_rows, _product_by_loop, count=lambda a, b: a.size + b.size)
def dot(np: Any, a: Any, b: Any) -> Any:
    """Return ``a @ b`` for two floating-point matrices of one dtype."""
    return a.dot(b)


@kernel(_product_by_loop, count=lambda a, b: a.size + b.size)
def batch_product(np: Any, a: Any, b: Any) -> Any:
    """Return ``a @ b`` for two batches of floating-point matrices with the same batch size and dtype."""
    return a[0].dot(b[0])[None] if len(a) == 1 else batched(a, b)


@at_least(LARGE, NUMBA)
def _add_row_by_loop(np: Any, x: Any, row: Any) -> Any:
    return x if numba_dispatch.add_row(x, row) else None


@kernel(_add_row_by_loop)
def _add_row(np: Any, x: Any, row: Any) -> Any:
    """Add ``row`` to all rows of ``x`` in place, and return ``x``."""
    return np.add(x, row, out=x)


@at_least(TRANSPOSED_WORK)
def _add_product_of_few_rows(np: Any, summand: Any, a: Any, b: Any) -> Any:
    transposed = _transposed_product(a, b)
    if transposed is None:
        return None
    return numpy.add(transposed, summand, out=numpy.empty(transposed.shape, transposed.dtype))


@at_least(BLAS_THREADS)
def _add_large_product(np: Any, summand: Any, a: Any, b: Any) -> Any:
    return _add_row(np, dot(np, a, b), summand)


@kernel(_add_product_of_few_rows, _add_large_product, count=lambda summand, a, b: len(a) * b.size)
def add_product(np: Any, summand: Any, a: Any, b: Any) -> Any:
    """Return ``summand + a @ b`` for two floating-point matrices of one dtype.

    Raise ValueError if ``summand`` does not broadcast to the shape of the product.
    """
    result = a.dot(b)
    result += summand
    return result


@kernel(_product_of_few_rows, _product_by_loop, count=lambda a, b: a.size + b.size)
def matrix_product(np: Any, a: Any, b: Any) -> Any:
    """Return ``a @ b`` for matrices, vectors or batches of any dtype."""
    if a.dtype.kind == "f":
        if b.ndim == 2:
            return a.dot(b)  # straight to BLAS: matmul takes 0.5 µs longer to reach it
        if a.ndim > 2 < b.ndim and (np is numpy or np.__name__ == "meta"):
            return batched(a, b)
    return np.matmul(a, b)


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
    if a.ndim < 2 > b.ndim:
        return None
    work, kind = a.size * b.shape[-1], a.dtype
    if work < (BLAS_THREADS if numba_dispatch.RUNNING.layer else BLAS_THREADS_WITHOUT_NUMBA) or not (
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
        or not numba_dispatch.available(work)
    ):
        return None
    if work <= SINGLE_THREAD:
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
    """Return the matrices ``x`` as a 1-d view of their memory, and whether each matrix is stored transposed.

    The Numba loop of matrix products reads its operands in this form. The result is None if the memory is not
    contiguous.
    """
    if x.flags.c_contiguous:
        return x.reshape(-1), False
    turned = x.swapaxes(-1, -2)
    return (turned.reshape(-1), True) if turned.flags.c_contiguous else None


# -- Outer products --------------------------------------------------------------------------------------------------


def outer_by_loop(a: Any, b: Any) -> Any:
    """Return the outer product of ``a``, a matrix with one column, and the vector ``b``, by a Numba loop."""
    out = numpy.empty((len(a), len(b)), a.dtype)
    numba_dispatch.loops("broadcast").outer(a, b, out)
    return out


@at_least(LARGE, NUMBA)
def _outer_by_loop(np: Any, a: Any, b: Any) -> Any:
    return outer_by_loop(a.reshape(-1, 1), b) if numba_dispatch.suits(a.size * b.size, a, b) else None


@kernel(_outer_by_loop, count=lambda a, b: a.size * b.size)
def outer(np: Any, a: Any, b: Any) -> Any:
    """Return the matrix with the elements ``a[i] * b[j]``."""
    return a[:, None] * b


def has_outer_loop(a: Any, b: Any) -> bool:
    """Whether torch.outer computes the product of the vectors ``a`` and ``b`` by a Numba loop.

    This is so if the product is large and the loop supports the vectors. torch.outer is then one autograd operation,
    whose derivatives are computed by BLAS. Otherwise it is a multiplication of a column and a row.
    """
    size = a.size * b.size
    return size >= LARGE and numba_dispatch.suits(size, a, b)
