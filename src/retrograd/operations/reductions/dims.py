"""Helpers for operations along dimensions (reductions, sorting, selection by index) and for their derivative rules."""

from __future__ import annotations

from typing import Any

from ...core.tensor import normalize_dim
from ...dispatch.declare import op
from ...kernels import gather_scatter

#: The condition for the fast path of functions with one int as ``dim``; the kernels accept negative ones.


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """Return the reduced dimensions ``dim`` of an array with ``ndim`` dimensions as a tuple of non-negative ints.

    ``dim`` is an int or a sequence of ints. None or an empty sequence means all dimensions. Raises IndexError if a
    dimension is out of range, and RuntimeError if a dimension is passed twice.
    """
    if dim.__class__ is int and -ndim <= dim < ndim:
        return (dim if dim >= 0 else dim + ndim,)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    dims = dim if isinstance(dim, (tuple, list)) else (dim,)
    axes = tuple([normalize_dim(each, ndim) for each in dims])
    if len(set(axes)) != len(axes):
        twice = next(each for each in axes if axes.count(each) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return axes if ndim else ()


def keepdim_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """Return ``shape`` with the size of each dimension in ``dim`` set to 1, as after a reduction with keepdim."""
    axes = axes_of(dim, len(shape))
    if len(axes) == 1:
        return (*shape[: axes[0]], 1, *shape[axes[0] + 1 :])
    return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])


def restore_dims(F: Any, x: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """Return ``x``, the result of a reduction over ``dim``, with the reduced dimensions inserted again with size 1.

    ``F`` is the namespace of operations, and ``shape`` the shape before the reduction. If ``keepdim`` is true, ``x``
    already has these dimensions and is returned unchanged.
    """
    return x if keepdim or not shape else F.reshape(x, keepdim_shape(shape, dim))


@op(function=False, method=False, linear=True)
def put_along(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Return zeros of ``shape`` with the elements of ``self`` written at the indices ``index`` along ``dim``.

    The indices must be distinct along ``dim``.
    """
    out = np.zeros(shape, self.dtype)
    if not shape:
        return self.reshape(shape)
    gather_scatter.put_along(np, out, index, self, dim)
    return out


put_along.derivative(self=lambda F, g, index, dim: F.take_along(g, index, dim))


@op(function=False, method=False, linear=True)
def take_along(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """Return the elements of ``self`` at the indices ``index`` along ``dim``, in the shape of ``index``."""
    return gather_scatter.take_along(np, self, index, dim) if self.ndim else self.reshape(index.shape)


take_along.derivative(self=lambda F, g, index, self_shape, dim: F.put_along(g, index, self_shape, dim))


def select_one_rule(F: Any, g: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    """Return the gradient of an operation that selects one element along ``dim``, such as ``max``.

    The result is zeros of ``self_shape`` with the gradient ``g`` of the selected elements written at their ``indices``.
    ``F`` is the namespace of operations.
    """
    return F.put_along(
        restore_dims(F, g, self_shape, dim, keepdim),
        restore_dims(F, indices, self_shape, dim, keepdim),
        self_shape,
        dim,
    )


def select_several_rule(F: Any, g: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    """Return the gradient of an operation that selects several elements along ``dim``, such as ``topk``.

    The result is zeros of ``self_shape`` with the gradient ``g`` of the selected elements written at their ``indices``.
    ``F`` is the namespace of operations.
    """
    return F.put_along(g, indices, self_shape, dim)
