"""Distances between points: ``dist``, ``cdist``, ``pdist``, ``pairwise_distance``, ``cosine_similarity``.

All distances except ``cosine_similarity`` are norms of differences. Their gradients are computed by ``norm_gradient``,
the gradient of a norm, in ``operations/reductions/sums.py``. The module also contains ``renorm``, which limits the
norms of slices.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import dtypes
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor, normalize_dim, wrap
from ...dispatch.declare import op, public
from ...dispatch.generic_path import modify
from ...dispatch.operand_promotion import broadcast_mismatch, common_dtype
from ...kernels import pairwise_distance as distance_kernels
from ..creation.factory import array_module_for
from ..elementwise.arithmetic import add, div, mul, sub
from ..engine_ops import expand
from ..shape.views import reshape
from .sums import norm_gradient, norm_rule, sum, vector_norm, vector_norm_block


def _together(*tensors: Tensor) -> list[Tensor]:
    """Return ``tensors``, the operands of a distance function, converted to their common dtype."""
    common = common_dtype(tensors)
    return [each if each.dtype is common else each.to(common) for each in tensors]


# -- Two tensors -----------------------------------------------------------------------------------------------------


@op(
    backward="DistBackward0", opmath=True, function=False, method=False, holomorphic=False,
    vmap=lambda F, self, other, p: F.vector_norm_block(self - other, p, None, False),
)  # fmt: skip
def dist_block(np: Any, self: Any, other: Any, /, p: float) -> Any:
    """Return the ``p``-norm of ``self - other``, taken over all elements."""
    return vector_norm_block.op.kernel(np, self - other, p, None, False)


def _dist_rule(F: Any, g: Any, self: Any, other: Any, out: Any, self_shape: Any, other_shape: Any, p: float) -> Any:
    shape = numpy.broadcast_shapes(self_shape, other_shape)
    return norm_rule(F, g, self - other, out, shape, p, None, False)


# The rules sum the gradients to the operands' shapes. The engine does not: if an operand has the shape of the result,
# it assumes that the operand's gradient has this shape, too.
dist_block.derivative(
    self=lambda F, g, self, other, out, self_shape, other_shape, p: F.sum_to_size(
        _dist_rule(F, g, self, other, out, self_shape, other_shape, p), self_shape
    ),
    other=lambda F, g, self, other, out, self_shape, other_shape, p: F.sum_to_size(
        -_dist_rule(F, g, self, other, out, self_shape, other_shape, p), other_shape
    ),
)


@public()
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """Return the ``p``-norm of ``input - other``, taken over all elements, as a 0-d tensor.

    >>> import retrograd as torch
    >>> torch.dist(torch.tensor([1.0, 2.0]), torch.tensor([4.0, 6.0]))
    tensor(5.)
    """
    a, b = _together(input, other)
    if a.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"norm(): input dtype should be either floating point or complex. Got {dtypes.scalar_name(a.dtype)} instead."
        )
    error = broadcast_mismatch(a._array.shape, b._array.shape)
    if error is not None:
        raise error
    return dist_block(a, b, float(p))


@op(name="norm_along", backward="NormBackward1", opmath=True, function=False, method=False, holomorphic=False)
def norm_along(np: Any, self: Any, /, ord: float, dim: Any, keepdim: bool) -> Any:
    """Return the ``ord``-norm of ``self`` along the dimension ``dim``, for :func:`pairwise_distance`.

    If ``keepdim`` is true, the dimension is kept with size 1.
    """
    return vector_norm_block.op.kernel(np, self, ord, dim, keepdim)


norm_along.derivative(self=norm_rule)


@public(method=False)
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Return the ``p``-norm of ``x1 - x2 + eps`` along the last dimension.

    If ``keepdim`` is true, the last dimension is kept with size 1.

    >>> import retrograd as torch
    >>> torch.nn.functional.pairwise_distance(torch.zeros(2, 2), torch.tensor([3.0, 4.0]), eps=0)
    tensor([5., 5.])
    """
    difference = add(sub(x1, x2), eps)
    return norm_along(difference, float(p), difference._array.ndim - 1, keepdim)


@public(method=False)
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Return the cosine of the angle between the vectors of ``x1`` and ``x2`` along ``dim``.

    A norm less than ``eps`` is replaced by ``eps``, which avoids a division by 0.

    >>> import retrograd as torch
    >>> torch.cosine_similarity(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]), dim=0)
    tensor(0.7071)
    """
    if eps < 0:
        raise RuntimeError(f"eps must be non-negative, got: {eps:g}. Remedy: pass a small positive number.")
    # A 0-d operand counts as one of the other's shape.
    a, b = _together(*(each if each._array.ndim else reshape(each, (1,)) for each in (x1, x2)))
    if not x1._array.ndim and not x2._array.ndim:
        a, b = reshape(a, ()), reshape(b, ())
    if a.dtype.category != dtypes.FLOATING:
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {dtypes.scalar_name(a.dtype)}"
        )
    error = broadcast_mismatch(a._array.shape, b._array.shape)
    if error is not None:
        raise error
    shape = numpy.broadcast_shapes(a._array.shape, b._array.shape)
    axis = normalize_dim(dim, len(shape))
    directions = []
    for each in (expand(a, shape), expand(b, shape)):
        length = vector_norm(each, 2, axis, True).clone()
        with no_grad():  # PyTorch's derivative ignores the clamping
            length.clamp_min_(eps)
        directions.append(div(each, length))
    return sum(mul(*directions), axis)


# -- All pairs -------------------------------------------------------------------------------------------------------


def _difference_gradient(F: Any, g: Any, difference: Any, out: Any, p: float) -> Any:
    """Return the gradient of the ``p``-norm with respect to its operand ``difference``.

    ``out`` holds the norms of ``difference`` along the last dimension, and ``g`` is the gradient of ``out``. ``F`` is a
    namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    if p == math.inf:
        return g * F.sgn(difference) * F.same(F.abs(difference), out)
    if p == 2 or p < 1:  # for other p, slope_of_norm returns 0 where the norm is 0
        g = F.masked_fill_scalar(g, out == 0, 0)
    return norm_gradient(F, g, difference, out, p)


def _all_pairs(F: Any, g: Any, x1: Any, x2: Any, out: Any, shapes: tuple[Any, Any, Any], p: float) -> Any:
    """Return the gradient of ``cdist`` with respect to the differences of all pairs of points.

    A pair is a point of ``x1`` (…, P, M) and a point of ``x2`` (…, R, M). The result has the shape (…, P, R, M).
    ``out`` (…, P, R) holds the distances, which are ``p``-norms of the differences, and ``g`` is the gradient of
    ``out``. ``shapes`` holds the shapes of ``x1``, ``x2`` and ``out``. ``F`` is a namespace of operations
    (``F.matmul``, …) on tensors or on arrays.
    """
    one, two, both = shapes
    difference = F.reshape(x1, (*one[:-1], 1, one[-1])) - F.reshape(x2, (*two[:-2], 1, *two[-2:]))
    return _difference_gradient(F, F.reshape(g, (*both, 1)), difference, F.reshape(out, (*both, 1)), p)


def _cdist_rule_1(
    F: Any, g: Any, x1: Any, x2: Any, out: Any, x1_shape: Any, x2_shape: Any, out_shape: Any, p: float
) -> Any:
    grads = _all_pairs(F, g, x1, x2, out, (x1_shape, x2_shape, out_shape), p)
    return F.sum_dim(grads, len(out_shape) - 1, False)


def _cdist_rule_2(
    F: Any, g: Any, x1: Any, x2: Any, out: Any, x1_shape: Any, x2_shape: Any, out_shape: Any, p: float
) -> Any:
    grads = _all_pairs(F, g, x1, x2, out, (x1_shape, x2_shape, out_shape), p)
    return -F.sum_dim(grads, len(out_shape) - 2, False)


@op(backward="CdistBackward0", function=False, method=False, vmap=(2, 2))
def cdist_block(np: Any, x1: Any, x2: Any, /, p: float) -> Any:
    """Return the ``p``-norm of the difference between each row of ``x1`` and each row of ``x2``.

    For ``x1`` of shape (…, P, M) and ``x2`` of shape (…, R, M) the result has the shape (…, P, R).
    """
    if x1.dtype in dtypes.HALF_PRECISION:
        raise dtypes.unsupported("cdist", x1.dtype)
    return distance_kernels.distances(np, x1, x2, p)


cdist_block.derivative(x1=_cdist_rule_1, x2=_cdist_rule_2)


@op(backward="EuclideanDistBackward0", opmath=True, function=False, method=False, vmap=(2, 2))
def euclidean_block(np: Any, x1: Any, x2: Any, /) -> Any:
    """Return the Euclidean distance between each row of ``x1`` and each row of ``x2``.

    The distance of the rows ``a`` and ``b`` is computed as ``sqrt(|a|² + |b|² - 2ab)``. One matrix product computes the
    dot products ``ab`` of all pairs of rows.
    """
    return distance_kernels.euclidean_distances(np, x1, x2)


def _euclidean_rule(F: Any, g: Any, x: Any, other: Any, out: Any, out_shape: Any) -> Any:
    """Return the gradient of the Euclidean distances between rows of ``x`` and ``other`` with respect to ``x``.

    ``out`` holds the distances, and ``g`` is the gradient of ``out``. ``F`` is a namespace of operations (``F.matmul``,
    …) on tensors or on arrays. The result is ``sum(g / out * (x - other))`` over the rows of ``other``, computed by
    matrix products.
    """
    weight = F.masked_fill_scalar(g / out, out == 0, 0)
    return x * F.sum_dim(weight, len(out_shape) - 1, True) - F.matmul(weight, other)


euclidean_block.derivative(
    x1=lambda F, g, x1, x2, out, out_shape: _euclidean_rule(F, g, x1, x2, out, out_shape),
    x2=lambda F, g, x1, x2, out, out_shape: _euclidean_rule(F, F.mT(g), x2, x1, F.mT(out), out_shape),
)
_MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@public(method=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str = _MODES[0]) -> Tensor:
    """Return the ``p``-norm distances between all rows of ``x1`` (…, P, M) and all rows of ``x2`` (…, R, M).

    The result has the shape (…, P, R). If ``p`` is 2 and P or R is greater than 25, the distances are computed by a
    matrix product, unless ``compute_mode`` is "donot_use_mm_for_euclid_dist".

    >>> import retrograd as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in _MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for name, each in (("X1", x1), ("X2", x2)):
        if each._array.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {each._array.ndim}D")
    one, two = x1._array.shape, x2._array.shape
    if one[-1] != two[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {one[-1]} X2: {two[-1]}")
    for name, each in (("X1", x1), ("X2", x2)):
        if each.dtype.category != dtypes.FLOATING:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {name} got: {dtypes.scalar_name(each.dtype)}"
            )
    if p < 0:
        raise RuntimeError("cdist only supports non-negative p values")
    error = broadcast_mismatch(one[:-2], two[:-2])
    if error is not None:
        raise error
    if x1.dtype is not x2.dtype:
        a, b = (dtypes.scalar_name(each.dtype) for each in (x1, x2))
        raise RuntimeError(f"expected scalar type {a} but found {b}")
    mode, nonempty = _MODES.index(compute_mode), x1._array.size and x2._array.size
    if nonempty and p == 2 and (mode == 1 or (mode == 0 and max(one[-2], two[-2]) > 25)):
        distances = euclidean_block(x1, x2)
        return reshape(distances, distances._array.shape)
    return cdist_block(x1, x2, float(p))


@op(backward="PdistBackward0", function=False, method=False)
def pdist_block(np: Any, self: Any, first: Any, second: Any, /, p: float) -> Any:
    """Return the distances of pairs of rows: the ``p``-norms of ``self[first] - self[second]``.

    ``first`` and ``second`` are 1-d arrays of row indices of the matrix ``self``.
    """
    if self.dtype in dtypes.HALF_PRECISION and first.size:
        raise dtypes.unsupported("pdist", self.dtype)
    if p == 0:  # nan if an element is nan, unlike vector_norm
        return np.minimum(np.ceil(np.abs(self[first] - self[second])), 1).sum(1)
    return vector_norm_block.op.kernel(np, self[first] - self[second], p, 1, False)


def _pdist_rule(F: Any, g: Any, self: Any, first: Any, second: Any, out: Any, self_shape: Any, out_shape: Any,
                p: float) -> Any:  # fmt: skip
    difference = F.index_select_block(self, first, 0) - F.index_select_block(self, second, 0)
    grads = _difference_gradient(F, F.reshape(g, (*out_shape, 1)), difference, F.reshape(out, (*out_shape, 1)), p)
    positive = F.index_select_backward(grads, first, self_shape, 0)
    return positive - F.index_select_backward(grads, second, self_shape, 0)


pdist_block.derivative(self=_pdist_rule)


@public(method=False)
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """Return the ``p``-norm distances between all pairs of rows of ``input`` (N, M), a vector of size N (N - 1) / 2.

    The order is that of the elements above the diagonal of the distance matrix, row by row.

    >>> import retrograd as torch
    >>> torch.pdist(torch.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    if input.dtype.category != dtypes.FLOATING:
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    np = array_module_for(input.device)
    # CuPy's triu_indices waits for the device.
    first, second = (numpy if np.__name__ == "cupy" else np).triu_indices(input._array.shape[0], 1)
    return pdist_block(input, wrap(np.asarray(first)), wrap(np.asarray(second)), float(p))


# -- Renormalisation -------------------------------------------------------------------------------------------------

_SOFT = 1e-7  # added to a norm before the division by it


def _others(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    """Return all dimensions of ``shape`` except ``dim``: the dimensions over which :func:`renorm` takes its norms."""
    return tuple(axis for axis in range(len(shape)) if axis != dim)


@op(backward="RenormBackward0", opmath=True, function=False, method=False, vmap="unknown")
def renorm_block(np: Any, self: Any, /, p: float, dim: int, maxnorm: float) -> Any:
    """Return ``self`` with its slices along ``dim`` scaled to a ``p``-norm of at most ``maxnorm``.

    Slice i consists of the elements with index i in dimension ``dim``. A slice whose norm does not exceed ``maxnorm``
    is unchanged.
    """
    size = vector_norm_block.op.kernel(np, self, p, _others(self.shape, dim), True)
    return self * np.where(size > maxnorm, maxnorm / (size + _SOFT), 1).astype(size.dtype)


def _renorm_rule(F: Any, g: Any, self: Any, self_shape: Any, p: float, dim: int, maxnorm: float) -> Any:
    rest = _others(self_shape, dim)
    size = F.vector_norm_block(self, p, rest, True)
    inverse = 1 / (size + _SOFT)
    along = F.sum_dim(F.real(g * self), rest, True)
    back = norm_rule(F, along, F.conj_physical(self), size, self_shape, p, rest, True)
    scaled = inverse * maxnorm * (g - inverse * back)
    return F.where_else(size > maxnorm, scaled) + F.where_else(F.logical_not(size > maxnorm), g)


renorm_block.derivative(self=_renorm_rule)


def _renorm_arguments(input: Tensor, p: Any, dim: int, maxnorm: Any) -> tuple[float, int, float]:
    """Check the arguments of ``renorm`` and return ``p``, ``dim`` and ``maxnorm``, with ``dim`` as a non-negative int.

    Raises RuntimeError for invalid arguments, and IndexError if ``dim`` is out of range.
    """
    if isinstance(p, complex):
        raise RuntimeError("renorm: p must be real-valued")
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if isinstance(maxnorm, complex):
        raise RuntimeError("renorm: maxnorm must be real-valued")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm:g}")
    ndim = input._array.ndim
    if ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {ndim} dimensions")
    axis = normalize_dim(dim, ndim)
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "linalg.vector_norm: Expected a floating point or complex tensor as input. Got "
            f"{dtypes.scalar_name(input.dtype)}"
        )
    return float(p), axis, float(maxnorm)


@public()
def renorm(input: Tensor, p: Any, dim: int, maxnorm: Any, *, out: Any = None) -> Tensor:
    """Return ``input`` with its slices along ``dim`` scaled to a ``p``-norm of at most ``maxnorm``.

    Slice i consists of the elements with index i in dimension ``dim``.

    Slices whose norm does not exceed ``maxnorm`` are unchanged.

    >>> import retrograd as torch
    >>> torch.renorm(torch.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    return renorm_block(input, *_renorm_arguments(input, p, dim, maxnorm))


@public(function=False)
def renorm_(input: Tensor, p: Any, dim: int, maxnorm: Any) -> Tensor:
    """Overwrite ``input`` with the result of :func:`renorm` for the same arguments, and return ``input``."""
    return modify(renorm_block.op, (input,), _renorm_arguments(input, p, dim, maxnorm))


__all__ = ["cosine_similarity", "pairwise_distance", "pdist"]
