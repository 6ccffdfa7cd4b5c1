"""Indexing and assignment, gather and scatter.

``x[index]`` is read as PyTorch reads it: integers, slices, ``...`` and ``None`` first, one after the other, each giving
a view; what tensors and lists remain then pick elements of the dimensions at which they stand.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, dimension, wrap
from ..core.views import bump, check_in_place, check_partial_overlap
from ..kernels import indexing
from .calls import at_hand, modify, write_array
from .data import array_of
from .inner import expand
from .promote import mismatch
from .shape import alias, select_block, slice_block, unsqueeze_block
from .table import ARRAYS, TENSORS, op, surface

# -- Reading an index ------------------------------------------------------------------------------------------------


def _getitem(self: Tensor, index: Any) -> Tensor:
    """``x[index]``."""
    kind = index.__class__
    if kind is int:  # the common case first
        shape = self._array.shape
        if shape:
            if -shape[0] <= index < shape[0]:
                return select_block(self, 0, index)
            raise IndexError(f"index {index} is out of bounds for dimension 0 with size {shape[0]}")
    viewed, picks = viewed_by(self, index)
    if not picks:
        if viewed is not self:
            return viewed
        return slice_block(self, 0, 0, self._array.shape[0], 1) if kind is slice else alias(self)
    return pick(viewed, picks)


def viewed_by(x: Tensor, index: Any, writing: bool = False) -> tuple[Tensor, list[Any]]:
    """The view that the basic parts of ``index`` make of ``x``, and for its dimensions the tensors that pick (or None)."""
    items = _items(index)
    if sum(each is Ellipsis for each in items) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    used = sum(_takes(each) for each in items)
    if Ellipsis in [each for each in items if each.__class__ is type(...)]:
        at = next(i for i, each in enumerate(items) if each is Ellipsis)
        fill = x._array.ndim - used
        items = [*items[:at], *([slice(None)] * max(fill, 0)), *(e for e in items[at + 1 :] if e is not Ellipsis)]
    if used == 1 and x._array.ndim == 0 and not isinstance(index, tuple):
        _refuse_number(items[0])
    if used > x._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {x._array.ndim}")
    dim = at_source = 0
    picks: list[Any] = []
    for item in items:
        if item is None:
            x = unsqueeze_block(x, dim)
            picks.append(None)
            dim += 1
        elif item.__class__ is bool:
            x = unsqueeze_block(x, dim)
            picks.append(wrap(numpy.asarray([0] if item else [], dtype=numpy.int64)))
            dim += 1
        elif item.__class__ is int:
            size = x._array.shape[dim]
            if not -size <= item < size:
                raise IndexError(f"index {item} is out of bounds for dimension {at_source} with size {size}")
            x = select_block(x, dim, item)
            at_source += 1
        elif item.__class__ is slice:
            if not (item.start is None and item.stop is None and item.step is None):
                bounds = _bounds(item, x._array.shape[dim])
                # What is written to all of a dimension is written to the tensor itself.
                if not (writing and item.start in (None, 0) and bounds == (0, x._array.shape[dim], 1)):
                    x = slice_block(x, dim, *bounds)
            picks.append(None)
            dim += 1
            at_source += 1
        else:
            found = _as_picks(item, x._array.shape[dim:], at_source)
            picks.extend(found)
            dim += len(found)
            at_source += len(found)
    return x, picks if any(each is not None for each in picks) else []


def _refuse_number(item: Any) -> None:
    """Refuse to index a 0-d tensor by one number or slice."""
    if item.__class__ is slice:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if item.__class__ is int and item != 0:
        raise IndexError(f"index {item} is out of bounds for dimension 0 with size 0")
    if item.__class__ is int:
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )


def _items(index: Any) -> list[Any]:
    """The parts of an index, each an int, slice, None, Ellipsis, bool, or a Tensor that picks."""
    if index.__class__ is tuple or (isinstance(index, list) and _treat_as_tuple(index)):
        parts = list(index)
    else:
        parts = [index]
    return [_part(each) for each in parts]


def _treat_as_tuple(index: list[Any]) -> bool:
    """Whether a list is an old way to write a tuple: if it holds slices, Ellipsis or None."""
    return any(each is None or each is Ellipsis or isinstance(each, slice) for each in index)


def _part(item: Any) -> Any:
    kind = item.__class__
    if kind is int or kind is slice or item is None or item is Ellipsis or kind is bool:
        return _checked(item) if kind is slice else item
    if isinstance(item, Tensor):
        if item._array.ndim == 0 and item._array.dtype.kind in "iu" and item.dtype is not dtypes.uint8:
            return int(item._array)
        return bool(item._array) if item._array.ndim == 0 and item.dtype is dtypes.bool_ else item
    if isinstance(item, numpy.bool_):
        return bool(item)
    if isinstance(item, numpy.ndarray) and (item.ndim or item.dtype == bool):
        return wrap(item)
    if isinstance(item, (list, tuple, range)):
        return wrap(_array_of_list(item))
    if hasattr(item, "__index__"):
        return item.__index__()
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{type(item).__name__})"
    )


def _array_of_list(item: Any) -> Any:
    items = list(item)
    array = array_of(items, None)
    return array.astype(numpy.int64) if array.size == 0 else array


def _checked(item: slice) -> slice:
    step = item.step
    if step is not None and step.__index__() <= 0:
        raise ValueError("step must be greater than zero")
    return item


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    first, last, step = slice(
        *(None if each is None else each.__index__() for each in (item.start, item.stop, item.step))
    ).indices(size)
    return first, max(first, last), step


def _takes(item: Any) -> int:
    """How many dimensions a part of an index uses up."""
    if item is None or item is Ellipsis or item.__class__ is bool:
        return 0
    if isinstance(item, Tensor) and item.dtype in (dtypes.bool_, dtypes.uint8):
        return item._array.ndim
    return 1


def _as_picks(item: Tensor, shape: tuple[int, ...], at: int) -> list[Any]:
    """A picking tensor as integer tensors, one a dimension: a mask becomes the places where it is true."""
    if item.dtype in (dtypes.bool_, dtypes.uint8):
        if item.dtype is dtypes.uint8:
            warnings.warn(
                "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
                UserWarning,
                stacklevel=5,
            )
        mask = item._array
        for axis, (have, want) in enumerate(zip(mask.shape, shape, strict=False)):
            if have != want:
                raise IndexError(
                    f"The shape of the mask {list(mask.shape)} at index {axis} does not match the shape of the indexed "
                    f"tensor {list(shape)} at index {axis}"
                )
        return [wrap(each) for each in numpy.nonzero(mask)]
    if item._array.dtype.kind not in "iu":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return [item]


# -- Picking elements ------------------------------------------------------------------------------------------------


@op(name="index_block", backward="IndexBackward0", function=False, method=False, linear=True)
def index_block(np: Any, self: Any, /, picks: tuple[Any, ...]) -> Any:
    """The elements at the places that integer arrays give, one a dimension (None: all of it)."""
    return indexing.take(np, self, picks)


index_block.derivative(self=lambda F, g, self_shape, picks: F.index_backward(g, self_shape, picks))


@op(function=False, method=False, linear=True)
def index_backward(np: Any, self: Any, /, shape: tuple[int, ...], picks: tuple[Any, ...]) -> Any:
    """Zeros of ``shape`` to which ``self`` is added at the places that were read."""
    return indexing.add(np, np.zeros(shape, self.dtype), picks, self)


index_backward.derivative(self=lambda F, g, picks: F.index_block(g, picks))


def pick(x: Tensor, picks: list[Any]) -> Tensor:
    """The elements of ``x`` at picked places."""
    return index_block(x, _arrays(x, picks))


def _arrays(x: Tensor, picks: list[Any]) -> tuple[Any, ...]:
    """The picks as arrays of one shape, non-negative and checked."""
    found = [None if each is None else each._array for each in picks]
    try:
        shape = numpy.broadcast_shapes(*(each.shape for each in found if each is not None))
    except ValueError:
        shown = ", ".join(str(list(each.shape)) for each in found if each is not None)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        ) from None
    # Nothing is picked if any dimension of the result is empty; then PyTorch does not look at the indices.
    whole = [size for dim, size in enumerate(x._array.shape) if dim >= len(found) or found[dim] is None]
    nothing = 0 in shape or 0 in whole
    result: list[Any] = []
    for dim, each in enumerate(found):
        if each is None:
            result.append(None)
            continue
        size = x._array.shape[dim]
        each = each.astype(numpy.int64, copy=False)
        if each.size and (int(each.max()) >= size or int(each.min()) < -size):
            if nothing:
                each = numpy.zeros_like(each) if size else each[:0]
            else:
                bad = int(each[(each >= size) | (each < -size)].reshape(-1)[0])
                raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
        result.append(numpy.where(each < 0, each + size, each))
    return tuple(result)


# -- Assignment ------------------------------------------------------------------------------------------------------


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    """``x[index] = value``."""
    if index is False:
        return
    viewed, picks = viewed_by(self, index, writing=True)
    if not picks:
        if not isinstance(value, Tensor):
            fill_(viewed, wrap(numpy.asarray(_number(value, self)).astype(self._array.dtype)))
            return
        if value._array.ndim == 0 and value.dtype is self.dtype:
            fill_(viewed, value)
            return
        _copy_into(viewed, value)
        return
    source = value if isinstance(value, Tensor) else wrap(numpy.asarray(_number(value, self)).astype(self._array.dtype))
    where = _arrays(viewed, picks)
    shape = indexing.result_shape(viewed._array.shape, where)
    source = _fitted(source, shape, self)
    modify(index_put_block.op, (viewed, source), (where, False))


def _number(value: Any, x: Tensor) -> Any:
    if isinstance(value, (bool, int, float, complex)):
        return value
    if isinstance(value, numpy.generic):
        return value.item()
    if isinstance(value, numpy.ndarray) and value.ndim == 0:
        return value.item()
    kind = f"numpy.{type(value).__name__}" if isinstance(value, numpy.ndarray) else type(value).__name__
    raise TypeError(f"can't assign a {kind} to a torch.{dtypes.scalar_name(x.dtype)}Tensor")


def _copy_into(target: Tensor, value: Tensor) -> None:
    """``copy_`` after the leading dimensions of size 1 that the target lacks are dropped from the value."""
    source = value
    while source._array.ndim > target._array.ndim and source._array.shape[0] == 1:
        source = source.squeeze(0)
    if source._array.ndim > target._array.ndim:
        name = f"{dtypes.scalar_name(source.dtype)}Tensor"
        raise RuntimeError(
            f"expand(torch.{name}{{{list(source._array.shape)}}}, size={list(target._array.shape)}): the number of sizes "
            f"provided ({target._array.ndim}) must be greater or equal to the number of dimensions in the tensor "
            f"({source._array.ndim})"
        )
    _check_expands(source._array.shape, target._array.shape)
    copy_(target, source)


def _check_expands(have: tuple[int, ...], want: tuple[int, ...]) -> None:
    """Refuse to assign what can not be stretched to the place assigned to."""
    for back in range(1, min(len(have), len(want)) + 1):
        if have[-back] not in (1, want[-back]):
            raise RuntimeError(
                f"The expanded size of the tensor ({want[-back]}) must match the existing size ({have[-back]}) at "
                f"non-singleton dimension {len(want) - back}.  Target sizes: {list(want)}.  Tensor sizes: {list(have)}"
            )


def _fitted(source: Tensor, shape: tuple[int, ...], x: Tensor) -> Tensor:
    if source.dtype is not x.dtype and source._array.ndim:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {dtypes.scalar_name(x.dtype)} for the "
            f"destination and {dtypes.scalar_name(source.dtype)} for the source."
        )
    if source.dtype is not x.dtype:
        source = source.to(x.dtype)
    while source._array.ndim > len(shape) and source._array.shape[0] == 1:
        source = source.squeeze(0)
    try:
        fits = numpy.broadcast_shapes(source._array.shape, shape) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(source._array.shape)} cannot be broadcast to indexing result "
            f"of shape {list(shape)}"
        )
    return expand(source, shape) if source._array.shape != tuple(shape) else source


@op(name="index_put_block", backward="IndexPutBackward0", function=False, method=False, linear=True)
def index_put_block(np: Any, self: Any, values: Any, /, picks: tuple[Any, ...], accumulate: bool) -> Any:
    """``self`` with ``values`` put (or added) at picked places."""
    out = self.copy()
    if accumulate:
        return indexing.add(np, out, picks, values)
    return indexing.put(np, out, picks, values)


def _put_self_rule(F: Any, g: Any, picks: Any, accumulate: bool) -> Any:
    return g if accumulate else F.index_fill_zero(g, picks)


index_put_block.derivative(self=_put_self_rule, values=lambda F, g, picks: F.index_block(g, picks))


@op(function=False, method=False, linear=True)
def index_fill_zero(np: Any, self: Any, /, picks: tuple[Any, ...]) -> Any:
    """``self`` with zeros at picked places."""
    return indexing.put(np, self.copy(), picks, np.zeros((), self.dtype))


index_fill_zero.derivative(self=lambda F, g, picks: F.index_fill_zero(g, picks))


def _put_arguments(input: Tensor, indices: Any, values: Tensor) -> tuple[Tensor, tuple[Any, ...], Tensor]:
    picks: list[Any] = []
    for each in indices:
        if each is None:
            picks.append(None)
        else:
            picks.extend(_as_picks(each, input._array.shape[len(picks) :], len(picks)))
    where = _arrays(input, picks)
    shape = indexing.result_shape(input._array.shape, where)
    return input, where, _fitted(values, shape, input)


@surface()
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with ``values`` put (or added) at the places that ``indices`` (a tuple of tensors) give."""
    _, where, source = _put_arguments(input, indices, values)
    return index_put_block(input, source, where, accumulate)


@surface()
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of :func:`index_put`."""
    _, where, source = _put_arguments(input, indices, values)
    return modify(index_put_block.op, (input, source), (where, accumulate))


# -- Overwriting -----------------------------------------------------------------------------------------------------


@op(name="copy_block", backward="CopyBackwards", function=False, method=False, linear=True)
def copy_block(np: Any, self: Any, src: Any, /) -> Any:
    """``src``, in the shape and dtype of ``self``."""
    if src.dtype.kind == "c" and self.dtype.kind != "c":
        src = src.real
    return np.broadcast_to(src.astype(self.dtype, copy=False), self.shape)


copy_block.derivative(self=lambda F, g: F.zeros_as(g), src=lambda F, g: g)


@surface(function=False)
def copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite with the elements of ``src``, broadcast and converted."""
    if not isinstance(src, Tensor):
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
    if src._array.shape != input._array.shape:
        check_in_place(input, input.requires_grad or src.requires_grad)
        check_partial_overlap(input, (src,))
        _check_fits(input._array.shape, src._array.shape)
    return modify(copy_block.op, (input, src), ())


def _check_fits(target: tuple[int, ...], given: tuple[int, ...]) -> None:
    """Refuse what can not be broadcast into a tensor that keeps its shape."""
    error = mismatch(target, given)
    if error is not None:
        raise error
    whole = numpy.broadcast_shapes(target, given)
    if whole != target:
        raise RuntimeError(f"output with shape {list(target)} doesn't match the broadcast shape {list(whole)}")


@op(name="fill_block", backward="FillBackward0", in_place_backward="FillBackward2", function=False, method=False)
def fill_block(np: Any, self: Any, /, value: Any) -> Any:
    """``value`` everywhere."""
    return np.full(self.shape, value).astype(self.dtype) if not isinstance(value, complex) or self.dtype.kind == "c" else \
        _no_complex()  # fmt: skip


def _no_complex() -> Any:
    raise RuntimeError("value cannot be converted to type float without overflow")


fill_block.derivative(self=lambda F, g: F.zeros_as(g))


@op(
    name="fill_tensor_block",
    backward="FillBackward1",
    in_place_backward="FillBackward3",
    function=False,
    method=False,
    linear=True,
)
def fill_tensor_block(np: Any, self: Any, value: Any, /) -> Any:
    """The 0-d ``value`` everywhere."""
    return np.broadcast_to(value.astype(self.dtype), self.shape)


fill_tensor_block.derivative(self=lambda F, g: F.zeros_as(g), value=lambda F, g: F.sum_all(g))


@surface()
def fill_(input: Tensor, value: Any) -> Tensor:
    """Overwrite every element with ``value`` (a number or a 0-d tensor)."""
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions."
            )
        return modify(fill_tensor_block.op, (input, value), ())
    return modify(fill_block.op, (input,), (value,))


@surface(method=False)
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like this one with ``value`` everywhere."""
    return fill_tensor_block(input, value) if isinstance(value, Tensor) else fill_block(input, value)


@op(name="zero_block", backward="ZeroBackward0", function=False, method=False)
def zero_block(np: Any, self: Any, /) -> Any:
    """Zeros."""
    return np.zeros((), self.dtype) if self.ndim == 0 else np.zeros(self.shape, self.dtype)


zero_block.derivative(self=lambda F, g: F.zeros_as(g))


@surface()
def zero_(input: Tensor) -> Tensor:
    """Overwrite every element with 0."""
    if at_hand(input):
        input._array.fill(0)
        bump(input)
        return input
    return modify(zero_block.op, (input,), ())


# -- Masks -----------------------------------------------------------------------------------------------------------


def _mask(name: str, input: Tensor, mask: Tensor) -> None:
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {_long_name(mask)}"
                           if name == "masked_fill_" else
                           f"{name}: expected BoolTensor for mask")  # fmt: skip


def _long_name(x: Tensor) -> str:
    return {"int64": "long int", "float32": "float"}.get(x.dtype.name, x.dtype.name)


@op(name="masked_fill_number", backward="MaskedFillBackward0", function=False, method=False, linear=True)
def masked_fill_number(np: Any, self: Any, mask: Any, /, value: Any) -> Any:
    """``self`` with a number where ``mask`` is true."""
    return np.where(mask, np.asarray(value).astype(self.dtype), self)


masked_fill_number.derivative(self=lambda F, g, mask: F.masked_fill_number(g, mask, 0))


@op(name="masked_fill_tensor", backward="MaskedFillBackward1", function=False, method=False, linear=True)
def masked_fill_tensor(np: Any, self: Any, mask: Any, value: Any, /) -> Any:
    """``self`` with the 0-d ``value`` where ``mask`` is true."""
    return np.where(mask, value.astype(self.dtype), self)


masked_fill_tensor.derivative(
    self=lambda F, g, mask: F.masked_fill_number(g, mask, 0),
    value=lambda F, g, mask: F.sum_all(F.where_else(mask, g)),
)


def _masked_fill(input: Tensor, mask: Tensor, value: Any) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    _mask("masked_fill_", input, mask)
    if (error := mismatch(input._array.shape, mask._array.shape)) is not None:
        raise error
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise RuntimeError(
                "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                f"{value._array.ndim} dimension(s)."
            )
        return masked_fill_tensor, (input, mask, value), ()
    if isinstance(value, float) and input.dtype.category < dtypes.FLOATING and value != int(value):
        raise RuntimeError(f"value cannot be converted to type {_long_name(input)} without overflow")
    return masked_fill_number, (input, mask), (value,)


@surface()
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The tensor with ``value`` (a number or a 0-d tensor) where ``mask`` is true."""
    call, tensors, params = _masked_fill(input, mask, value)
    return call(*tensors, *params)


@surface(function=False)
def masked_fill_(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """In-place version of :func:`masked_fill`."""
    call, tensors, params = _masked_fill(input, mask, value)
    _check_fits(input._array.shape, mask._array.shape)
    return modify(call.op, tensors, params)


@op(name="masked_select_block", backward="MaskedSelectBackward0", function=False, method=False, linear=True)
def masked_select_block(np: Any, self: Any, mask: Any, /) -> Any:
    """The elements where ``mask`` is true, in one row."""
    shape = np.broadcast_shapes(self.shape, mask.shape)
    return np.broadcast_to(self, shape)[np.broadcast_to(mask, shape)]


masked_select_block.derivative(self=lambda F, g, self_shape, mask: F.masked_spread(g, mask, self_shape))


@op(function=False, method=False, linear=True)
def masked_spread(np: Any, self: Any, mask: Any, /, shape: tuple[int, ...]) -> Any:
    """Zeros with the elements of ``self``, in order, where ``mask`` is true."""
    whole = np.broadcast_shapes(shape, mask.shape)
    out = np.zeros(whole, self.dtype)
    out[np.broadcast_to(mask, whole)] = self
    return out


masked_spread.derivative(self=lambda F, g, mask: F.masked_select_block(g, mask))


@surface()
def masked_select(input: Tensor, mask: Tensor, *, out: Any = None) -> Tensor:
    """The elements where ``mask`` is true, in one row."""
    if mask.dtype not in (dtypes.bool_, dtypes.uint8):
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    return masked_select_block(input, mask.to(dtypes.bool_), out=out)


@op(name="masked_scatter_block", backward="MaskedScatterBackward0", function=False, method=False, linear=True)
def masked_scatter_block(np: Any, self: Any, mask: Any, source: Any, /) -> Any:
    """``self`` with elements of ``source``, in order, where ``mask`` is true."""
    out = np.broadcast_to(self, np.broadcast_shapes(self.shape, mask.shape)).copy()
    where = np.broadcast_to(mask, out.shape)
    count = int(where.sum())
    if source.size < count:
        raise RuntimeError("masked_scatter: expected number of elements in source >= number of ones in mask")
    out[where] = source.reshape(-1)[:count]
    return out


masked_scatter_block.derivative(
    self=lambda F, g, mask: F.masked_fill_number(g, mask, 0),
    source=lambda F, g, mask, source_shape: F.masked_gather(g, mask, source_shape),
)


@op(function=False, method=False, linear=True)
def masked_gather(np: Any, self: Any, mask: Any, /, shape: tuple[int, ...]) -> Any:
    """The elements where ``mask`` is true, followed by zeros, in ``shape``."""
    found = self[np.broadcast_to(mask, self.shape)]
    out = np.zeros(int(np.prod(shape)), self.dtype)
    out[: found.size] = found
    return out.reshape(shape)


masked_gather.derivative(
    self=lambda F, g, mask, self_shape: F.masked_spread(
        F.slice(F.reshape(g, (-1,)), 0, 0, F.true_count(mask, self_shape), 1), mask, self_shape
    )
)


def _true_count(mask: Any, shape: tuple[int, ...]) -> int:
    array = mask._array if isinstance(mask, Tensor) else mask
    return int(numpy.broadcast_to(array, shape).sum())


ARRAYS.__dict__["true_count"] = TENSORS.__dict__["true_count"] = _true_count


@surface()
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with elements of ``source``, in order, where ``mask`` is true."""
    return masked_scatter_block(input, mask, source)


@surface(function=False)
def masked_scatter_(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """In-place version of :func:`masked_scatter`."""
    return modify(masked_scatter_block.op, (input, mask, source), ())


# -- Along a dimension -----------------------------------------------------------------------------------------------


def _check_index(name: str, index: Tensor, size: int, dim: int) -> None:
    array = index._array
    if array.dtype.kind not in "iu" or index.dtype is dtypes.uint8:
        if name in ("gather", "scatter"):
            raise RuntimeError(f"{name}(): Expected dtype int64 for index")
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index but got: {dtypes.scalar_name(index.dtype)}"
                           if name != "index_select" else
                           "index_select(): Expected dtype int32 or int64 for index")  # fmt: skip
    if array.size and (int(array.max()) >= size or int(array.min()) < 0):
        bad = int(array[(array >= size) | (array < 0)].reshape(-1)[0])
        if name in ("gather", "scatter"):
            raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
        raise (RuntimeError if name == "index_add" else IndexError)("index out of range in self")


@op(name="index_select_block", backward="IndexSelectBackward0", function=False, method=False, linear=True)
def index_select_block(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """The slices at ``index`` of dimension ``dim``."""
    return np.take(self, index.reshape(-1), dim) if self.ndim else self.copy()


index_select_block.derivative(
    self=lambda F, g, self_shape, index, dim: F.index_select_backward(g, index, self_shape, dim)
)


@op(function=False, method=False, linear=True)
def index_select_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Zeros of ``shape`` to which the slices of ``self`` are added at ``index``."""
    if not shape:
        return self.reshape(shape)
    return indexing.add(np, np.zeros(shape, self.dtype), (None,) * dim + (index.reshape(-1),), self)


index_select_backward.derivative(self=lambda F, g, index, dim: F.index_select_block(g, index, dim))


@surface()
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor:
    """The slices of dimension ``dim`` at the places that the vector ``index`` gives, as a copy."""
    at = dimension(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    _check_index("index_select", index, input._array.shape[at] if input._array.ndim else 1, at)
    return index_select_block(input, index, at, out=out)


@op(name="gather_block", backward="GatherBackward0", function=False, method=False, linear=True)
def gather_block(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """The elements at ``index`` along ``dim``."""
    return indexing.gather(np, self, index, dim)


gather_block.derivative(self=lambda F, g, self_shape, index, dim: F.gather_backward(g, index, self_shape, dim))


@op(function=False, method=False, linear=True)
def gather_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Zeros of ``shape`` to which ``self`` is added at ``index`` along ``dim``."""
    return indexing.scatter_add(np, np.zeros(shape, self.dtype), index, self, dim)


gather_backward.derivative(self=lambda F, g, index, dim: F.gather_block(g, index, dim))


def _check_gather(name: str, input: Tensor, index: Tensor, dim: int) -> None:
    shape, picked = input._array.shape, index._array.shape
    if index.dtype is not dtypes.int64 and index.dtype is not dtypes.int32:
        raise RuntimeError(f"{name}(): Expected dtype int64 for index")
    if max(len(shape), 1) != max(len(picked), 1) and index._array.size:
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as "
            + ("input" if name == "gather" else "self")
            + " tensor"
        )
    if name == "gather":
        for axis, (have, want) in enumerate(zip(picked, shape, strict=False)):
            if axis != dim and have > want:
                raise RuntimeError(
                    f"Size does not match at dimension {axis} expected index {list(picked)} to be no larger than self "
                    f"{list(shape)} apart from dimension {dim}"
                )
    _check_index(name, index, shape[dim] if shape else 1, dim)


@surface()
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Any = None) -> Tensor:
    """For each place of ``index`` the element of ``input`` there, but at ``index``'s value along ``dim``."""
    at = dimension(dim, input._array.ndim)
    _check_gather("gather", input, index, at)
    return gather_block(input, index, at, out=out)


@op(name="scatter_src", backward="ScatterBackward0", function=False, method=False, linear=True)
def scatter_src(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """``self`` with elements of ``src`` put at ``index`` along ``dim``."""
    return indexing.scatter(np, self.copy(), index, src, dim)


scatter_src.derivative(
    self=lambda F, g, index, dim: F.scatter_value(g, index, dim, 0),
    src=lambda F, g, index, src_shape, dim: F.padded_to(F.gather_block(g, index, dim), src_shape),
)


@op(name="scatter_value", backward="ScatterBackward1", function=False, method=False, linear=True)
def scatter_value(np: Any, self: Any, index: Any, /, dim: int, value: Any) -> Any:
    """``self`` with a number put at ``index`` along ``dim``."""
    return indexing.scatter(np, self.copy(), index, np.asarray(value).astype(self.dtype), dim)


scatter_value.derivative(self=lambda F, g, index, dim: F.scatter_value(g, index, dim, 0))


@op(name="scatter_add_block", backward="ScatterAddBackward0", function=False, method=False, linear=True)
def scatter_add_block(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """``self`` to which elements of ``src`` are added at ``index`` along ``dim``."""
    return indexing.scatter_add(np, self.copy(), index, src, dim)


scatter_add_block.derivative(
    self=1, src=lambda F, g, index, src_shape, dim: F.padded_to(F.gather_block(g, index, dim), src_shape)
)


@op(function=False, method=False, linear=True, backward="ConstantPadNdBackward0")
def padded_to(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """``self`` in the corner of zeros of ``shape``."""
    if self.shape == tuple(shape):
        return self
    out = np.zeros(shape, self.dtype)
    out[tuple(slice(0, n) for n in self.shape)] = self
    return out


padded_to.derivative(self=lambda F, g, self_shape: F.corner_of(g, self_shape))


@op(function=False, method=False, linear=True)
def corner_of(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """The corner of ``self`` that has ``shape``."""
    return self[tuple(slice(0, n) for n in shape)].copy()


corner_of.derivative(self=lambda F, g, self_shape: F.padded_to(g, self_shape))


def _scatter(
    input: Tensor, dim: int, index: Tensor, src: Any, reduce: Any
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        source = src if isinstance(src, Tensor) else wrap(numpy.full(index._array.shape, src, input._array.dtype))
        return scatter_reduce_block, (input, index, source), (at, {"add": "sum", "multiply": "prod"}[reduce], True)
    if not isinstance(src, Tensor):
        return scatter_value, (input, index), (at, src)
    if src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    for have, want in zip(index._array.shape, src._array.shape, strict=False):
        if have > want:
            raise RuntimeError(
                f"Expected index {list(index._array.shape)} to be no larger than self {list(input._array.shape)} apart "
                f"from dimension {at} and to be no larger size than src {list(src._array.shape)}"
            )
    return scatter_src, (input, index, src), (at,)


@surface()
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """The tensor with elements of ``src`` (or the number ``value``) put at ``index`` along ``dim``."""
    call, tensors, params = _scatter(input, dim, index, value if src is None else src, reduce)
    return call(*tensors, *params)


@surface(function=False)
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place version of :func:`scatter`."""
    call, tensors, params = _scatter(input, dim, index, value if src is None else src, reduce)
    return modify(call.op, tensors, params)


@surface()
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """The tensor to which elements of ``src`` are added at ``index`` along ``dim``."""
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    return scatter_add_block(input, index, src, at)


@surface(function=False)
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """In-place version of :func:`scatter_add`."""
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    return modify(scatter_add_block.op, (input, index, src), (at,))


@op(name="scatter_reduce_block", backward="ScatterReduceBackward0", function=False, method=False)
def scatter_reduce_block(np: Any, self: Any, index: Any, src: Any, /, dim: int, reduce: str, include_self: bool) -> Any:
    """``self`` with elements of ``src`` reduced into it at ``index`` along ``dim``."""
    return indexing.scatter_reduce(np, self, index, src, dim, reduce, include_self)


def _reduce_self(
    F: Any, g: Any, self: Any, index: Any, src: Any, out: Any, dim: int, reduce: str, include_self: bool
) -> Any:
    if not include_self:
        g = F.scatter_value(g, index, dim, 0)
        return g
    if reduce == "sum":
        return g
    if reduce == "mean":
        return g / F.scatter_count(self, index, dim, 1)
    if reduce == "prod":
        return g * out / self
    return g * F.same(self, out) / F.scatter_ties(self, index, src, out, dim, 1)


def _reduce_src(
    F: Any, g: Any, self: Any, index: Any, src: Any, out: Any, dim: int, reduce: str, include_self: bool
) -> Any:
    picked = F.gather_block(g, index, dim)
    if reduce == "mean":
        picked = F.gather_block(g / F.scatter_count(self, index, dim, int(include_self)), index, dim)
    elif reduce == "prod":
        picked = F.gather_block(g * out, index, dim) / src
    elif reduce != "sum":
        ties = F.scatter_ties(self, index, src, out, dim, int(include_self))
        picked = F.gather_block(g / ties, index, dim) * F.same(src, F.gather_block(out, index, dim))
    return picked


scatter_reduce_block.derivative(self=_reduce_self, src=_reduce_src)


@op(function=False, method=False)
def scatter_count(np: Any, self: Any, index: Any, /, dim: int, start: int) -> Any:
    """How many elements meet at each place (at least 1), ``start`` counting what was there."""
    count = indexing.scatter_add(
        np, np.full(self.shape, start, self.dtype), index, np.ones(index.shape, self.dtype), dim
    )
    return np.maximum(count, 1)


@op(function=False, method=False)
def scatter_ties(np: Any, self: Any, index: Any, src: Any, top: Any, /, dim: int, start: int) -> Any:
    """How many elements at each place are the extreme that came out there (at least 1)."""
    ties = (self == top).astype(self.dtype) * start
    hits = (src == indexing.gather(np, top, index, dim)).astype(self.dtype)
    return np.maximum(indexing.scatter_add(np, ties, index, hits, dim), 1)


for _constant in (scatter_count, scatter_ties):
    _constant.derivative(self=lambda F, g: None)


@surface()
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with elements of ``src`` reduced into it: ``reduce`` is sum, prod, mean, amax or amin."""
    at = _check_reduce(input, dim, index, reduce)
    return scatter_reduce_block(input, index, src, at, reduce, include_self)


def _check_reduce(input: Tensor, dim: int, index: Tensor, reduce: str) -> int:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce + ".")
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    return at


@surface(function=False)
def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of :func:`scatter_reduce`."""
    at = _check_reduce(input, dim, index, reduce)
    return modify(scatter_reduce_block.op, (input, index, src), (at, reduce, include_self))


# -- index_add, index_copy, index_fill -------------------------------------------------------------------------------


@op(name="index_add_block", backward="IndexAddBackward0", function=False, method=False, linear=True)
def index_add_block(np: Any, self: Any, index: Any, source: Any, /, dim: int, alpha: Any) -> Any:
    """``self`` to which slices of ``source`` are added at ``index``."""
    added = source if alpha == 1 else source * np.asarray(alpha).astype(source.dtype)
    if not self.ndim:
        return self + added.reshape(()) if added.size == 1 else self
    return indexing.add(np, self.copy(), (None,) * dim + (index.reshape(-1),), added)


def _index_add_source(F: Any, g: Any, index: Any, source_shape: Any, dim: int, alpha: Any) -> Any:
    found = F.reshape(F.index_select_block(g, index, dim), source_shape)
    return found if alpha == 1 else found * alpha


index_add_block.derivative(self=1, source=_index_add_source)


@op(name="index_copy_block", backward="IndexCopyBackward0", function=False, method=False, linear=True)
def index_copy_block(np: Any, self: Any, index: Any, source: Any, /, dim: int) -> Any:
    """``self`` with slices of ``source`` put at ``index``."""
    if not self.ndim:
        return source.reshape(()).copy()
    return indexing.put(np, self.copy(), (None,) * dim + (index.reshape(-1),), source)


index_copy_block.derivative(
    self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0),
    source=lambda F, g, index, source_shape, dim: F.reshape(F.index_select_block(g, index, dim), source_shape),
)


@op(name="index_fill_number", backward="IndexFillBackward0", function=False, method=False, linear=True)
def index_fill_number(np: Any, self: Any, index: Any, /, dim: int, value: Any) -> Any:
    """``self`` with a number in the slices at ``index``."""
    if not self.ndim:
        return np.asarray(value).astype(self.dtype)
    return indexing.put(np, self.copy(), (None,) * dim + (index.reshape(-1),), np.asarray(value).astype(self.dtype))


index_fill_number.derivative(self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0))


@op(name="index_fill_tensor", backward="IndexFillBackward1", function=False, method=False, linear=True)
def index_fill_tensor(np: Any, self: Any, index: Any, value: Any, /, dim: int) -> Any:
    """``self`` with the 0-d ``value`` in the slices at ``index``."""
    return index_fill_number.op.kernel(np, self, index, dim, value)


index_fill_tensor.derivative(
    self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0),
    value=lambda F, g, index, dim: F.sum_all(F.index_select_block(g, index, dim)),
)


def _index_call(name: str, input: Tensor, dim: int, index: Tensor, other: Any, **rest: Any) -> Any:
    at = dimension(dim, input._array.ndim)
    _check_index(name, index, input._array.shape[at] if input._array.ndim else 1, at)
    if name == "index_add":
        if other.dtype is not input.dtype:
            raise RuntimeError("index_add_(): self and source expected to have the same dtype, but got (self) "
                               f"{dtypes.scalar_name(input.dtype)} and (source) {dtypes.scalar_name(other.dtype)}")  # fmt: skip
        return index_add_block, (input, index, other), (at, rest.get("alpha", 1))
    if name == "index_copy":
        return index_copy_block, (input, index, other), (at,)
    if isinstance(other, Tensor):
        if other._array.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{other._array.ndim} dimension(s).")  # fmt: skip
        return index_fill_tensor, (input, index, other), (at,)
    return index_fill_number, (input, index), (at, other)


def _index_functions(name: str, argument: str, doc: str) -> None:
    def out_of_place(input: Tensor, dim: int, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        other = args[0] if args else kwargs.pop(argument)
        call, tensors, params = _index_call(name, input, dim, index, other, **kwargs)
        return call(*tensors, *params)

    def in_place(input: Tensor, dim: int, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        other = args[0] if args else kwargs.pop(argument)
        call, tensors, params = _index_call(name, input, dim, index, other, **kwargs)
        return modify(call.op, tensors, params)

    for function, title, text in (
        (out_of_place, name, f"The tensor {doc}."),
        (in_place, name + "_", f"In-place version of :func:`{name}`."),
    ):
        function.__name__ = function.__qualname__ = title
        function.__doc__ = text
        surface(name=title, function=title == name)(function)


_index_functions("index_add", "source", "to which the slices of ``source`` are added at ``index`` along ``dim``")
_index_functions("index_copy", "source", "with the slices of ``source`` put at ``index`` along ``dim``")
_index_functions("index_fill", "value", "with ``value`` in the slices at ``index`` along ``dim``")


# -- In one row ------------------------------------------------------------------------------------------------------


@op(name="take_block", backward="TakeBackward0", function=False, method=False, linear=True)
def take_block(np: Any, self: Any, index: Any, /) -> Any:
    """The elements at ``index``, counted in one row."""
    return self.reshape(-1)[index]


take_block.derivative(self=lambda F, g, self_shape, index: F.take_backward(g, index, self_shape))


@op(function=False, method=False, linear=True)
def take_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...]) -> Any:
    """Zeros of ``shape`` to which ``self`` is added at ``index``, counted in one row."""
    size = int(np.prod(shape))
    return indexing.add(np, np.zeros(size, self.dtype), (np.where(index < 0, index + size, index),), self).reshape(
        shape
    )


take_backward.derivative(self=lambda F, g, index: F.take_block(g, index))


@surface()
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at the places that ``index`` gives, counted as if all stood in one row."""
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtypes.scalar_name(index.dtype)}")
    size, array = input._array.size, index._array
    if array.size and (int(array.max()) >= size or int(array.min()) < -size):
        raise IndexError(
            "out of range: tried to access index "
            f"{int(array[(array >= size) | (array < -size)].reshape(-1)[0])} on a tensor of {size} elements."
        )
    return take_block(input, index)


@surface()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """The elements at ``indices`` along ``dim``, other dimensions broadcast; without ``dim`` in one row."""
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {dtypes.scalar_name(indices.dtype)}"
        )
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    ndim = input._array.ndim
    if ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    at = dimension(dim, ndim)
    size = input._array.shape[at]
    index = wrap(numpy.where(indices._array < 0, indices._array + size, indices._array))
    shape = numpy.broadcast_shapes(
        (*input._array.shape[:at], 1, *input._array.shape[at + 1 :]),
        (*index._array.shape[:at], 1, *index._array.shape[at + 1 :]),
    )
    wide = expand(input, (*shape[:at], size, *shape[at + 1 :]))
    return gather(wide, at, expand(index, (*shape[:at], index._array.shape[at], *shape[at + 1 :])), out=out)


@op(name="put_block", backward="PutBackward0", function=False, method=False, linear=True)
def put_block(np: Any, self: Any, index: Any, source: Any, /, accumulate: bool) -> Any:
    """``self`` with elements of ``source`` put (or added) at ``index``, counted in one row."""
    flat = np.array(self, order="C").reshape(-1)
    picks = (np.where(index < 0, index + flat.size, index).reshape(-1),)
    change = indexing.add if accumulate else indexing.put
    return change(np, flat, picks, source.reshape(-1)).reshape(self.shape)


put_block.derivative(
    self=lambda F, g, index, accumulate: g if accumulate else F.put_zero(g, index),
    source=lambda F, g, index, source_shape: F.reshape(F.take_block(g, index), source_shape),
)


@op(function=False, method=False, linear=True)
def put_zero(np: Any, self: Any, index: Any, /) -> Any:
    """``self`` with zeros at ``index``, counted in one row."""
    flat = np.array(self, order="C").reshape(-1)
    flat[index.reshape(-1)] = 0
    return flat.reshape(self.shape)


put_zero.derivative(self=lambda F, g, index: F.put_zero(g, index))


@surface()
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with elements of ``source`` put (or added) at ``index``, counted in one row."""
    return put_block(input, index, source, accumulate)


@surface(function=False)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of :func:`put`."""
    return modify(put_block.op, (input, index, source), (accumulate,))


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


surface(function=False, name="__getitem__", quick=select_block, guard="index.__class__ is int", dim=0)(_getitem)
surface(function=False, name="__setitem__")(_setitem)
