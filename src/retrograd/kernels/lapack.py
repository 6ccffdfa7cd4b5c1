"""Factorisations of batches of matrices: NumPy's where it has them, else LAPACK's routines, one matrix at a time.

Every function takes the array module first. LAPACK works on the CPU: arrays of a GPU go there and come back. Matrices
come out as LAPACK leaves them, the elements of a column side by side. Knows no Tensor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as cpu  # LAPACK's arrays, wherever those of the caller are

PREFIX = {"f": "s", "d": "d", "F": "c", "D": "z"}


def by_columns(np: Any, x: Any) -> Any:
    """``x`` with the columns of its matrices lying together."""
    out = np.empty((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype).swapaxes(-1, -2)
    out[...] = x
    return out


def turned(x: Any) -> Any:
    """The last two dimensions exchanged, complex numbers conjugated."""
    found = x.swapaxes(-1, -2)
    return found.conj() if x.dtype.kind == "c" else found


def routine(name: str, x: Any) -> Any:
    """LAPACK's (or BLAS's) routine for the numbers of ``x``; of real ones ``un…`` is ``or…`` and ``he…`` is ``sy…``."""
    import scipy.linalg.blas
    import scipy.linalg.lapack

    if x.dtype.kind == "f":
        name = {"ungqr": "orgqr", "unmqr": "ormqr", "hetrf": "sytrf", "hetrs": "sytrs"}.get(name, name)
    full = PREFIX[x.dtype.char] + name
    return getattr(scipy.linalg.lapack, full, None) or getattr(scipy.linalg.blas, full)


def each(np: Any, function: Callable[..., tuple[Any, ...]], *stacks: tuple[Any, int]) -> tuple[Any, ...]:
    """The results of ``function`` for each item of stacks, in stacks.

    A stack is an array and the number of dimensions of an item; the dimensions before them are broadcast.
    """
    arrays = [np.asnumpy(array) if hasattr(np, "asnumpy") else array for array, _ in stacks]
    sizes = [array.ndim - count for array, (_, count) in zip(arrays, stacks, strict=True)]
    batch = cpu.broadcast_shapes(*(array.shape[:size] for array, size in zip(arrays, sizes, strict=True)))
    flat = [
        cpu.broadcast_to(array, (*batch, *array.shape[size:])).reshape((math.prod(batch), *array.shape[size:]))
        if 0 not in batch else _stand_in(array, size)
        for array, size in zip(arrays, sizes, strict=True)
    ]  # fmt: skip
    found = [function(*items) for items in zip(*flat, strict=True)]
    return tuple(np.asarray(_stacked(parts, batch)) for parts in zip(*found, strict=True))


def _stand_in(array: Any, size: int) -> Any:
    """One item for a stack that has none: what comes of it has the right shapes."""
    shape = array.shape[size:]
    item = cpu.eye(*shape, dtype=array.dtype) if len(shape) == 2 else cpu.ones(shape, array.dtype)
    return item[None]


def _stacked(parts: tuple[Any, ...], batch: tuple[int, ...]) -> Any:
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
    """The triangular factor, and for each matrix the order of the minor that is not positive definite, or 0."""
    low = turned(x) if upper else x
    try:
        found = np.linalg.cholesky(low)
        info = np.zeros(x.shape[:-2], np.int32)
        if not bool(np.isfinite(found).all()):
            raise np.linalg.LinAlgError
    except np.linalg.LinAlgError:
        found, info = each(np, _potrf, (low, 2))
    return by_columns(np, turned(found) if upper else found), info


def _potrf(a: Any) -> tuple[Any, Any]:
    factor, info = routine("potrf", a)(a, lower=1, clean=1)
    return factor, cpu.int32(info)


def cholesky_solve(np: Any, b: Any, factor: Any, upper: bool) -> Any:
    """The X with ``L Lᴴ X = b`` (``Uᴴ U X = b`` if ``upper``)."""

    def one(right: Any, a: Any) -> tuple[Any, ...]:
        return (right.copy() if not right.size else routine("potrs", a)(a, right, lower=not upper)[0],)

    return each(np, one, (b, 2), (factor, 2))[0]


# -- LU --------------------------------------------------------------------------------------------------------------


def lu(np: Any, x: Any) -> tuple[Any, Any, Any]:
    """Both factors in one matrix, the rows exchanged (counted from 1), and the place of the first zero pivot, or 0."""
    return each(np, _getrf, (x, 2))


def _getrf(a: Any) -> tuple[Any, ...]:
    if not a.size:
        return a.copy(), cpu.zeros(min(a.shape), cpu.int32), cpu.int32(0)
    factors, pivots, info = routine("getrf", a)(a)
    return factors, (pivots + 1).astype(cpu.int32), cpu.int32(info)


def lu_solve(np: Any, factors: Any, pivots: Any, b: Any, transposed: int) -> Any:
    """The X with ``A X = b``; transposed 1: with Aᵀ, 2: with Aᴴ."""

    def one(a: Any, exchanged: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        return (routine("getrs", a)(a, exchanged - 1, right, trans=transposed)[0],)

    return each(np, one, (factors, 2), (pivots, 1), (b, 2))[0]


def swapped(np: Any, x: Any, pivots: Any, back: bool) -> Any:
    """The rows of ``x`` exchanged as ``pivots`` say, one after the other (or back again)."""
    size = x.shape[-2]
    flat = pivots.reshape((math.prod(pivots.shape[:-1]), pivots.shape[-1]))
    order = np.empty((flat.shape[0], size), np.int64)
    order[:] = np.arange(size)
    which = np.arange(flat.shape[0])
    steps = range(flat.shape[1])
    for i in steps:
        other = flat[:, i].astype(np.int64) - 1
        order[:, i], order[which, other] = order[which, other], order[:, i].copy()
    if back:
        order = np.argsort(order, axis=-1)
    shape = np.broadcast_shapes(x.shape[:-2], pivots.shape[:-1])
    order = np.broadcast_to(order.reshape(*pivots.shape[:-1], size, 1), (*shape, size, 1))
    return np.take_along_axis(np.broadcast_to(x, (*shape, *x.shape[-2:])), order, axis=-2)


# -- QR --------------------------------------------------------------------------------------------------------------


def geqrf(np: Any, x: Any) -> tuple[Any, Any]:
    """R with the reflectors below its diagonal, and their factors."""

    def one(a: Any) -> tuple[Any, ...]:
        if not a.size:
            return a.copy(), cpu.zeros(min(a.shape), a.dtype)
        return routine("geqrf", a)(a)[:2]

    return each(np, one, (x, 2))


def householder_product(np: Any, x: Any, tau: Any) -> Any:
    """The first columns of the product of the reflectors that ``geqrf`` gives."""

    def one(a: Any, factors: Any) -> tuple[Any, ...]:
        if not a.size:
            return (a.copy(),)
        if not factors.size:
            return (cpu.eye(*a.shape, dtype=a.dtype),)
        return (routine("ungqr", a)(a, factors)[0],)

    return each(np, one, (x, 2), (tau, 1))[0]


def multiplied(np: Any, x: Any, tau: Any, other: Any, left: bool, adjoint: bool) -> Any:
    """``Q other`` or ``other Q`` with the square Q (or Qᴴ) of the reflectors that ``geqrf`` gives."""
    kind = ("C" if x.dtype.kind == "c" else "T") if adjoint else "N"

    def one(a: Any, factors: Any, c: Any) -> tuple[Any, ...]:
        if not c.size or not factors.size:
            return (c.copy(),)
        call = routine("unmqr", a)
        reflectors = a[:, : factors.size]
        side = "L" if left else "R"
        space = int(call(side, kind, reflectors, factors, c, -1)[1][0].real)
        return (call(side, kind, reflectors, factors, c, space)[0],)

    return each(np, one, (x, 2), (tau, 1), (other, 2))[0]


# -- LDL -------------------------------------------------------------------------------------------------------------


def ldl(np: Any, x: Any, hermitian: bool) -> tuple[Any, Any, Any]:
    """L and D in one matrix, the pivots, and the place of the first zero block of D, or 0."""

    def one(a: Any) -> tuple[Any, ...]:
        if not a.size:
            return a.copy(), cpu.zeros(len(a), cpu.int32), cpu.int32(0)
        factors, pivots, info = routine("hetrf" if hermitian else "sytrf", a)(a, lower=1)
        return factors, pivots.astype(cpu.int32), cpu.int32(info)

    return each(np, one, (x, 2))


def ldl_solve(np: Any, factors: Any, pivots: Any, b: Any, hermitian: bool) -> Any:
    """The X with ``A X = b`` from the factors of A."""

    def one(a: Any, exchanged: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        return (routine("hetrs" if hermitian else "sytrs", a)(a, exchanged, right, lower=1)[0],)

    return each(np, one, (factors, 2), (pivots, 1), (b, 2))[0]


# -- Solving ---------------------------------------------------------------------------------------------------------


def solve_triangular(np: Any, a: Any, b: Any, upper: bool, left: bool, unit: bool) -> Any:
    """The X with ``a X = b`` (``X a = b`` if not ``left``) for triangular ``a``; infinite where ``a`` is singular."""

    def one(matrix: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        return (routine("trsm", matrix)(1, matrix, right, side=not left, lower=not upper, diag=unit),)

    return each(np, one, (a, 2), (b, 2))[0]


def least_squares(np: Any, a: Any, b: Any, rcond: float, driver: str) -> tuple[Any, ...]:
    """The X that makes ``|a X - b|`` least, in as many rows as ``a`` or ``b`` has; the rank; singular values."""
    import scipy.linalg

    rows = max(a.shape[-2:])
    small = min(a.shape[-2:])

    def one(matrix: Any, right: Any) -> tuple[Any, ...]:
        found = cpu.zeros((rows, right.shape[1]), matrix.dtype)
        rank, values = 0, cpu.zeros(small, matrix.real.dtype)
        if driver == "gels" and found.size:
            found[: len(right)] = right
            found = routine("gels", matrix)(matrix, found)[1]
        elif found.size and matrix.size:
            x, _, rank, kept = scipy.linalg.lstsq(
                matrix, right, cond=rcond, lapack_driver=driver, check_finite=False
            )  # fmt: skip
            found[: len(x)] = x
            values = values if kept is None else kept
        return found, cpu.int64(rank), values

    return each(np, one, (a, 2), (b, 2))


# -- Functions of matrices -------------------------------------------------------------------------------------------


def exponential(np: Any, x: Any) -> Any:
    """The exponential of square matrices."""
    if not x.size:
        return x.copy()
    if hasattr(np, "asnumpy"):
        return np.asarray(exponential(cpu, np.asnumpy(x)))
    import scipy.linalg

    with cpu.errstate(all="ignore"):
        return cpu.ascontiguousarray(scipy.linalg.expm(x)).astype(x.dtype, copy=False)
