"""Views and shapes: reshaping, permuting, selecting, splitting; and the operations that copy to reshape."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy

from ..core import dtypes
from ..core.levels import LEVEL
from ..core.modes import recording
from ..core.size import Size
from ..core.tensor import Tensor, contiguous_format, dimension, memory_of, wrap
from ..core.views import Geometry, bump, check_in_place, geometry
from .calls import resized, write_array
from .cast import clone, to
from .inner import _as_strided_of, expand
from .promote import broadcast_error, mismatch
from .rules import check_parts
from .table import ARRAYS, TENSORS, op, surface


def _view(name: str, backward: str | None = None, **options: Any) -> Any:
    return op(view=True, name=name, backward=backward, function=False, method=False, linear=True, **options)


def ints(value: Any) -> tuple[int, ...]:
    """A sequence of ints given as one int or as a sequence (0-d tensors count as ints)."""
    return (value.__index__(),) if hasattr(value, "__index__") and not isinstance(value, (tuple, list)) else tuple(
        each.__index__() for each in value
    )  # fmt: skip


def spread(name: str, given: tuple[Any, ...]) -> tuple[int, ...]:
    """Ints given as arguments, or as one sequence."""
    if len(given) == 1 and isinstance(given[0], (tuple, list)):
        given = tuple(given[0])
    try:
        return tuple(each.__index__() for each in given)
    except (AttributeError, TypeError):
        wrong = next(each for each in given if not hasattr(each, "__index__"))
        raise TypeError(
            f"{name}(): argument 'size' (position 1) must be tuple of ints, but found element of type "
            f"{type(wrong).__name__} at pos {given.index(wrong)}"
        ) from None


# -- view and its kin ------------------------------------------------------------------------------------------------


def resolved(shape: Sequence[int], size: Sequence[int]) -> tuple[int, ...]:
    """``size`` with its -1 replaced by what a tensor of ``shape`` has left for it."""
    total = math.prod(shape)
    if any(each < -1 for each in size):
        raise RuntimeError(f"invalid shape dimension {next(each for each in size if each < -1)}")
    if -1 not in size:
        if math.prod(size) != total:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {total}")
        return tuple(size)
    if list(size).count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    rest = math.prod(each for each in size if each != -1)
    if rest == 0 and total == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(size)} because the unspecified dimension size -1 can "
            "be any value and is ambiguous"
        )
    if rest == 0 or total % rest:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {total}")
    return tuple(total // rest if each == -1 else each for each in size)


@_view("view", "ViewBackward0")
def view_block(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """The same elements in another shape, sharing their memory."""
    target = resolved(self.shape, size)
    if self.flags.c_contiguous:
        return self.reshape(target)
    strides = view_strides(self.shape, self.strides, target)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return _as_strided_of(np)(self, target, strides)


view_block.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


def view_strides(shape: Sequence[int], strides: Sequence[int], size: Sequence[int]) -> tuple[int, ...] | None:
    """The strides with which ``size`` shows the same memory in the same order; None if there are none."""
    if math.prod(shape) == 0:
        step, found = 1, []
        for each in reversed(size):
            found.append(step)
            step *= max(each, 1)
        return tuple(reversed(found))
    result = [0] * len(size)
    at = len(size) - 1
    chunk_step = strides[-1] if strides else 1
    old = new = 1
    for i in range(len(shape) - 1, -1, -1):
        old *= shape[i]
        # A chunk ends where the next dimension outwards does not continue it without a gap.
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != old * chunk_step):
            while at >= 0 and (new < old or size[at] == 1):
                result[at] = new * chunk_step
                new *= size[at]
                at -= 1
            if new != old:
                return None
            if i > 0:
                chunk_step, old, new = strides[i - 1], 1, 1
    return None if at != -1 else tuple(result)


@_view("reshape_alias", "ReshapeAliasBackward0")
def reshape_alias(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """What ``view`` gives, of a tensor that is not contiguous."""
    return view_block.op.kernel(np, self, size)


reshape_alias.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@surface(function=False)
def view(input: Tensor, *size: Any, dtype: Any = None) -> Tensor:
    """The same memory in another shape (one size may be -1), or read as another dtype."""
    if size and isinstance(size[0], dtypes.dtype):
        return _view_dtype(input, size[0])
    if dtype is not None:
        return _view_dtype(input, dtype)
    return view_block(input, spread("view", size))


def _view_dtype(input: Tensor, target: Any) -> Tensor:
    if input.dtype is target:
        return alias(input)
    have, want = input._array.itemsize, target.itemsize
    if have != want and input.dim() == 0:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {dtypes.scalar_name(input.dtype)} as {dtypes.scalar_name(target)} "
            "(different element sizes)"
        )
    if want > have and input._array.shape[-1] % (want // have):
        raise RuntimeError(
            f"self.size(-1) must be divisible by {want // have} to view {dtypes.scalar_name(input.dtype)} as "
            f"{dtypes.scalar_name(target)} (different element sizes), but got {input._array.shape[-1]}"
        )
    return view_dtype(input, target.numpy)


@op(view=True, name="view_dtype", function=False, method=False)
def view_dtype(np: Any, self: Any, /, target: Any) -> Any:
    """The same memory read as elements of another dtype."""
    return self.view(target)


@surface(function=False)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """The same memory in the shape of ``other``."""
    return view_block(input, other._array.shape)


@op(name="reshape_copy", backward="UnsafeViewBackward0", function=False, method=False, linear=True)
def reshape_copy(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """The same elements in another shape, in memory of their own."""
    return self.reshape(size)


reshape_copy.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@surface()
def reshape(input: Tensor, *shape: Any, **kwargs: Any) -> Tensor:
    """The same elements in another shape: a view where strides allow, else a copy."""
    given = shape or (kwargs["shape"],)
    size = resolved(input._array.shape, spread("reshape", given))
    array = input._array
    if array.flags.c_contiguous:
        return view_block(input, size)
    if view_strides(array.shape, array.strides, size) is not None:
        return reshape_alias(input, size)
    return unsafe_view(clone(input, memory_format=_contiguous()), size)


def _contiguous() -> Any:
    return contiguous_format


@op(name="unsafe_view", backward="UnsafeViewBackward0", function=False, method=False, linear=True)
def unsafe_view(np: Any, self: Any, /, size: tuple[int, ...]) -> Any:
    """The elements of a tensor that nobody else holds, in another shape."""
    return self.reshape(size)


unsafe_view.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


def _reshape_array(array: Any, size: Any) -> Any:
    return array.reshape(size)


ARRAYS.__dict__["reshape"], TENSORS.__dict__["reshape"] = _reshape_array, reshape


@surface(function=False)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """The same elements in the shape of ``other``."""
    return reshape(input, other._array.shape)


@surface()
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions ``start_dim`` to ``end_dim`` made one."""
    shape = input._array.shape
    first, last = dimension(start_dim, len(shape)), dimension(end_dim, len(shape))
    if first > last:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    if not shape:
        return reshape(input, (1,))
    if first == last:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@surface()
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view if they are contiguous."""
    return reshape(input.contiguous(), (-1,))


@surface()
def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Dimension ``dim`` made several, of ``sizes`` (one may be -1)."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("unflatten got an unexpected error:\nDimension specified as 0 but tensor has no dimensions")
    at = dimension(dim, len(shape))
    sizes = tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod(each for each in sizes if each != -1)
    if known != shape[at] if -1 not in sizes else known == 0 or shape[at] % known:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[at]}) in the "
            "input tensor"
        )
    return view(input, (*shape[:at], *resolved((shape[at],), sizes), *shape[at + 1 :]))


@_view("alias", "AliasBackward0")
def alias(np: Any, self: Any, /) -> Any:
    """A view of the whole tensor."""
    return self.view()


alias.derivative(self=lambda F, g: g)


# -- Dimensions of size one ------------------------------------------------------------------------------------------


@_view("unsqueeze", "UnsqueezeBackward0")
def unsqueeze_block(np: Any, self: Any, /, dim: int) -> Any:
    """A new dimension of size 1 in front of dimension ``dim``."""
    return np.expand_dims(self, dim)


unsqueeze_block.derivative(self=lambda F, g, dim: F.squeeze_dim(g, dim))


@surface()
def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """A new dimension of size 1 at ``dim``."""
    return unsqueeze_block(input, dimension(dim, input._array.ndim + 1))


@_view("squeeze_all", "SqueezeBackward0")
def squeeze_all(np: Any, self: Any, /) -> Any:
    """Without the dimensions of size 1."""
    return self.reshape(tuple(size for size in self.shape if size != 1)) if self.flags.c_contiguous else self.squeeze()


squeeze_all.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@_view("squeeze_dim", "SqueezeBackward1")
def squeeze_dim(np: Any, self: Any, /, dim: int) -> Any:
    """Without dimension ``dim`` if its size is 1."""
    return self.squeeze(dim) if self.ndim and self.shape[dim] == 1 else self.view()


squeeze_dim.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@_view("squeeze_dims", "SqueezeBackward2")
def squeeze_dims(np: Any, self: Any, /, dims: tuple[int, ...]) -> Any:
    """Without those of ``dims`` whose size is 1."""
    return self.squeeze(tuple(dim for dim in dims if self.shape[dim] == 1))


squeeze_dims.derivative(self=lambda F, g, self_shape: F.reshape(g, self_shape))


@surface()
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Without the dimensions of size 1: all of them, or those of ``dim`` (an int or several)."""
    if dim is None:
        return squeeze_all(input)
    if isinstance(dim, (tuple, list)):
        return squeeze_dims(input, tuple(dimension(each, input._array.ndim) for each in dim))
    return squeeze_dim(input, dimension(dim, input._array.ndim))


# -- Stretching ------------------------------------------------------------------------------------------------------


@surface(function=False, name="expand")
def expand_method(input: Tensor, *size: Any, implicit: bool = False) -> Tensor:
    """Dimensions of size 1 stretched to ``size`` (-1: as it is), new ones in front, without copying."""
    return expand(input, spread("expand", size))


@surface(function=False)
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Stretched to the shape of ``other``."""
    return expand(input, other._array.shape)


@surface()
def broadcast_to(input: Tensor, size: Any) -> Tensor:
    """Stretched to ``size``."""
    return expand(input, spread("broadcast_to", (size,)))


@surface(method=False)
def broadcast_shapes(*shapes: Any) -> Any:
    """The shape to which shapes broadcast together."""
    merged: tuple[int, ...] = ()
    for shape in shapes:
        each = (shape,) if isinstance(shape, int) else tuple(shape)
        if mismatch(merged, each) is not None:
            raise RuntimeError("Shape mismatch: objects cannot be broadcast to a single shape")
        longest = max(len(merged), len(each))
        left, right = (1,) * (longest - len(merged)) + merged, (1,) * (longest - len(each)) + each
        merged = tuple(b if a == 1 else a for a, b in zip(left, right, strict=True))
    return Size(merged)


@surface(method=False)
def broadcast_tensors(*tensors: Any) -> tuple[Tensor, ...]:
    """The tensors stretched to a common shape."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tuple(tensors[0])
    error = broadcast_error(tensors)
    if error is not None:
        raise error
    shape = broadcast_shapes(*(each._array.shape for each in tensors))
    return tuple(each if each._array.shape == shape else expand(each, shape) for each in tensors)


# -- Permuting -------------------------------------------------------------------------------------------------------


@_view("transpose", "TransposeBackward0")
def transpose_block(np: Any, self: Any, /, dim0: int, dim1: int) -> Any:
    """Two dimensions exchanged."""
    return self.swapaxes(dim0, dim1) if self.ndim else self.view()


transpose_block.derivative(self=lambda F, g, dim0, dim1: F.transpose(g, dim0, dim1))


@surface(aliases=("swapaxes", "swapdims"))
def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged, without copying."""
    ndim = input._array.ndim
    return transpose_block(input, dimension(dim0, ndim), dimension(dim1, ndim))


@_view("t", "TBackward0")
def t_block(np: Any, self: Any, /) -> Any:
    """A matrix with rows and columns exchanged."""
    return self.T


t_block.derivative(self=lambda F, g: F.t(g))


@surface()
def t(input: Tensor) -> Tensor:
    """A matrix with rows and columns exchanged; a tensor of fewer dimensions as it is."""
    if input._array.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
    return t_block(input)


@_view("permute", "PermuteBackward0")
def permute_block(np: Any, self: Any, /, dims: tuple[int, ...]) -> Any:
    """Dimensions in another order."""
    return self.transpose(dims)


permute_block.derivative(self=lambda F, g, dims: F.permute(g, _inverse(dims)))


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


@surface()
def permute(input: Tensor, *dims: Any, **kwargs: Any) -> Tensor:
    """Dimensions in the order ``dims``, without copying."""
    given = spread("permute", dims or (kwargs["dims"],))
    ndim = input._array.ndim
    if len(given) != ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {ndim} is not equal to len(dims) = {len(given)}"
        )
    order = tuple(dimension(each, ndim) for each in given)
    if len(set(order)) != ndim:
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return permute_block(input, order)


@surface(aliases=("moveaxis",))
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions ``source`` moved to ``destination``, the others in their order."""
    ndim = input._array.ndim
    sources = [dimension(each, ndim) for each in ints(source)]
    targets = [dimension(each, ndim) for each in ints(destination)]
    if len(sources) != len(targets):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({list(ints(source))} dims) should contain the same "
            f"number of dims as destination ({list(ints(destination))} dims)"
        )
    for name, given, found in (("source", source, sources), ("destination", destination, targets)):
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({list(ints(given))})")
    rest = iter(axis for axis in range(ndim) if axis not in sources)
    places = dict(zip(targets, sources, strict=True))
    order = tuple(places[axis] if axis in places else next(rest) for axis in range(ndim))
    return permute_block(input, order)


@surface(function=False, name="adjoint")
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, complex numbers conjugated."""
    if input._array.ndim < 2:
        raise RuntimeError(
            f"tensor.mH is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor."
        )
    result = transpose(input, -2, -1)
    return result.conj() if input.is_complex() else result


def _turned(self: Tensor) -> Tensor:
    ndim = self._array.ndim
    return permute_block(self, tuple(range(ndim - 1, -1, -1))) if ndim != 2 else _numpy_t(self)


def _numpy_t(self: Tensor) -> Tensor:
    return permute_block(self, (1, 0))


def _matrix_turned(self: Tensor) -> Tensor:
    if self._array.ndim == 0:
        return self
    if self._array.ndim < 2:
        raise RuntimeError(
            f"tensor.mT is only supported on matrices or batches of matrices. Got {self._array.ndim}-D tensor."
        )
    return transpose(self, -2, -1)


def _h(self: Tensor) -> Tensor:
    if self._array.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._array.ndim}-D tensor.")
    return self if self._array.ndim == 0 else adjoint(self)


PROPERTIES = {
    "T": property(_turned, doc="Dimensions in reverse order."),
    "mT": property(_matrix_turned, doc="The last two dimensions exchanged."),
    "H": property(_h, doc="A matrix transposed and conjugated."),
    "mH": property(adjoint, doc="The last two dimensions exchanged, conjugated."),
}


# -- Selecting -------------------------------------------------------------------------------------------------------


@_view("select", "SelectBackward0", inline=("dim == 0", "self[index, ...]"))
def select_block(np: Any, self: Any, /, dim: int, index: int) -> Any:
    """The slice at ``index`` of dimension ``dim``."""
    return self[index, ...] if dim == 0 else self[(slice(None),) * dim + (index, ...)]


select_block.derivative(self=lambda F, g, self_shape, dim, index: F.select_backward(g, self_shape, dim, index))


@op(function=False, method=False, linear=True)
def select_backward(np: Any, self: Any, /, shape: tuple[int, ...], dim: int, index: int) -> Any:
    """Zeros of ``shape`` with ``self`` at ``index`` of dimension ``dim``."""
    out = np.zeros(shape, self.dtype)
    out[(slice(None),) * dim + (index,)] = self
    return out


select_backward.derivative(self=lambda F, g, dim, index: F.select(g, dim, index))


@surface()
def select(input: Tensor, dim: int, index: int) -> Tensor:
    """The slice at ``index`` of dimension ``dim``, without that dimension."""
    shape = input._array.shape
    if not shape:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    at, where = dimension(dim, len(shape)), index.__index__()
    if not -shape[at] <= where < shape[at]:
        raise IndexError(f"select(): index {where} out of range for tensor of size {list(shape)} at dimension {at}")
    return select_block(input, at, where)


@_view("slice", "SliceBackward0")
def slice_block(np: Any, self: Any, /, dim: int, start: Any, end: Any, step: int) -> Any:
    """Every ``step``-th element of dimension ``dim`` from ``start`` to below ``end``."""
    return self[(slice(None),) * dim + (slice(start, end, step),)]


slice_block.derivative(
    self=lambda F, g, self_shape, dim, start, end, step: F.slice_backward(g, self_shape, dim, start, end, step)
)


@op(function=False, method=False, linear=True)
def slice_backward(np: Any, self: Any, /, shape: tuple[int, ...], dim: int, start: Any, end: Any, step: int) -> Any:
    """Zeros of ``shape`` with ``self`` in the slice of dimension ``dim``."""
    out = np.zeros(shape, self.dtype)
    out[(slice(None),) * dim + (slice(start, end, step),)] = self
    return out


slice_backward.derivative(self=lambda F, g, dim, start, end, step: F.slice(g, dim, start, end, step))


@surface()
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """``length`` elements of dimension ``dim`` from ``start`` on."""
    shape = input._array.shape
    if not shape:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    at, begin = dimension(dim, len(shape)), start.__index__()
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if not -shape[at] <= begin <= shape[at]:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-shape[at]}, {shape[at]}], but got {begin})"
        )
    begin = begin + shape[at] if begin < 0 else begin
    if begin + length > shape[at]:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({shape[at]}).")
    return slice_block(input, at, begin, begin + length, 1)


@_view("unbind", "UnbindBackward0", several=True)
def unbind_block(np: Any, self: Any, /, dim: int) -> Any:
    """The slices along dimension ``dim``."""
    return tuple(self[(slice(None),) * dim + (i, ...)] for i in range(self.shape[dim]))


def _unbind_rule(F: Any, g: Any, self_shape: Any, self_dtype: Any, dim: int) -> Any:
    return F.stack_or_zeros(g, _without(self_shape, dim), self_dtype, dim)


def _without(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    return shape[:dim] + shape[dim + 1 :]


unbind_block.derivative(self=_unbind_rule)


@surface()
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The slices along dimension ``dim``, as a tuple of views."""
    if input._array.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return unbind_block(input, dimension(dim, input._array.ndim))


@_view("split_sizes", "SplitWithSizesBackward0", several=True)
def split_sizes(np: Any, self: Any, /, sizes: tuple[int, ...], dim: int) -> Any:
    """Consecutive pieces of ``sizes`` along dimension ``dim``."""
    return _pieces(self, sizes, dim)


@_view("split_even", "SplitBackward0", several=True)
def split_even(np: Any, self: Any, /, sizes: tuple[int, ...], dim: int) -> Any:
    """As ``split_sizes``, of pieces of one size but for the last."""
    return _pieces(self, sizes, dim)


def _pieces(array: Any, sizes: tuple[int, ...], dim: int) -> tuple[Any, ...]:
    found, at = [], 0
    for size in sizes:
        found.append(array[(slice(None),) * dim + (slice(at, at + size),)])
        at += size
    return tuple(found)


def _split_rule(F: Any, g: Any, self_shape: Any, self_dtype: Any, sizes: Any, dim: int) -> Any:
    shapes = tuple((*self_shape[:dim], size, *self_shape[dim + 1 :]) for size in sizes)
    return F.cat_or_zeros(g, shapes, self_dtype, dim)


split_sizes.derivative(self=_split_rule)
split_even.derivative(self=_split_rule)


@surface()
def split_with_sizes(input: Tensor, split_sizes: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Consecutive pieces of the given sizes along dimension ``dim``."""
    _refuse_scalar(input)
    at = dimension(dim, input._array.ndim)
    sizes = tuple(split_sizes)
    if sum(sizes) != input._array.shape[at] or any(each < 0 for each in sizes):
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {input._array.shape[at]} (input tensor's size at "
            f"dimension {dim}), but got split_sizes={list(sizes)}"
        )
    return split_sizes_call(input, sizes, at)


split_sizes_call: Any = split_sizes


@surface(aliases=("unsafe_split",))
def split(input: Tensor, split_size_or_sections: Any, dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller), or of the sizes in a list, along dimension ``dim``."""
    if not isinstance(split_size_or_sections, int):
        return split_with_sizes(input, split_size_or_sections, dim)
    _refuse_scalar(input)
    at, size = dimension(dim, input._array.ndim), split_size_or_sections
    whole = input._array.shape[at]
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and whole:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {whole}")
    return split_even(input, _even_sizes(whole, size), at)


def _refuse_scalar(input: Tensor) -> None:
    if input._array.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")


def _even_sizes(whole: int, size: int) -> tuple[int, ...]:
    count = max(1, -(-whole // size)) if size else 1
    return tuple(min(size, whole - i * size) for i in range(count))


@surface(aliases=("unsafe_chunk",))
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most ``chunks`` pieces of equal size (the last may be smaller) along dimension ``dim``."""
    if input._array.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    at = dimension(dim, input._array.ndim)
    whole = input._array.shape[at]
    size = -(-whole // chunks)
    if size == 0:
        return split_sizes_call(input, (0,) * chunks, at)
    return split_even(input, _even_sizes(whole, size), at)


@surface()
def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0, **kwargs: Any) -> tuple[Tensor, ...]:
    """Pieces along dimension ``dim``: so many of nearly one size, or cut at the given indices."""
    if input._array.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    at = dimension(dim, input._array.ndim)
    whole = input._array.shape[at]
    given = indices_or_sections
    if isinstance(given, Tensor):
        given = given.tolist()
    if isinstance(given, int):
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        small, larger = divmod(whole, given)
        cuts = [0]
        for i in range(given):
            cuts.append(cuts[-1] + small + (i < larger))
    else:
        cuts = [0, *given, whole]
    return tuple(slice_block(input, at, *_bounds(a, b, whole), 1) for a, b in itertools.pairwise(cuts))


def _bounds(start: int, end: int, whole: int) -> tuple[int, int]:
    first, last, _ = slice(start, end).indices(whole)
    return first, max(first, last)


def _split_along(name: str, dim: int, least: int) -> None:
    def split_along(input: Tensor, indices_or_sections: Any) -> tuple[Tensor, ...]:
        if input._array.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension{'s' if least > 1 else ''}, but got a "
                f"tensor with {input._array.ndim} dimensions!"
            )
        at = 0 if name == "hsplit" and input._array.ndim == 1 else dim
        if isinstance(indices_or_sections, int) and input._array.shape[at] % indices_or_sections:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {at}, but the size of the dimension "
                f"{input._array.shape[at]} is not divisible by the split_size {indices_or_sections}!"
            )
        return tensor_split(input, indices_or_sections, at)

    split_along.__name__ = split_along.__qualname__ = name
    split_along.__doc__ = f"Pieces along dimension {dim} (see :func:`tensor_split`)."
    surface(name=name)(split_along)


for _name, _dim, _least in (("hsplit", 1, 1), ("vsplit", 0, 2), ("dsplit", 2, 3)):
    _split_along(_name, _dim, _least)


# -- Diagonals and triangles -----------------------------------------------------------------------------------------


@_view("diagonal", "DiagonalBackward0")
def diagonal_block(np: Any, self: Any, /, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of the matrices in two dimensions, as the last dimension."""
    return _writable_diagonal(np, self, offset, dim1, dim2)


diagonal_block.derivative(
    self=lambda F, g, self_shape, offset, dim1, dim2: F.diagonal_backward(g, self_shape, offset, dim1, dim2)
)


def _writable_diagonal(np: Any, array: Any, offset: int, dim1: int, dim2: int) -> Any:
    found = np.diagonal(array, offset, dim1, dim2)
    if np.__name__ == "numpy":
        found.flags.writeable = True
    return found


@op(function=False, method=False, linear=True)
def diagonal_backward(np: Any, self: Any, /, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    """Zeros of ``shape`` with ``self`` on the diagonal."""
    out = np.zeros(shape, self.dtype)
    _writable_diagonal(np, out, offset, dim1, dim2)[...] = self
    return out


diagonal_backward.derivative(self=lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2))


@surface()
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of the matrices in dimensions ``dim1`` and ``dim2``, as the last dimension of a view."""
    ndim = input._array.ndim
    first, second = dimension(dim1, ndim), dimension(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diagonal_block(input, offset, first, second)


@surface()
def diag(input: Tensor, diagonal: int = 0, *, out: Any = None) -> Tensor:
    """Of a vector the matrix with it on a diagonal; of a matrix that diagonal, as a copy."""
    ndim = input._array.ndim
    if ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {ndim}D")
    result = diag_embed(input, diagonal) if ndim == 1 else diagonal_copy(input, diagonal, 0, 1)
    if out is not None:
        write_array(out, result._array)
        return out
    return result


@op(backward="DiagonalBackward0_copy", function=False, method=False, linear=True)
def diagonal_copy(np: Any, self: Any, /, offset: int, dim1: int, dim2: int) -> Any:
    """The diagonal of matrices, in memory of its own."""
    return np.diagonal(self, offset, dim1, dim2).copy()


diagonal_copy.derivative(
    self=lambda F, g, self_shape, offset, dim1, dim2: F.diagonal_backward(g, self_shape, offset, dim1, dim2)
)


@op(name="diag_embed_block", backward="DiagEmbedBackward0", function=False, method=False, linear=True)
def diag_embed_block(np: Any, self: Any, /, offset: int, dim1: int, dim2: int) -> Any:
    """Matrices with the last dimension of ``self`` on a diagonal."""
    size = self.shape[-1] + abs(offset)
    ndim = self.ndim + 1
    shape = list(self.shape[:-1])
    for axis in sorted((dim1, dim2)):
        shape.insert(axis, size)
    assert len(shape) == ndim
    out = np.zeros(tuple(shape), self.dtype)
    _writable_diagonal(np, out, offset, dim1, dim2)[...] = self
    return out


diag_embed_block.derivative(self=lambda F, g, offset, dim1, dim2: F.diagonal(g, offset, dim1, dim2))


@surface()
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Matrices in dimensions ``dim1`` and ``dim2`` with the last dimension of ``input`` on a diagonal."""
    ndim = input._array.ndim + 1
    first, second = dimension(dim1, ndim), dimension(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return diag_embed_block(input, offset, first, second)


@surface()
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of ``input`` on a diagonal."""
    return diag(reshape(input.contiguous(), (-1,)), offset)


def _triangle(name: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /, diagonal: int = 0) -> Any:
        if self.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        return getattr(np, name)(self, diagonal)

    kernel.__name__ = name
    kernel.__doc__ = doc
    made = op(linear=True, in_place=True)(kernel)
    made.derivative(self=_tril_rule if name == "tril" else _triu_rule)
    return made


def _tril_rule(F: Any, g: Any, diagonal: int) -> Any:
    return F.tril(g, diagonal)


def _triu_rule(F: Any, g: Any, diagonal: int) -> Any:
    return F.triu(g, diagonal)


tril = _triangle("tril", "The part of each matrix on and below a diagonal, zeros above.")
triu = _triangle("triu", "The part of each matrix on and above a diagonal, zeros below.")


def _triangle_indices(name: str, keep: Any) -> None:
    def indices(
        row: int, col: int, offset: int = 0, *, dtype: Any = None, device: Any = None, layout: Any = None
    ) -> Tensor:
        for what, size in (("row", row), ("col", col)):
            if size < 0:
                raise RuntimeError(f"{what} must be non-negative, got{size}")
        if dtype is not None and dtype.category != dtypes.INTEGER:
            raise dtypes.unsupported(name, dtype.numpy)
        rows, columns = numpy.nonzero(keep(numpy.ones((row, col), bool), offset))
        found = wrap(numpy.stack([rows, columns]).astype(numpy.int64))
        return found if dtype is None else to(found, dtype)

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = f"Rows and columns of the elements that :func:`{name[:4]}` keeps, as a 2 × n tensor."
    surface(method=False, name=name)(indices)


def _lower(matrix: Any, offset: int) -> Any:
    return numpy.tril(matrix, offset)


def _upper(matrix: Any, offset: int) -> Any:
    return numpy.triu(matrix, offset)


_triangle_indices("tril_indices", _lower)
_triangle_indices("triu_indices", _upper)


@op(name="trace", opmath=True, linear=True)
def trace(np: Any, self: Any, /) -> Any:
    """The sum of the diagonal of a matrix."""
    if self.ndim != 2:
        raise RuntimeError("trace: expected a matrix")
    return np.asarray(np.trace(self))


trace.derivative(self=lambda F, g, self_shape: F.trace_backward(g, self_shape))


@op(function=False, method=False, linear=True)
def trace_backward(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """Zeros of ``shape`` with the number ``self`` on the diagonal."""
    out = np.zeros(shape, self.dtype)
    _writable_diagonal(np, out, 0, 0, 1)[...] = self
    return out


trace_backward.derivative(self=lambda F, g: F.trace(g))


# -- Turning, rolling, windows ---------------------------------------------------------------------------------------


@op(name="flip_block", backward="FlipBackward0", function=False, method=False, linear=True)
def flip_block(np: Any, self: Any, /, dims: tuple[int, ...]) -> Any:
    """The elements in reverse order along ``dims``."""
    return np.flip(self, dims).copy() if self.ndim else self.copy()


flip_block.derivative(self=lambda F, g, dims: F.flip_block(g, dims))


@surface()
def flip(input: Tensor, *dims: Any, **kwargs: Any) -> Tensor:
    """The elements in reverse order along ``dims``, as a copy."""
    given = spread("flip", dims or (kwargs["dims"],))
    order = tuple(dimension(each, input._array.ndim) for each in given)
    if len(set(order)) != len(order):
        raise RuntimeError(
            f"dim {next(each for each in order if order.count(each) > 1)} appears multiple times in the list of dims"
        )
    return flip_block(input, order)


@surface()
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse order."""
    if input._array.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip_block(input, (1,))


@surface()
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse order."""
    if input._array.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip_block(input, (0,))


@op(name="roll_block", backward="RollBackward0", function=False, method=False, linear=True)
def roll_block(np: Any, self: Any, /, shifts: tuple[int, ...], dims: tuple[int, ...]) -> Any:
    """The elements moved on by ``shifts`` along ``dims``, those that fall off put in at the other end."""
    return np.roll(self, shifts, dims) if dims else np.roll(self, shifts[0])


roll_block.derivative(self=lambda F, g, shifts, dims: F.roll_block(g, tuple(-each for each in shifts), dims))


@surface()
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """The elements moved on by ``shifts`` along ``dims`` (without dims: all in one row), round and round."""
    steps = ints(shifts)
    axes = () if dims is None else tuple(dimension(each, input._array.ndim) for each in ints(dims))
    if len(steps) != len(axes) and not (not axes and len(steps) == 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(axes)}")
    return roll_block(input, steps, axes)


@surface()
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """Turned by 90° ``k`` times in the plane of two dimensions."""
    first, second = (dimension(each, input._array.ndim) for each in dims)
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    return rot90_block(input, k % 4, first, second)


@op(name="rot90_block", backward="Rot90Backward0", function=False, method=False, linear=True)
def rot90_block(np: Any, self: Any, /, k: int, first: int, second: int) -> Any:
    """Turned by 90° ``k`` times in a plane."""
    return np.rot90(self, k, (first, second)).copy()


rot90_block.derivative(self=lambda F, g, k, first, second: F.rot90_block(g, -k % 4, first, second))


@_view("unfold", "UnfoldBackward0")
def unfold_block(np: Any, self: Any, /, dim: int, size: int, step: int) -> Any:
    """Windows of ``size`` along dimension ``dim``, ``step`` apart, as a new last dimension."""
    if self.ndim == 0:
        return self.reshape(1)[:size]
    count = (self.shape[dim] - size) // step + 1
    shape = (*self.shape[:dim], count, *self.shape[dim + 1 :], size)
    strides = (*self.strides[:dim], self.strides[dim] * step, *self.strides[dim + 1 :], self.strides[dim])
    return _as_strided_of(np)(self, shape, strides)


unfold_block.derivative(
    self=lambda F, g, self_shape, dim, size, step: F.unfold_backward(g, self_shape, dim, size, step)
)


@op(function=False, method=False, linear=True)
def unfold_backward(np: Any, self: Any, /, shape: tuple[int, ...], dim: int, size: int, step: int) -> Any:
    """The windows added up at the places from which they were read."""
    out = np.zeros(shape, self.dtype)
    if not shape:
        return self.reshape(shape)
    count = self.shape[dim]
    for offset in range(size):
        out[(slice(None),) * dim + (slice(offset, offset + (count - 1) * step + 1, step),)] += self[..., offset]
    return out


unfold_backward.derivative(self=lambda F, g, dim, size, step: F.unfold(g, dim, size, step))


@surface(function=False)
def unfold(input: Tensor, dimension_: int = 0, size: int = 1, step: int = 1, **kwargs: int) -> Tensor:
    """Windows of ``size`` along a dimension, ``step`` apart, as a new last dimension of a view."""
    at = dimension(kwargs.get("dimension", dimension_), input._array.ndim)
    whole = input._array.shape[at] if input._array.ndim else 1
    if size > whole:
        raise RuntimeError(f"maximum size for tensor at dimension {at} is {whole} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return unfold_block(input, at, size, step)


# -- Through strides -------------------------------------------------------------------------------------------------


@_view("as_strided_block", "AsStridedBackward0")
def as_strided_block(np: Any, self: Any, /, whole: Geometry, part: Geometry) -> Any:
    """The memory of ``self`` shown by other strides."""
    memory = memory_of(self)
    flat = memory.reshape(-1) if memory.flags.c_contiguous else memory.ravel(order="K")
    if self.dtype != flat.dtype:
        flat = flat.view(self.dtype)
    return _as_strided_of(np)(flat[part.offset :], part.shape, tuple(step * self.itemsize for step in part.strides))


as_strided_block.derivative(self=lambda F, g, whole, part: F.strided_add(g, whole, part))


@surface()
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> Tensor:
    """The memory of the tensor shown with any shape and strides (in elements); a view."""
    shape, strides = ints(size), ints(stride)
    if len(shape) != len(strides):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(each < 0 for each in strides):
        raise RuntimeError(
            f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        )
    if any(each < 0 for each in shape):
        raise RuntimeError(f"Storage size calculation overflowed with sizes={list(shape)} and strides={list(strides)}")
    whole = geometry(input._array, input._array)
    offset = whole.offset if storage_offset is None else storage_offset
    reach = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if 0 not in shape else 0
    available = memory_of(input._array).nbytes // input._array.itemsize
    if reach >= max(available, 1) and 0 not in shape:
        raise RuntimeError(
            f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {offset}, and itemsize "
            f"{input._array.itemsize} requiring a storage size of {(reach + 1) * input._array.itemsize} are out of "
            f"bounds for storage of size {available * input._array.itemsize}"
        )
    return as_strided_block(input, whole, Geometry(shape, strides, offset))


# -- Complex views ---------------------------------------------------------------------------------------------------


@op(view=True, name="view_as_real", backward="ViewAsRealBackward0")
def view_as_real(np: Any, self: Any, /) -> Any:
    """A complex tensor as real numbers, real and imaginary parts in a new last dimension; a view."""
    if self.dtype.kind != "c":
        raise RuntimeError("view_as_real is only supported for complex tensors")
    part = np.dtype(np.float32 if self.dtype.itemsize == 8 else np.float64)
    return _as_strided_of(np)(self.reshape(-1)[:1].view(part) if self.flags.c_contiguous and self.size else
                              self[..., None].view(part), (*self.shape, 2), (*self.strides, part.itemsize))  # fmt: skip


view_as_real.derivative(self=lambda F, g: F.view_as_complex(g))


@op(view=True, name="view_as_complex", backward="ViewAsComplexBackward0")
def view_as_complex(np: Any, self: Any, /) -> Any:
    """Pairs of real numbers in the last dimension as complex numbers; a view."""
    if self.dtype.kind != "f":
        raise RuntimeError("view_as_complex is only supported for half, float and double tensors, but got a tensor of "
                           f"scalar type: {dtypes.scalar_name(dtypes.of(self.dtype))}")  # fmt: skip
    if self.ndim == 0 or self.shape[-1] != 2:
        raise RuntimeError("Tensor must have a last dimension of size 2")
    whole = np.ascontiguousarray(self)
    return whole.view(np.complex64 if self.dtype.itemsize == 4 else np.complex128)[..., 0]


view_as_complex.derivative(self=lambda F, g: F.view_as_real(g))


@op(name="real", backward="RealBackward0", method=False, function=False, holomorphic=False)
def real_block(np: Any, self: Any, /) -> Any:
    """The real part, in memory of its own: what the engine makes of a complex gradient for a real tensor."""
    return self.real.copy()


real_block.derivative(self=lambda F, g, self_dtype: F.complex_of(g, None, self_dtype))


@op(name="imag_of", function=False, method=False, holomorphic=False)
def imag_of(np: Any, self: Any, /) -> Any:
    """The imaginary part, in memory of its own."""
    return self.imag.copy()


imag_of.derivative(self=lambda F, g, self_dtype: F.complex_of(None, g, self_dtype))


@op(name="complex_of", function=False, method=False, holomorphic=False)
def complex_of(np: Any, re: Any, im: Any, /, dtype: Any) -> Any:
    """Complex numbers of their parts; None stands for zeros."""
    out = np.zeros((re if im is None else im).shape, dtype)
    if re is not None:
        out.real = re
    if im is not None:
        out.imag = im
    return out


complex_of.derivative(re=lambda F, g: F.real(g), im=lambda F, g: F.imag_of(g))


def _part(input: Tensor, which: int) -> Tensor:
    pairs = view_as_real(input)
    return select_block(pairs, pairs._array.ndim - 1, which)


@surface(method=False)
def real(input: Tensor) -> Tensor:
    """The real part: a view of a complex tensor, a real tensor itself."""
    return _part(input, 0) if input.is_complex() else input


@surface(method=False)
def imag(input: Tensor) -> Tensor:
    """The imaginary part of a complex tensor, as a view."""
    if not input.is_complex():
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return _part(input, 1)


def _set_real(self: Tensor, value: Any) -> None:
    real(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value).real)


def _set_imag(self: Tensor, value: Any) -> None:
    imag(self).copy_(value if isinstance(value, Tensor) else self.new_tensor(value).real)


PROPERTIES["real"] = property(real, _set_real, doc="The real part, as a view.")
PROPERTIES["imag"] = property(imag, _set_imag, doc="The imaginary part, as a view.")


@surface()
def conj(input: Tensor) -> Tensor:
    """Complex conjugate; a real tensor itself."""
    return conj_physical(input)


@surface()
def conj_physical(input: Tensor) -> Tensor:
    """Complex conjugate in memory of its own; a real tensor itself."""
    return LEVEL[Tensor].conj_physical(input) if input.is_complex() else input


@surface(aliases=("resolve_neg",))
def resolve_conj(input: Tensor) -> Tensor:
    """The tensor itself: conjugation is never put off here."""
    return input


@surface(aliases=("is_neg",))
def is_conj(input: Tensor) -> bool:
    """False: conjugation is never put off here."""
    return False


@op(name="complex_pair", backward="ComplexBackward0", function=False, method=False, holomorphic=False)
def complex_pair(np: Any, real: Any, imag: Any, /) -> Any:
    """Complex numbers of real and imaginary parts."""
    out = np.empty(
        np.broadcast_shapes(real.shape, imag.shape), np.complex64 if real.dtype == np.float32 else np.complex128
    )
    out.real, out.imag = real, imag
    return out


complex_pair.derivative(real=lambda F, g: F.real(g), imag=lambda F, g: F.imag_of(g))


@surface(method=False, name="complex")
def complex_(real: Tensor, imag: Tensor, *, out: Any = None) -> Tensor:
    """Complex numbers of real and imaginary parts."""
    check_parts("complex", ("real", "imag"), (real, imag), out)
    if real.dtype is dtypes.float16:
        raise dtypes.unsupported("complex_cpu", real.dtype.numpy)  # there is no complex32 here
    return complex_pair(real, imag, out=out)


# -- In place: the same tensor shown otherwise -----------------------------------------------------------------------


#: PyTorch's names for the nodes of the in-place forms.
_IN_PLACE = {
    "SqueezeBackward0": "SqueezeBackward3", "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5", "UnsqueezeBackward0": "UnsqueezeBackward1",
    "TransposeBackward0": "TransposeBackward1", "TBackward0": "TBackward1", "AsStridedBackward0": "AsStridedBackward1",
}  # fmt: skip
_renamed: dict[type, type] = {}


def _numbered(kind: type) -> type:
    """The node class of the in-place form of a view."""
    if kind.__name__ not in _IN_PLACE:
        return kind
    if kind not in _renamed:
        _renamed[kind] = type(_IN_PLACE[kind.__name__], (kind,), {"__slots__": (), "__module__": "builtins"})
    return _renamed[kind]


def _reshow(name: str, out_of_place: Any) -> None:
    """The in-place form of a view: the tensor itself takes the new shape and strides."""

    def in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if name == "t" and input._array.ndim > 2:
            raise RuntimeError(f"t_() expects a tensor with <= 2 dimensions, but self is {input._array.ndim}D")
        node = input._node
        check_in_place(input, input.requires_grad)
        shown = out_of_place(input, *args, **kwargs)
        made = shown._node if recording() else None
        if made is not None and made is not node:
            made.__class__ = _numbered(type(made))
        input._array = shown._array
        bump(input)
        if made is not None and made is not node:
            if input._view is None:
                input._node = made
            else:
                input._node = made
                input._view.seen = input._cell[0] if input._cell else 0
        else:
            input._renew_leaf()
        return input

    in_place.__name__ = in_place.__qualname__ = name + "_"
    in_place.__doc__ = f"In-place version of :func:`{name}`."
    surface(function=False, name=name + "_")(in_place)


for _name, _function in (
    ("transpose", transpose), ("swapaxes", transpose), ("swapdims", transpose), ("t", t), ("squeeze", squeeze),
    ("unsqueeze", unsqueeze), ("as_strided", as_strided),
):  # fmt: skip
    _reshow(_name, _function)


@surface(function=False)
def resize_(input: Tensor, *size: Any, memory_format: Any = None) -> Tensor:
    """Give the tensor another size in place: its memory is kept, and grows (with undefined elements) if need be."""
    if input.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    shape = spread("resize_", size)
    if any(each < 0 for each in shape):
        raise RuntimeError("numel: integer multiplication overflow")
    input._array = resized(input._array, shape)
    bump(input)
    return input


@surface(function=False)
def resize_as_(input: Tensor, other: Tensor, *, memory_format: Any = None) -> Tensor:
    """Give the tensor the size of ``other`` in place."""
    return resize_(input, other._array.shape)


@surface(function=False)
def set_(input: Tensor, source: Tensor | None = None, **rest: Any) -> Tensor:
    """Make the tensor share the memory, shape and strides of ``source``."""
    if source is not None and source.dtype is not input.dtype:
        raise RuntimeError(f"Could not set tensor of type {_c(source)} to a tensor of type {_c(input)}")
    recorded = input.requires_grad or (source is not None and source.requires_grad)
    check_in_place(input, recorded)
    if recorded and recording():
        raise RuntimeError("the derivative for 'set_' is not implemented")
    input._array = input._array[:0].reshape(0) if source is None else source._array
    bump(input)
    return input


def _c(x: Tensor) -> str:
    return {"float32": "float", "float64": "double", "int64": "long int", "int32": "int"}.get(
        x.dtype.name, x.dtype.name
    )
