"""``nonzero``, ``unique``, ``searchsorted``, ``bucketize``, ``isin`` and other functions that search for elements."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import dtypes
from ...core.devices import array_module_of, is_meta, on_gpu
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import op, public
from ...dispatch.transform_tensor import innermost_batch, slicewise
from ...kernels import searching
from ..shape.slicing import unbind

# -- Nonzero elements ------------------------------------------------------------------------------------------------


@public()
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Any = None) -> Any:
    """Return the indices of the nonzero elements of ``input``.

    The result is a matrix with one row for each nonzero element and one column for each dimension of ``input``. With
    ``as_tuple=True`` it is a tuple with one 1-d index tensor for each dimension.

    >>> import retrograd as torch
    >>> torch.nonzero(torch.tensor([0, 3, 4]))
    tensor([[1],
            [2]])
    """
    if as_tuple.__class__ is not bool:
        raise TypeError("as_tuple must be a bool")
    if as_tuple:
        rows = nonzero(input if input._array.ndim else input.unsqueeze(0))
        return unbind(rows, 1)
    if (special := innermost_batch((input,))) is not None:
        raise special.dynamic("nonzero")
    if input.dtype in dtypes.FLOAT8:
        raise dtypes.unsupported("nonzero_count_cpu", input._array.dtype)
    indices = _nonzero_indices(input._array)
    return wrap(array_module_of(indices).asfortranarray(indices))


def _nonzero_indices(array: Any) -> Any:
    """Return the indices of the nonzero elements of ``array`` as the rows of a matrix.

    The matrix has one column for each dimension of ``array``, and therefore no column for a 0-d array.
    """
    if is_meta(array):
        raise array_module_of(array).no_values("nonzero")
    np = array_module_of(array)
    return np.argwhere(array) if array.ndim else np.zeros((int(bool(array)), 0), np.int64)


@public()
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of the nonzero elements of ``input``, as the rows of a matrix.

    The matrix has one column for each dimension of ``input``.
    """
    return nonzero(input)


@public()
@slicewise
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1, out: Any = None) -> Tensor:
    """Return the indices of the first ``size`` nonzero elements of ``input``, as the rows of a matrix.

    If there are fewer nonzero elements, the remaining rows are filled with ``fill_value``.

    >>> import retrograd as torch
    >>> torch.nonzero_static(torch.tensor([0, 3, 4]), size=1)
    tensor([[1]])
    """
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    if input.is_meta:
        return wrap(array_module_of(input._array).empty((size, input._array.ndim), numpy.int64))
    indices = _nonzero_indices(input._array)[:size]
    result = array_module_of(indices).full((size, input._array.ndim), fill_value, numpy.int64)
    result[: len(indices)] = indices
    return wrap(result)


@public(method=False)
@slicewise
def unravel_index(indices: Tensor, shape: Any) -> tuple[Tensor, ...]:
    """Return the index along each dimension for ``indices``, which are indices of a flattened tensor of ``shape``.

    The result is a tuple of one index tensor for each dimension. Raises TypeError if the elements of ``indices`` are
    not integers or if ``shape`` is not an int or a sequence of ints, and ValueError for a negative size.

    >>> import retrograd as torch
    >>> torch.unravel_index(torch.tensor([4, 1]), (3, 2))
    (tensor([2, 0]), tensor([0, 1]))
    """
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype!r}")
    sizes = (shape,) if isinstance(shape, int) else shape
    if isinstance(sizes, Tensor) or not hasattr(sizes, "__iter__"):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    for each in sizes:
        if not isinstance(each, int):
            raise TypeError(f"expected 'shape' sequence to only contain ints, but got {type(each)}")
    if any(each < 0 for each in sizes):
        raise ValueError(f"'shape' cannot have negative values, but got {tuple(sizes)}")
    step, steps = 1, []
    for size in reversed(sizes):
        steps.append(step)
        step *= size
    if not steps:
        return ()
    array = indices._array[..., None].astype(numpy.int64)
    with numpy.errstate(all="ignore"):
        np = array_module_of(array)
        coordinates = array // np.asarray(steps[::-1]) % np.asarray(tuple(sizes))
    return unbind(wrap(coordinates), -1)


# -- Distinct elements -----------------------------------------------------------------------------------------------


def _unique_op(name: str, backward: str) -> Any:
    """Return a new operation, which computes ``unique`` or ``unique_consecutive``, with the name ``name``.

    The operation returns the tuple (distinct elements, inverse indices, counts). ``backward`` is the name of its
    autograd node.
    """

    def kernel(np: Any, self: Any, /, dim: int | None) -> Any:
        return (_runs if "consecutive" in name else _distinct)(np, self, dim)

    kernel.__name__ = name
    kernel.__doc__ = "Return the distinct elements of ``self``, the inverse indices and the counts."
    declared = op(
        backward=backward, outputs=("values", "inverse", "counts"), differentiable=1, function=False, method=False,
        vmap="dynamic",
    )(kernel)  # fmt: skip

    declared.derivative(self=_unique_rule)
    return declared


def _unique_rule(F: Any, g: Any, self_shape: Any, inverse: Any, counts: Any, dim: int | None) -> Any:
    """Return the gradient of ``unique`` with respect to its operand; ``g`` is the gradient of the distinct elements.

    If n elements of the operand (or slices along ``dim``) are equal, each of them gets one n-th of the gradient of
    their common value. ``inverse`` and ``counts`` are the inverse indices and the counts that ``unique`` returns.
    ``self_shape`` is the shape of the operand, and ``F`` is a namespace of operations (``F.matmul``, …) on tensors or
    on arrays.
    """
    axis = 0 if dim is None else dim
    whole = (math.prod(self_shape),) if dim is None else self_shape
    share = F.index_select_block(
        g / F.reshape(counts, (-1,) + (1,) * (len(whole) - axis - 1)), F.reshape(inverse, (-1,)), axis
    )
    return F.reshape(share, self_shape)


def _distinct(np: Any, x: Any, dim: int | None) -> Any:
    """Return the tuple (distinct elements, inverse indices, counts) of ``x``, for ``unique``.

    The distinct elements (or distinct slices along ``dim``, if it is not None) are sorted. The inverse indices hold,
    for each element of ``x``, its index in the distinct elements. The counts are the numbers of occurrences of the
    distinct elements.
    """
    if x.dtype.kind == "c":
        raise dtypes.unsupported("unique", x.dtype)
    if dim is None:
        return searching.unique_values(np, x)
    rows = _rows(np, x, dim)
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))
    new = _changes(np, rows[order])
    group = np.cumsum(new) - 1
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = group
    starts = np.flatnonzero(new)
    return _slices(np, x, dim, order[starts]), inverse, np.diff(np.append(starts, len(rows)))


def _runs(np: Any, x: Any, dim: int | None) -> Any:
    """Return the tuple (first elements, inverse indices, lengths) of the runs in ``x``, for ``unique_consecutive``.

    A run is a sequence of consecutive equal elements, or of equal slices along ``dim`` if it is not None. The inverse
    indices hold, for each element of ``x``, the index of its run.
    """
    if x.dtype.kind == "c":
        raise dtypes.unsupported("unique", x.dtype)
    rows = x.reshape(-1, 1) if dim is None else _rows(np, x, dim)
    new = _changes(np, rows)
    starts = np.flatnonzero(new)
    inverse = np.cumsum(new) - 1
    counts = np.diff(np.append(starts, len(rows)))
    if dim is None:
        return x.reshape(-1)[starts], inverse.reshape(x.shape), counts
    return _slices(np, x, dim, starts), inverse, counts


def _rows(np: Any, x: Any, dim: int) -> Any:
    """Return the slices of ``x`` along ``dim``, each flattened, as the rows of a matrix."""
    if any(size == 0 for axis, size in enumerate(x.shape) if axis != dim):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return np.moveaxis(x, dim, 0).reshape(x.shape[dim], -1 if x.size else 1)


def _changes(np: Any, rows: Any) -> Any:
    """Return a mask of the rows of the matrix ``rows`` that differ from the previous row.

    The mask is true for the first row.
    """
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    return new


def _slices(np: Any, x: Any, dim: int, places: Any) -> Any:
    """Return the slices of ``x`` along dimension ``dim`` at the indices ``places``, as one array.

    The elements of each slice are contiguous in memory.
    """
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, dim, 0)[places]), 0, dim)


_unique = _unique_op("unique_block", "Unique2Backward0")
_unique_dim = _unique_op("unique_dim_block", "UniqueDimBackward0")
_consecutive = _unique_op("unique_consecutive_block", "UniqueConsecutiveBackward0")


def _requested(found: Any, return_inverse: bool, return_counts: bool) -> Any:
    values, inverse, counts = found
    results = [values, *[inverse] * return_inverse, *[counts] * return_counts]
    return results[0] if len(results) == 1 else tuple(results)


def _unique_axis(input: Tensor, dim: int | None) -> int | None:
    return None if dim is None else normalize_dim(dim, input._array.ndim, wrap_scalar=False)


@public()
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """Return the distinct elements of ``input`` (or the distinct slices along ``dim``) in ascending order.

    ``return_inverse=True`` also returns, for each element of ``input``, the index of its value in the result.
    ``return_counts=True`` also returns the number of occurrences of each distinct element. ``sorted`` has no effect.

    >>> import retrograd as torch
    >>> torch.unique(torch.tensor([2, 1, 2]), return_counts=True)
    (tensor([1, 2]), tensor([1, 2]))
    """
    axis = _unique_axis(input, dim)
    found = _unique(input, None) if axis is None else _unique_dim(input, axis)
    return _requested(found, return_inverse, return_counts)


@public()
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """Return ``input`` without the elements (or slices along ``dim``) that are equal to the previous one.

    Without ``dim`` the input is flattened. ``return_inverse=True`` also returns, for each element of ``input``, the
    index of its value in the result. ``return_counts=True`` also returns, for each element of the result, the number of
    consecutive elements of ``input`` that it replaces.
    """
    return _requested(_consecutive(input, _unique_axis(input, dim)), return_inverse, return_counts)


# -- Sorted sequences ------------------------------------------------------------------------------------------------


@public(method=False)
@slicewise
def searchsorted(
    sorted_sequence: Tensor, input: Any = None, *, out_int32: bool = False, right: bool = False,
    side: str | None = None, out: Any = None, sorter: Tensor | None = None, **kwargs: Any,
) -> Tensor:  # fmt: skip
    """Return the indices at which to insert the elements of ``input`` into ``sorted_sequence`` to keep it sorted.

    ``sorted_sequence`` is 1-d, or has one sorted row for each row of ``input``. An element is inserted before equal
    elements, or with ``right=True`` or ``side="right"`` after them. If the sequence is not sorted, ``sorter`` must hold
    the indices that sort it. ``out_int32=True`` returns int32 indices instead of int64.

    >>> import retrograd as torch
    >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
    tensor([1, 3])
    """
    given = kwargs["self"] if input is None else input
    edges, points = sorted_sequence._array, _values(given)
    _check_rows(edges, points)
    if sorter is not None:
        sorted_sequence = _sorted_by(sorted_sequence, sorter)
    if side not in (None, "left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    return _search(sorted_sequence, given, right or side == "right", out_int32)


def _values(values: Any) -> Any:
    return values._array if isinstance(values, Tensor) else numpy.asarray(values)


def _check_rows(edges: Any, points: Any) -> None:
    """Raise RuntimeError if the shapes of the arguments of ``searchsorted`` do not match.

    ``edges`` are the sorted sequences, and ``points`` the values to insert. All dimensions except the last must be
    equal, unless ``edges`` is 1-d.
    """
    if edges.ndim != 1 and points.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({edges.ndim}) and input value's dim(0) numel(1)"
        )
    if edges.ndim == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if edges.ndim > 1 and edges.shape[:-1] != points.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(edges.shape)} and input "
            f"value tensor {list(points.shape)}"
        )


def _sorted_by(rows: Tensor, sorter: Tensor) -> Tensor:
    """Return each row of ``rows`` in the order of the indices in the same row of ``sorter``."""
    if sorter._array.shape != rows._array.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(rows._array.shape)}and got sorter tensor {list(sorter._array.shape)}"
        )
    if sorter.dtype is not dtypes.int64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            + dtypes.scalar_name(sorter.dtype)
        )
    array = sorter._array
    if array.size and not on_gpu(array) and (array.min() < 0 or array.max() >= array.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")
    return wrap(array_module_of(array).take_along_axis(rows._array, array, -1))


def _any_nan(array: Any) -> bool:
    return array.dtype.kind in "fV" and bool(numpy.isnan(array).any())


def _bisected(np: Any, edges: Any, points: Any, right: bool) -> Any:
    """Return the index at which to insert each element of ``points`` into its row of the sorted ``edges``.

    The indices are found by bisection in all rows at the same time. If ``right`` is true, an element is inserted after
    equal elements. As in PyTorch, a nan in ``edges`` is treated as less than any element.
    """
    rows = np.broadcast_to(edges, (*points.shape[:-1], edges.shape[-1]))
    wanted = np.atleast_1d(points)
    low, high = np.zeros(wanted.shape, np.int64), np.full(wanted.shape, edges.shape[-1], np.int64)
    for _ in range(edges.shape[-1].bit_length()):
        middle = (low + high) // 2
        value = np.take_along_axis(rows, np.minimum(middle, edges.shape[-1] - 1), -1)
        behind = value > wanted if right else value >= wanted
        open_ = low < high
        high = np.where(open_ & behind, middle, high)
        low = np.where(open_ & ~behind, middle + 1, low)
    return low.reshape(points.shape)


def _search(rows: Tensor, values: Any, right: bool, int32: bool) -> Tensor:
    edges, points = rows._array, _values(values)
    if edges.dtype.kind in "bc":
        raise dtypes.unsupported("searchsorted_out_cpu", edges.dtype)
    if edges.dtype == dtypes.bfloat16.numpy:
        edges = edges.astype(numpy.float32)
    if is_meta(edges):
        return wrap(array_module_of(edges).empty(points.shape, numpy.int32 if int32 else numpy.int64))
    np = array_module_of(edges)
    points = np.asarray(points)
    positions = searching.searchsorted(np, points, edges, right)
    if positions is not None:
        pass
    elif edges.ndim == 1 and not on_gpu(edges) and not (_any_nan(edges) or _any_nan(points)):
        positions = numpy.searchsorted(edges, points, "right" if right else "left")
    else:
        positions = _bisected(np, edges, points, right)
    return wrap(np.asarray(positions).astype(numpy.int32 if int32 else numpy.int64))


@public(method=False)
@slicewise
def bucketize(
    input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Any = None
) -> Tensor:
    """Return, for each element of ``input``, the index of the interval between ``boundaries`` that contains it.

    ``boundaries`` is a sorted 1-d tensor. The index of an element x is the i with
    ``boundaries[i - 1] < x <= boundaries[i]``, or with ``right=True`` the i with
    ``boundaries[i - 1] <= x < boundaries[i]``. It is 0 before the first boundary, and the number of boundaries after
    the last. ``out_int32=True`` returns int32 indices instead of int64.
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    _check_rows(boundaries._array, _values(input))
    return _search(boundaries, input, right, out_int32)


@public(method=False)
@slicewise
def isin(
    elements: Any = None,
    test_elements: Any = None,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Any = None,
    **kwargs: Any,
) -> Tensor:
    """Return a mask of ``elements`` that is true where the element is equal to one of ``test_elements``.

    One of the two arguments may be a number. ``invert=True`` inverts the mask. ``assume_unique`` has no effect.
    """
    given = [
        kwargs.get("element") if elements is None else elements,
        kwargs.get("test_element") if test_elements is None else test_elements,
    ]
    if not all(isinstance(each, (Tensor, bool, int, float, complex, numpy.generic)) for each in given):
        raise TypeError("elements must be Tensors or numbers")
    if not any(isinstance(each, Tensor) for each in given):
        raise TypeError("one of the two is a tensor")
    np = array_module_of(next(each._array for each in given if isinstance(each, Tensor)))
    arrays = [each._array if isinstance(each, Tensor) else np.asarray(each) for each in given]
    for each in given:
        if isinstance(each, Tensor) and each._array.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {dtypes.scalar_name(each.dtype)}")
    return wrap(np.asarray(np.isin(arrays[0], arrays[1], invert=invert)))
