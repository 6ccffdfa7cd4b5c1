"""Functions of the array API standard that rearrange or select elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import retrograd as torch
from retrograd import Tensor

from ._dtypes import ANY, INTEGRAL, Axes, check, promoted


def axes_of(axis: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    """Return ``axis`` as a tuple of axes from 0 to ``ndim - 1``; raise IndexError or ValueError if one is outside or repeated."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    for each in given:
        if not -ndim <= each < ndim:
            raise IndexError(f"axis {each} is out of range for {ndim} dimensions")
    axes = tuple(each % ndim for each in given)
    if len(set(axes)) != len(axes):
        raise ValueError(f"repeated axis in {given}")
    return axes


def _shaped(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``function(*arguments)``, with ValueError for shapes or axes that PyTorch refuses with RuntimeError."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        raise ValueError(str(error)) from None


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape to which all ``shapes`` are broadcast; raise ValueError if there is none."""
    return tuple(_shaped(torch.broadcast_shapes, *shapes))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Return all ``arrays`` broadcast to one shape."""
    check("broadcast_arrays", ANY, *arrays)
    return tuple(_shaped(torch.broadcast_tensors, *arrays)) if arrays else ()


def broadcast_to(x: Tensor, /, shape: tuple[int, ...]) -> Tensor:
    """Return ``x`` broadcast to ``shape``."""
    check("broadcast_to", ANY, x)
    return _shaped(torch.broadcast_to, x, shape)


def concat(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Join arrays along an existing axis; with ``axis=None``, the flattened arrays."""
    operands = promoted("concat", ANY, *arrays)
    if axis is None:
        operands, axis = [each.flatten() for each in operands], 0
    return _shaped(torch.cat, operands, axis)


def stack(arrays: tuple[Tensor, ...] | list[Tensor], /, *, axis: int = 0) -> Tensor:
    """Join arrays along a new axis."""
    return _shaped(torch.stack, promoted("stack", ANY, *arrays), axis)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Split ``x`` into its slices along ``axis``."""
    check("unstack", ANY, x)
    return torch.unbind(x, axis)


def expand_dims(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return ``x`` with new axes of size 1 at the positions ``axis`` of the result."""
    check("expand_dims", ANY, x)
    for each in sorted(axes_of(axis, x.ndim + (1 if isinstance(axis, int) else len(axis)))):
        x = x.unsqueeze(each)
    return x


def squeeze(x: Tensor, /, axis: int | tuple[int, ...]) -> Tensor:
    """Return ``x`` without the axes ``axis``; raise ValueError if one is not of size 1."""
    check("squeeze", ANY, x)
    axes = axes_of(axis, x.ndim)
    for each in axes:
        if x.shape[each] != 1:
            raise ValueError(f"squeeze(): axis {each} has size {x.shape[each]}, not 1")
    return torch.squeeze(x, axes)


def permute_dims(x: Tensor, /, axes: tuple[int, ...]) -> Tensor:
    """Return ``x`` with its axes in the order ``axes``."""
    check("permute_dims", ANY, x)
    return _shaped(torch.permute, x, axes)


def moveaxis(x: Tensor, source: int | tuple[int, ...], destination: int | tuple[int, ...], /) -> Tensor:
    """Return ``x`` with the axes ``source`` moved to the positions ``destination``."""
    check("moveaxis", ANY, x)
    return _shaped(torch.moveaxis, x, source, destination)


def reshape(x: Tensor, /, shape: tuple[int, ...], *, copy: bool | None = None) -> Tensor:
    """Return the elements of ``x`` in another shape; with ``copy=False``, raise ValueError if a copy is needed."""
    check("reshape", ANY, x)
    if copy is False:
        return _shaped(x.view, shape)
    return _shaped(torch.reshape, x.clone() if copy else x, shape)


def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """Return ``x`` with the order of the elements along ``axis`` reversed; along all axes by default."""
    check("flip", ANY, x)
    return torch.flip(x, tuple(range(x.ndim)) if axis is None else axes_of(axis, x.ndim))


def roll(x: Tensor, /, shift: int | tuple[int, ...], *, axis: Axes = None) -> Tensor:
    """Return ``x`` with its elements shifted along ``axis``; those beyond the end come first."""
    check("roll", ANY, x)
    return torch.roll(x, shift, axis)


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Repeat each element of ``x``, or each slice along ``axis``."""
    check("repeat", ANY, x)
    if isinstance(repeats, Tensor):
        check("repeat", INTEGRAL, repeats)
        repeats = repeats.to(torch.int64)
    return torch.repeat_interleave(x, repeats, axis)


def tile(x: Tensor, repetitions: tuple[int, ...], /) -> Tensor:
    """Repeat ``x`` as a whole along each axis."""
    check("tile", ANY, x)
    return torch.tile(x, repetitions)


def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """Select the slices of ``x`` at the positions ``indices`` of ``axis``, which may be left out for one dimension."""
    check("take", ANY, x)
    check("take", INTEGRAL, indices)
    if axis is None:
        if x.ndim != 1:
            raise ValueError(f"take() needs an axis for an array of {x.ndim} dimensions")
        axis = 0
    (axis,) = axes_of(axis, x.ndim)
    return x[(slice(None),) * axis + (indices.to(torch.int64),)]


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """Return the elements of ``x`` at ``indices`` along ``axis``."""
    check("take_along_axis", ANY, x)
    check("take_along_axis", INTEGRAL, indices)
    indices = indices.to(torch.int64)
    return torch.take_along_dim(x, torch.where(indices < 0, indices + x.shape[axis], indices), axis)
