"""Indexing with ``x[index]``, assignment to ``x[index]``, and ``index_put``.

As in PyTorch, integers, slices, ``...`` and ``None`` are applied first, one after the other, and each returns a view.
Then each index tensor or list selects elements along one dimension of the view. A mask selects elements along as many
dimensions as it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import setitem
from typing import Any

import numpy

from ...core import dtypes, torch_function
from ...core.devices import array_module_of, on_gpu
from ...core.tensor import Tensor, share_memory, wrap
from ...core.views import bump_version, check_partial_overlap, set_version, view_of
from ...dispatch.declare import in_place_form, op, public
from ...dispatch.generic_path import is_directly_writable, is_untracked
from ...dispatch.intercept import GO_ON, HANDLERS, OVERRIDING, ask_classes_of, intercept
from ...dispatch.operand_promotion import NUMBERS, stores_like_pytorch
from ...dispatch.transform_tensor import active_levels, innermost_batch
from ...kernels import elementwise, indexing
from ...runtime.user_frame import strip_frames, warn
from ..creation.from_data import array_from_data
from ..engine_ops import expand
from ..shape.slicing import select_block, slice_block
from ..shape.views import alias, unsqueeze_block, view_block
from .masked_fill import fill_from_tensor_

# -- Reading an index ------------------------------------------------------------------------------------------------


def _getitem(self: Tensor, index: Any) -> Tensor:
    """Return ``self[index]``: the method ``Tensor.__getitem__``."""
    if OVERRIDING and (answer := ask_classes_of("__getitem__", self, index)) is not GO_ON:
        return answer
    kind = index.__class__
    if kind is slice and self._array.ndim:
        first, last, step = _bounds(index, self._array.shape[0])
        return slice_block(self, 0, first, last, step)
    if index is None:
        return unsqueeze_block(self, 0)
    if kind is tuple and (part := _basic_view(self, index)) is not None:
        return alias(self) if part is self else part
    if indices := _simple_indices(self, index):
        return index_with_tensors(self, indices)
    try:
        viewed, indices = apply_basic_index(self, index)
    except Exception:
        if not _registers_override(index):
            raise
        return self[index]
    if indices:
        return index_with_tensors(viewed, indices)
    return alias(self) if viewed is self else viewed


def _registers_override(*given: Any) -> bool:
    """Register the classes of ``given`` that define ``__torch_function__``; return True if there are any.

    For speed, operations call ``__torch_function__`` only for classes that are already registered. This function is
    called after ``x[index]`` or ``x[index] = value`` has raised an error; ``given`` holds the index and, for an
    assignment, the value. If the result is True, the caller repeats the operation, which then calls
    ``__torch_function__``.
    """
    return torch_function.register_overriding(given, Tensor)


def _basic_view(x: Tensor, index: tuple[Any, ...]) -> Tensor | None:
    """Return the view ``x[index]`` if ``index`` consists only of integers, slices, None and ``...``.

    Return None for any other index and for an invalid index.
    """
    if is_untracked(x) and (key := _numpy_view_key(index)) is not None:
        try:
            return view_of(x, x._array[key])
        except (IndexError, TypeError):
            return None
    if not _BASIC.issuperset(map(type, index)):
        return None
    dim, left = 0, len(index)
    try:
        for item in index:  # each step is recorded as a view of the one before
            left -= 1
            if item.__class__ is slice:
                start, step = item.start, item.step
                if start is not None or item.stop is not None or step is not None:
                    if step is not None and (step.__class__ is not int or step < 1):
                        return None
                    size = x._array.shape[dim]
                    first, last, step = item.indices(size)
                    if last != size or step != 1 or (start is not None and start != 0):
                        x = slice_block(x, dim, first, last if last > first else first, step)
                dim += 1
            elif item.__class__ is int:
                x = select_block(x, dim, item)
            elif item is None:
                x = unsqueeze_block(x, dim)
                dim += 1
            else:
                if index.count(...) > 1:
                    return None
                at = x._array.ndim - left
                dim = max(dim, at + index[-left:].count(None) if left and None in index else at)
    except (IndexError, TypeError):
        return None
    return x if dim <= x._array.ndim else None


#: The classes of the items of an index for which the result is a view.
_BASIC = frozenset((int, slice, type(None), type(...)))


def _sliced(x: Tensor, item: slice, dim: int) -> Tensor:
    """Return the slice ``item`` of ``x`` along ``dim``, or ``x`` itself if ``item`` is the whole dimension."""
    size = x._array.shape[dim]
    first, last, step = _bounds(item, size)
    if last == size and step == 1 and item.start in (None, 0):
        return x
    return slice_block(x, dim, first, last, step)


def _simple_indices(x: Tensor, index: Any) -> list[Any]:
    """Return ``index`` as a list with an item for each indexed dimension: an index tensor, or None for ``:``.

    This is possible if ``index`` is a mask, an int64 tensor, or a tuple of int64 tensors and ``:``. A mask is the only
    item of its list. For any other index, the list is empty.
    """
    if index.__class__ is Tensor:
        array = index._array
        return [index] if 0 < array.ndim <= x._array.ndim and array.dtype in (INT64, BOOL) else []
    if index.__class__ is not tuple or len(index) > x._array.ndim:
        return []
    picks: list[Any] = []
    for each in index:
        if each.__class__ is Tensor and each._array.dtype is INT64 and each._array.ndim:
            picks.append(each)
        elif each.__class__ is slice and each == _WHOLE:
            picks.append(None)
        else:
            return []
    return picks


_WHOLE = slice(None)


def _numpy_view_key(index: tuple[Any, ...]) -> Any:
    """Return ``index`` as an index with which NumPy returns a view and never a scalar, or None.

    The result is ``index`` with ``...`` appended, unless ``index`` already contains it. It is None if ``index`` does
    not consist only of integers, slices and at most one ``...``, or if a step is not a positive int.
    """
    dots = False
    for each in index:
        kind = each.__class__
        if kind is slice:
            if (step := each.step) is not None and (step.__class__ is not int or step < 1):
                return None
        elif each is Ellipsis and not dots:
            dots = True
        elif kind is not int:
            return None
    return index if dots else (*index, Ellipsis)


def _numpy_key(index: Any) -> Any:
    """Return ``index`` with its tensors replaced by arrays, as an index of a NumPy array, or None.

    The result is None unless ``index`` is a mask or consists only of slices without a step, ``...`` and int64 tensors.
    NumPy may interpret another index in another way than PyTorch.
    """
    if index.__class__ is Tensor:
        array = index._array
        return array if array.ndim and (array.dtype is INT64 or array.dtype is BOOL) else None
    key: list[Any] = []
    for each in index if index.__class__ is tuple else (index,):
        if each.__class__ is Tensor:
            key.append(each._array)
            if each._array.ndim == 0 or each._array.dtype is not INT64:
                return None
        elif each is Ellipsis or (each.__class__ is slice and each.step is None):
            key.append(each)
        else:
            return None
    return tuple(key)


def apply_basic_index(x: Tensor, index: Any) -> tuple[Tensor, list[Any]]:
    """Apply the integers, slices, ``...`` and None in ``index`` to ``x``, but not the index tensors.

    Return the tuple (view, picks). The list ``picks`` has an item for successive dimensions of the view: an index
    tensor, a mask, or None for all elements. The caller must then select elements of the view with ``picks``. The list
    is empty if ``index`` contains no index tensors.
    """
    items = index if index.__class__ is tuple else _items(index)
    rest = x._array.ndim - sum([_dims_used(each) for each in items])
    if rest < 0:
        raise _too_many(x, index)
    dim = position = 0
    picks: list[Any] = []
    picking = seen = False
    for place, item in enumerate(items):
        if item is Ellipsis:
            if seen and rest and any(each is not Ellipsis for each in items[place:]):
                raise IndexError("an index can only have a single ellipsis ('...')")
            if not seen:
                picks += [None] * rest
                dim, position, seen = dim + rest, position + rest, True
            continue
        position += 1
        kind = item.__class__
        if kind not in _PLAIN:
            item = _part_of_index(item)
            kind = item.__class__
        if kind is int:
            x = select_block(x, dim, _in_range(item, x._array.shape[dim], position - 1))
            continue
        if kind is slice:
            x, item = _sliced(x, item, dim), None
        elif item is None:
            x = unsqueeze_block(x, dim)
        elif kind is bool:
            x = unsqueeze_block(x, dim)
            item = wrap(numpy.asarray([0] if item else [], dtype=numpy.int64))
        picks.append(item)
        if item is None:
            dim += 1
        else:
            picking = True
            dim += _dims_used(item)
    return x, picks if picking else []


_PLAIN = (int, slice, bool, None.__class__)
_TAKES = {int: 1, slice: 1, bool: 0, None.__class__: 0, Ellipsis.__class__: 0}


def _too_many(x: Tensor, index: Any) -> Exception:
    if x._array.ndim == 0 and isinstance(index, slice):
        if index.step is not None and index.step.__index__() < 0:
            return ValueError("step must be greater than zero")
        return IndexError("slice() cannot be applied to a 0-dim tensor.")
    if x._array.ndim == 0 and isinstance(index, int):
        if index:
            return IndexError(f"index {index} is out of bounds for dimension 0 with size 0")
        return IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        )
    return IndexError(f"too many indices for tensor of dimension {x._array.ndim}")


def _in_range(index: int, size: int, dim: int) -> int:
    if -size <= index < size:
        return index
    if not -(2**63) <= index < 2**63:
        raise ValueError("Overflow when unpacking long long")
    raise IndexError(f"index {index} is out of bounds for dimension {dim} with size {size}")


def _items(index: Any) -> list[Any]:
    """Return the items of the index ``index`` as a list.

    If ``index`` is a tuple, or a list that PyTorch treats as a tuple, its items are returned. Any other index is itself
    the only item.
    """
    if index.__class__ is tuple:
        return list(index)
    if isinstance(index, tuple) or (isinstance(index, Sequence) and len(index) < 32 and any(map(_is_part, index))):
        return list(index)
    return [index]


def _is_part(item: Any) -> bool:
    """Whether a list that contains ``item`` is equivalent to a tuple if it is an index, as in PyTorch.

    For example, ``x[[None, 0]]`` is ``x[None, 0]``.
    """
    return item is None or item is Ellipsis or isinstance(item, (slice, Tensor, numpy.ndarray, Sequence))


def _part_of_index(item: Any) -> Any:
    """Return ``item``, an item of an index, as an int, a bool or an index tensor.

    ``item`` is a tensor, an array, a sequence or an object with ``__index__``. A 0-d tensor of integers or bools
    becomes an int or a bool. Raises IndexError for an object of another class.
    """
    if isinstance(item, Tensor):
        if item._array.ndim == 0 and item._array.dtype.kind in "iub" and innermost_batch((item,)) is None:
            scalar = item._array.item()
            return bool(scalar) if item.dtype in MASK_DTYPES else scalar
        return item
    if isinstance(item, numpy.ndarray):
        return _part_of_index(wrap(item))
    if isinstance(item, (Sequence, memoryview)):
        return wrap(_array_of_list(item))
    if hasattr(item, "__index__") and not isinstance(item, numpy.bool_):
        return item.__index__()
    kind = type(item)
    shown = f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
        f"{shown})"
    )


#: The dtypes of index tensors that are masks.
MASK_DTYPES = (dtypes.bool_, dtypes.uint8)


def _array_of_list(item: Any) -> Any:
    """Return ``item``, a list that is used as an index, as an int64 array of indices or as a boolean mask."""
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    items = list(item)
    for each in items:
        if isinstance(each, str):
            raise TypeError("new(): invalid data type 'str'")
        if each is item:
            raise TypeError("new(): self-referential lists are incompatible")
        if each is None or isinstance(each, slice):
            raise RuntimeError(f"Could not infer dtype of {type(each).__name__}")
        if isinstance(each, (list, tuple)) and isinstance(items[0], int):
            raise TypeError(f"'{type(each).__name__}' object cannot be interpreted as an integer")
    try:
        array = array_from_data(items, None)
    except RuntimeError as error:
        raise ValueError(*error.args) from None
    return array if array.size and array.dtype.kind in "biu" else array.astype(numpy.int64)


def _bounds(item: slice, size: int) -> tuple[int, int, int]:
    if item.step is None:
        first, last, _ = item.indices(size)
        return first, last if last > first else first, 1
    if hasattr(item.step, "__index__") and (given := item.step.__index__()) <= 0:
        raise ValueError("step must be greater than zero" if given else "slice step cannot be zero")
    first, last, step = item.indices(size)
    return first, max(first, last), step


def _dims_used(item: Any) -> int:
    """Return the number of dimensions of the indexed tensor that ``item``, one item of an index, consumes.

    The number is 0 for ``None``, ``...`` and a bool. For a mask, it is the number of dimensions of the mask. For any
    other item, it is 1.
    """
    if item.__class__ in _TAKES:
        return _TAKES[item.__class__]
    if isinstance(item, Tensor) and item.dtype in MASK_DTYPES:
        return item._array.ndim
    return 1


def _expand_masks(picks: list[Any], x: Tensor) -> list[Any]:
    """Return ``picks`` with each mask replaced by int64 tensors: the indices of its true elements along each dimension.

    The items of the list ``picks`` apply to successive dimensions of ``x``: an index tensor, a mask, or None for all
    elements.
    """
    tensors: list[Any] = []
    for item in picks:
        if item is None:
            tensors.append(None)
        elif item.dtype in MASK_DTYPES:
            tensors += _mask_indices(item, x._array.shape, len(tensors))
        elif item.dtype in (dtypes.int64, dtypes.int32):
            tensors.append(item)
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return tensors


def _mask_indices(item: Tensor, shape: tuple[int, ...], at: int) -> list[Tensor]:
    """Return the indices of the true elements of the mask ``item``, one tensor for each dimension of the mask.

    ``shape`` is the shape of the indexed tensor. The mask applies to the dimensions of the indexed tensor from
    dimension ``at`` on. Raises IndexError unless the mask has the same sizes as these dimensions.
    """
    if innermost_batch((item,)) is not None:
        raise RuntimeError(
            "vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over indexing "
            "with a boolean mask."
        )
    if item.dtype is dtypes.uint8:
        warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
        )
    mask = item._array
    if not mask.ndim:
        return []
    for axis, size in enumerate(mask.shape):
        if size != shape[at + axis]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {axis} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {at + axis}"
            )
    return [wrap(each) for each in numpy.nonzero(mask)]


# -- Advanced indexing -----------------------------------------------------------------------------------------------


@op(name="index_block", backward="IndexBackward0", function=False, method=False, linear=True)
def index_block(np: Any, self: Any, /, picks: tuple[Any, ...]) -> Any:
    """Return the elements of ``self`` at the indices ``picks``.

    ``picks`` has an item for each indexed dimension: an integer array, or None for all elements. The arrays are
    broadcast together.
    """
    return indexing.take(np, self, picks)


index_block.derivative(self=lambda F, g, self_shape, picks: F.index_backward(g, self_shape, picks))


@op(function=False, method=False, linear=True, event="retrograd::index_backward")
def index_backward(np: Any, self: Any, /, shape: tuple[int, ...], picks: tuple[Any, ...]) -> Any:
    """Return the gradient of ``x[index]``: zeros of ``shape`` to which the elements of ``self`` are added at ``picks``.

    ``self`` is the gradient of the result ``x[index]``. ``picks`` has an item for each indexed dimension: an integer
    array, or None for all elements.
    """
    return indexing.add_to_zeros(np, self, shape, picks)


index_backward.derivative(self=lambda F, g, picks: F.index_block(g, picks))


def index_with_tensors(x: Tensor, picks: list[Any]) -> Tensor:
    """Return the elements of ``x`` at the indices ``picks``.

    ``picks`` has an item for each indexed dimension: an index tensor, or None for all elements. A mask is one item for
    several dimensions.
    """
    if active_levels() and (special := innermost_batch(picks)) is not None:
        return special.picked(x, _expand_masks(picks, x))
    if x._array.__class__ is not numpy.ndarray and on_gpu(x._array):
        picks = _on_device_of(x, picks)
    arrays = tuple([None if each is None else each._array for each in picks])
    if _are_plain_indices(arrays):
        if not is_untracked(x):
            arrays = tuple(
                [None if each is None else each.copy() for each in arrays]
            )  # copies, because the node saves them
        try:
            result = index_block(x, arrays)
            if result._array.size:  # PyTorch does not check the indices of an empty result
                return result
        except IndexError:
            pass  # the checks below raise PyTorch's error
        except TypeError:
            _on_device_of(x, picks)  # raises PyTorch's error for indices on a GPU
            raise
    return index_block(x, _checked_indices(x, _expand_masks(picks, x)))


INT64, BOOL = numpy.dtype(numpy.int64), numpy.dtype(bool)


def _on_device_of(x: Tensor, picks: list[Any]) -> list[Any]:
    """Return the index tensors ``picks`` on the device of ``x``: as in PyTorch, those of a GPU may be on the CPU.

    Raises RuntimeError for an index tensor on another GPU, or on a GPU if ``x`` is on the CPU.
    """
    place = x.device
    if place.type == "meta":  # the values of a mask determine the shape
        return picks
    if any(each is not None and not each.is_cpu and each.device != place for each in picks):
        raise RuntimeError(f"indices should be either on cpu or on the same device as the indexed tensor ({place})")
    np = array_module_of(x._array)
    return [
        wrap(np.asarray(each._array)) if each is not None and each._array.__class__ is numpy.ndarray else each
        for each in picks
    ]


def _are_plain_indices(arrays: Sequence[Any]) -> bool:
    """Whether ``arrays`` is a single boolean mask, or consists only of int64 arrays and None.

    The operation ``index_block`` accepts such arrays without a conversion.
    """
    for each in arrays:
        if each is not None and each.dtype is not INT64 and (each.dtype is not BOOL or len(arrays) > 1):
            return False
    return True


def _checked_indices(x: Tensor, picks: list[Any]) -> tuple[Any, ...]:
    """Return the index tensors ``picks`` as a tuple of int64 arrays with non-negative indices.

    An item None, which means all elements of a dimension, is kept. Raises IndexError if the index tensors cannot be
    broadcast together or are out of bounds for the shape of ``x``.
    """
    if x._array.__class__ is not numpy.ndarray and on_gpu(x._array):
        picks = _on_device_of(x, picks)
    found = [None if each is None else each._array for each in picks]
    try:
        shape = numpy.broadcast_shapes(*(each.shape for each in found if each is not None))
    except ValueError:
        shown = ", ".join(str(list(each.shape)) for each in found if each is not None)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        ) from None
    # PyTorch does not check the indices if any dimension of the result is empty.
    whole = [size for dim, size in enumerate(x._array.shape) if dim >= len(found) or found[dim] is None]
    nothing = 0 in shape or 0 in whole
    result: list[Any] = []
    for dim, each in enumerate(found):
        if each is None:
            result.append(None)
            continue
        size = x._array.shape[dim]
        each = each.astype(numpy.int64, copy=False)
        if each.size and not on_gpu(each) and (each.max() >= size or each.min() < -size):
            if nothing:
                each = numpy.zeros_like(each) if size else each[:0]
            else:
                if not size:
                    raise IndexError("index is out of bounds for dimension with size 0")
                bad = int(each[(each >= size) | (each < -size)].reshape(-1)[0])
                raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
        result.append(numpy.where(each < 0, each + size, each))
    return tuple(result)


# -- Assignment ------------------------------------------------------------------------------------------------------


def _setitem(self: Tensor, index: Any, value: Any) -> None:
    """Assign ``value`` to ``self[index]``: the method ``Tensor.__setitem__``."""
    if (HANDLERS or OVERRIDING) and intercept(_setitem, (self, index, value), {}) is not GO_ON:
        return
    if _assigned_by_numpy(self, index, value):
        return
    try:
        _assign_recorded(self, index, value)
    except Exception as error:
        if not _registers_override(index, value):
            raise strip_frames(error) or error from None
        self[index] = value


def _assign_recorded(x: Tensor, index: Any, value: Any) -> None:
    """Assign ``value`` to ``x[index]`` by differentiable in-place operations.

    This function is called if :func:`_assigned_by_numpy`, which is faster, returns False.
    """
    source = value if isinstance(value, Tensor) else wrap(_number(value, x))
    if index is False:
        return
    viewed, picks = _target(x, index)
    if not picks:
        if source._array.ndim == 0 and (source is not value or source.dtype is x.dtype or _real_floats(source, x)):
            fill_from_tensor_(viewed, source)
        else:
            _copy_into(viewed, source)
        return
    if active_levels() and (special := innermost_batch(picks)) is not None:
        special.put_picked(viewed, picks, source, False)
        return
    where = (() if active_levels() else _single_mask(viewed, picks)) or _checked_indices(
        viewed, _expand_masks(picks, viewed)
    )
    fills = _fills(picks, source)
    values = _values_to_assign(source, viewed, where, fills)
    if not fills:
        check_partial_overlap(viewed, (source, *_integer_indices(picks)), same=False)
    index_put_in_place(viewed, values, where, False)


def _integer_indices(picks: Sequence[Any]) -> list[Tensor]:
    """Return the index tensors among ``picks`` that are not masks; a mask is converted to new index tensors."""
    return [each for each in picks if each is not None and each.dtype not in MASK_DTYPES]


def _real_floats(*given: Tensor) -> bool:
    return all(each.dtype.category == dtypes.FLOATING for each in given)


def _single_mask(x: Tensor, picks: list[Any]) -> tuple[Any, ...]:
    """Return a tuple with a copy of the mask of an assignment ``x[mask] = …``, or an empty tuple.

    The tuple is empty if ``picks``, the list of index tensors, is not a single mask that fits the first dimensions of
    ``x``. The caller then converts masks to integer indices.
    """
    if len(picks) > 1:
        return ()
    array = picks[0]._array
    fits = array.dtype is BOOL and array.shape == x._array.shape[: array.ndim]
    return (array.copy(),) if fits else ()


def _target(x: Tensor, index: Any) -> tuple[Tensor, list[Any]]:
    """Return the view of ``x`` to which ``x[index] = …`` writes, and a list of index tensors.

    The assignment writes only to the elements of the view that the index tensors select. The items of the list apply to
    successive dimensions of the view; None means all elements. If ``index`` contains no index tensors, the list is
    empty, and the assignment writes to the whole view.
    """
    kind = index.__class__
    if kind is int and x._array.ndim:
        return select_block(x, 0, _in_range(index, x._array.shape[0], 0)), []
    if kind is tuple and (part := _basic_view(x, index)) is not None:
        return (x if part._array.shape == x._array.shape else part), []  # without steps, an equal shape means all of it
    if index is True:
        return unsqueeze_block(x, 0), []
    view, picks = apply_basic_index(x, index)
    return view, picks if view._array.__class__ is numpy.ndarray else _on_device_of(view, picks)


def _assigned_by_numpy(x: Tensor, index: Any, value: Any) -> bool:
    """Assign ``value`` to ``x[index]`` with NumPy and return True, or return False if this is not possible.

    It is possible if autograd does not record the assignment, if ``x`` and ``value`` do not share memory, and if NumPy
    and PyTorch interpret ``index`` and ``value`` in the same way. If the result is False, the caller uses
    :func:`_assign_recorded`.
    """
    if not is_directly_writable(x):
        return False
    array, given = x._array, value
    if value.__class__ not in NUMBERS:
        if not is_untracked(value) or share_memory(value._array, array):
            return False
        given = value._array
        if given.dtype is not array.dtype and (given.dtype.kind not in _REAL or array.dtype.kind not in _REAL):
            return False
    elif not stores_like_pytorch(value, array.dtype):
        return False
    kind = index.__class__
    if kind is int:
        key: Any = index, Ellipsis
    else:
        key = None if kind is Tensor else _numpy_view_key(index if kind is tuple else (index,))
    if key is None:
        key = _numpy_key(index)
        if key is None or (given is not value and given.dtype is not array.dtype):
            return False
        if array.dtype is INT64 and any(
            isinstance(each, Tensor) and share_memory(each._array, array)
            for each in (index if kind is tuple else (index,))
        ):
            return False
    counter = x._counter
    version = counter[0] if counter else 0
    masked = given is value and key.__class__ is numpy.ndarray and key.dtype == bool and key.shape == array.shape
    write: Any = elementwise.fill_in_place if masked else setitem
    try:
        write(array, key, given)
        bump_version(x)
    except KeyboardInterrupt:
        write(array, key, given)  # writing a second time has no other effect
        set_version(x, version + 1)
        raise
    except Exception:  # the generic path raises PyTorch's error
        return False
    return True


#: The kinds of dtypes between which NumPy converts as PyTorch does.
_REAL = "fiub"


def _fills(picks: list[Any], source: Tensor) -> bool:
    """Whether an assignment ``x[mask] = source`` fills the selected elements with a single number.

    This is the case if ``source`` has one element and the list ``picks`` contains one index tensor, a mask. Then
    PyTorch allows that ``x`` and ``source`` have different dtypes. Raise RuntimeError if the mask is of dtype uint8.
    """
    tensors = [each for each in picks if each is not None]
    filled = source._array.size == 1 and len(tensors) == 1 and tensors[0].dtype in MASK_DTYPES
    if filled and tensors[0].dtype is dtypes.uint8:
        raise RuntimeError("masked_fill_ only supports boolean masks, but got mask with dtype unsigned char")
    return filled


def _number(value: Any, x: Tensor) -> Any:
    """Return the number ``value`` converted to the dtype of ``x``, as a 0-d array."""
    if hasattr(value, "__index__") and isinstance(value, (int, numpy.integer)):
        value = value.__index__()
        if not -(2**63) <= value < 2**63:
            raise ValueError("Overflow when unpacking long long")
    elif not isinstance(value, (float, complex)):
        kind = f"numpy.{type(value).__name__}" if type(value).__module__ == "numpy" else type(value).__name__
        raise TypeError(f"can't assign a {kind} to a torch.{dtypes.scalar_name(x.dtype)}Tensor")
    return dtypes.number_to_array(value, x._array.dtype)


def _copy_into(target: Tensor, value: Tensor) -> None:
    """Copy ``value`` into ``target`` after broadcasting it to the shape of ``target``.

    Leading dimensions of size 1 of ``value`` are removed first, so ``value`` may have more dimensions than ``target``.
    """
    shape = value._array.shape
    if shape and shape != target._array.shape:
        ones = next((i for i, size in enumerate(shape) if size != 1), len(shape))
        value = view_block(value, shape[ones:])
        if shape[ones:] != target._array.shape:
            value = expand(value, target._array.shape)
    target.copy_(value)


def _values_to_assign(source: Tensor, x: Tensor, where: tuple[Any, ...], fills: bool) -> Tensor:
    """Return ``source``, the values to assign to ``x[where]``, without leading dimensions of size 1.

    ``where`` is a tuple of index arrays. Raises RuntimeError if ``source`` does not broadcast to the shape of
    ``x[where]``. Also raises RuntimeError if ``source`` has another dtype than ``x``, unless ``fills`` is true, which
    means that a single number is written to all elements that a mask selects.
    """
    if source._array.ndim == 0 and source._array.dtype is x._array.dtype:
        return source
    have, shape = source._array.shape, indexing.result_shape(x._array.shape, where)
    ones = next((i for i, size in enumerate(have) if size != 1), len(have))
    if ones:
        have = have[ones:]
        source = view_block(source, have)
    try:
        fits = numpy.broadcast_shapes(have, shape) == tuple(shape)
    except ValueError:
        fits = False
    if not fits:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(have)} cannot be broadcast to indexing result of shape "
            f"{list(shape)}"
        )
    if source.dtype is not x.dtype:
        if not fills:
            raise RuntimeError(
                "Index put requires the source and destination dtypes match, got "
                f"{dtypes.scalar_name(x.dtype)} for the destination and {dtypes.scalar_name(source.dtype)} for the source."
            )
        dtypes.number_to_array(source._array.item(), x._array.dtype)
    return source


@op(
    name="index_put_block", backward="IndexPutBackward0", function=False, method=False, linear=True,
    write=(
        lambda picks, accumulate: not accumulate and picks,
        lambda self, values, picks: indexing.put(numpy, self, picks, values),
    ),
)  # fmt: skip
def index_put_block(np: Any, self: Any, values: Any, /, picks: tuple[Any, ...], accumulate: bool) -> Any:
    """Return a copy of ``self`` with ``values`` written at the indices ``picks``.

    ``picks`` has an item for each indexed dimension: an integer array, or None for all elements. If ``accumulate`` is
    true, ``values`` are added to the elements of ``self``.
    """
    out = np.array(self, order="C")
    if picks:
        values = np.broadcast_to(values, indexing.result_shape(self.shape, picks))
    if accumulate:
        return indexing.add(np, out, picks, values) if picks else np.add(out, values, out)
    return indexing.put(np, out, picks, values)


def _put_self_rule(F: Any, g: Any, picks: Any, accumulate: bool) -> Any:
    return g if accumulate else F.index_fill_zero(g, picks)


index_put_block.derivative(self=_put_self_rule, values=lambda F, g, picks: F.index_block(g, picks))


index_put_in_place = in_place_form(index_put_block.op, "index_put_")


@op(function=False, method=False, linear=True)
def index_fill_zero(np: Any, self: Any, /, picks: tuple[Any, ...]) -> Any:
    """Return a copy of ``self`` with zeros written at the indices ``picks``.

    ``picks`` has an item for each indexed dimension: an integer array, or None for all elements.
    """
    return indexing.put(np, np.array(self, order="C"), picks, np.zeros((), self.dtype))


index_fill_zero.derivative(self=lambda F, g, picks: F.index_fill_zero(g, picks))


def index_put_values(x: Tensor, picks: list[Any], values: Tensor, accumulate: bool) -> Tensor:
    """Return a copy of ``x`` with ``values`` written at the indices ``picks``.

    ``picks`` has an item for each indexed dimension: an index tensor, or None for all elements. If ``accumulate`` is
    true, ``values`` are added to the elements of ``x``.
    """
    where = _checked_indices(x, _expand_masks(picks, x))
    return index_put_block(x, _values_to_assign(values, x, where, _fills(picks, values)), where, accumulate)


def _put_arguments(
    input: Tensor, indices: Any, values: Any, accumulate: bool
) -> tuple[Tensor, tuple[Any, ...], Tensor]:
    """Check the arguments of ``index_put`` and return the tuple (``input``, index arrays, values to write).

    The index arrays are a tuple of int64 arrays, one for each indexed dimension. Raises PyTorch's errors for invalid
    arguments.
    """
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
        picks.append(each)
    if sum(map(_dims_used, picks)) > input._array.ndim:
        used = sum(map(_dims_used, picks))
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {used})")
    fills = _fills(picks, values) and not accumulate
    if len(picks) == 1 and picks[0].dtype in MASK_DTYPES and not picks[0]._array.ndim:
        picks = [wrap(numpy.broadcast_to(picks[0]._array, input._array.shape))]
    picks = _expand_masks(picks, input)
    if not picks:
        try:
            fits = numpy.broadcast_shapes(values._array.shape, input._array.shape) == input._array.shape
        except ValueError:
            fits = False
        if not fits:
            raise RuntimeError(
                f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
                f"{list(input.shape)}"
            )
        return input, (), values
    where = _checked_indices(input, picks)
    return input, where, _values_to_assign(values, input, where, fills)


@public()
def index_put(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of ``input`` with ``values`` written at ``indices``, a tuple of index tensors.

    If ``accumulate`` is true, ``values`` are added to the elements of ``input``.
    """
    if isinstance(indices, (tuple, list)) and (special := innermost_batch(indices)) is not None:
        return special.by_slices(index_put, (input, indices, values, accumulate), {})
    _, where, source = _put_arguments(input, indices, values, accumulate)
    return index_put_block(input, source, where, accumulate)


@public()
def index_put_(input: Tensor, indices: Any, values: Tensor, accumulate: bool = False) -> Tensor:
    """Overwrite ``input`` with the result of :func:`index_put` for the same arguments, and return ``input``."""
    if isinstance(indices, (tuple, list)) and (special := innermost_batch(indices)) is not None:
        input.copy_(special.by_slices(index_put, (input, indices, values, accumulate), {}))
        return input
    _, where, source = _put_arguments(input, indices, values, accumulate)
    check_partial_overlap(input, (values, *_integer_indices(indices)), same=False)
    index_put_in_place(input, source, where, accumulate)
    return input


public(function=False, name="__getitem__", fast_path=select_block, when=lambda index: index.__class__ is int, dim=0)(
    _getitem
)
public(function=False, name="__setitem__")(_setitem)
