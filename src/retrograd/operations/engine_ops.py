"""Operations for the backward pass and for derivative rules: casts, ``sum_to_size``, ``expand``, strided access.

A layout, in this file, is the position of the elements of a tensor in its storage: a storage offset, a shape and
strides. Offset and strides are counted in elements.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided as _as_strided

from ..core.dtypes import STORED_NUMPY
from ..core.views import StridedLayout, type_string
from ..dispatch.declare import ARRAYS, op, pointwise
from ..kernels import copying, elementwise
from ..kernels.half_precision import F32
from ..kernels.reductions import sum_along, sum_axes


@op(
    backward="ToCopyBackward0", function=False, method=False, linear=True, vmap="leading", event="_to_copy",
    inline=lambda self, dtype: elementwise.convert(numpy, self, dtype.numpy),
)  # fmt: skip
def to_dtype(np: Any, self: Any, /, dtype: Any) -> Any:
    """Return a copy of ``self`` converted to ``dtype``.

    If ``self`` is complex and ``dtype`` is real, the imaginary part is discarded.
    """
    if self.dtype.kind == "W":
        self = self.astype(np.complex64)
    if self.dtype.kind == "c" and not dtype.is_complex and dtype.numpy.kind != "b":
        self = self.real
    kind = dtype.numpy
    return elementwise.convert(np, self, kind)


to_dtype.derivative(self=1)  # the engine casts the gradient


@pointwise(
    lambda F, g: F.conj_physical(g), in_place=True, holomorphic=False, in_place_backward="ConjPhysicalBackward1", linear=True,
)  # fmt: skip
def conj_physical(np: Any, self: Any, /) -> Any:
    """Return the complex conjugate of each element of ``self``, as a new array."""
    return self.conj()


@op(function=False, method=False, opmath=True, linear=True, event="sum")
def sum_to_size(np: Any, self: Any, /, size: Any) -> Any:
    """Return ``self`` summed to the shape ``size``, which must be a shape that broadcasts to the shape of ``self``.

    The sum is taken over the dimensions that ``size`` lacks and those that have size 1 in ``size``.
    """
    lead = self.ndim - len(size)
    if lead:
        self = sum_axes(np, self, tuple(range(lead)), False)
    narrow = tuple(i for i, (have, want) in enumerate(zip(np.shape(self), size, strict=True)) if have != want)
    return sum_axes(np, self, narrow, True) if narrow else self


sum_to_size.derivative(self=lambda F, g, self_shape: F.expand(g, self_shape))


# -- Strided access. `whole` is the layout of the tensor that owns a storage, `part` that of a view (see core/views.py).


def _span(layout: StridedLayout) -> tuple[int, int]:
    """Return the storage offsets of the first and the last element of a tensor with the given ``layout``.

    A layout consists of a storage offset, a shape and strides.
    """
    if 0 in layout.shape:
        return layout.offset, layout.offset
    reach = sum((size - 1) * step for size, step in zip(layout.shape, layout.strides, strict=True))
    return layout.offset, layout.offset + reach


def _strided_view(np: Any, memory: Any, start: int, layout: StridedLayout) -> Any:
    """Return a view of the 1-d array ``memory`` for a tensor with the storage offset, shape and strides in ``layout``.

    ``memory`` is a part of the storage of the tensor. ``start`` is the index in the whole storage of the first element
    of ``memory``.
    """
    strides = tuple(step * memory.itemsize for step in layout.strides)
    return as_strided_of(np)(memory[layout.offset - start :], layout.shape, strides)


def as_strided_of(np: Any) -> Any:
    """Return the function ``as_strided`` for arrays of the module ``np``, NumPy or CuPy."""
    return _as_strided_array if np.__name__ == "numpy" else np.lib.stride_tricks.as_strided


def _as_strided_array(array: Any, shape: Any, strides: Any) -> Any:
    if array.dtype.num < 256 or array.dtype not in STORED_NUMPY:
        return _as_strided(array, shape, strides)
    bits = array.view(f"u{array.itemsize}")  # NumPy's function does not support all dtypes of ml_dtypes
    return _as_strided(bits, shape, strides).view(array.dtype)


def _zeroed_memory(np: Any, dtype: Any, *layouts: StridedLayout) -> tuple[Any, int]:
    """Return an array of zeros for a part of a storage, as the tuple (memory, start).

    ``memory`` is 1-d and large enough for the elements of tensors with the given ``layouts`` (storage offset, shape and
    strides). ``start`` is the index in the whole storage of its first element.
    """
    spans = [_span(each) for each in layouts]
    start = min(first for first, _ in spans)
    return np.zeros(max(last for _, last in spans) - start + 1, dtype), start


def _store(np: Any, memory: Any, start: int, layout: StridedLayout, values: Any) -> None:
    """Write ``values``, the elements of a tensor, to their positions in ``memory``.

    ``layout`` holds the storage offset, shape and strides of the tensor. ``memory`` is a 1-d array of zeros for a part
    of its storage, and ``start`` is the index in the whole storage of the first element of ``memory``. If several
    elements of the tensor have the same position, their values are added.
    """
    if overlaps(layout):
        np.add.at(memory, _strided_view(np, np.arange(memory.size), start, layout).ravel(), values.ravel())
    else:
        _strided_view(np, memory, start, layout)[...] = values


def _divided_by_counts(np: Any, memory: Any, start: int, layout: StridedLayout) -> Any:
    """Return ``memory`` divided, at each position, by the number of elements of a tensor at this position.

    Several elements of a tensor have the same position if, for example, a stride is 0. Positions without an element are
    not changed. ``layout`` holds the storage offset, shape and strides of the tensor. ``memory`` is a 1-d array for a
    part of its storage, and ``start`` is the index in the whole storage of the first element of ``memory``.
    """
    if not overlaps(layout):
        return memory
    counts = np.zeros_like(memory)
    _store(np, counts, start, layout, np.ones(layout.shape, memory.dtype))
    return memory / np.maximum(counts.real, 1)


@op(function=False, method=False, linear=True, opmath=True, vmap="slices")
def strided_read(np: Any, self: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """Return a copy of the elements that a view with the layout ``part`` selects from the tensor ``self``.

    ``whole`` is the layout of ``self``, and both layouts refer to the same storage. A layout consists of a storage
    offset, a shape and strides. Elements of the view that are not elements of ``self`` are 0.
    """
    memory, start = _zeroed_memory(np, self.dtype, whole, part)
    _store(np, memory, start, whole, self)
    return _strided_view(np, _divided_by_counts(np, memory, start, whole), start, part).copy()


strided_read.derivative(self=lambda F, g, whole, part: F.strided_add(g, whole, part))


@op(function=False, method=False, linear=True, opmath=True, vmap="slices")
def strided_add(np: Any, self: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """Return the gradient of ``strided_read`` with respect to its operand, for the same ``whole`` and ``part``.

    ``self`` is the gradient of the result of ``strided_read``. Each of its elements is added to zeros, at its position
    in the storage, so that elements with the same position are summed. ``whole`` is the layout of the result, and
    ``part`` that of ``self``, in the same storage. A layout consists of a storage offset, a shape and strides.
    """
    memory, start = _zeroed_memory(np, self.dtype, whole, part)
    _store(np, memory, start, part, self)
    return _strided_view(np, _divided_by_counts(np, memory, start, whole), start, whole).copy()


strided_add.derivative(self=lambda F, g, whole, part: F.strided_read(g, whole, part))


def overlaps(layout: StridedLayout) -> bool:
    """Return whether two elements of a tensor with the layout ``layout`` may have the same position in memory.

    A layout consists of a storage offset, a shape and strides.
    """
    reach = 0
    for step, size in sorted(zip(layout.strides, layout.shape, strict=True)):
        if size > 1:
            if step <= reach:
                return True
            reach += step * (size - 1)
    return False


@op(function=False, method=False, linear=True, vmap="slices")
def strided_write(np: Any, self: Any, source: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """Return a copy of ``self`` in which the elements that a view selects are replaced by those of ``source``.

    ``whole`` is the layout of ``self``, and ``part`` is the layout of the view in the same storage. A layout consists
    of a storage offset, a shape and strides. If ``source`` is None, the elements are replaced by zeros.
    """
    memory, start = _zeroed_memory(np, self.dtype, whole, part)
    _strided_view(np, memory, start, whole)[...] = self
    _strided_view(np, memory, start, part)[...] = 0 if source is None else source
    return _strided_view(np, memory, start, whole).copy()


strided_write.derivative(
    self=lambda F, g, whole, part: F.strided_write(g, None, whole, part),
    source=lambda F, g, whole, part: F.strided_read(g, whole, part),
)


@op(view=True, name="expand", method=False, function=False)
def expand(np: Any, self: Any, /, size: Any) -> Any:
    """Return a view of ``self`` broadcast to the shape ``size``.

    If a size is -1, the size of the dimension is unchanged.
    """
    if self.__class__ is numpy.ndarray and self.flags.c_contiguous and self.size and self.dtype.kind != "V":
        for each in size:
            if each.__class__ is not int:
                break
        else:
            if (expanded := _expanded_form(self.shape, self.strides, tuple(size))) is not None:
                return numpy.ndarray(expanded[0], self.dtype, self, 0, expanded[1])
    if not hasattr(self, "strides"):
        self = np.asarray(self)
    steps, target = self.strides, list(size)
    lead = len(target) - len(steps)
    new = target[: max(lead, 0)]
    if lead < 0 or (new and min(new) < 0):
        raise inexpandable(self, list(size))
    strides = [0] * len(target)
    for i, have in enumerate(self.shape, lead):
        if target[i] == have or target[i] == -1:
            target[i], strides[i] = have, steps[i - lead]
        elif have != 1:
            raise inexpandable(self, list(size))
    for i in range(lead - 1, -1, -1) if 1 in new else ():  # the stride of a new dimension of size 1 spans the next ones
        if target[i] == 1 and steps:
            strides[i] = target[i + 1] * strides[i + 1]
    if np is numpy and self.flags.c_contiguous and self.size and self.dtype.kind != "V":
        return numpy.ndarray(target, self.dtype, self, 0, strides)  # ten times as fast as as_strided
    return as_strided_of(np)(self, target, strides)


@lru_cache(maxsize=256)
def _expanded_form(shape: tuple[int, ...], steps: tuple[int, ...], size: tuple[int, ...]) -> Any:
    """Return the tuple (shape, strides) of an array after its expansion to ``size``, or None for unusual sizes.

    ``shape`` and ``steps`` are the shape and the strides of the array before the expansion. If ``size`` is invalid,
    contains -1, or adds a dimension of size 1, the result is None. Then the general function, which is slower, is used.
    """
    lead = len(size) - len(shape)
    if lead < 0 or min(size, default=0) < 0 or 1 in size[:lead]:
        return None
    if any(have not in (1, want) for have, want in zip(shape, size[lead:], strict=True)):
        return None
    strides = [step if have == want else 0 for step, have, want in zip(steps, shape, size[lead:], strict=True)]
    return size, (0,) * lead + tuple(strides)


expand.derivative(self=lambda F, g, self_shape: F.sum_to_size(g, self_shape))
_summed_to, _expanded = ARRAYS.sum_to_size, ARRAYS.expand


def _sum_to_size_fast(x: Any, size: Any) -> Any:
    """Return the array ``x`` summed to the shape ``size``, as ``sum_to_size`` does.

    In one case, a faster function is used: the sum of a float32 array over its first dimension. The gradient of a bias,
    for example, is such a sum.
    """
    if x.ndim == len(size) + 1 and x.dtype is F32 and x.shape[1:] == size:
        return sum_along(numpy, x, 0, False)
    return _summed_to(x, size)


def _expand_fast(x: Any, size: Any) -> Any:
    """Return the array ``x`` expanded to the shape ``size``, as ``expand`` does.

    If ``x`` is a float32 scalar and ``size`` is small, the result is a new array filled with ``x`` instead of a view.
    """
    if x.__class__ is numpy.float32 and (out := copying.filled_if_small(x, size)) is not None:
        return out
    return _expanded(x, size)


ARRAYS.__dict__.update(sum_to_size=_sum_to_size_fast, expand=_expand_fast)


def inexpandable(x: Any, size: list[int]) -> RuntimeError:
    """Return PyTorch's RuntimeError for an array ``x`` that cannot be expanded to the shape ``size``.

    A size of -1 in ``size`` means that the dimension keeps its size.
    """
    shape = x.shape
    lead = len(size) - len(shape)
    if lead < 0:
        return RuntimeError(
            f"expand({type_string(x)}{{{list(shape)}}}, size={list(size)}): the number of sizes provided ({len(size)}) must be "
            f"greater or equal to the number of dimensions in the tensor ({len(shape)})"
        )
    if lead and min(size[:lead]) < 0 and (not shape or min(size[:lead]) < -1):
        return RuntimeError("numel: integer multiplication overflow")
    for i in range(len(size) - 1, -1, -1):
        want = size[i]
        have = shape[i - lead] if i >= lead else 1
        if want == -1 and i < lead:
            break
        if want != -1 and have not in (1, want):
            return RuntimeError(
                f"The expanded size of the tensor ({want}) must match the existing size ({have}) at non-singleton "
                f"dimension {i}.  Target sizes: {list(size)}.  Tensor sizes: {list(shape)}"
            )
    return RuntimeError(
        f"The expanded size of the tensor ({want}) isn't allowed in a leading, non-existing dimension {i}"
    )
