"""Along dimensions: what reductions, sorting and all that choose elements by an index have in common in their rules."""

from __future__ import annotations

from typing import Any

from ...core.tensor import dimension
from ...dispatch.declare import op
from ...kernels import gather_scatter

#: The guard of surfaces whose dimension is one whole number; their blocks count it from either end.
WHOLE = "dim.__class__ is int"


def axes_of(dim: Any, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front: all for None or an empty sequence."""
    if dim.__class__ is int and -ndim <= dim < ndim:
        return (dim if dim >= 0 else dim + ndim,)
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    given = dim if isinstance(dim, (tuple, list)) else (dim,)
    found = tuple([dimension(each, ndim) for each in given])
    if len(set(found)) != len(found):
        twice = next(each for each in found if found.count(each) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims")
    return found if ndim else ()


def kept_shape(shape: tuple[int, ...], dim: Any) -> tuple[int, ...]:
    """``shape`` with the reduced dimensions of size 1."""
    axes = axes_of(dim, len(shape))
    if len(axes) == 1:
        return (*shape[: axes[0]], 1, *shape[axes[0] + 1 :])
    return tuple([1 if axis in axes else size for axis, size in enumerate(shape)])


def restored(F: Any, x: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """A reduced tensor with its reduced dimensions back, of size 1."""
    return x if keepdim or not shape else F.reshape(x, kept_shape(shape, dim))


@op(function=False, method=False, linear=True)
def put_along(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Zeros of ``shape`` with ``self`` at ``index`` along ``dim`` (each place at most once)."""
    out = np.zeros(shape, self.dtype)
    if not shape:
        return self.reshape(shape)
    gather_scatter.put_along(np, out, index, self, dim)
    return out


put_along.derivative(self=lambda F, g, index, dim: F.take_along(g, index, dim))


@op(function=False, method=False, linear=True)
def take_along(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """The elements at ``index`` along ``dim``."""
    return gather_scatter.taken_along(np, self, index, dim) if self.ndim else self.reshape(index.shape)


take_along.derivative(self=lambda F, g, index, self_shape, dim: F.put_along(g, index, self_shape, dim))


def chosen_rule(F: Any, g: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    """The gradient of what chooses one element along ``dim``: it goes to the place that was chosen."""
    return F.put_along(
        restored(F, g, self_shape, dim, keepdim), restored(F, indices, self_shape, dim, keepdim), self_shape, dim
    )


def ordered_rule(F: Any, g: Any, indices: Any, self_shape: Any, dim: int) -> Any:
    """The gradient of what chooses several elements along ``dim``: each goes to its place."""
    return F.put_along(g, indices, self_shape, dim)
