"""Searching: where elements are not zero, which ones occur, and where others would stand among them."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.tensor import Tensor, dimension, wrap
from .calls import write_array
from .out import written
from .table import surface

# -- Where -----------------------------------------------------------------------------------------------------------


@surface()
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """The places of the elements that are not zero: as rows of a matrix, or as a tuple of index vectors."""
    array = input._array
    if as_tuple:
        return tuple(wrap(each) for each in numpy.nonzero(array if array.ndim else array.reshape(1)))
    found = numpy.argwhere(array)
    if array.ndim == 0:
        found = numpy.zeros((int(bool(array)), 0), numpy.int64)
    if out is not None:
        write_array(out, found)
        return out
    return wrap(numpy.asfortranarray(found))


@surface()
def argwhere(input: Tensor) -> Tensor:
    """The places of the elements that are not zero, as rows."""
    return nonzero(input)


# -- Without repetition ----------------------------------------------------------------------------------------------


def _outputs(values: Any, inverse: Any, counts: Any, return_inverse: bool, return_counts: bool) -> Any:
    found = [wrap(numpy.ascontiguousarray(values))]
    if return_inverse:
        found.append(wrap(inverse.astype(numpy.int64)))
    if return_counts:
        found.append(wrap(counts.astype(numpy.int64)))
    return found[0] if len(found) == 1 else tuple(found)


@surface()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The elements (or slices along ``dim``) that occur, each once, in order; on request their places and counts."""
    array = input._array
    axis = None if dim is None else dimension(dim, array.ndim)
    values, inverse, counts = numpy.unique(array, return_inverse=True, return_counts=True, axis=axis, equal_nan=False)
    inverse = inverse.reshape(array.shape) if axis is None else inverse.reshape(-1)
    return _outputs(values, inverse, counts, return_inverse, return_counts)


@surface()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements (or slices along ``dim``) without those that equal their predecessor."""
    array = input._array
    rows = array.reshape(-1, 1) if dim is None else numpy.moveaxis(array, dim, 0).reshape(array.shape[dim], -1)
    new = numpy.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    starts = numpy.flatnonzero(new)
    values = array.reshape(-1)[starts] if dim is None else numpy.take(array, starts, dim)
    inverse = numpy.cumsum(new) - 1
    counts = numpy.diff(numpy.append(starts, len(rows)))
    inverse = inverse.reshape(array.shape) if dim is None else inverse
    return _outputs(values, inverse, counts, return_inverse, return_counts)


# -- Among ordered rows ------------------------------------------------------------------------------------------------


def _search(edges: Any, points: Any, right: bool, int32: bool, out: Any) -> Tensor:
    side: Any = "right" if right else "left"
    if edges.ndim == 1:
        found = numpy.searchsorted(edges, points, side)
    else:
        flat = zip(edges.reshape(-1, edges.shape[-1]), points.reshape(-1, points.shape[-1]), strict=True)
        found = numpy.stack([numpy.searchsorted(row, wanted, side) for row, wanted in flat]).reshape(points.shape)
    result = wrap(numpy.asarray(found).astype(numpy.int32 if int32 else numpy.int64))
    return written(out, result)


def _values(values: Any) -> Any:
    return values._array if isinstance(values, Tensor) else numpy.asarray(values)


def _check_rows(edges: Any, points: Any) -> None:
    """Refuse values that do not go with the ordered rows."""
    if edges.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if edges.ndim > 1 and points.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({edges.ndim}) and input value's dim(0) numel(1)"
        )
    if edges.ndim > 1 and edges.shape[:-1] != points.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(edges.shape)} and input "
            f"value tensor {list(points.shape)}"
        )


@surface(method=False)
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: str | None = None,
    out: Any = None, sorter: Any = None,
) -> Tensor:  # fmt: skip
    """Where elements would have to be put into ordered rows to keep them ordered."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    if sorter is not None:
        sorted_sequence = sorted_sequence.gather(-1, sorter)
    edges, points = sorted_sequence._array, _values(input)
    _check_rows(edges, points)
    return _search(edges, points, right or side == "right", out_int32, out)


@surface(method=False)
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """Between which of the ordered ``boundaries`` each element lies."""
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return _search(boundaries._array, _values(input), right, out_int32, out)


@surface(method=False)
def isin(
    elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False, out: Any = None
) -> Tensor:
    """Whether each element is among ``test_elements``."""
    found = wrap(numpy.asarray(numpy.isin(_values(elements), _values(test_elements), invert=invert)))
    return written(out, found)
