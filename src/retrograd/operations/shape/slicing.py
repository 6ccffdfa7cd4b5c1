"""Views of parts of a tensor: ``select``, ``narrow``, ``split``, ``diagonal``, ``unfold``, ``as_strided`` and more."""

from __future__ import annotations

import itertools
from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor, memory_owner, normalize_dim
from ...core.views import StridedLayout, strided_layout
from ...dispatch.declare import AXIS, op, public
from ...dispatch.public_wrapper import public_wrapper
from ..engine_ops import as_strided_of
from .views import as_int_tuple, view_op

# -- Selecting and slicing -------------------------------------------------------------------------------------------


_ALL = (slice(None),) * 64  # NumPy arrays have at most 64 dimensions


@view_op("select", "SelectBackward0", inline=lambda self, dim, index: (
    self[index, ...] if dim == 0 else self[:, index, ...] if dim == 1 else self[(*_ALL[:dim], index, ...)]))  # fmt: skip
def select_block(np: Any, self: Any, /, dim: int, index: int) -> Any:
    """Return the view of ``self`` at ``index`` along dimension ``dim``, without this dimension."""
    return self[index, ...] if dim == 0 else self[(slice(None),) * dim + (index, ...)]


select_block.derivative(self=lambda F, g, self_shape, dim, index: F.select_backward(g, self_shape, dim, index))


@op(function=False, method=False, linear=True)
def select_backward(np: Any, self: Any, /, shape: tuple[int, ...], dim: int, index: int) -> Any:
    """Return the gradient of ``select``: zeros of ``shape`` with ``self`` written at ``index`` along dimension ``dim``.

    ``self`` is the gradient of the result of ``select``.
    """
    out = np.zeros(shape, self.dtype)
    out[(slice(None),) * dim + (index,)] = self
    return out


select_backward.derivative(self=lambda F, g, dim, index: F.select(g, dim, index))


@public()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return the view of ``input`` at ``index`` along dimension ``dim``, without this dimension."""
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, position = normalize_dim(dim, len(shape)), index.__index__()
    if not -shape[at] <= position < shape[at]:
        raise IndexError(f"select(): index {position} out of range for tensor of size {list(shape)} at dimension {at}")
    return select_block(input, at, position)


@view_op("slice", "SliceBackward0", inline=lambda self, dim, start, end, step: (
    self[start:end:step] if dim == 0 else self[:, start:end:step] if dim == 1
    else self[(*_ALL[:dim], slice(start, end, step))]))  # fmt: skip
def slice_block(np: Any, self: Any, /, dim: int, start: Any, end: Any, step: int) -> Any:
    """Return the view ``self[start:end:step]``, where the slice is taken along dimension ``dim``."""
    return self[(slice(None),) * dim + (slice(start, end, step),)]


slice_block.derivative(
    self=lambda F, g, self_shape, dim, start, end, step: F.slice_backward(g, self_shape, dim, start, end, step)
)


@op(function=False, method=False, linear=True)
def slice_backward(np: Any, self: Any, /, shape: tuple[int, ...], dim: int, start: Any, end: Any, step: int) -> Any:
    """Return the gradient of ``x[start:end:step]`` with respect to ``x``, where the slice is taken along ``dim``.

    ``self`` is the gradient of the slice, and ``shape`` is the shape of ``x``. The result is zeros of ``shape`` with
    ``self`` written to the slice.
    """
    out = np.zeros(shape, self.dtype)
    out[(slice(None),) * dim + (slice(start, end, step),)] = self
    return out


slice_backward.derivative(self=lambda F, g, dim, start, end, step: F.slice(g, dim, start, end, step))


@public()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """Return the view of ``length`` elements of ``input`` along dimension ``dim``, from index ``start`` on."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if isinstance(start, Tensor) and (start._array.ndim or start._array.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    at, begin = normalize_dim(dim, len(shape)), start.__index__()
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -shape[at] <= begin <= shape[at]:
        raise IndexError(
            f"start out of range (expected to be in range of [{-shape[at]}, {shape[at]}], but got {begin})"
        )
    begin = begin + shape[at] if begin < 0 else begin
    if begin + length > shape[at]:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({shape[at]}).")
    return slice_block(input, at, begin, begin + length, 1)


@view_op("unbind", "UnbindBackward0", several=True)
def unbind_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return the slices of ``self`` along dimension ``dim`` as views without this dimension."""
    if self.ndim == 1:
        return tuple([self[i, ...] for i in range(self.size)])
    return tuple(self if dim == 0 else self.transpose(dim, *[axis for axis in range(self.ndim) if axis != dim]))


def _unbind_rule(F: Any, g: Any, self_shape: Any, self_dtype: Any, dim: int) -> Any:
    return F.stack_or_zeros(g, _without(self_shape, dim), self_dtype, dim)


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]


unbind_block.derivative(self=_unbind_rule)


@public(fast_path=unbind_block, dim=AXIS)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Return a tuple of the slices of ``input`` along dimension ``dim``, as views without this dimension."""
    if input._array.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return unbind_block(input, normalize_dim(dim, input._array.ndim))


@view_op("split_uneven", "SplitWithSizesBackward0", several=True)
def split_uneven(np: Any, self: Any, /, sizes: tuple[int, ...], dim: int) -> Any:
    """Return consecutive slices of ``self`` along ``dim``; slice ``i`` has ``sizes[i]`` elements along ``dim``."""
    return _pieces(self, sizes, dim)


@view_op("split_even", "SplitBackward0", several=True)
def split_even(np: Any, self: Any, /, sizes: tuple[int, ...], dim: int) -> Any:
    """Return consecutive slices of ``self`` along dimension ``dim``; slice ``i`` has the size ``sizes[i]``.

    All sizes are equal, except that the last slice may be smaller.
    """
    return _pieces(self, sizes, dim)


def _pieces(array: Any, sizes: tuple[int, ...], dim: int) -> tuple[Any, ...]:
    slices, at, before = [], 0, (slice(None),) * dim
    for size in sizes:
        slices.append(array[at : at + size] if dim == 0 else array[(*before, slice(at, at + size))])
        at += size
    return tuple(slices)


def _split_rule(F: Any, g: Any, self_shape: Any, self_dtype: Any, sizes: Any, dim: int) -> Any:
    shapes = tuple((*self_shape[:dim], size, *self_shape[dim + 1 :]) for size in sizes)
    return F.cat_or_zeros(g, shapes, self_dtype, dim)


unsafe_split_uneven, unsafe_split_even = (
    op(name=name, backward=backward, several=True, function=False, method=False, linear=True)(split_uneven.op.kernel)
    for name, backward in (
        ("unsafe_split_uneven", "UnsafeSplitWithSizesBackward0"), ("unsafe_split_even", "UnsafeSplitBackward0"),
    )
)  # fmt: skip
for _block in (split_uneven, split_even, unsafe_split_uneven, unsafe_split_even):
    _block.derivative(self=_split_rule)


def _by_sizes(block: Any, input: Tensor, sizes: Any, dim: int) -> tuple[Tensor, ...]:
    at, pieces = _split_dim(input, dim), as_int_tuple(sizes)
    total = input._array.shape[at]
    if any(each < 0 for each in pieces):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(pieces)}"
        )
    if sum(pieces) != total:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's size at dimension {dim}), "
            f"but got split_sizes={list(pieces)}"
        )
    return block(input, pieces, at)


def _by_size(block: Any, input: Tensor, size: int, dim: int) -> tuple[Tensor, ...]:
    _check_int64(size)
    at = _split_dim(input, dim)
    total = input._array.shape[at]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and total:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {total}")
    return block(input, _even_sizes(total, size), at)


def _check_int64(value: Any) -> None:
    if isinstance(value, int) and value >= 2**63:
        raise ValueError("Overflow when unpacking long long")


def _split_dim(input: Tensor, dim: int) -> int:
    if not input._array.ndim:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    return normalize_dim(dim, input._array.ndim)


def _even_sizes(total: int, size: int) -> tuple[int, ...]:
    full, rest = divmod(total, size) if size else (0, 0)
    return (size,) * full + ((rest,) if rest or not full else ())


def _by_count(even: Any, uneven: Any, input: Tensor, chunks: int, dim: int) -> tuple[Tensor, ...]:
    _check_int64(chunks)
    if input._array.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at = normalize_dim(dim, input._array.ndim)
    total = input._array.shape[at]
    size = -(-total // chunks)
    if size == 0:
        return uneven(input, (0,) * chunks, at)
    return even(input, _even_sizes(total, size), at)


@public()
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return consecutive slices of ``input`` along dimension ``dim``, as a tuple of views.

    Slice ``i`` has the size ``split_sizes[i]`` along ``dim``.

    >>> import retrograd as torch
    >>> torch.split_with_sizes(torch.arange(5), [2, 3])
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return _by_sizes(split_uneven, input, split_sizes, dim)


# PyTorch's split calls split_with_sizes, whose name is in its errors.
_split_with_sizes = public_wrapper(split_with_sizes, "torch", "split_with_sizes")


@public()
def unsafe_split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices that :func:`split_with_sizes` returns, but as tensors that autograd does not treat as views.

    The slices share the memory of ``input``. Autograd does not notice that an in-place operation on one slice changes
    ``input``, too, so that gradients may be wrong without an error.

    >>> import retrograd as torch
    >>> torch.unsafe_split_with_sizes(torch.arange(5), [2, 3])
    (tensor([0, 1]), tensor([2, 3, 4]))
    """
    return _by_sizes(unsafe_split_uneven, input, split_sizes, dim)


def _split_sizes(array: Any, split_size_or_sections: Any, dim: int) -> tuple[int, ...] | None:
    """Return the sizes along ``dim`` of the slices that ``split`` returns for ``array``, or None.

    ``split_size_or_sections`` is the argument of ``split``. If it is not a positive int, or if ``array`` is 0-d, the
    result is None. Then the general implementation of ``split`` checks the arguments and computes the sizes.
    """
    size = split_size_or_sections
    if size.__class__ is not int or not 0 < size < 2**63 or not array.ndim:
        return None
    return _even_sizes(array.shape[dim], size)


@public(fast_path=split_even, dim=AXIS, sizes=_split_sizes)
def split(
    input: Tensor, split_size_or_sections: Any = None, dim: int = 0, *, split_size: Any = None
) -> tuple[Tensor, ...]:
    """Return consecutive slices of ``input`` along dimension ``dim``, as a tuple of views.

    ``split_size_or_sections`` is the size of each slice along ``dim`` (the last slice may be smaller), or a list of the
    sizes of the slices.

    >>> import retrograd as torch
    >>> torch.split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    sizes = split_size_or_sections if split_size is None else split_size
    if sizes is None:
        raise TypeError("Tensor.split() missing 1 required positional argument: 'split_size'")
    if isinstance(sizes, int) or (isinstance(sizes, Tensor) and sizes._array.size == 1):
        return _by_size(split_even, input, sizes.__index__(), dim)
    return _split_with_sizes(input, sizes, dim)


@public()
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices that :func:`split` returns, but as tensors that autograd does not treat as views.

    The slices share the memory of ``input``. Autograd does not notice that an in-place operation on one slice changes
    ``input``, too, so that gradients may be wrong without an error.

    >>> import retrograd as torch
    >>> torch.unsafe_split(torch.arange(5), 2)
    (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    return _by_size(unsafe_split_even, input, split_size, dim)


def _chunk_sizes(array: Any, chunks: int, dim: int) -> tuple[int, ...] | None:
    """Return the sizes along ``dim`` of the slices that ``chunk`` returns for ``array``, or None.

    If ``chunks`` is not a positive int, or if ``array`` is empty, the result is None. Then the general implementation
    of ``chunk`` checks the arguments and computes the sizes.
    """
    if chunks.__class__ is not int or not 0 < chunks < 2**63 or not array.size:
        return None
    total = array.shape[dim]
    return _even_sizes(total, -(-total // chunks))


@public(fast_path=split_even, dim=AXIS, sizes=_chunk_sizes)
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return at most ``chunks`` slices of ``input`` of equal size along dimension ``dim``, as views.

    The last slice may be smaller.

    >>> import retrograd as torch
    >>> torch.chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _by_count(split_even, split_uneven, input, chunks, dim)


@public(fast_path=unsafe_split_even, dim=AXIS, sizes=_chunk_sizes)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Return the slices that :func:`chunk` returns, but as tensors that autograd does not treat as views.

    The slices share the memory of ``input``. Autograd does not notice that an in-place operation on one slice changes
    ``input``, too, so that gradients may be wrong without an error.

    >>> import retrograd as torch
    >>> torch.unsafe_chunk(torch.arange(5), 2)
    (tensor([0, 1, 2]), tensor([3, 4]))
    """
    return _by_count(unsafe_split_even, unsafe_split_uneven, input, chunks, dim)


@public()
def tensor_split(input: Tensor, indices_or_sections: Any = None, dim: int = 0, **kwargs: Any) -> tuple[Tensor, ...]:
    """Return consecutive slices of ``input`` along dimension ``dim``, as a tuple of views.

    If ``indices_or_sections`` is an int, it is the number of slices, whose sizes differ by at most one. Otherwise it is
    a sequence of ints or a 1-d int64 tensor that holds the start of each slice except the first. Raises RuntimeError
    for a 0-d ``input`` and for a number of slices less than 1.
    """
    if input._array.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = normalize_dim(dim, input._array.ndim)
    total = input._array.shape[at]
    sections = next(iter(kwargs.values())) if indices_or_sections is None else indices_or_sections
    if isinstance(sections, Tensor):
        sections = _cuts_of(sections)
    _check_int64(sections)
    if isinstance(sections, int):
        if sections <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {sections}")
        small, larger = divmod(total, sections)
        cuts = [0]
        for i in range(sections):
            cuts.append(cuts[-1] + small + (i < larger))
    else:
        cuts = [0, *sections, total]
    return tuple(slice_block(input, at, *_bounds(a, b, total), 1) for a, b in itertools.pairwise(cuts))


def _cuts_of(cuts: Tensor) -> Any:
    if cuts._array.ndim > 1:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, but got "
            f"a tensor with {cuts._array.ndim} dims"
        )
    if cuts.dtype is not dtypes.int64:
        raise RuntimeError(
            "tensor_split expected tensor_indices_or_sections to have dtype of long, but got "
            f"{dtypes.scalar_name(cuts.dtype)}"
        )
    if cuts.is_meta:
        raise RuntimeError("tensor_split expected tensor_indices_or_sections to be on cpu, but it's on meta")
    return cuts.tolist()


def _bounds(start: int, end: int, total: int) -> tuple[int, int]:
    first, last, _ = slice(start, end).indices(total)
    return first, max(first, last)


def _sections(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """Return the argument of ``hsplit``, ``vsplit`` or ``dsplit``: a number of sections, or a tuple of indices.

    The indices may be passed one by one. ``name`` is the name of the function.
    """
    keyword = next((each for each in ("sections", "indices") if each in named), None)
    if len(named) > 1 or (named and (keyword is None or arguments)):
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
    if keyword is not None:
        return named[keyword]
    if not arguments:
        raise TypeError(f'{name}() missing 1 required positional arguments: "sections"')
    return arguments[0] if len(arguments) == 1 else arguments


def _split_along(name: str, dim: int, least: int) -> None:
    def split_along(input: Tensor, *arguments: Any, **named: Any) -> tuple[Tensor, ...]:
        given = _sections(name, arguments, named)
        if input._array.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a "
                f"tensor with {input._array.ndim} dimensions!"
            )
        at = 0 if name == "hsplit" and input._array.ndim == 1 else dim
        if isinstance(given, int) and (given <= 0 or input._array.shape[at] % given):
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {at}, but the size of the dimension "
                f"{input._array.shape[at]} is not divisible by the split_size {given}!"
            )
        return tensor_split(input, given, at)

    split_along.__name__ = split_along.__qualname__ = name
    split_along.__doc__ = f"Return slices of ``input`` along dimension {dim}, as views (see :func:`tensor_split`)."
    public(name=name)(split_along)


for _name, _dim, _least in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    _split_along(_name, _dim, _least)


# -- Diagonals ---------------------------------------------------------------------------------------------------------


@view_op("diagonal", "DiagonalBackward0")
def diagonal_block(np: Any, self: Any, /, offset: int, dim1: int, dim2: int) -> Any:
    """Return the view of the diagonals of the matrices in dimensions ``dim1`` and ``dim2`` of ``self``.

    The elements of a diagonal are along the last dimension of the result. ``offset`` selects the diagonal: 0 is the
    main diagonal, positive numbers are above it, negative numbers below.
    """
    return writable_diagonal(np, self, offset, dim1, dim2)


diagonal_block.derivative(
    self=lambda F, g, self_shape, offset, dim1, dim2: F.diagonal_backward(g, self_shape, offset, dim1, dim2)
)


def writable_diagonal(np: Any, array: Any, offset: int, dim1: int, dim2: int) -> Any:
    """Return the diagonals of the matrices in dimensions ``dim1`` and ``dim2`` of ``array`` as a view, writable if ``array`` is.

    ``numpy.diagonal`` returns a read-only view instead. ``offset`` selects the diagonal. It is limited to the range of a C
    int, because NumPy raises for greater numbers and crashes for -2**31.
    """
    if not -(2**63) <= offset < 2**63:
        raise OverflowError("an offset must fit into 64 bits")
    view = array.diagonal(max(1 - 2**31, min(offset, 2**31 - 1)), dim1, dim2)
    if np.__name__ == "numpy" and array.flags.writeable:
        view.flags.writeable = True
    return view


@op(function=False, method=False, linear=True)
def diagonal_backward(np: Any, self: Any, /, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    """Return the gradient of ``diagonal``: zeros of ``shape`` with ``self`` written to the diagonals of the matrices.

    ``self`` is the gradient of the result of ``diagonal``; its last dimension holds the elements of a diagonal.
    ``offset``, ``dim1`` and ``dim2`` are the arguments of ``diagonal``.
    """
    out = np.zeros(shape, self.dtype)
    writable_diagonal(np, out, offset, dim1, dim2)[...] = self
    return out


diagonal_backward.derivative(self=lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2))


@public(fast_path=diagonal_block, dim1=AXIS, dim2=AXIS)
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return the view of the diagonals of the matrices in dimensions ``dim1`` and ``dim2`` of ``input``.

    The elements of a diagonal are along the last dimension of the result. ``offset`` selects the diagonal: 0 is the
    main diagonal, positive numbers are above it, negative numbers below.
    """
    ndim = input._array.ndim
    first, second = normalize_dim(dim1, ndim), normalize_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_block(input, offset, first, second)


# -- Windows -----------------------------------------------------------------------------------------------------------


@view_op("unfold", "UnfoldBackward0")
def unfold_block(np: Any, self: Any, /, dim: int, size: int, step: int) -> Any:
    """Return a view of the windows of ``self`` along ``dim``: slices of ``size`` elements that start ``step`` apart.

    Dimension ``dim`` of the view has an index for each window, and a new last dimension holds the elements of a window.
    """
    if self.ndim == 0:
        return self.reshape(1)[:size]
    count = (self.shape[dim] - size) // step + 1
    shape = (*self.shape[:dim], count, *self.shape[dim + 1 :], size)
    strides = (*self.strides[:dim], self.strides[dim] * step, *self.strides[dim + 1 :], self.strides[dim])
    return as_strided_of(np)(self, shape, strides)


unfold_block.derivative(
    self=lambda F, g, self_shape, dim, size, step: F.unfold_backward(g, self_shape, dim, size, step)
)


@op(function=False, method=False, linear=True)
def unfold_backward(np: Any, self: Any, /, shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    """Return the gradient of ``unfold``: zeros of ``shape`` to which the elements of all windows are added.

    ``self`` is the gradient of the result of ``unfold``, and ``dim``, ``size`` and ``step`` are its arguments. Each
    element of a window is added at the index from which ``unfold`` reads it.
    """
    out = np.zeros(shape, self.dtype)
    if not shape:
        return self.reshape(shape)
    count = self.shape[dim]
    for offset in range(size):
        out[(slice(None),) * dim + (slice(offset, offset + (count - 1) * step + 1, step),)] += self[..., offset]
    return out


unfold_backward.derivative(self=lambda F, g, dim, size, step: F.unfold(g, dim, size, step))


@public(function=False)
def unfold(input: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of the windows of ``input`` along ``dimension``: slices of ``size`` elements.

    The windows start ``step`` elements apart. In the result, ``dimension`` has an index for each window, and a new last
    dimension holds the ``size`` elements of a window.
    """
    at = resolve_dimension(dimension, input._array.ndim)
    total = input._array.shape[at] if input._array.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > total:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {total} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return unfold_block(input, at, size, step)


resolve_dimension = normalize_dim  # an alias, because the argument of ``unfold`` hides the name


# -- Views by strides ------------------------------------------------------------------------------------------------


@view_op("as_strided_block", "AsStridedBackward0")
def as_strided_block(np: Any, self: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """Return a view of the storage of ``self`` with the shape, strides and storage offset in ``part``.

    ``whole`` holds the shape, strides and storage offset of ``self``. It is used only for the gradient.
    """
    memory = memory_owner(self)
    flat = memory.reshape(-1) if memory.flags.c_contiguous else memory.ravel(order="K")
    if self.dtype != flat.dtype:
        flat = flat.view(self.dtype)
    return as_strided_of(np)(flat[part.offset :], part.shape, tuple(step * self.itemsize for step in part.strides))


as_strided_block.derivative(self=lambda F, g, whole, part: F.strided_add(g, whole, part))


@public()
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """Return a view of the storage of ``input`` with the shape ``size`` and the strides ``stride``.

    ``stride`` and ``storage_offset`` are counted in elements; the default of ``storage_offset`` is that of ``input``.
    Raises RuntimeError for negative strides and for elements outside the storage.
    """
    shape, strides = tuple(size), tuple(stride)
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(step < 0 for step in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    whole = strided_layout(input._array, input._array)
    offset = whole.offset if storage_offset is None else storage_offset
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(each < 0 for each in shape):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    reach = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    available = memory_owner(input._array).nbytes // input._array.itemsize
    if reach >= max(available, 1) and 0 not in shape:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{input._array.itemsize} requiring a storage size of {(reach + 1) * input._array.itemsize} are out of "
            f"bounds for storage of size {available * input._array.itemsize}"
        )
    return as_strided_block(input, whole, StridedLayout(shape, strides, offset))
