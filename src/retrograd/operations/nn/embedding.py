"""Operations that select rows of a table by integers: embedding, embedding_bag and one_hot."""

from __future__ import annotations

from typing import Any

import numpy

from ...compat.lazy_imports import load_part
from ...core import dtypes
from ...core.devices import array_module_of, is_meta, on_gpu
from ...core.tensor import Tensor, wrap
from ...core.views import bump_version
from ...dispatch.declare import op, public, rule_function
from ...dispatch.transform_tensor import innermost_batch, slicewise
from ...kernels import embedding as embedding_kernels
from ...kernels.gather_scatter import all_in_range, take_axis
from ...kernels.half_precision import upcast_all_half
from ...runtime.user_frame import warn
from ..shape.views import reshape

# -- Embedding -------------------------------------------------------------------------------------------------------


INT = numpy.dtype(numpy.int64)


@op(
    function=False, method=False, name="embedding_block", backward="EmbeddingBackward0", linear=True,
    inline=lambda self, indices: take_axis(numpy, self, indices, 0)
    if indices.dtype is INT and self.ndim == 2 and all_in_range(numpy, indices, len(self)) else None,
)  # fmt: skip
def embedding_block(np: Any, self: Any, indices: Any, /, padding_idx: int, scale: bool) -> Any:
    """Return the rows of the table ``self`` at ``indices``, of shape (*indices.shape, size).

    ``padding_idx`` and ``scale`` are used only for the gradient: the gradient of row ``padding_idx`` is 0, and if
    ``scale`` is true, the gradient of each row is divided by the number of its occurrences in ``indices``.
    """
    if indices.size and not on_gpu(indices) and not (indices.min() >= 0 and indices.max() < self.shape[0]):
        raise IndexError("index out of range in self")
    return take_axis(np, self, indices, 0)


@op(function=False, method=False, linear=True)
def embedding_dense_backward(
    np: Any, grad_output: Any, indices: Any, /, count: int, padding_idx: int, scale: bool
) -> Any:
    """Return the gradient of ``embedding`` with respect to its table of ``count`` rows.

    ``grad_output`` has one row for each element of ``indices``. Row i of the result is the sum of the rows of
    ``grad_output`` whose element of ``indices`` is i. Row ``padding_idx`` is 0. If ``scale`` is true, each sum is
    divided by the number of its terms.
    """
    grad, flat = upcast_all_half(grad_output)[0].reshape(indices.size, -1), indices.reshape(-1)
    factor = embedding_kernels.gradient_factors(np, flat, padding_idx, scale, grad.dtype)
    return embedding_kernels.sum_rows(
        np, grad if factor is None else embedding_kernels.multiply_rows(np, grad, factor[:, None]), flat, count
    )


@op(function=False, method=False, linear=True, vmap="slices")
def embedding_double(np: Any, self: Any, indices: Any, /, padding_idx: int, scale: bool) -> Any:
    """Return the gradient of ``embedding_dense_backward`` with respect to its ``grad_output``, for second derivatives.

    The result holds the rows of ``self`` at ``indices``. Rows for the index ``padding_idx`` are 0. If ``scale`` is
    true, each row is divided by the number of occurrences of its index in ``indices``.
    """
    result = np.take(self, indices, 0)
    factor = embedding_kernels.gradient_factors(np, indices.reshape(-1), padding_idx, scale, result.dtype)
    return result if factor is None else embedding_kernels.multiply_rows(np, result, factor.reshape(*indices.shape, 1))


embedding_block.derivative(
    self=lambda F, g, indices, self_shape, padding_idx, scale: F.embedding_dense_backward(
        g, indices, self_shape[0], padding_idx, scale
    )
)


@op(function=False, method=False, name="embedding_sparse_block", backward="EmbeddingBackward0", linear=True)
def embedding_sparse_block(np: Any, self: Any, indices: Any, /, padding_idx: int, scale: bool) -> Any:
    """Return the same as ``embedding_block``; the gradient of ``self`` is sparse."""
    return embedding_block.op.kernel(np, self, indices, padding_idx, scale)


def _sparse_gradient(g: Any, indices: Any, count: int, padding_idx: int, scale: bool) -> Tensor:
    """Return the gradient of ``embedding`` as a sparse tensor, for arrays (Note [Sparse gradients])."""
    if scale:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    rows, index = numpy.asarray(g).reshape(indices.size, g.shape[-1]), indices.reshape(-1)
    if padding_idx >= 0:
        kept = index != padding_idx
        rows, index = rows[kept], index[kept]
    made: Tensor = load_part("sparse.functions").rows_gradient(rows, index, (count, g.shape[-1]))
    return made


rule_function("embedding_sparse_backward", _sparse_gradient, embedding_dense_backward)
embedding_sparse_block.derivative(
    self=lambda F, g, indices, self_shape, padding_idx, scale: F.embedding_sparse_backward(
        g, indices, self_shape[0], padding_idx, scale
    )
)
embedding_dense_backward.derivative(
    grad_output=lambda F, g, indices, padding_idx, scale: F.embedding_double(g, indices, padding_idx, scale)
)
embedding_double.derivative(
    self=lambda F, g, indices, self_shape, padding_idx, scale: F.embedding_dense_backward(
        g, indices, self_shape[0], padding_idx, scale
    )
)


def _check_indices(name: str, indices: Tensor, position: int = 1) -> None:
    if indices.dtype not in (dtypes.int64, dtypes.int32):
        raise RuntimeError(
            f"Expected tensor for argument #{position} 'indices' to have one of the following scalar types: Long, Int; "
            f"but got {dtypes.legacy_type_name(indices.dtype)} instead (while checking arguments for {name})"
        )


@public(method=False, name="embedding")
def _embedding(
    weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False
) -> Tensor:
    """Return the rows of ``weight`` at ``indices``, as ``nn.functional.embedding`` with these arguments."""
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_indices("embedding", indices)
    block = embedding_sparse_block if sparse else embedding_block
    result: Tensor = block(weight, indices, padding_idx, scale_grad_by_freq)
    return result


@public(method=False)
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Scale rows of ``input`` in place so that the ``norm_type``-norm of each row is at most ``max_norm``.

    Only the rows at ``indices`` are scaled.
    """
    if (special := innermost_batch((input, indices))) is not None:  # slices are views, so this modifies ``input``
        special.by_slices(embedding_renorm_, (input, indices, max_norm, norm_type), {})
        return input
    _check_indices("embedding_renorm_", indices, 2)
    if embedding_kernels.renormalise_rows(
        array_module_of(input._array), input._array, indices._array, max_norm, norm_type
    ):
        bump_version(input)
    return input


@public(
    function=False, method=False, fast_path=embedding_block, operands=("weight", "input"),
    when=lambda padding_idx, scale_grad_by_freq, sparse: padding_idx is None and not scale_grad_by_freq and not sparse,
    inline_only=True,
    padding_idx=-1, scale=False,
)  # fmt: skip
def embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """Return the rows of ``weight`` (count, size) at the integers ``input``: a tensor of shape (*input.shape, size).

    The gradient of row ``padding_idx`` is 0. If ``max_norm`` is not None, selected rows of ``weight`` whose
    ``norm_type``-norm exceeds ``max_norm`` are first scaled down to this norm in place. If ``scale_grad_by_freq`` is
    true, the gradient of each row is divided by the number of its occurrences in ``input``. If ``sparse`` is true, the
    gradient of a leaf ``weight`` is a sparse tensor.

    >>> import retrograd as torch
    >>> torch.nn.functional.embedding(torch.tensor([1, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[3., 4.],
            [1., 2.]])
    """
    padding = _padding(padding_idx, weight)
    if weight._array.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if max_norm is not None:
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    return _embedding(weight, input, padding, scale_grad_by_freq, sparse)


def _padding(padding_idx: int | None, weight: Tensor) -> int:
    if padding_idx is None:
        return -1
    count = weight.size(0)
    if not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx + count if padding_idx < 0 else padding_idx


# -- Bags ------------------------------------------------------------------------------------------------------------
# Padding is removed from the bags before the operations are called; `bags` is the bag of each index.

MODES = ("sum", "mean", "max")


@op(
    function=False, method=False, name="embedding_bag_block", backward="EmbeddingBagBackward0",
    outputs=("out", "tops"), differentiable=1,
)  # fmt: skip
def embedding_bag_block(
    np: Any, self: Any, indices: Any, bags: Any, sizes: Any, weights: Any, /, scale: bool, mode: int
) -> Any:
    """Return the tuple (reduced rows, maximum indices) of ``embedding_bag``.

    A bag is a set of rows of the table ``self``, which are reduced to one row: their sum if ``mode`` is 0, their mean
    if it is 1, and their maximum if it is 2. The maximum indices hold the row index of each maximum, or zeros for the
    other modes. ``indices`` holds the row indices of all bags, ``bags`` the bag number of each row index, and ``sizes``
    the number of rows in each bag. ``weights`` is None or has one factor per row index. ``scale`` is used only for the
    gradient.
    """
    wide, share = upcast_all_half(self, weights)
    if mode == 2:
        out, tops = embedding_kernels.bag_maxima(np, wide, indices, sizes)
        return out.astype(self.dtype), tops
    out = _sum_bags(np, wide[indices], bags, sizes, share, mode)
    return out.astype(self.dtype), np.zeros(sizes.shape, np.int64)


def _sum_bags(np: Any, picked: Any, bags: Any, sizes: Any, weights: Any, mode: int) -> Any:
    if weights is not None:
        picked *= weights[:, None]
    out = embedding_kernels.sum_rows(np, picked, bags, sizes.size)
    return out / np.maximum(sizes, 1).astype(out.dtype)[:, None] if mode == 1 else out


@op(function=False, method=False, vmap="slices")
def embedding_bag_backward(
    np: Any, grad_output: Any, indices: Any, bags: Any, sizes: Any, weights: Any, tops: Any, /, count: int, scale: bool,
    mode: int,
) -> Any:  # fmt: skip
    """Return the gradient of ``embedding_bag`` with respect to its table of ``count`` rows.

    ``grad_output`` has one row for each bag. ``indices``, ``bags``, ``sizes``, ``weights`` and ``mode`` are the
    arguments of ``embedding_bag_block``, and ``tops`` is its second result, the row index of each maximum. If ``scale``
    is true, the gradient of each row is divided by the number of its occurrences in ``indices``.
    """
    grad, share = upcast_all_half(grad_output, weights)
    if mode == 2:
        return embedding_kernels.add_to_maxima(np, grad, tops, count)
    if mode == 1:
        grad = grad / np.maximum(sizes, 1).astype(grad.dtype)[:, None]
    each = grad[bags]
    for by in (share, embedding_kernels.gradient_factors(np, indices, -1, scale, grad.dtype)):
        if by is not None:
            each *= by[:, None]
    return embedding_kernels.sum_rows(np, each, indices, count)


@op(function=False, method=False, vmap="slices")
def embedding_bag_again(
    np: Any, self: Any, indices: Any, bags: Any, sizes: Any, weights: Any, tops: Any, /, scale: bool, mode: int
) -> Any:
    """Return the gradient of ``embedding_bag_backward`` with respect to its ``grad_output``, for second derivatives.

    ``embedding_bag`` is linear in its table, except for the choice of a maximum. Therefore the result is the sum, mean
    or maximum of the rows of ``self`` in each bag, with the maxima at the row indices ``tops`` of the forward pass. The
    other operands are those of ``embedding_bag_block``. If ``scale`` is true, each row is divided by the number of
    occurrences of its index in ``indices``.
    """
    if mode == 2:
        return embedding_kernels.take_maxima(np, self, tops)
    each = self[indices]
    factor = embedding_kernels.gradient_factors(np, indices, -1, scale, self.dtype)
    if factor is not None:
        each *= factor[:, None]
    return _sum_bags(np, each, bags, sizes, weights, mode)


@op(function=False, method=False, vmap="slices")
def row_products(np: Any, self: Any, other: Any, first: Any, second: Any, /) -> Any:
    """Return the dot product of row ``first[i]`` of ``self`` and row ``second[i]`` of ``other``, for each i.

    The gradient of ``embedding_bag`` with respect to ``per_sample_weights[i]`` is such a product: that of a row of the
    table and the gradient of its bag.
    """
    return np.einsum("ij,ij->i", self[first], other[second])


@op(function=False, method=False, vmap="slices")
def row_sums(np: Any, weights: Any, self: Any, source: Any, target: Any, /, count: int) -> Any:
    """Return ``count`` rows: row t is the sum of ``weights[i] * self[source[i]]`` over all i with ``target[i] = t``.

    This is the gradient of :func:`row_products` with respect to one of its matrices.
    """
    return embedding_kernels.sum_rows(np, self[source] * weights[:, None], target, count)


row_products.derivative(
    self=lambda F, g, other, first, second, self_shape: F.row_sums(g, other, second, first, self_shape[0]),
    other=lambda F, g, self, first, second, other_shape: F.row_sums(g, self, first, second, other_shape[0]),
)
row_sums.derivative(
    weights=lambda F, g, self, source, target: F.row_products(g, self, target, source),
    self=lambda F, g, weights, source, target, self_shape: F.row_sums(weights, g, target, source, self_shape[0]),
)


def _bag_rule(
    F: Any, g: Any, indices: Any, bags: Any, sizes: Any, weights: Any, tops: Any, self_shape: Any, scale: bool,
    mode: int,
) -> Any:  # fmt: skip
    return F.embedding_bag_backward(g, indices, bags, sizes, weights, tops, self_shape[0], scale, mode)


@op(
    function=False, method=False, name="embedding_bag_sparse_block", backward="EmbeddingBagBackward0",
    outputs=("out", "tops"), differentiable=1,
)  # fmt: skip
def embedding_bag_sparse_block(
    np: Any, self: Any, indices: Any, bags: Any, sizes: Any, weights: Any, /, scale: bool, mode: int
) -> Any:
    """Return the same as ``embedding_bag_block``; the gradient of ``self`` is sparse."""
    return embedding_bag_block.op.kernel(np, self, indices, bags, sizes, weights, scale, mode)


def _sparse_bag_gradient(
    g: Any, indices: Any, bags: Any, sizes: Any, weights: Any, tops: Any, count: int, scale: bool, mode: int
) -> Tensor:
    """Return the gradient of ``embedding_bag`` with respect to its table as a sparse tensor, for arrays."""
    grad = numpy.asarray(g)
    if mode == 1:
        grad = grad / numpy.maximum(sizes, 1).astype(grad.dtype)[:, None]
    rows = grad[bags]
    return _sparse_gradient(rows if weights is None else rows * weights[:, None], indices, count, -1, scale)


rule_function("embedding_bag_sparse_backward", _sparse_bag_gradient, embedding_bag_backward)


def _sparse_bag_rule(
    F: Any, g: Any, indices: Any, bags: Any, sizes: Any, weights: Any, tops: Any, self_shape: Any, scale: bool,
    mode: int,
) -> Any:  # fmt: skip
    return F.embedding_bag_sparse_backward(g, indices, bags, sizes, weights, tops, self_shape[0], scale, mode)


embedding_bag_sparse_block.derivative(
    self=_sparse_bag_rule, weights=lambda F, g, self, indices, bags: F.row_products(g, self, bags, indices)
)
for _each in (embedding_bag_block, embedding_bag_again):
    _each.derivative(self=_bag_rule, weights=lambda F, g, self, indices, bags: F.row_products(g, self, bags, indices))
embedding_bag_backward.derivative(
    grad_output=lambda F, g, indices, bags, sizes, weights, tops, scale, mode: F.embedding_bag_again(
        g, indices, bags, sizes, weights, tops, scale, mode
    ),
    weights=lambda F, g, grad_output, indices, bags: F.row_products(grad_output, g, bags, indices),
)


def _check_offsets(indices: Any, offsets: Any) -> None:
    if is_meta(offsets) or on_gpu(offsets):
        return
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {offsets[0]}\n[ torch.{'Long' if offsets.dtype == numpy.int64 else 'Int'}Tensor{{}} ]"
        )
    if offsets.size and offsets[-1] > indices.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of {offsets[-1]}"
        )
    if (offsets[1:] < offsets[:-1]).any():
        raise IndexError("index out of range in self")


def _check_rows(indices: Any, count: int) -> None:
    if is_meta(indices) or on_gpu(indices):
        return
    bad = array_module_of(indices).flatnonzero((indices < 0) | (indices >= count))
    if bad.size:
        raise RuntimeError(
            f"Index {bad[0]} of input takes value {indices[bad[0]]} which is not in the valid range [0, {count})"
        )


@public(method=False, name="embedding_bag")
@slicewise
def _embedding_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool = False, mode: int = 0,
    sparse: bool = False, per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:  # fmt: skip
    """Return the tuple (reduced rows, bag numbers, bag sizes, maximum indices) of ``torch.embedding_bag``.

    A bag is a set of rows of ``weight``, which are reduced to one row: their sum if ``mode`` is 0, their mean if it is
    1, and their maximum if it is 2. The bag numbers hold the bag of each item of ``indices``, the bag sizes the number
    of rows in each bag, and the maximum indices the row index of each maximum (for ``mode`` 2). ``offsets`` holds the
    position in ``indices`` at which each bag starts. The parameters after ``mode`` are those of
    ``nn.functional.embedding_bag``.
    """
    _check_indices("embedding_bag", indices)
    if weight._array.dtype.kind not in "fV":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, Float, "
            f"Double; but got {dtypes.legacy_type_name(weight.dtype)} instead (while checking arguments for embedding_bag)"
        )
    index, start = indices._array, offsets._array
    _check_offsets(index, start)
    if include_last_offset:
        if not start.size:
            raise RuntimeError("include_last_offset: number of offset should be at least 1")
        start = start[:-1]
    _check_rows(index, weight.size(0))
    np = array_module_of(index)
    bags, sizes = embedding_kernels.bag_indices(np, index.size, start)
    share = per_sample_weights
    if padding_idx is not None and not is_meta(index):
        kept = index != _padding(padding_idx, weight)
        index, inside = index[kept], bags[kept]
        sizes = np.bincount(inside, minlength=sizes.size)
        share = None if share is None else share[wrap(kept)]
    else:
        inside = bags
    block = embedding_bag_sparse_block if sparse else embedding_bag_block
    out, tops = block(weight, wrap(index), wrap(inside), wrap(sizes), share, scale_grad_by_freq, mode)
    return out, wrap(bags), wrap(sizes), tops


@slicewise
def embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
    scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """Return the sum, mean (default) or maximum of the rows of ``weight`` in each bag: a tensor (B, size).

    ``input`` holds row indices. Its shape is (B, N) for B bags of N rows each. If ``input`` is 1-d, ``offsets`` holds
    the position at which each bag starts. If ``include_last_offset`` is true, the last offset is the length of
    ``input``. ``per_sample_weights`` has one factor per row index, and requires ``mode="sum"``. The row ``padding_idx``
    is excluded from the bags. ``max_norm``, ``norm_type``, ``scale_grad_by_freq`` and ``sparse`` are those of
    :func:`embedding`.

    >>> import retrograd as torch
    >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1]]), table)
    tensor([[2., 3.]])
    """
    if weight.dtype is dtypes.int64 and input.is_floating_point():
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`.",
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.size() != per_sample_weights.size():
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the same "
            f"shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    input, offsets, share = _flat_bags(input, offsets, per_sample_weights)
    number = _mode(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        embedding_renorm_(weight.detach(), input, max_norm, norm_type)
    if share is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    return _embedding_bag(
        weight, input, offsets, scale_grad_by_freq, number, sparse, share, include_last_offset, padding_idx
    )[0]


def _flat_bags(input: Tensor, offsets: Tensor | None, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences. However, found offsets of type <class 'torch.Tensor'>"
            )
        starts = array_module_of(input._array).arange(input.shape[0], dtype=input._array.dtype) * input.shape[1]
        return reshape(input, -1), wrap(starts), None if weights is None else reshape(weights, -1)
    if input.ndim != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, weights


def _mode(mode: str, scale: bool, sparse: bool) -> int:
    if mode not in MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    return MODES.index(mode)


# -- One-hot encoding ------------------------------------------------------------------------------------------------


@slicewise
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Return, for each integer i of ``tensor`` (int64), a row of zeros with a 1 at index i.

    The result has shape (*tensor.shape, num_classes). If ``num_classes`` is -1, the number of classes is the largest
    integer plus one.

    >>> import retrograd as torch
    >>> torch.nn.functional.one_hot(torch.tensor([2, 0]))
    tensor([[0, 0, 1],
            [1, 0, 0]])
    """
    if tensor.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    index = tensor._array
    if not index.size:
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        largest = -1
    else:
        flat = index.reshape(-1)
        if flat.min() < 0:
            raise RuntimeError("Class values must be non-negative.")
        largest = num_classes - 1 if is_meta(index) and num_classes != -1 else int(flat[flat.argmax()])
    classes = largest + 1 if num_classes == -1 else num_classes
    if largest >= classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    np = array_module_of(index)
    out = np.zeros((index.size, classes), np.int64)
    out.reshape(-1)[np.arange(0, out.size, classes) + index.reshape(-1)] = 1
    return wrap(out.reshape(*index.shape, classes))


__all__ = ["embedding", "embedding_bag", "one_hot"]
