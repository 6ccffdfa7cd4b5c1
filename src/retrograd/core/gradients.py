"""Conversion of gradients: to the shape and dtype of the tensor they belong to, and between arrays and Tensors."""

from __future__ import annotations

import gc
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy

from .dtypes import dtype_of
from .error_context import describe_recording
from .grad_mode import recording
from .graph import AccumulateGrad, Node, edges_of_other_shape
from .rule_namespace import rule_namespace_of
from .tensor import Tensor, strided, wrap

if TYPE_CHECKING:
    from .typing import Gradient, GradientTarget, HasEdges, Shape


def validate_gradient(grad: Gradient, edge: GradientTarget, node: HasEdges) -> Gradient:
    """Return ``grad`` converted to the shape and dtype of ``edge``, the gradient edge at which it arrives.

    ``grad`` is a gradient that ``node`` computed. It is summed over broadcast dimensions, its dtype is converted, and
    its imaginary part is dropped if the dtype of ``edge`` is real. Raises RuntimeError if the shape of ``edge`` cannot
    be broadcast to that of ``grad``.
    """
    if isinstance(grad, Tensor) and grad.layout is not strided:
        return _sparse_gradient(grad, edge)
    level = rule_namespace_of(grad)
    shape = grad.shape if grad.__class__ is not Tensor else grad._array.shape
    if edges_of_other_shape and edge.__class__ is AccumulateGrad:
        _take_shape_of_leaf(edge)
    if shape != edge.shape:
        if not is_broadcastable(edge.shape, shape):
            index = next((i for i, each in enumerate(node.edges) if each is edge), 0)
            raise RuntimeError(
                f"Function {type(node).__name__} returned an invalid gradient at index {index} - got {list(shape)} but "
                f"expected shape compatible with {list(edge.shape)}.{describe_recording(node)} "
                "Remedy: let its backward give each input a gradient of that input's shape."
            )
        grad = level.sum_to_size(grad, edge.shape)
    dtype = grad._array.dtype if isinstance(grad, Tensor) else grad.dtype
    if dtype != edge.dtype:
        if dtype.kind == "c" and edge.dtype.kind != "c":
            grad = level.real(grad)
        grad = level.to_dtype(grad, dtype_of(edge.dtype))
    return grad


def _take_shape_of_leaf(edge: AccumulateGrad) -> None:
    """Give the gradient edge of a leaf the leaf's shape, if this has changed and no graph from before exists any more."""
    shape = edge.array.shape
    if shape != edge.shape:
        changed = edges_of_other_shape[-1]
        for holder in gc.get_referrers(edge):
            nodes = (each for each in (holder, *gc.get_referrers(holder)) if isinstance(each, Node))
            if any(node.number > changed for node in nodes):
                return
        edge.shape = shape


def _sparse_gradient(grad: Tensor, edge: GradientTarget) -> Gradient:
    """Return the sparse gradient ``grad`` at ``edge``: unchanged at the edge of a leaf, otherwise as a dense gradient.

    Note [Sparse gradients]. A sparse gradient is a Tensor, also in a backward pass of arrays. Its dtype is never
    identical to that of an edge, so the engine passes it to :func:`validate_gradient`. No derivative rule gets it.
    """
    if grad.shape != edge.shape:
        raise RuntimeError(
            f"a sparse gradient has the shape {list(grad.shape)} instead of {list(edge.shape)}"
        )  # fmt: skip
    if edge.__class__ is AccumulateGrad:
        return grad
    dense: Tensor = grad.to_dense().to(dtype_of(edge.dtype))
    return dense if recording() else dense._array


@lru_cache(maxsize=256)
def is_broadcastable(small: Shape, large: Shape) -> bool:
    """Whether a tensor of shape ``small`` can be broadcast to the shape ``large``."""
    return len(small) <= len(large) and all(a in (1, b) for a, b in zip(reversed(small), reversed(large), strict=False))


def as_tensor(grad: Gradient) -> Tensor | None:
    """Return the gradient ``grad`` as a Tensor, for hooks and users; None stays None."""
    if grad is None or isinstance(grad, Tensor):
        return grad
    return wrap(numpy.asarray(grad) if isinstance(grad, numpy.generic) else grad)


def unwrap_unless_recorded(value: Gradient, record: bool) -> Gradient:
    """Return the gradient ``value`` as a Tensor if ``record`` is true or it is sparse, and otherwise as an array.

    ``record`` is true if the backward pass is recorded (``create_graph=True``).
    """
    return value._array if isinstance(value, Tensor) and not record and value.layout is strided else value
