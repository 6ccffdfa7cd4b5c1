"""Factorizations and solutions of linear systems on a GPU, by CuPy's cuSOLVER and cuBLAS functions.

The functions have the names and results of those in ``kernels/lapack.py``. None raises for a matrix that can not be
factorized: it gives infinite, nan or undefined elements. CuPy's functions of LU factorizations read a result code, and
so wait for the device; the others do not. What is not here has no function in CuPy, and is computed on the CPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import cupy


def _each(function: Callable[..., tuple[Any, ...]], *stacks: tuple[Any, int]) -> tuple[Any, ...]:
    """Call ``function`` for each matrix of a batch, and return its results, stacked.

    Each of ``stacks`` is a pair (array, number of dimensions of an item); the dimensions before are broadcast.
    """
    batch = cupy.broadcast_shapes(*(array.shape[: array.ndim - count] for array, count in stacks))
    if not batch:
        return function(*(array for array, _ in stacks))
    flat = []
    for array, count in stacks:
        item = array.shape[array.ndim - count :]
        flat.append(cupy.broadcast_to(array, (*batch, *item)).reshape(-1, *item))
    if 0 in batch:
        parts = function(*(cupy.zeros(each.shape[1:], each.dtype) for each in flat))
        return tuple([cupy.zeros((*batch, *part.shape), part.dtype) for part in parts])
    found = zip(*[function(*items) for items in zip(*flat, strict=True)], strict=True)
    return tuple([cupy.stack(list(parts)).reshape(*batch, *parts[0].shape) for parts in found])


def cholesky(x: Any, upper: bool) -> tuple[Any, Any]:
    """Return the Cholesky factors of the matrices in ``x``, and zeros for LAPACK's ``info``."""
    low = x.swapaxes(-1, -2).conj() if upper else x
    result = cupy.linalg.cholesky(low) if x.size else x.copy()
    return (result.swapaxes(-1, -2).conj() if upper else result), cupy.zeros(x.shape[:-2], cupy.int32)


def cholesky_solve(b: Any, factor: Any, upper: bool) -> Any:
    """Return the matrix X with ``A X = b``, given the Cholesky factor of A."""
    adjoint = factor.swapaxes(-1, -2).conj()
    first, second = (adjoint, factor) if upper else (factor, adjoint)
    return solve_triangular(second, solve_triangular(first, b, False, True, False), True, True, False)


def solve(a: Any, b: Any) -> Any:
    """Return the matrices X with ``a X = b``; dimensions before the last two are broadcast, which CuPy refuses."""
    batch = cupy.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a = cupy.broadcast_to(a, (*batch, *a.shape[-2:]))
    b = cupy.broadcast_to(b, (*batch, *b.shape[-2:]))
    return cupy.linalg.solve(a, b)


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Return the LU factors of the matrices in ``x``, the pivots from 1, and the place of the first zero pivot or 0."""

    def one(a: Any) -> tuple[Any, ...]:
        if not a.size:
            return a.copy(), cupy.zeros(min(a.shape), cupy.int32)
        with warnings.catch_warnings():  # of a singular matrix
            warnings.simplefilter("ignore", RuntimeWarning)
            factors, pivots = lu_factor(a, check_finite=False)
        return factors, (pivots + 1).astype(cupy.int32)

    from cupyx.scipy.linalg import lu_factor

    factors, pivots = _each(one, (x, 2))
    zero = cupy.diagonal(factors, 0, -2, -1) == 0
    if not zero.size:
        return factors, pivots, cupy.zeros(x.shape[:-2], cupy.int32)
    info = cupy.where(zero.any(-1), zero.argmax(-1) + 1, 0)
    return factors, pivots, info.astype(cupy.int32)


def lu_solve(factors: Any, pivots: Any, b: Any, transposed: int) -> Any:
    """Return the matrix X with ``A X = b``, or with Aᵀ (1) or Aᴴ (2) for A, given the results of :func:`lu`."""
    from cupyx.scipy.linalg import lu_solve as solve

    def one(a: Any, exchanged: Any, right: Any) -> tuple[Any, ...]:
        if not right.size:
            return (right.copy(),)
        return (solve((a, exchanged - 1), right, transposed, check_finite=False),)

    return _each(one, (factors, 2), (pivots, 1), (b, 2))[0]


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

    def one(a: Any) -> tuple[Any, ...]:
        if not a.size:
            return a.copy(), cupy.zeros(min(a.shape), a.dtype)
        reflectors, factors = cupy.linalg.qr(a, "raw")
        return reflectors.T, factors

    return _each(one, (x, 2))
