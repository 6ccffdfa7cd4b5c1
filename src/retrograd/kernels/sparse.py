"""Kernels of sparse tensors: indices of elements, and products of sparse and dense matrices by SciPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy
import scipy.sparse

#: Number of elements of the two operands of a sampled product that are copied at a time.
BLOCK = 1 << 20


def flat_indices(coordinates: Any, sizes: Sequence[int]) -> Any:
    """Return the flat index of each column of ``coordinates`` in a tensor of ``sizes``.

    Raises PyTorch's RuntimeError for a coordinate that is out of range, and for sizes whose product exceeds int64.
    """
    check_range(coordinates, sizes)
    if math.prod(sizes) >= 1 << 63:
        raise RuntimeError(f"the sizes {tuple(sizes)} of a sparse tensor have too many elements to number them")
    flat = numpy.zeros(coordinates.shape[1], numpy.int64)
    for line, size in zip(coordinates, sizes, strict=True):
        flat *= size
        flat += line
    return flat


def check_range(coordinates: Any, sizes: Sequence[int]) -> None:
    """Raise PyTorch's RuntimeError if a column of ``coordinates`` is no index of a tensor of ``sizes``."""
    for dim, (line, size) in enumerate(zip(coordinates, sizes, strict=True)):
        if line.size and line.min() < 0:
            raise RuntimeError(f"found negative index {line.min()} for dim {dim}")
        if line.size and line.max() >= size:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {dim}, size is {size} but found index {line.max()}"
            )


def coordinates_of(flat: Any, sizes: Sequence[int]) -> Any:
    """Return the coordinates of the elements with the flat indices ``flat``: one row for each of ``sizes``."""
    result = numpy.empty((len(sizes), flat.size), numpy.int64)
    for dim in reversed(range(len(sizes))):
        flat, result[dim] = numpy.divmod(flat, sizes[dim]) if sizes[dim] else (flat, 0)
    return result


def compressed(rows: Any, count: int, dtype: Any = numpy.int64) -> Any:
    """Return where each of ``count`` rows begins in a list of elements that are sorted by ``rows``, and its length."""
    result = numpy.zeros(count + 1, dtype)
    numpy.cumsum(numpy.bincount(rows, minlength=count), out=result[1:])
    return result


def expanded(starts: Any) -> Any:
    """Return the row of each element; ``starts`` is the result of :func:`compressed`."""
    return numpy.repeat(numpy.arange(starts.size - 1), numpy.diff(starts))


def product(values: Any, rows: Any, columns: Any, other: Any, count: int) -> Any:
    """Return the product of the sparse matrix of ``count`` rows and the dense array ``other`` (1-d or 2-d)."""
    if not values.size or not other.size:
        return numpy.zeros((count, *other.shape[1:]), numpy.result_type(values, other))
    matrix = scipy.sparse.csr_array((values, (rows, columns)), (count, other.shape[0]))
    return numpy.asarray(matrix @ other)


def sampled(a: Any, b: Any, rows: Any, columns: Any) -> Any:
    """Return the elements of ``a @ b.T`` at ``rows`` and ``columns``; of two vectors, those of the outer product."""
    if a.ndim == 1:
        return a[rows] * b[columns]
    result = numpy.empty(rows.size, numpy.result_type(a, b))
    step = max(1, BLOCK // max(1, a.shape[1]))
    for start in range(0, rows.size, step):
        part = slice(start, start + step)
        result[part] = numpy.einsum("nk,nk->n", a[rows[part]], b[columns[part]])
    return result


def pairs(columns: Any, starts: Any) -> tuple[Any, Any]:
    """Return the pairs of elements of two sparse matrices whose products are the terms of the matrix product.

    ``columns`` has the columns of the elements of the first matrix. The elements of the second one are sorted by rows,
    and ``starts`` is the result of :func:`compressed` for these. The result has the indices of the elements of both.
    """
    lengths = (starts[1:] - starts[:-1])[columns]
    first = numpy.repeat(numpy.arange(columns.size), lengths)
    before = numpy.cumsum(lengths) - lengths
    second = numpy.arange(first.size) - numpy.repeat(before - starts[columns], lengths)
    return first, second


def maxima(values: Any, group: Any, count: int) -> Any:
    """Return the maximum of the rows of ``values`` in each of ``count`` groups; ``group`` has the group of each row."""
    result = numpy.full((count, *values.shape[1:]), -numpy.inf, values.dtype)
    numpy.maximum.at(result, group, values)
    return result
