"""Helpers for operations along dimensions (reductions, sorting, selection by index) and for their derivative rules."""

from __future__ import annotations

from typing import Any

from ...dispatch.declare import op
from ...kernels import gather_scatter
from ...kernels.reductions import axes_of as axes_of
from ...kernels.reductions import keepdim_shape as keepdim_shape

#: The condition for the fast path of functions with one int as ``dim``; the kernels accept negative ones.


def restore_dims(F: Any, x: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """Return ``x``, the result of a reduction over ``dim``, with the reduced dimensions inserted again with size 1.

    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays. ``shape`` is the shape before the
    reduction. If ``keepdim`` is true, ``x`` already has these dimensions and is returned unchanged.
    """
    return x if keepdim or not shape else F.reshape(x, keepdim_shape(shape, dim))


@op(function=False, method=False, linear=True, vmap="leading")
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


@op(function=False, method=False, linear=True, vmap="leading")
def take_along(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """Return the elements of ``self`` at the indices ``index`` along ``dim``, in the shape of ``index``."""
    return gather_scatter.take_along(np, self, index, dim) if self.ndim else self.reshape(index.shape)


take_along.derivative(self=lambda F, g, index, self_shape, dim: F.put_along(g, index, self_shape, dim))


def select_one_rule(F: Any, g: Any, indices: Any, self_shape: Any, dim: int, keepdim: bool) -> Any:
    """Return the gradient of an operation that selects one element along ``dim``, such as ``max``.

    The result is zeros of ``self_shape`` with the gradient ``g`` of the selected elements written at their ``indices``.
    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
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
    ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    return F.put_along(g, indices, self_shape, dim)
