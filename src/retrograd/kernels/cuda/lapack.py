"""Factorizations and solutions of linear systems on a GPU, by cuSOLVER and cuBLAS.

The functions have the names and results of those in ``kernels/lapack.py``. None raises for a matrix that can not be
factorized, and none waits for the device: the result codes ``info`` stay there. CuPy's functions read them
(``lu_factor``) or discard them (``cholesky``), therefore the routines of the libraries are called here. They store
matrices in column-major order. What is not here is computed on the CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import cupy
import numpy

from ..lapack import PREFIX, column_major

#: Rows of a matrix from which the matrices of a batch are factorized one by one: cuBLAS's routines for batches are made
#: for small matrices.
LARGE_ROWS = 512


def _routine(library: str, name: str, dtype: Any) -> Callable[..., Any]:
    """Return the routine ``name`` of ``library``, "cublas" or "cusolver", for matrices of ``dtype``.

    ``name`` is the name of the complex routine without the letter of the dtype, such as "ungqr".
    """
    if dtype.kind == "f":
        name = name.replace("ungqr", "orgqr").replace("unmqr", "ormqr")
    found: Callable[..., Any] = getattr(getattr(cupy.cuda, library), PREFIX[dtype.char] + name)
    return found


def _in_columns(x: Any, batch: tuple[int, ...]) -> Any:
    """Return the matrices of ``x``, broadcast to ``batch``, one after the other in column-major order.

    The result is ``x`` if it is stored so.
    """
    x = cupy.broadcast_to(x, (*batch, *x.shape[-2:]))
    return x if x.swapaxes(-1, -2).flags.c_contiguous else column_major(cupy, x)


class _Matrices:
    """Addresses of ``array``, matrices one after the other in column-major order, for routines of the libraries."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.count = math.prod(array.shape[:-2])
        self.step = math.prod(array.shape[-2:]) * array.itemsize

    def __iter__(self) -> Any:
        first = self.array.data.ptr
        return iter(range(first, first + self.count * self.step, self.step))

    def table(self) -> Any:
        """Return an array on the device with the address of each matrix."""
        first = self.array.data.ptr
        return cupy.arange(first, first + self.count * self.step, self.step, dtype=numpy.uintp)


def cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    """Return the Cholesky factors of the matrices in ``x``, and LAPACK's ``info`` for each matrix.

    ``info`` is 0, or the order of the first leading minor that is not positive definite.
    """
    factors, size = column_major(cupy, x), x.shape[-1]
    info = cupy.zeros(x.shape[:-2], numpy.int32)
    if not x.size:
        return factors, info
    matrices, handle = _Matrices(factors), cupy.cuda.device.get_cusolver_handle()
    triangle = cupy.cuda.cublas.CUBLAS_FILL_MODE_UPPER if upper else cupy.cuda.cublas.CUBLAS_FILL_MODE_LOWER
    if matrices.count > 1:
        table = matrices.table()
        call = _routine("cusolver", "potrfBatched", x.dtype)
        call(handle, triangle, size, table.data.ptr, size, info.data.ptr, matrices.count)
    else:
        address = factors.data.ptr
        count = _routine("cusolver", "potrf_bufferSize", x.dtype)(handle, triangle, size, address, size)
        workspace = cupy.empty(count, x.dtype)
        call = _routine("cusolver", "potrf", x.dtype)
        call(handle, triangle, size, address, size, workspace.data.ptr, count, info.data.ptr)
    rows = factors.swapaxes(-1, -2)  # in row-major order, as the result of triu and tril
    return (cupy.tril(rows) if upper else cupy.triu(rows)).swapaxes(-1, -2), info


def cholesky_solve(b: Any, factor: Any, upper: bool) -> Any:
    """Return the matrix X with ``A X = b``, given the Cholesky factor of A."""
    adjoint = factor.swapaxes(-1, -2).conj()
    first, second = (adjoint, factor) if upper else (factor, adjoint)
    return solve_triangular(second, solve_triangular(first, b, False, True, False), True, True, False)


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Return the LU factors of the matrices in ``x``, the pivots from 1, and the position of the first zero pivot or 0."""
    factors, (rows, columns) = column_major(cupy, x), x.shape[-2:]
    least = min(rows, columns)
    pivots = cupy.empty((*x.shape[:-2], least), numpy.int32)
    info = cupy.zeros(x.shape[:-2], numpy.int32)
    if not x.size:
        return factors, pivots, info
    matrices = _Matrices(factors)
    if matrices.count > 1 and rows == columns < LARGE_ROWS:
        handle, table = cupy.cuda.device.get_cublas_handle(), matrices.table()
        call = _routine("cublas", "getrfBatched", x.dtype)
        call(handle, rows, table.data.ptr, rows, pivots.data.ptr, info.data.ptr, matrices.count)
        return factors, pivots, info
    handle = cupy.cuda.device.get_cusolver_handle()
    size = _routine("cusolver", "getrf_bufferSize", x.dtype)(handle, rows, columns, factors.data.ptr, rows)
    workspace = cupy.empty(size, x.dtype)
    call = _routine("cusolver", "getrf", x.dtype)
    for k, address in enumerate(matrices):
        of_pivots, code = pivots.data.ptr + k * least * pivots.itemsize, info.data.ptr + k * info.itemsize
        call(handle, rows, columns, address, rows, workspace.data.ptr, of_pivots, code)
    return factors, pivots, info


def lu_solve(factors: Any, pivots: Any, b: Any, transposed: int) -> Any:
    """Return the matrix X with ``A X = b``, or with Aᵀ (1) or Aᴴ (2) for A, given the results of :func:`lu`."""
    batch = cupy.broadcast_shapes(factors.shape[:-2], pivots.shape[:-1], b.shape[:-2])
    rows, columns = b.shape[-2:]
    result = column_major(cupy, cupy.broadcast_to(b, (*batch, rows, columns)))
    if not result.size:
        return result
    factors = _in_columns(factors, batch)
    pivots = cupy.ascontiguousarray(cupy.broadcast_to(pivots, (*batch, rows)), numpy.int32)
    matrices, right = _Matrices(factors), _Matrices(result)
    cublas = cupy.cuda.cublas
    form = (cublas.CUBLAS_OP_N, cublas.CUBLAS_OP_T, cublas.CUBLAS_OP_C)[transposed]
    if matrices.count > 1 and rows < LARGE_ROWS:
        handle, table, targets = cupy.cuda.device.get_cublas_handle(), matrices.table(), right.table()
        wrong = numpy.zeros(1, numpy.int32)  # of the arguments, in the memory of the host
        _routine("cublas", "getrsBatched", factors.dtype)(
            handle, form, rows, columns, table.data.ptr, rows, pivots.data.ptr, targets.data.ptr, rows,
            wrong.ctypes.data, matrices.count,
        )  # fmt: skip
        return result
    handle, info = cupy.cuda.device.get_cusolver_handle(), cupy.empty(1, numpy.int32)
    call = _routine("cusolver", "getrs", factors.dtype)
    for k, (matrix, target) in enumerate(zip(matrices, right, strict=True)):
        of_pivots = pivots.data.ptr + k * rows * pivots.itemsize
        call(handle, form, rows, columns, matrix, rows, of_pivots, target, rows, info.data.ptr)
    return result


def solve_triangular(a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """Return the matrix X with ``a X = b`` for triangular ``a``, or with ``X a = b`` if ``left`` is false."""
    from cupyx.scipy.linalg import solve_triangular as solve

    if not left:
        return solve_triangular(a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, True, unit).swapaxes(-1, -2)
    batch = cupy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = cupy.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = cupy.broadcast_to(b, (*batch, *b.shape[-2:]))
    return solve(a, b, lower=not upper, unit_diagonal=unit) if b.size else b.copy()


def geqrf(x: Any) -> tuple[Any, Any]:
    """Return the QR factorisation of ``x`` in LAPACK's format: R with the reflectors, and their factors."""
    if not x.size:
        return column_major(cupy, x), cupy.zeros((*x.shape[:-2], min(x.shape[-2:])), x.dtype)
    found = [cupy.linalg.qr(a, "raw") for a in x.reshape(-1, *x.shape[-2:])]
    reflectors, factors = (
        cupy.stack(parts).reshape(*x.shape[:-2], *parts[0].shape) for parts in zip(*found, strict=True)
    )
    return reflectors.swapaxes(-1, -2), factors


def householder_product(x: Any, tau: Any) -> Any:
    """Return the first columns of Q, given the results ``x`` and ``tau`` of :func:`geqrf`."""
    (rows, columns), count = x.shape[-2:], tau.shape[-1]
    batch = cupy.broadcast_shapes(x.shape[:-2], tau.shape[:-1])
    result = column_major(cupy, cupy.broadcast_to(x, (*batch, rows, columns)))
    if not count:
        result[...] = cupy.eye(rows, columns, dtype=x.dtype)
    if not count or not result.size:
        return result
    tau = cupy.ascontiguousarray(cupy.broadcast_to(tau, (*batch, count)))
    handle, info = cupy.cuda.device.get_cusolver_handle(), cupy.empty(1, numpy.int32)
    size = _routine("cusolver", "ungqr_bufferSize", x.dtype)(
        handle, rows, columns, count, result.data.ptr, rows, tau.data.ptr
    )
    workspace, call = cupy.empty(size, x.dtype), _routine("cusolver", "ungqr", x.dtype)
    for k, address in enumerate(_Matrices(result)):
        factors = tau.data.ptr + k * count * tau.itemsize
        call(handle, rows, columns, count, address, rows, factors, workspace.data.ptr, size, info.data.ptr)
    return result


def multiply_q(x: Any, tau: Any, other: Any, left: bool, adjoint: bool) -> Any:
    """Return ``Q other`` if ``left`` is true, else ``other Q``, for the square Q of the results of :func:`geqrf`.

    If ``adjoint`` is true, Qᴴ is used instead of Q.
    """
    (rows, columns), count, length = other.shape[-2:], tau.shape[-1], x.shape[-2]
    batch = cupy.broadcast_shapes(x.shape[:-2], tau.shape[:-1], other.shape[:-2])
    result = column_major(cupy, cupy.broadcast_to(other, (*batch, rows, columns)))
    if not count or not result.size:
        return result
    reflectors = _in_columns(x[..., :count], batch)
    tau = cupy.ascontiguousarray(cupy.broadcast_to(tau, (*batch, count)))
    cublas, handle, info = cupy.cuda.cublas, cupy.cuda.device.get_cusolver_handle(), cupy.empty(1, numpy.int32)
    transposed = cublas.CUBLAS_OP_C if x.dtype.kind == "c" else cublas.CUBLAS_OP_T
    side = cublas.CUBLAS_SIDE_LEFT if left else cublas.CUBLAS_SIDE_RIGHT
    sizes = handle, side, transposed if adjoint else cublas.CUBLAS_OP_N, rows, columns, count
    size = _routine("cusolver", "unmqr_bufferSize", x.dtype)(
        *sizes, reflectors.data.ptr, length, tau.data.ptr, result.data.ptr, rows
    )
    workspace, call = cupy.empty(size, x.dtype), _routine("cusolver", "unmqr", x.dtype)
    for k, (matrix, target) in enumerate(zip(_Matrices(reflectors), _Matrices(result), strict=True)):
        factors = tau.data.ptr + k * count * tau.itemsize
        call(*sizes, matrix, length, factors, target, rows, workspace.data.ptr, size, info.data.ptr)
    return result
