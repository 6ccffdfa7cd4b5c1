"""What the engine and the rules need of operations: casting, fitting shapes, reading and writing through strides."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy
from numpy.lib.stride_tricks import as_strided as _as_strided

from ..core.dtypes import SHORT
from ..core.views import StridedLayout, type_string
from ..dispatch.declare import ARRAYS, op, pointwise
from ..kernels.half_precision import F32
from ..kernels.numba_dispatch import LARGE, looped
from ..kernels.reductions import sum_along, summed


@op(
    name="to_dtype", backward="ToCopyBackward0", function=False, method=False,
    inline_expr=("self.dtype is not dtype.numpy", f"self.astype(dtype.numpy) if self.size < {LARGE} else kernel(np, self, dtype)"),
)  # fmt: skip
def to_dtype(np: Any, self: Any, /, dtype: Any) -> Any:
    """``self`` with elements of ``dtype`` (a copy)."""
    if self.dtype.kind == "c" and not dtype.is_complex and dtype.numpy.kind != "b":
        self = self.real
    kind = dtype.numpy
    if self.size >= LARGE and kind not in SHORT and (large := looped("copy", self, kind=kind)) is not None:
        return large
    return self.astype(kind)


to_dtype.derivative(self=1)  # the engine casts


@pointwise(lambda F, g: F.conj_physical(g), in_place=True, holomorphic=False, in_place_backward="ConjPhysicalBackward1")
def conj_physical(np: Any, self: Any, /) -> Any:
    """Complex conjugate, element by element, in memory of its own."""
    return self.conj()


@op(function=False, method=False, opmath=True)
def sum_to_size(np: Any, self: Any, /, size: Any) -> Any:
    """Sum ``self`` over the dimensions along which a tensor of shape ``size`` would have to be broadcast."""
    lead = self.ndim - len(size)
    if lead:
        self = summed(np, self, tuple(range(lead)), False)
    narrow = tuple(i for i, (have, want) in enumerate(zip(np.shape(self), size, strict=True)) if have != want)
    return summed(np, self, narrow, True) if narrow else self


sum_to_size.derivative(self=lambda F, g, self_shape: F.expand(g, self_shape))


# -- Through strides: `whole` is the geometry of a memory's tensor, `part` of a view of it (see core/views.py).


def _span(geometry: StridedLayout) -> tuple[int, int]:
    """The first element of the memory that a geometry touches, and the last."""
    if 0 in geometry.shape:
        return geometry.offset, geometry.offset
    reach = sum((size - 1) * step for size, step in zip(geometry.shape, geometry.strides, strict=True))
    return geometry.offset, geometry.offset + reach


def _through(np: Any, memory: Any, start: int, geometry: StridedLayout) -> Any:
    strides = tuple(step * memory.itemsize for step in geometry.strides)
    return as_strided_of(np)(memory[geometry.offset - start :], geometry.shape, strides)


def as_strided_of(np: Any) -> Any:
    return _as_strided if np.__name__ == "numpy" else np.lib.stride_tricks.as_strided


def _memory(np: Any, dtype: Any, *geometries: StridedLayout) -> tuple[Any, int]:
    """A zeroed memory in which all geometries fit, and the place at which it starts."""
    spans = [_span(each) for each in geometries]
    start = min(first for first, _ in spans)
    return np.zeros(max(last for _, last in spans) - start + 1, dtype), start


def _laid(np: Any, memory: Any, start: int, geometry: StridedLayout, values: Any) -> None:
    """Write ``values`` into a zeroed memory, adding up what lies at one place."""
    if overlaps(geometry):
        np.add.at(memory, _through(np, np.arange(memory.size), start, geometry).ravel(), values.ravel())
    else:
        _through(np, memory, start, geometry)[...] = values


def _shared_out(np: Any, memory: Any, start: int, geometry: StridedLayout) -> Any:
    """What lies in memory, divided at every place by how many elements of ``strided_layout`` lie there: they share it."""
    if not overlaps(geometry):
        return memory
    counts = np.zeros_like(memory)
    _laid(np, counts, start, geometry, np.ones(geometry.shape, memory.dtype))
    return memory / np.maximum(counts.real, 1)


@op(function=False, method=False, linear=True, opmath=True)
def strided_read(np: Any, self: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """The elements of ``self``, which lies in memory as ``whole``, that a view ``part`` of that memory shows."""
    memory, start = _memory(np, self.dtype, whole, part)
    _laid(np, memory, start, whole, self)
    return _through(np, _shared_out(np, memory, start, whole), start, part).copy()


strided_read.derivative(self=lambda F, g, whole, part: F.strided_add(g, whole, part))


@op(function=False, method=False, linear=True, opmath=True)
def strided_add(np: Any, self: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """The adjoint of ``strided_read``: zeros as ``whole``, to which every element of ``self`` is added at its place."""
    memory, start = _memory(np, self.dtype, whole, part)
    _laid(np, memory, start, part, self)
    return _through(np, _shared_out(np, memory, start, whole), start, whole).copy()


strided_add.derivative(self=lambda F, g, whole, part: F.strided_read(g, whole, part))


def overlaps(geometry: StridedLayout) -> bool:
    """Whether two elements of a geometry may lie at one place."""
    reach = 0
    for step, size in sorted(zip(geometry.strides, geometry.shape, strict=True)):
        if size > 1:
            if step <= reach:
                return True
            reach += step * (size - 1)
    return False


@op(function=False, method=False, linear=True)
def strided_write(np: Any, self: Any, source: Any, /, whole: StridedLayout, part: StridedLayout) -> Any:
    """``self``, which lies in memory as ``whole``, with its view ``part`` overwritten by ``source`` (None: zeros)."""
    memory, start = _memory(np, self.dtype, whole, part)
    _through(np, memory, start, whole)[...] = self
    _through(np, memory, start, part)[...] = 0 if source is None else source
    return _through(np, memory, start, whole).copy()


strided_write.derivative(
    self=lambda F, g, whole, part: F.strided_write(g, None, whole, part),
    source=lambda F, g, whole, part: F.strided_read(g, whole, part),
)


@op(view=True, name="expand", method=False, function=False)
def expand(np: Any, self: Any, /, size: Any) -> Any:
    """``self`` with dimensions of size 1 (and new ones in front) stretched to ``size`` without copying."""
    if self.__class__ is numpy.ndarray and self.flags.c_contiguous and self.size and self.dtype.kind != "V":
        for each in size:
            if each.__class__ is not int:
                break
        else:
            if (form := _form(self.shape, self.strides, tuple(size))) is not None:
                return numpy.ndarray(form[0], self.dtype, self, 0, form[1])
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
    for i in range(lead - 1, -1, -1) if 1 in new else ():  # a new dimension of size 1 steps over all that follow
        if target[i] == 1 and steps:
            strides[i] = target[i + 1] * strides[i + 1]
    if np is numpy and self.flags.c_contiguous and self.size and self.dtype.kind != "V":
        return numpy.ndarray(target, self.dtype, self, 0, strides)  # as as_strided does, in a tenth of its time
    return as_strided_of(np)(self, target, strides)


@lru_cache(maxsize=256)
def _form(shape: tuple[int, ...], steps: tuple[int, ...], size: tuple[int, ...]) -> Any:
    """Shape and strides of what has ``shape`` stretched to ``size``; None for what has to be looked at."""
    lead = len(size) - len(shape)
    if lead < 0 or min(size, default=0) < 0 or 1 in size[:lead]:
        return None
    if any(have not in (1, want) for have, want in zip(shape, size[lead:], strict=True)):
        return None
    strides = [step if have == want else 0 for step, have, want in zip(steps, shape, size[lead:], strict=True)]
    return size, (0,) * lead + tuple(strides)


expand.derivative(self=lambda F, g, self_shape: F.sum_to_size(g, self_shape))
_summed_to, _expanded = ARRAYS.sum_to_size, ARRAYS.expand


def _summed_to_at_once(x: Any, size: Any) -> Any:
    """``sum_to_size`` of arrays: float32 over the first dimension, as for a bias, needs no looking at dimensions."""
    if x.ndim == len(size) + 1 and x.dtype is F32 and x.shape[1:] == size:
        return sum_along(numpy, x, 0, False)
    return _summed_to(x, size)


def _expanded_at_once(x: Any, size: Any) -> Any:
    """``expand`` of arrays: one number spread over few is written to each, which then is nobody's view."""
    if x.__class__ is numpy.float32 and math.prod(size) < LARGE:
        out = numpy.empty(size, F32)
        out.fill(x)
        return out
    return _expanded(x, size)


ARRAYS.__dict__.update(sum_to_size=_summed_to_at_once, expand=_expanded_at_once)


def inexpandable(x: Any, size: list[int]) -> RuntimeError:
    """torch's error for what can not be stretched to ``size``, where -1 stands for the size that is there."""
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
