"""Functions of the array API standard for searching, sorting and sets."""

from __future__ import annotations

from typing import Literal, NamedTuple

import retrograd as torch
from retrograd import Tensor

from ._dtypes import ANY, BOOL, INTEGRAL, REAL, check, promoted


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Return elements of ``x1`` where ``condition`` is true, otherwise of ``x2``."""
    check("where", (BOOL,), condition)
    return torch.where(condition, *promoted("where", ANY, x1, x2))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Return the indices of the elements that are not zero, a tensor for each dimension."""
    check("nonzero", ANY, x)
    if x.ndim == 0:
        raise ValueError("nonzero() takes arrays of at least one dimension")
    return torch.nonzero(x, as_tuple=True)


def searchsorted(
    x1: Tensor,
    x2: Tensor | float,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Return the positions in the sorted array ``x1`` at which the elements of ``x2`` keep it sorted."""
    x1, x2 = promoted("searchsorted", REAL, x1, x2)
    if sorter is not None:
        check("searchsorted", INTEGRAL, sorter)
        x1 = x1[sorter.to(torch.int64)]
    return torch.searchsorted(x1, x2, side=side)


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return ``x`` sorted along ``axis``. NaN is sorted as the largest value: last, or first if ``descending``."""
    check("sort", REAL, x)
    return torch.sort(x, dim=axis, descending=descending, stable=stable).values


def argsort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """Return the indices that sort ``x`` along ``axis``, in the order of ``sort``."""
    check("argsort", REAL, x)
    return torch.argsort(x, dim=axis, descending=descending, stable=stable)


def isin(x1: Tensor | complex, x2: Tensor | complex, /, *, invert: bool = False) -> Tensor:
    """Test whether each element of ``x1`` equals an element of ``x2``; the opposite with ``invert``."""
    x1, x2 = promoted("isin", ANY, x1, x2)
    if x1.dtype is torch.bool or x1.dtype.is_complex:
        found = (x1.unsqueeze(-1) == x2.flatten()).any(-1)
        return ~found if invert else found
    return torch.isin(x1, x2, invert=invert)


class UniqueAll(NamedTuple):
    """Result of ``unique_all``."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """Result of ``unique_counts``."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Result of ``unique_inverse``."""

    values: Tensor
    inverse_indices: Tensor


def unique_all(x: Tensor, /) -> UniqueAll:
    """Return the distinct elements of ``x``, their first positions, the positions that restore ``x``, and counts.

    Positions are those in the flattened array. Each NaN is distinct, as the standard requires.
    """
    check("unique_all", ANY, x)
    flat = x.flatten()
    if flat.dtype.is_complex:
        order = torch.argsort(flat.imag, stable=True)
        order = order[torch.argsort(flat.real[order], stable=True)]
    else:
        order = torch.argsort(flat, stable=True)
    ordered = flat[order]
    first = torch.ones_like(order, dtype=torch.bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = torch.nonzero(first, as_tuple=True)[0]
    inverse = torch.empty_like(order)
    inverse[order] = torch.cumsum(first, 0) - 1
    counts = torch.diff(starts, append=torch.tensor([flat.shape[0]], device=x.device))
    return UniqueAll(ordered[starts], order[starts], inverse.reshape(x.shape), counts)


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """Return the distinct elements of ``x`` and how often each occurs."""
    check("unique_counts", ANY, x)
    unique = unique_all(x)
    return UniqueCounts(unique.values, unique.counts)


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """Return the distinct elements of ``x``, and for each element of ``x`` the position of its value."""
    check("unique_inverse", ANY, x)
    unique = unique_all(x)
    return UniqueInverse(unique.values, unique.inverse_indices)


def unique_values(x: Tensor, /) -> Tensor:
    """Return the distinct elements of ``x``, sorted."""
    check("unique_values", ANY, x)
    return unique_all(x).values
