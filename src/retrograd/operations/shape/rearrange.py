"""``diag``, ``tril``, ``triu``, ``trace``, ``flip``, ``roll``, ``rot90`` and similar operations that return copies."""

from __future__ import annotations

from typing import Any

import numpy

from ...core import devices, dtypes
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import in_place_form, op, public
from ...kernels import rearrangement
from .slicing import diagonal_block, writable_diagonal
from .view_copies import copy_of_view
from .views import as_int_tuple, parse_int_arguments, reshape

# -- Diagonals and triangles -------------------------------------------------------------------------------------------


@public()
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """Return a matrix with the 1-d tensor ``input`` on a diagonal, or a copy of a diagonal of the matrix ``input``.

    ``diagonal`` selects the diagonal: 0 is the main diagonal, positive numbers are above it, negative numbers below.

    >>> import retrograd as torch
    >>> torch.diag(torch.tensor([1, 2]))
    tensor([[1, 0],
            [0, 2]])
    """
    ndim = input._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    return diag_embed(input, diagonal) if ndim == 1 else copy_of_view(diagonal_block(input, diagonal, 0, 1), input)


@op(name="diag_embed_block", backward="DiagEmbedBackward0", function=False, method=False, linear=True)
def diag_embed_block(np: Any, self: Any, /, offset: int, dim1: int, dim2: int) -> Any:
    """Return matrices that have the last dimension of ``self`` on a diagonal and zeros elsewhere.

    The matrices are in dimensions ``dim1`` and ``dim2`` of the result. ``offset`` selects the diagonal: 0 is the main
    diagonal, positive numbers are above it, negative numbers below.
    """
    size = self.shape[-1] + abs(offset)
    ndim = self.ndim + 1
    shape = list(self.shape[:-1])
    for axis in sorted((dim1, dim2)):
        shape.insert(axis, size)
    assert len(shape) == ndim
    out = np.zeros(tuple(shape), self.dtype)
    writable_diagonal(np, out, offset, dim1, dim2)[...] = self
    return out


diag_embed_block.derivative(self=lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2))


@public()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return matrices that have the last dimension of ``input`` on a diagonal and zeros elsewhere.

    The matrices are in dimensions ``dim1`` and ``dim2`` of the result. ``offset`` selects the diagonal: 0 is the main
    diagonal, positive numbers are above it, negative numbers below.
    """
    ndim = input._array.ndim + 1
    first, second = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diag_embed_block(input, offset, first, second)


@public()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """Return a matrix with all elements of ``input``, flattened, on a diagonal and zeros elsewhere.

    ``offset`` selects the diagonal: 0 is the main diagonal, positive numbers are above it, negative numbers below.
    """
    return diag(reshape(input.contiguous(), (-1,)), offset)


def _triangle(name: str, doc: str) -> Any:
    """Return a new operation, ``tril`` or ``triu``, and define the in-place method ``tril_`` or ``triu_``.

    ``name`` is the name of the operation, and ``doc`` is its docstring.
    """

    lower = name == "tril"

    def kernel(np: Any, self: Any, /, diagonal: int = 0) -> Any:
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return rearrangement.triangle(np, self, diagonal, lower)

    kernel.__name__ = name
    kernel.__doc__ = doc
    triangle = op(linear=True, in_order=True, vmap="leading")(kernel)
    public(function=False, name=name + "_")(in_place_form(triangle.op, name + "_"))
    triangle.derivative(self=_tril_rule if name == "tril" else _triu_rule)
    return triangle


def _tril_rule(F: Any, g: Any, diagonal: int) -> Any:
    return F.tril(g, diagonal)


def _triu_rule(F: Any, g: Any, diagonal: int) -> Any:
    return F.triu(g, diagonal)


tril = _triangle(
    "tril", "Return a copy of ``self`` with zeros above a diagonal of each matrix; ``diagonal=0`` is the main diagonal."
)
triu = _triangle(
    "triu", "Return a copy of ``self`` with zeros below a diagonal of each matrix; ``diagonal=0`` is the main diagonal."
)


def _triangle_indices(name: str, keep: Any) -> None:
    def indices(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
    ) -> Tensor:
        for axis, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{axis} must be non-negative, got{size}")
        target = dtypes.int64 if dtype is None else dtype
        if target not in (dtypes.int64, dtypes.int32):
            raise dtypes.unsupported(name, target.numpy)
        place = devices.as_device(device)
        if place.type == "meta":  # the indices are counted, not computed
            shape = (row, offset, col) if keep is _upper else (col, -offset, row)
            return wrap(numpy.stack(devices.meta().triu_indices(*shape)).astype(target.numpy))
        rows, columns = numpy.nonzero(keep(numpy.ones((row, col), bool), offset))
        return wrap(devices.to_device(numpy.stack([rows, columns]).astype(target.numpy), place))

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = (
        f"Return the row and column indices of the elements that :func:`{name[:4]}` keeps, as a 2 × n tensor."
    )
    public(method=False, name=name)(indices)


def _lower(matrix: Any, offset: int) -> Any:
    return numpy.tril(matrix, offset)


def _upper(matrix: Any, offset: int) -> Any:
    return numpy.triu(matrix, offset)


_triangle_indices("tril_indices", _lower)
_triangle_indices("triu_indices", _upper)


@op(opmath=True, linear=True)
def trace(np: Any, self: Any, /) -> Any:
    """Return the sum of the main diagonal of the matrix ``self``."""
    if self.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {self.ndim}")
    if self.dtype.kind == "b" or (self.dtype.kind == "u" and self.dtype.itemsize > 1):
        raise dtypes.unsupported("trace", self.dtype)
    return np.asarray(self.trace(dtype=np.int64) if self.dtype.kind in "iu" else self.trace())


trace.derivative(self=lambda F, g, self_shape: F.trace_backward(g, self_shape))


@op(function=False, method=False, linear=True, vmap="slices")
def trace_backward(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """Return the gradient of ``trace``: zeros of ``shape`` with the 0-d array ``self`` on the main diagonal."""
    out = np.zeros(shape, self.dtype)
    writable_diagonal(np, out, 0, 0, 1)[...] = self
    return out


trace_backward.derivative(self=lambda F, g: F.trace(g))


# -- Flips, rolls and rotations ----------------------------------------------------------------------------------------


@op(name="flip_block", backward="FlipBackward0", function=False, method=False, linear=True)
def flip_block(np: Any, self: Any, /, dims: tuple[int, ...]) -> Any:
    """Return ``self`` with its elements in reverse order along each of the dimensions ``dims``."""
    return rearrangement.flip_axes(np, self, dims) if self.ndim else self.copy()


flip_block.derivative(self=lambda F, g, dims: F.flip_block(g, dims))


@public()
def flip(input: Tensor, *dims: Any, **kwargs: Any) -> Tensor:
    """Return a copy of ``input`` with its elements in reverse order along each of the dimensions ``dims``.

    >>> import retrograd as torch
    >>> torch.flip(torch.tensor([1, 2, 3]), (0,))
    tensor([3, 2, 1])
    """
    given = parse_int_arguments("flip", dims, "dims", kwargs)
    order = tuple(normalize_dim(each, input._array.ndim) for each in given)
    if len(set(order)) != len(order):
        raise RuntimeError(
            f"dim {next(each for each in order if order.count(each) > 1)} appears multiple times in the list of dims"
        )
    return flip_block(input, order)


@public()
def fliplr(input: Tensor) -> Tensor:
    """Return a copy of ``input`` with its second dimension (the columns of a matrix) in reverse order.

    >>> import retrograd as torch
    >>> torch.fliplr(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 1],
            [4, 3]])
    """
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip_block(input, (1,))


@public()
def flipud(input: Tensor) -> Tensor:
    """Return a copy of ``input`` with its first dimension (the rows of a matrix) in reverse order.

    >>> import retrograd as torch
    >>> torch.flipud(torch.tensor([[1, 2], [3, 4]]))
    tensor([[3, 4],
            [1, 2]])
    """
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip_block(input, (0,))


@op(backward="RollBackward0", function=False, method=False, linear=True)
def roll_block(np: Any, self: Any, /, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """Return ``self`` shifted cyclically by ``shifts[i]`` elements along each dimension ``dims[i]``.

    Elements shifted past the end of a dimension reappear at its start.
    """
    return rearrangement.roll_axes(np, self, shifts, dims)


roll_block.derivative(self=lambda F, g, shifts, dims: F.roll_block(g, tuple(-each for each in shifts), dims))


@public()
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Return ``input`` shifted cyclically by ``shifts[i]`` elements along each dimension ``dims[i]``.

    ``shifts`` and ``dims`` are ints or tuples of ints. Elements shifted past the end of a dimension reappear at its
    start. Without ``dims`` the input is flattened, shifted and returned in its original shape.

    >>> import retrograd as torch
    >>> torch.roll(torch.tensor([1, 2, 3]), 1)
    tensor([3, 1, 2])
    """
    steps = as_int_tuple(shifts)
    if not steps:
        raise RuntimeError("`shifts` required")
    axes = () if dims is None else as_int_tuple(dims)
    if axes and input._array.size:
        axes = tuple(normalize_dim(each, input._array.ndim, wrap_scalar=False) for each in axes)
    if len(steps) != len(axes) and not (not axes and len(steps) == 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    if not input._array.size:  # PyTorch does not check the dimensions
        axes = ()
    return roll_block(input, steps if axes or input._array.size else steps[:1], axes)


@public()
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Return ``input`` rotated ``k`` times by 90° in the plane of the two dimensions ``dims``.

    The rotation is from ``dims[0]`` towards ``dims[1]``.
    """
    ndim, plane = input._array.ndim, as_int_tuple(dims)
    if len(plane) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(plane)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    axes = tuple(normalize_dim(each, ndim) for each in plane)
    if plane[0] == plane[1] or abs(plane[0] - plane[1]) == ndim:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {plane[0]} and dim1 = {plane[1]}")
    return rot90_block(input, k % 4, *axes)


@op(name="rot90_block", backward="Rot90Backward0", function=False, method=False, linear=True)
def rot90_block(np: Any, self: Any, /, k: int, first: int, second: int) -> Any:
    """Return ``self`` rotated ``k`` times (0 to 3) by 90° from dimension ``first`` towards dimension ``second``."""
    axes = {0: (), 1: (second,), 2: (first, second), 3: (first,)}[k]
    flipped = np.array(np.flip(self, axes), order="K")
    return flipped.swapaxes(first, second) if k % 2 else flipped


rot90_block.derivative(self=lambda F, g, k, first, second: F.rot90_block(g, -k % 4, first, second))
