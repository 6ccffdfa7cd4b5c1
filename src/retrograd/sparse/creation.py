"""Functions that create sparse tensors from indices and values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..core import devices, dtypes
from ..core.tensor import Tensor, layout, sparse_coo, sparse_csc, sparse_csr, strided, wrap
from ..kernels import sparse as kernels
from ..operations.creation.from_data import as_tensor, tensor
from .operations import ALIAS
from .tensor import NAMES, Compressed, Coordinates, SparseTensor, implements, sparse_tensor, unsupported


class check_sparse_tensor_invariants:
    """Setting, context manager and decorator: whether new sparse tensors are checked for invalid indices.

    >>> import retrograd as torch
    >>> with torch.sparse.check_sparse_tensor_invariants():
    ...     print(torch.sparse.check_sparse_tensor_invariants.is_enabled())
    True
    """

    enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state, self.saved = enable, False

    @staticmethod
    def is_enabled() -> bool:
        """Return whether new sparse tensors are checked."""
        return check_sparse_tensor_invariants.enabled

    @staticmethod
    def enable() -> None:
        """Check new sparse tensors."""
        check_sparse_tensor_invariants.enabled = True

    @staticmethod
    def disable() -> None:
        """Do not check new sparse tensors."""
        check_sparse_tensor_invariants.enabled = False

    def __enter__(self) -> None:
        self.saved = check_sparse_tensor_invariants.enabled
        check_sparse_tensor_invariants.enabled = self.state

    def __exit__(self, *error: object) -> None:
        check_sparse_tensor_invariants.enabled = self.saved

    def __call__(self, function: Any) -> Any:
        def checked(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        checked.__name__, checked.__doc__, checked.__wrapped__ = function.__name__, function.__doc__, function  # type: ignore[attr-defined]
        return checked


def _values(values: Any, dtype: Any) -> Tensor:
    """Return the argument ``values`` as a tensor of ``dtype``, in the graph if it is one."""
    made = values if isinstance(values, Tensor) else tensor(values)
    if isinstance(made, SparseTensor):
        raise unsupported("The argument values of a sparse tensor", made.layout)
    if dtype is not None and made.dtype is not dtype:
        made = made.to(dtype)
    return made.reshape(1) if not made.ndim else made


def _indices(indices: Any) -> Any:
    """Return the argument ``indices`` as an int64 array; a tensor's memory is shared."""
    made = as_tensor(indices)
    if made.requires_grad:
        made = made.detach()
    array = made._array
    if array.size and array.dtype.kind not in "iu":
        array = array.astype(numpy.int64)
    return array.astype(numpy.int64, copy=False)


def _finished(made: SparseTensor, requires_grad: bool) -> SparseTensor:
    """Return the new tensor ``made``, as a leaf that requires gradients if ``requires_grad`` is true."""
    if requires_grad and not made.requires_grad:
        if made.dtype.category < dtypes.FLOATING:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        made.requires_grad_()
    return made


def _check_device(device: Any) -> None:
    if device is not None and devices.as_device(device).type != "cpu":
        raise unsupported("A device other than the CPU", sparse_coo)


def sparse_coo_tensor(
    *args: Any, indices: Any = None, values: Any = None, size: Any = None, dtype: Any = None, device: Any = None,
    pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """Return a tensor in coordinate format: ``sparse_coo_tensor(indices, values, size=None)`` or with a size alone.

    Column k of ``indices`` is the index of the element, or dense slice, ``values[k]``. Elements with the same index are
    added by :meth:`Tensor.coalesce`. Without ``size``, the shape is the smallest that has all indices.

    >>> import retrograd as torch
    >>> torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    _check_device(device)
    if indices is None and args and values is None and len(args) == 1 and not _nested(args[0]):
        size, args = args[0], ()
    given = [*args, *([None] * (3 - len(args)))]
    indices, values, size = (a if a is not None else b for a, b in zip(given, (indices, values, size), strict=True))
    if indices is None and values is None and size is not None:
        sizes = tuple(int(each) for each in size)
        pattern = Coordinates(numpy.empty((len(sizes), 0), numpy.int64), True)
        return _finished(sparse_tensor(pattern, _empty((0,), dtype), sizes), requires_grad)
    if values is None and indices is not None:
        kind = type(indices[0]).__name__ if isinstance(indices, Sequence) and indices else type(indices).__name__
        raise TypeError(
            "sparse_coo_tensor(): argument 'size' (position 1) must be tuple of ints, but found element of type "
            f"{kind} at pos 0"
        )
    if indices is None:
        raise TypeError(
            "sparse_coo_tensor() received an invalid combination of arguments; it takes (indices, values), "
            "(indices, values, size) or (size)"
        )
    lines, stored = _indices(indices), _values(values, dtype)
    if lines.ndim == 1 and size is not None:  # as PyTorch counts its dimensions
        _check_dims(size, lines.shape[0], stored.ndim - 1)
    if lines.ndim != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {list(lines.shape)}")
    if size is None:
        if lines.size and lines.min() < 0:
            row = int(numpy.argmin(lines.min(1)))
            raise RuntimeError(f"found negative index {lines[row].min()} for dim {row}")
        outer = [int(line.max()) + 1 if line.size else 0 for line in lines]
        size = (*outer, *stored.shape[1:])
    sizes = tuple(int(each) for each in size)
    if any(each < 0 for each in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    _check_dims(sizes, len(lines), stored.ndim - 1)
    if lines.shape[1] != stored.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{lines.shape[1]}, nnz from values: {stored.shape[0]}"
        )
    if tuple(stored.shape[1:]) != sizes[len(lines) :]:
        expected = [stored.shape[0], *sizes[len(lines) :]]
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(stored.shape)}")
    if check_sparse_tensor_invariants.enabled if check_invariants is None else check_invariants:
        kernels.check_range(lines, sizes[: len(lines)])
        if is_coalesced:
            flat = kernels.flat_indices(lines, sizes[: len(lines)])
            if (numpy.diff(flat) <= 0).any():
                raise RuntimeError("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor")
    alias = ALIAS["SparseCooTensorWithDimsAndTensorsBackward0"](stored)
    pattern = Coordinates(lines, bool(is_coalesced))
    return _finished(sparse_tensor(pattern, alias, sizes), requires_grad)


def _nested(value: Any) -> bool:
    """Whether ``value`` is a tensor or a nested sequence, and so not a size."""
    return isinstance(value, Tensor) or (isinstance(value, (list, tuple)) and any(map(_nested_item, value)))


def _nested_item(value: Any) -> bool:
    return isinstance(value, (list, tuple, Tensor, float))


def _check_dims(size: Any, sparse: int, dense: int) -> None:
    if len(size) != sparse + dense:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {sparse}, "
            f"dense_dim = {dense}"
        )


def _empty(shape: tuple[int, ...], dtype: Any) -> Tensor:
    return wrap(numpy.zeros(shape, (dtype or dtypes.default.floating).numpy))


def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> SparseTensor:  # fmt: skip
    """Return a tensor in the compressed format ``layout``, ``torch.sparse_csr`` or ``torch.sparse_csc``.

    For ``sparse_csr``, row i has the elements ``values[k]`` in the columns ``plain_indices[k]``, for k from
    ``compressed_indices[i]`` to ``compressed_indices[i + 1] - 1``. For ``sparse_csc`` rows and columns are exchanged.

    >>> import retrograd as torch
    >>> compressed, plain, values = torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([5.0, 6.0])
    >>> torch.sparse_compressed_tensor(compressed, plain, values, (2, 2), layout=torch.sparse_csr).to_dense()
    tensor([[0., 5.],
            [6., 0.]])
    """
    _check_device(device)
    if layout not in NAMES:
        raise unsupported("Creation", layout or strided)
    starts, plain = as_tensor(compressed_indices).detach()._array, as_tensor(plain_indices).detach()._array
    stored = _values(values, dtype)
    for name, array in zip(NAMES[layout], (starts, plain), strict=True):
        if array.dtype.kind not in "iu" and array.size:
            raise RuntimeError(f"{name} must be an int32 or int64 tensor, but got: {as_tensor(array).dtype}")
        if array.ndim != 1:
            raise unsupported(f"A batch of matrices ({name} of {array.ndim} dimensions)", layout)
    kind = numpy.int32 if starts.dtype == plain.dtype == numpy.int32 else numpy.int64
    starts, plain = starts.astype(kind, copy=False), plain.astype(kind, copy=False)
    if size is None:
        lines = (starts.size - 1, int(plain.max()) + 1 if plain.size else 0)
        size = (*(lines if layout is sparse_csr else lines[::-1]), *stored.shape[1:])
    sizes = tuple(int(each) for each in size)
    # Checked in any case, because the kernels do not check indices.
    if len(sizes) != 1 + stored.ndim or tuple(stored.shape[1:]) != sizes[2:]:
        _check_dims(sizes, 2, stored.ndim - 1)
        expected = [plain.size, *sizes[2:]]
        raise RuntimeError(f"values has incorrect size, expected {expected}, got {list(stored.shape)}")
    if plain.size != stored.shape[0]:
        raise RuntimeError(
            f"number of dimensions and nnz of {NAMES[layout][1]} ({plain.size}) and of values ({stored.shape[0]}) differ"
        )
    _check_compressed(layout, starts, plain, sizes, check_invariants)
    alias = ALIAS["SparseCompressedTensorBackward0"](stored)
    return _finished(sparse_tensor(Compressed(layout, starts, plain), alias, sizes), requires_grad)


def _check_compressed(layout: layout, starts: Any, plain: Any, sizes: Sequence[int], check: bool | None) -> None:
    """Raise PyTorch's RuntimeError for indices that are not those of a matrix of ``sizes``.

    If ``check`` is false, it is only checked that the indices are those of some elements of the matrix.
    """
    first, second = NAMES[layout]
    kept, other = (sizes[0], sizes[1]) if layout is sparse_csr else (sizes[1], sizes[0])
    lines, others = ("nrows", "ncols") if layout is sparse_csr else ("ncols", "nrows")
    steps = numpy.diff(starts)
    if starts.size != kept + 1:
        raise RuntimeError(f"`{first}.shape[-1] == {lines} + 1` is not satisfied.")
    conditions = (
        (starts[0] == 0, f"{first}[..., 0] == 0"),
        (starts[-1] == plain.size, f"{first}[..., -1] == nnz"),
        (((steps >= 0) & (steps <= other)).all(), f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {others}"),
        (not plain.size or (plain.min() >= 0 and plain.max() < other), f"0 <= {second} < {others}"),
    )
    for holds, text in conditions:
        if not holds:
            raise RuntimeError(f"`{text}` is not satisfied.")
    if check_sparse_tensor_invariants.enabled if check is None else check:
        owner = kernels.expanded(starts)
        if ((numpy.diff(plain) <= 0) & (numpy.diff(owner) == 0)).any():
            raise RuntimeError(
                f"`{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {lines} are sorted and distinct "
                "along the last dimension values` is not satisfied."
            )


def sparse_csr_tensor(
    crow_indices: Any, col_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """Return a matrix in compressed row format; see :func:`sparse_compressed_tensor`.

    >>> import retrograd as torch
    >>> torch.sparse_csr_tensor([0, 2, 3], [0, 2, 1], [1.0, 2.0, 3.0]).to_dense()
    tensor([[1., 0., 2.],
            [0., 3., 0.]])
    """
    return sparse_compressed_tensor(crow_indices, col_indices, values, size, layout=sparse_csr, **options)


def sparse_csc_tensor(
    ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, **options: Any
) -> SparseTensor:
    """Return a matrix in compressed column format; see :func:`sparse_compressed_tensor`.

    >>> import retrograd as torch
    >>> columns, rows, values = torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([5.0, 6.0])
    >>> torch.sparse_csc_tensor(columns, rows, values, (2, 2)).to_dense()
    tensor([[0., 6.],
            [5., 0.]])
    """
    return sparse_compressed_tensor(ccol_indices, row_indices, values, size, layout=sparse_csc, **options)


@implements("new_zeros", "new_empty")
def new_empty(self: SparseTensor, *size: Any, **options: Any) -> SparseTensor:
    """Return a sparse tensor without elements, of the layout of ``self`` and the shape ``size``."""
    if not size:
        raise TypeError('new_zeros() missing 1 required positional arguments: "size"')
    sizes = tuple(int(each) for each in (size[0] if isinstance(size[0], (tuple, list)) else size))
    return _without_elements(self, sizes, (), **options)


@implements("zeros_like", "empty_like")
def empty_like(input: SparseTensor, **options: Any) -> SparseTensor:
    """Return a sparse tensor without elements, of the layout and the shape of ``input``."""
    return _without_elements(input, input._sizes, input._sizes[input._pattern.dims :], **options)


def _without_elements(
    input: SparseTensor, sizes: tuple[int, ...], dense: tuple[int, ...], *, dtype: Any = None, requires_grad: bool = False,
    layout: Any = None, device: Any = None, memory_format: Any = None, pin_memory: bool = False,
) -> SparseTensor:  # fmt: skip
    if layout not in (None, input.layout):
        raise unsupported(f"A new tensor of layout {layout}", input.layout)
    _check_device(device)
    dtype, pattern = dtype or input.dtype, input._pattern
    if isinstance(pattern, Compressed):
        kept = sizes[0] if pattern.layout is sparse_csr else sizes[1]
        made: Any = Compressed(
            pattern.layout, numpy.zeros(kept + 1, pattern.starts.dtype), numpy.empty(0, pattern.plain.dtype)
        )
    else:
        made = Coordinates(numpy.empty((len(sizes) - len(dense), 0), numpy.int64), True)
    return _finished(sparse_tensor(made, _empty((0, *dense), dtype), sizes), requires_grad)


def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout: Any = None) -> SparseTensor:
    """Return the matrix of ``shape`` whose diagonal ``offsets[k]`` has the elements ``diagonals[k]``.

    Element j of a row of ``diagonals`` is in column j. A positive offset is that of a diagonal above the main one.

    >>> import retrograd as torch
    >>> diagonals = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    >>> torch.sparse.spdiags(diagonals, torch.tensor([0, 1]), (3, 3)).to_dense()
    tensor([[1., 5., 0.],
            [0., 2., 6.],
            [0., 0., 3.]])
    """
    rows = diagonals.reshape(1, -1) if diagonals.ndim == 1 else diagonals
    shifts = offsets.reshape(-1)._array
    if rows.shape[0] != shifts.size:
        raise RuntimeError(
            f"Number of diagonals ({rows.shape[0]}) does not match the number of offsets ({shifts.size})"
        )
    if numpy.unique(shifts).size != shifts.size:
        raise RuntimeError("Offset tensor contains duplicate values")
    column = numpy.arange(rows.shape[1])[None, :].repeat(shifts.size, 0)
    row = column - shifts[:, None]
    inside = ((row >= 0) & (row < shape[0]) & (column < shape[1])).reshape(-1)
    picked = numpy.flatnonzero(inside)
    coordinates = numpy.stack([row.reshape(-1)[picked], column.reshape(-1)[picked]])
    values = rows.reshape(math.prod(rows.shape)).index_select(0, wrap(picked))
    made = sparse_tensor(Coordinates(coordinates, False), values, shape)
    return made if layout in (None, sparse_coo) else made.to_sparse(layout=layout)


__all__ = [
    "check_sparse_tensor_invariants", "sparse_compressed_tensor", "sparse_coo_tensor", "sparse_csc_tensor", "sparse_csr_tensor",
    "spdiags",
]  # fmt: skip
