"""Kernels of torch.linalg: Cholesky, LU, QR, LDL, eigenvalues, SVD, solve, lstsq and matrix_exp by LAPACK.

The first parameter of most functions is the array module, NumPy or CuPy. Matrices of a batch are factorised one at a
time. On a GPU the functions of CuPy are used; arrays for which CuPy has no routine are copied to the CPU and back.
Matrices are returned in LAPACK's column-major order.

Note [Whose LAPACK]. SciPy's functions accept the size of the workspace and permission to overwrite their operands. They
are two to ten times as fast as NumPy's functions of the same name. NumPy's functions are better for a batch of small
matrices, over which they loop in C.

Note [One thread]. SciPy and NumPy each have a BLAS with its own threads. After a computation these threads wait
actively for a while, and two thread pools on the same cores delay each other for milliseconds. Therefore SciPy's
routines run on one thread. Only the right-hand sides of large systems are distributed over Python threads.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as cpu  # LAPACK's arrays are always on the CPU

from ..core.devices import on_gpu
from ..runtime import blas_threads
from . import numba_dispatch
from .rearrangement import triangle
from .thresholds import LAPACK_ROWS, LAPACK_THREADS, LARGE, SOLVE_COLUMNS, SOLVE_ROWS

PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}
#: Elements of workspace for each column of a blocked routine.
ROOM = 64


def column_major(np: Any, x: Any) -> Any:
    """Return a copy of ``x`` whose matrices (the last two axes) are in column-major order."""
    out = np.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype).swapaxes(-1, -2)
    if x.ndim == 2 and x.size >= LARGE and np is cpu:
        numba_dispatch.copy_into(out.T, x.T)
    else:
        out[...] = x
    return out


def _overwritable(a: Any) -> Any:
    """Return a copy of the matrix ``a`` in column-major order, which a LAPACK routine may overwrite."""
    return column_major(cpu, a) if a.size > LAPACK_THREADS else a.copy(order="F")


def adjoint_of(x: Any) -> Any:
    """Return the conjugate transpose of the matrices in ``x``."""
    result = x.swapaxes(-1, -2)
    return result.conj() if x.dtype.kind == "c" else result


def use_lu(np: Any, x: Any) -> bool:
    """Whether :func:`lu` is better for the matrices of ``x`` than the functions of ``np.linalg``.

    On the CPU it is faster for large matrices. For small matrices the overhead of one call per matrix exceeds the gain.
    On a GPU it gives ``info`` and the factors, without waiting.
    """
    return bool(x.size) and (np.__name__ == "cupy" or (np is cpu and x.shape[-1] >= LAPACK_ROWS))


def one_by_one(np: Any, x: Any) -> bool:
    """Whether it is faster to call SciPy's routine for each matrix of ``x`` than a function for the whole batch.

    This is so on the CPU for a single matrix and for a batch of large matrices. The functions for batches are those of
    the array module ``np``, NumPy or CuPy.
    """
    return np is cpu and bool(x.size) and (x.ndim == 2 or x.shape[-1] >= LAPACK_ROWS)


@cache
def _routine(name: str, kind: str) -> Any:
    """Return SciPy's LAPACK or BLAS routine ``name`` for ``kind``, the character code of the dtype."""
    import scipy.linalg.blas
    import scipy.linalg.lapack

    if kind in "fd":
        real = {"ungqr": "orgqr", "unmqr": "ormqr", "hetrf": "sytrf", "hetrs": "sytrs", "heevd": "syevd"}
        name = real.get(name, name)
    full = PREFIX[kind] + name
    return getattr(scipy.linalg.lapack, full, None) or getattr(scipy.linalg.blas, full)


def routine(name: str, x: Any) -> Any:
    """Return SciPy's LAPACK or BLAS routine ``name`` for the dtype of ``x``.

    ``name`` is the name of the complex routine without the letter of the dtype, such as "ungqr" or "heevd". The names
    of the real routines begin with "or" instead of "un", and with "sy" instead of "he".
    """
    return _routine(name, x.dtype.char)


def on_one_thread(function: Callable[..., Any], *args: Any) -> Any:
    """Return ``function(*args)``, called while SciPy's BLAS is limited to one thread (Note [One thread])."""
    if blas_threads.max_threads() == 1 or not blas_threads.scipy_has_own_blas():
        return function(*args)
    with blas_threads.SCIPY_SINGLE_THREADED:
        return function(*args)


def split_columns(work: Callable[[Any], Any], x: Any) -> Any:
    """Return ``work(x)``, computed by calling ``work`` for slices of the columns of ``x`` on several Python threads.

    This is faster only for routines that release the GIL, which most of SciPy's routines do not.
    """
    count = min(blas_threads.max_threads(), x.shape[1] // SOLVE_COLUMNS) if len(x) >= SOLVE_ROWS else 1
    if count < 2:
        return work(x)
    out = cpu.empty(x.shape[::-1], x.dtype).T

    def one(k: int) -> None:
        part = slice(x.shape[1] * k // count, x.shape[1] * (k + 1) // count)
        out[:, part] = work(x[:, part])

    others = []
    for k in range(1, count):
        other = threading.Thread(target=one, args=(k,))
        try:
            other.start()
        except RuntimeError:  # no further thread can be started
            one(k)
        else:
            others.append(other)
    one(0)
    for other in others:
        other.join()
    return out


def map_matrices(np: Any, function: Callable[..., tuple[Any, ...]], *stacks: tuple[Any, int]) -> tuple[Any, ...]:
    """Call ``function`` for each matrix of a batch, and return its results stacked to arrays.

    Each of ``stacks`` is a pair (array, n). The last n dimensions of the array are one item, such as a matrix or a
    vector; the dimensions before them are those of the batch, which are broadcast. ``function`` receives one item of
    each array and returns a tuple of arrays. Element k of the result stacks element k of all these tuples.
    """
    if np.__name__ == "meta":
        return np.map_matrices(function, *stacks)
    if np is not cpu:
        np.warn_on_cpu(function.__qualname__.partition(".")[0])
    arrays, small, one = [], True, np is cpu
    for array, count in stacks:
        arrays.append(array if np is cpu else np.asnumpy(array))
        if array.ndim != count:
            one = False
        if array.size >= LAPACK_THREADS:
            small = False
    if one:
        results = function(*arrays) if small else on_one_thread(function, *arrays)
        return tuple([_column_major(part) for part in results])
    sizes = [array.ndim - count for array, (_, count) in zip(arrays, stacks, strict=True)]
    small = max(math.prod(array.shape[size:]) for array, size in zip(arrays, sizes, strict=True)) < LAPACK_THREADS
    batch = cpu.broadcast_shapes(*(array.shape[:size] for array, size in zip(arrays, sizes, strict=True)))
    flat = [
        cpu.broadcast_to(array, (*batch, *array.shape[size:])).reshape((math.prod(batch), *array.shape[size:]))
        if 0 not in batch else _placeholder(array, size)
        for array, size in zip(arrays, sizes, strict=True)
    ]  # fmt: skip

    def all_items() -> list[tuple[Any, ...]]:
        return [function(*items) for items in zip(*flat, strict=True)]

    every = all_items() if small else on_one_thread(all_items)
    return tuple(np.asarray(_stacked(parts, batch)) for parts in zip(*every, strict=True))


def _column_major(part: Any) -> Any:
    """Return ``part`` in column-major order if it is a matrix, else unchanged."""
    if part.__class__ is not cpu.ndarray:
        return cpu.asarray(part)
    return column_major(cpu, part) if part.ndim == 2 and not part.flags.f_contiguous else part


def _placeholder(array: Any, size: int) -> Any:
    """Return a batch of one valid item, which is used instead of the empty batch ``array``.

    A call of the LAPACK function for this item gives the shapes and dtypes of the empty results. The item is an
    identity matrix or a vector of ones. ``size`` is the number of batch dimensions of ``array``.
    """
    shape = array.shape[size:]
    item = cpu.eye(*shape, dtype=array.dtype) if len(shape) == 2 else cpu.ones(shape, array.dtype)
    return item[None]


def _stacked(parts: tuple[Any, ...], batch: tuple[int, ...]) -> Any:
    """Return ``parts``, one result for each matrix of a batch, stacked to an array with the leading shape ``batch``."""
    first = cpu.asarray(parts[0])
    count = 0 if 0 in batch else len(parts)
    if first.ndim < 2:
        return cpu.stack([cpu.asarray(part) for part in parts])[:count].reshape((*batch, *first.shape))
    out = cpu.empty((count, *first.shape[::-1]), first.dtype)
    for i in range(count):
        out[i] = parts[i].T
    return out.reshape((*batch, *first.shape[::-1])).swapaxes(-1, -2)


# -- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(np: Any, x: Any, upper: bool) -> tuple[Any, Any]:
    """Return the Cholesky factors of the matrices in ``x``, and LAPACK's ``info`` for each matrix.

    The factors are upper triangular if ``upper`` is true, else lower triangular. ``info`` is 0, or the order of the
    first leading minor that is not positive definite.
    """
    if np.__name__ == "cupy":
        return np.lapack.cholesky(x, upper)
    if not one_by_one(np, x):
        low = adjoint_of(x) if upper else x
        try:
            result = np.linalg.cholesky(low)
            if bool(np.isfinite(result).all()):
                return column_major(np, adjoint_of(result) if upper else result), np.zeros(x.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass

    def one(a: Any) -> tuple[Any, Any]:
        factor, info = routine("potrf", a)(_overwritable(a), not upper, 1, 1)
        if factor[-1, -1] != factor[-1, -1]:  # nan
            info = 1 + cpu.isnan(factor.diagonal()).argmax()
        return factor, cpu.int32(info)

    return map_matrices(np, one, (x, 2))


def cholesky_solve(np: Any, b: Any, factor: Any, upper: bool) -> Any:
    """Return the matrix X with ``A X = b``, given ``factor``, the Cholesky factor of A.

    ``A = L Lᴴ``, or ``A = Uᴴ U`` if ``upper`` is true.
    """
    if np.__name__ == "cupy":
        return np.lapack.cholesky_solve(b, factor, upper)

    def one(right: Any, a: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        return (routine("potrs", a)(a, right, lower=not upper)[0],)

    return map_matrices(np, one, (b, 2), (factor, 2))[0]


# -- LU --------------------------------------------------------------------------------------------------------------


def lu(np: Any, x: Any) -> tuple[Any, Any, Any]:
    """Return the LU factors of the matrices in ``x``, the pivots, and LAPACK's ``info`` for each matrix.

    L and U are stored in one matrix. The pivots are row numbers, counted from 1. ``info`` is 0, or the index (from 1)
    of the first zero pivot.
    """
    if np.__name__ == "cupy":
        return np.lapack.lu(x)
    return map_matrices(np, _getrf, (x, 2))


def _getrf(a: Any) -> tuple[Any, ...]:
    if not a.size:
        return a.copy(), cpu.zeros(min(a.shape), cpu.int32), cpu.int32(0)
    factors, pivots, info = routine("getrf", a)(_overwritable(a), overwrite_a=1)
    pivots += 1
    return factors, pivots, cpu.int32(info)


def lu_solve(np: Any, factors: Any, pivots: Any, b: Any, transposed: int) -> Any:
    """Return the matrix X with ``A X = b``, given the results ``factors`` and ``pivots`` of ``lu(A)``.

    If ``transposed`` is 1, the equation is ``Aᵀ X = b``; if ``transposed`` is 2, ``Aᴴ X = b``.
    """
    if np.__name__ == "cupy":
        return np.lapack.lu_solve(factors, pivots, b, transposed)

    def one(a: Any, exchanged: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        call = routine("getrs", a)
        # The routine modifies the pivots while it runs, so that each thread gets its own copy.
        return (split_columns(lambda part: call(a, exchanged - 1, part, trans=transposed)[0], right),)

    return map_matrices(np, one, (factors, 2), (pivots, 1), (b, 2))[0]


def solve_system(np: Any, a: Any, b: Any, transposed: bool = False) -> tuple[Any, ...]:
    """Return (X, LU factors, pivots, ``info``), where X solves ``a X = b``.

    The other results are those of :func:`lu` for ``a``. The factors and pivots are empty if the system was solved by a
    function of the array module ``np``, which does not return them. If ``transposed`` is true, the equation is
    ``aᵀ X = b``.
    """
    if not use_lu(np, a):
        try:
            solution = column_major(np, np.linalg.solve(a.swapaxes(-1, -2) if transposed else a, b))
            return solution, a[..., :0], np.zeros((*a.shape[:-2], 0), np.int32), np.zeros(a.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass
    factors, pivots, info = lu(np, a)
    return lu_solve(np, factors, pivots, b, int(transposed)), factors, pivots, info


def inverse(np: Any, x: Any) -> tuple[Any, Any]:
    """Return the inverses of the matrices in ``x``, and for each matrix the position of its first zero pivot.

    The position is counted from 1. It is 0 if no pivot is zero.
    """
    if np is cpu and use_lu(np, x):
        return map_matrices(np, _getri, (x, 2))
    if not use_lu(np, x):
        try:
            return column_major(np, np.linalg.inv(x)), np.zeros(x.shape[:-2], np.int32)
        except np.linalg.LinAlgError:
            pass
    identity = np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape)
    result, _, _, info = solve_system(np, x, identity)
    return result, info


def _getri(a: Any) -> tuple[Any, Any]:
    factors, pivots, info = _getrf(a)
    if info:  # a pivot is zero: the routine would not compute anything
        return lu_solve(cpu, factors, pivots, cpu.eye(len(a), dtype=a.dtype), 0), info
    return routine("getri", a)(factors, pivots - 1, lwork=ROOM * len(a), overwrite_lu=1)[0], info


def pivots_of(np: Any, factors: Any, pivots: Any) -> Any:
    """Return, for each matrix of a batch, a vector of numbers whose product is the determinant of the matrix.

    The vector is the diagonal of U, with the first element negated if the number of row exchanges is odd. ``factors``
    and ``pivots`` are the LU factors and the row exchanges that :func:`lu` returns.
    """
    diagonal = np.einsum("...ii->...i", factors).copy()
    odd = np.count_nonzero(pivots != np.arange(1, diagonal.shape[-1] + 1), axis=-1) % 2
    diagonal[..., 0] *= 1 - 2 * odd
    return diagonal


def determinant(np: Any, x: Any) -> Any:
    """Return the determinants of the matrices in ``x``; values that are too large become infinite."""
    with cpu.errstate(all="ignore"):
        if not use_lu(np, x):
            return np.linalg.det(x)
        return pivots_of(np, *lu(np, x)[:2]).prod(-1)


def log_determinant(np: Any, x: Any) -> tuple[Any, ...]:
    """Return (signs, logarithms, LU factors, pivots) for the determinants of the matrices in ``x``.

    The logarithms are those of the absolute values. The factors and pivots are empty if the determinants were computed
    by the array module ``np``, which does not return them.
    """
    if not use_lu(np, x):
        sign, log = np.linalg.slogdet(x)
        return np.asarray(sign), np.asarray(log), x[..., :0], np.zeros((*x.shape[:-2], 0), np.int32)
    factors, pivots, _ = lu(np, x)
    diagonal = pivots_of(np, factors, pivots)
    sign, log = np.sign(diagonal).prod(-1), np.log(np.abs(diagonal)).sum(-1)
    return np.asarray(sign), np.asarray(log), factors, pivots


def swap_rows(np: Any, x: Any, pivots: Any, back: bool) -> Any:
    """Return ``x`` with row i exchanged with row ``pivots[i] - 1``, for each i in ascending order.

    If ``back`` is true, the inverse permutation of the rows is applied.
    """
    size = x.shape[-2]
    if np.__name__ == "meta":
        return np.empty((*np.broadcast_shapes(x.shape[:-2], pivots.shape[:-1]), *x.shape[-2:]), x.dtype)
    flat = pivots.reshape((math.prod(pivots.shape[:-1]), pivots.shape[-1]))
    if len(flat) == 1 and not on_gpu(flat):
        rows = list(range(size))
        for i, other in enumerate(flat[0].tolist()):
            rows[i], rows[other - 1] = rows[other - 1], rows[i]
        order = np.asarray([rows], np.int64)
    else:
        order = np.empty((flat.shape[0], size), np.int64)
        order[:] = np.arange(size)
        which = np.arange(flat.shape[0])
        for i in range(flat.shape[1]):
            other = flat[:, i].astype(np.int64) - 1
            order[:, i], order[which, other] = order[which, other], order[:, i].copy()
    if back:
        order = np.argsort(order, axis=-1)
    shape = np.broadcast_shapes(x.shape[:-2], pivots.shape[:-1])
    if not shape:
        return x[order[0]]
    order = np.broadcast_to(order.reshape(*pivots.shape[:-1], size, 1), (*shape, size, 1))
    return np.take_along_axis(np.broadcast_to(x, (*shape, *x.shape[-2:])), order, axis=-2)


# -- QR --------------------------------------------------------------------------------------------------------------


def geqrf(np: Any, x: Any) -> tuple[Any, Any]:
    """Return the QR factorisation of ``x`` as two arrays, in LAPACK's format.

    The first array holds R and, below its diagonal, the Householder reflectors. The second array holds the scalar
    factors tau of the reflectors.
    """
    if np.__name__ == "cupy":
        return np.lapack.geqrf(x)

    def one(a: Any) -> tuple[Any, ...]:
        if not a.size:
            return a.copy(), cpu.zeros(min(a.shape), a.dtype)
        return routine("geqrf", a)(_overwritable(a), lwork=ROOM * a.shape[1], overwrite_a=1)[:2]

    return map_matrices(np, one, (x, 2))


def householder_product(np: Any, x: Any, tau: Any) -> Any:
    """Return the first columns of Q, given the reflectors ``x`` and the factors ``tau`` that :func:`geqrf` returns.

    The result has the shape of ``x``.
    """
    if np.__name__ == "cupy":
        return np.lapack.householder_product(x, tau)

    def one(a: Any, factors: Any) -> tuple[Any, ...]:
        if not a.size:
            return (a.copy(),)
        if not factors.size:
            return (cpu.eye(*a.shape, dtype=a.dtype),)
        return (routine("ungqr", a)(_overwritable(a), factors, lwork=ROOM * a.shape[1], overwrite_a=1)[0],)

    return map_matrices(np, one, (x, 2), (tau, 1))[0]


def qr(np: Any, x: Any, mode: str) -> tuple[Any, Any]:
    """Return Q and R of the QR factorisation ``x = Q R``.

    In the mode "reduced" Q has min(rows, columns) columns. In the mode "complete" Q is square. In the mode "r" Q is
    empty.
    """
    if not one_by_one(np, x):
        if mode == "r":
            return np.zeros(0, x.dtype), column_major(np, np.linalg.qr(x, "r"))
        q, r = np.linalg.qr(x, mode)
        return column_major(np, q), column_major(np, r)
    n, m = x.shape[-2:]
    rows = n if mode == "complete" else min(n, m)

    def one(a: Any) -> tuple[Any, ...]:
        found, tau, _, _ = routine("geqrf", a)(_overwritable(a), ROOM * m, 1)
        r = triangle(cpu, found[:rows].T, 0, True).T
        if mode == "r":
            return found[:0, 0], r
        if rows > m:
            found = cpu.concatenate((found, cpu.zeros((n, rows - m), x.dtype)), 1)
        reflectors = found[:, :rows] if found.flags.f_contiguous else column_major(cpu, found[:, :rows])
        return routine("ungqr", a)(reflectors, tau, ROOM * rows, 1)[0], r

    q, r = map_matrices(np, one, (x, 2))
    return (np.zeros(0, x.dtype) if mode == "r" else q), r


def multiply_q(np: Any, x: Any, tau: Any, other: Any, left: bool, adjoint: bool) -> Any:
    """Return ``Q other`` if ``left`` is true, else ``other Q``, for the square Q that ``x`` and ``tau`` represent.

    ``x`` and ``tau`` are the results of :func:`geqrf`. If ``adjoint`` is true, Qᴴ is used instead of Q.
    """
    if np.__name__ == "cupy":
        return np.lapack.multiply_q(x, tau, other, left, adjoint)
    kind = ("C" if x.dtype.kind == "c" else "T") if adjoint else "N"

    def one(a: Any, factors: Any, c: Any) -> tuple[Any, ...]:
        if not c.size or not factors.size:
            return (c.copy(),)
        call = routine("unmqr", a)
        reflectors = a[:, : factors.size]
        side = "L" if left else "R"
        space = int(call(side, kind, reflectors, factors, c, -1)[1][0].real)
        return (call(side, kind, reflectors, factors, c, space)[0],)

    return map_matrices(np, one, (x, 2), (tau, 1), (other, 2))[0]


# -- Eigenvalues and singular values ---------------------------------------------------------------------------------


def eigh(np: Any, x: Any, lower: bool, vectors: bool) -> tuple[Any, ...]:
    """Return the ascending eigenvalues of the Hermitian matrices in ``x`` and, if ``vectors`` is true, eigenvectors.

    If ``lower`` is true, the lower triangle of ``x`` is read, else the upper triangle. Raises LinAlgError if LAPACK
    does not converge.
    """
    if not one_by_one(np, x):
        triangle = "L" if lower else "U"
        if not vectors:
            return (np.linalg.eigvalsh(x, triangle),)
        values, basis = np.linalg.eigh(x, triangle)
        return values, column_major(np, basis)

    def one(a: Any) -> tuple[Any, ...]:
        workspace = {} if vectors else {"lwork": ROOM * (len(a) + 1)}
        call = routine("heevd", a)
        values, basis, info = call(_overwritable(a), compute_v=int(vectors), lower=lower, overwrite_a=1, **workspace)
        if info:
            raise cpu.linalg.LinAlgError("no convergence")
        return (values, basis) if vectors else (values,)

    return map_matrices(np, one, (x, 2))


def svd(np: Any, x: Any, full: bool, vectors: bool) -> tuple[Any, ...]:
    """Return (U, S, Vᴴ), the singular value decomposition of ``x``, or only (S,) if ``vectors`` is false.

    S holds the singular values in descending order. If ``full`` is true, U and Vᴴ are square. Otherwise, U has as many
    columns, and Vᴴ as many rows, as there are singular values. Raises LinAlgError if LAPACK does not converge.
    """
    if not one_by_one(np, x):
        if not vectors:
            return (np.linalg.svd(x, compute_uv=False),)
        u, values, vh = np.linalg.svd(x, full_matrices=full)
        return column_major(np, u), values, column_major(np, vh)

    def one(a: Any) -> tuple[Any, ...]:
        u, values, vh, info = routine("gesdd", a)(
            _overwritable(a), compute_uv=int(vectors), full_matrices=int(full), overwrite_a=1
        )
        if info:
            raise cpu.linalg.LinAlgError("no convergence")
        return (u, values, vh) if vectors else (values,)

    return map_matrices(np, one, (x, 2))


# -- LDL -------------------------------------------------------------------------------------------------------------


def ldl(np: Any, x: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """Return the LDL factors of the matrices in ``x``, the pivots, and LAPACK's ``info`` for each matrix.

    L and D are stored in one matrix. If ``hermitian`` is false, ``x`` is treated as symmetric, even if it is complex.
    ``info`` is 0, or the index (from 1) of the first zero block of D.
    """

    def one(a: Any) -> tuple[Any, ...]:
        if not a.size:
            return a.copy(), cpu.zeros(len(a), cpu.int32), cpu.int32(0)
        factors, pivots, info = routine("hetrf" if hermitian else "sytrf", a)(a, lower=1)
        return factors, pivots.astype(cpu.int32), cpu.int32(info)

    return map_matrices(np, one, (x, 2))


def ldl_solve(np: Any, factors: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """Return the matrix X with ``A X = b``, given the results ``factors`` and ``pivots`` of :func:`ldl` for A.

    ``hermitian`` is the flag that was passed to :func:`ldl`.
    """

    def one(a: Any, exchanged: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        return (routine("hetrs" if hermitian else "sytrs", a)(a, exchanged, right, lower=1)[0],)

    return map_matrices(np, one, (factors, 2), (pivots, 1), (b, 2))[0]


# -- Solving ---------------------------------------------------------------------------------------------------------


def solve_triangular(np: Any, a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """Return the matrix X with ``a X = b`` for triangular ``a``, or with ``X a = b`` if ``left`` is false.

    If ``upper`` is true, ``a`` is upper triangular. If ``unit`` is true, the diagonal of ``a`` is assumed to be 1.
    Elements of X are infinite where ``a`` is singular.
    """
    if np.__name__ == "cupy":
        return np.lapack.solve_triangular(a, b, upper, left, unit)

    def one(matrix: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        lower, trans = not upper, 0
        if matrix.flags.c_contiguous:  # its transpose is column-major
            matrix, lower, trans = matrix.T, upper, 1
        return (routine("trsm", matrix)(1, matrix, right, side=not left, lower=lower, trans_a=trans, diag=unit),)

    return map_matrices(np, one, (a, 2), (b, 2))[0]


def least_squares(np: Any, a: Any, b: Any, rcond: float, driver: str) -> tuple[Any, ...]:
    """Return the X that minimises ``|a X - b|``, the ranks of ``a`` and the singular values of ``a``.

    X is stored in an array with ``max(a.shape[-2:])`` rows, of which only the first ``a.shape[-1]`` are the solution.
    ``rcond`` is the relative limit below which singular values count as 0. ``driver`` is the name of LAPACK's routine.
    Ranks or singular values that the driver does not compute are 0.
    """
    import scipy.linalg

    def one(matrix: Any, right: Any) -> tuple[Any, ...]:
        rows, small = max(matrix.shape), min(matrix.shape)
        solution = cpu.zeros((right.shape[1], rows), matrix.dtype).T
        rank, values = 0, cpu.zeros(small, matrix.real.dtype)
        if driver == "gels" and solution.size:
            solution[: len(right)] = right
            solution = routine("gels", matrix)(matrix, solution)[1]
        elif solution.size and matrix.size:
            x, _, rank, kept = scipy.linalg.lstsq(
                matrix, right, cond=rcond, lapack_driver=driver, check_finite=False
            )  # fmt: skip
            solution[: len(x)] = x
            values = values if kept is None else kept
        return solution, cpu.int64(rank), values

    return map_matrices(np, one, (a, 2), (b, 2))


# -- Functions of matrices -------------------------------------------------------------------------------------------


def exponential(np: Any, x: Any) -> Any:
    """Return the matrix exponentials of the square matrices in ``x``."""
    if not x.size or np.__name__ == "meta":
        return x.copy()
    if np is not cpu:
        np.warn_on_cpu("matrix_exp")
        return np.asarray(exponential(cpu, np.asnumpy(x)))
    import scipy.linalg

    with cpu.errstate(all="ignore"):
        return cpu.ascontiguousarray(scipy.linalg.expm(x)).astype(x.dtype, copy=False)
