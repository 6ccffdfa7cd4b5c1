"""Indexing and assignment, gather and scatter.

``x[index]`` is read as PyTorch reads it: integers, slices, ``...`` and ``None`` first, one after the other, each giving
a view; what tensors and lists remain then pick elements of the dimensions at which they stand.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, wrap
from ..kernels import indexing
from .calls import modify
from .create import array_of
from .inner import expand
from .overwrite import copy_, fill_
from .pieces import select_block, slice_block
from .shape import alias, unsqueeze_block
from .table import op, surface

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
    if used and x._array.ndim == 0:
        if any(each.__class__ is slice for each in items):
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
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
        return item
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
    copy_(target, source)


def _other_dtype(source: Tensor, x: Tensor) -> RuntimeError:
    return RuntimeError(
        f"Index put requires the source and destination dtypes match, got {dtypes.scalar_name(x.dtype)} for the "
        f"destination and {dtypes.scalar_name(source.dtype)} for the source."
    )


def _fitted(source: Tensor, shape: tuple[int, ...], x: Tensor) -> Tensor:
    if source.dtype is not x.dtype and source._array.ndim:
        raise _other_dtype(source, x)
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
    out = np.array(self, order="C")
    if accumulate:
        return indexing.add(np, out, picks, values)
    return indexing.put(np, out, picks, values)


def _put_self_rule(F: Any, g: Any, picks: Any, accumulate: bool) -> Any:
    return g if accumulate else F.index_fill_zero(g, picks)


index_put_block.derivative(self=_put_self_rule, values=lambda F, g, picks: F.index_block(g, picks))


@op(function=False, method=False, linear=True)
def index_fill_zero(np: Any, self: Any, /, picks: tuple[Any, ...]) -> Any:
    """``self`` with zeros at picked places."""
    return indexing.put(np, np.array(self, order="C"), picks, np.zeros((), self.dtype))


index_fill_zero.derivative(self=lambda F, g, picks: F.index_fill_zero(g, picks))


def _put_arguments(input: Tensor, indices: Any, values: Any) -> tuple[Tensor, tuple[Any, ...], Tensor]:
    for name, position, given, kinds in (
        ("indices", 1, indices, (tuple, list)), ("values", 2, values, (Tensor,)),
    ):  # fmt: skip
        if not isinstance(given, kinds):
            wanted = "Tensor" if name == "values" else "tuple of Tensors"
            raise TypeError(
                f"index_put(): argument '{name}' (position {position}) must be {wanted}, not {type(given).__name__}"
            )
    picks: list[Any] = []
    for position, each in enumerate(indices):
        if not isinstance(each, Tensor):
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {type(each).__name__}")
        picks.extend(_as_picks(each, input._array.shape[len(picks) :], len(picks)))
    if len(picks) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {len(picks)})")
    if values.dtype is not input.dtype:
        raise _other_dtype(values, input)
    if not picks:
        return input, (), values
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


surface(function=False, name="__getitem__", quick=select_block, guard="index.__class__ is int", dim=0)(_getitem)
surface(function=False, name="__setitem__")(_setitem)
