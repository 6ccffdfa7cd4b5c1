"""Batching rules: functions that compute an operation for all slices of a call of vmap at once.

Most operations run on a tensor that contains the slices along its first dimension, with 1 added to their dimension
parameters. A reduction over all elements of a slice runs as the corresponding reduction along a dimension. This module
lists the names of the operations for each rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..core.devices import array_module_of
from ..core.tensor import Tensor, channels_last, channels_last_3d, contiguous_format, wrap
from ..core.views import StridedLayout, strided_layout
from ..dispatch.generic_path import apply
from ..dispatch.op import OPS
from ..dispatch.op import TENSORS as F
from ..dispatch.operand_promotion import common_dtype
from ..dispatch.transform_tensor import TransformTensor
from .batched_tensor import (
    RULES,
    VmapRun,
    apply_by_slices,
    as_batches,
    batch,
    dynamic_shape_error,
    expand_over_slices,
    move_dim,
    slices_to_front,
    slices_with_rank,
    unwrap_batch,
)

Operands = tuple[Any, ...]


def rule(*names: str) -> Callable[[Any], Any]:
    """Return a decorator that registers a function as the batching rule of the operations ``names``.

    Each item of ``names`` is a string of one or more operation names, separated by spaces.
    """

    def enter(function: Any) -> Any:
        RULES.update(dict.fromkeys((each for name in names for each in name.split()), function))
        return function

    return enter


def rank_of(x: Any) -> int:
    """Return the number of dimensions of one slice of ``x``, or 0 if ``x`` is not a tensor."""
    return x._array.ndim if isinstance(x, Tensor) else 0


def all_front(tensors: Sequence[Any], run: VmapRun) -> Operands:
    """Return ``tensors`` as ordinary tensors, each of which contains its slices along the first dimension.

    A tensor that is not batched by the vmap call ``run`` is expanded. Values that are not tensors are returned
    unchanged.
    """
    return tuple([slices_to_front(each, run) if isinstance(each, Tensor) else each for each in tensors])


# --- Elementwise operations -------------------------------------------------------------------------------------------


@rule(
    "pointwise where_block masked_fill_number masked_fill_scalar where_else where_half native_dropout_block elu_backward",
    "gelu_backward hardshrink_backward hardsigmoid_backward hardswish_backward hardtanh_backward leaky_relu_backward",
    "log_sigmoid_backward mish_backward silu_backward sigmoid_backward tanh_backward softplus_backward",
    "threshold_backward prelu_kernel prelu_kernel_backward",
    "ldexp_block complex_pair complex_of polar_block same same_kind isclose_arrays",
)
def elementwise(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op``, an operation that broadcasts its operands, for all slices.

    After the batch dimension, dimensions of size 1 are inserted until all operands have the same number of dimensions.
    The operands then broadcast in the same way as single slices.
    """
    rank = max(map(rank_of, tensors))
    operands = tensors
    kinds = {each._array.dtype for each in tensors if isinstance(each, Tensor)}
    if op.kind == "pointwise" and len(kinds) > 1:
        common = common_dtype(tensors)  # promotion depends on whether a slice is 0-d, which the stacked slices are not
        operands = tuple(
            F.to_dtype(each, common) if isinstance(each, Tensor) and each.dtype is not common else each
            for each in tensors
        )
    return as_batches(run, apply(op, tuple([slices_with_rank(each, run, rank) for each in operands]), params))


@rule("copy_block fill_tensor_block")
def _copied(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    target, source = slices_to_front(tensors[0], run), slices_with_rank(tensors[1], run, rank_of(tensors[0]))
    if unwrap_batch(tensors[1], run)[1] is not None and op.name == "fill_tensor_block":
        return batch(run, apply(OPS["copy_block"], (target, source), ()))
    return batch(run, apply(op, (target, source), params))


@rule("masked_fill_tensor")
def _masked(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, mask, value = tensors
    return apply(OPS["where_block"], (mask, F.to_dtype(value, x.dtype), x), ())


# --- Operations with shifted dimensions -------------------------------------------------------------------------------


def shift_dims(dim: Any) -> Any:
    """Return ``dim``, an int or a tuple of ints, with 1 added to the ints that are not negative.

    The result selects the same dimensions in a tensor that contains the slices along an additional first dimension.
    """
    if isinstance(dim, int):
        return dim + 1 if dim >= 0 else dim
    return tuple(map(shift_dims, dim))


#: Names of parameters that are dimensions, and of parameters that are shapes.
_DIMS = frozenset(("dim", "dims", "dim0", "dim1", "dim2", "first", "second"))
_SHAPES = frozenset(("shape", "size"))


def shift_params(op: Any, params: Operands, run: VmapRun, rank: int) -> Operands:
    """Return ``params``, the parameters of ``op``, changed for an operand whose first dimension is the batch dimension.

    Parameters that are dimensions are increased by 1; None and ``()`` are replaced by all ``rank`` dimensions of a
    slice. Parameters that are shapes get the number of slices as an additional first item.
    """
    found = []
    for name, value in zip(op.params, params, strict=True):
        if name in _DIMS:
            value = shift_dims(tuple(range(rank)) if value is None or value == () else value)
        elif name in _SHAPES:
            value = value if isinstance(value, int) else (run.size, *value)
        found.append(value)
    return tuple(found)


@rule(
    # dimensions counted from the last, or none
    "alias mT tril triu view_as_real view_as_complex to_dtype to_device real imag_of conj_block conjugated complex_of_pairs",
    "zero_block fill_block frexp_block mvlgamma_block per_matrix",
    # matrices
    "det_block slogdet_block inv inv_ex_block inv_loose cholesky_block cholesky_ex_block cholesky_inverse_block",
    "eig_block eigh_block eigvals_block eigvalsh_block qr_block svd_block svdvals_block",
    "matrix_exp_block lu_block lu_factor_block",
    "lu_unpack_block ldl_factor_block householder_block ormqr_block geqrf_block",
    "cofactors cofactors_backward",
    "matrix_rank_block",
    # operations along the last dimensions
    "resample resample_back circular_pad reflection_pad1d reflection_pad2d reflection_pad3d replication_pad1d",
    "replication_pad2d replication_pad3d constant_pad_nd_block avg_pool2d_block avg_pool3d_block",
    "adaptive_avg_pool2d_block adaptive_avg_pool3d_block upsample_bicubic2d upsample_bicubic2d_aa upsample_bilinear2d",
    "upsample_bilinear2d_aa upsample_lanczos2d_aa upsample_linear1d upsample_nearest1d upsample_nearest2d",
    "upsample_nearest3d upsample_nearest_exact1d upsample_nearest_exact2d upsample_nearest_exact3d upsample_trilinear3d",
    "pixel_shuffle pixel_unshuffle",
    # one dimension or several
    "diagonal diag_embed_block select slice split_even split_uneven unsafe_split_even unsafe_split_uneven",
    "squeeze_dim squeeze_dims unsqueeze transpose unbind unfold flip_block rot90_block",
    "all_block any_block amax_block amin_block aminmax_block count_nonzero_block cummax_block cummin_block cumprod_block",
    "cumsum_block cumsum_reversed kthvalue_block log_softmax_backward_data log_softmax_block logcumsumexp_block",
    "logsumexp_block max_dim min_dim mean_dim median_dim mode_block nanmedian_dim nansum_block norm_along prod_dim",
    "product_of_others recurrence shifted softmax_backward_data softmax_block sort_block stable_sort_block std_block",
    "std_mean_block sum_dim topk_block var_block var_mean_block vector_norm_block glu_block glu_backward",
    "argsort_block",
    "fft_c2c fft_c2r fft_r2c mirrored_scaled",
    # with a tensor of indices
    "take_along put_along add_along gather_block gather_backward scatter_add_block scatter_src scatter_value",
    "scatter_reduce_block scatter_count scatter_ties lone_zero spread_index",
    # with a shape parameter
    "view reshape_alias reshape_copy unsafe_view select_backward slice_backward diagonal_backward unfold_backward",
)
def with_shifted_dims(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op`` for all slices, computed with 1 added to its dimension parameters.

    ``op`` runs once, on tensors that contain the slices along their first dimension. It runs once for each slice if 1
    cannot be added, for example to a dimension of slices that are 0-d.
    """
    rank = rank_of(tensors[0])
    lone = rank == 0 and any(name in _DIMS for name in op.params) and op.name not in ("unsqueeze", "diag_embed_block")
    if lone or () in params or (op.name == "qr_block" and params[0] == "r"):
        return apply_by_slices(run, op, tensors, params)
    return as_batches(run, apply(op, all_front(tensors, run), shift_params(op, params, run, rank)))


#: For each tensor the number of its last dimensions that form the matrix or vector; those before broadcast.
_CORES = {
    "solve_block": (2, 2), "solve_triangular_block": (2, 2), "triangular_solve_block": (2, 2),
    "cholesky_solve_block": (2, 2), "lu_solve_block": (2, 1, 2), "ldl_solve_block": (2, 1, 2), "cdist_block": (2, 2),
    "euclidean_block": (2, 2), "cross_block": (0, 0), "attention_block": (2, 2, 2),
    "swap_rows": (2, 1),
}  # fmt: skip


@rule(*_CORES)
def _of_matrices(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    cores = list(_CORES[op.name])
    if "vector" in op.params and params[op.params.index("vector")]:
        cores[1] = 1
    lead = max(rank_of(each) - core for each, core in zip(tensors, cores, strict=True))
    given = [
        slices_with_rank(batch(run, slices_to_front(each, run)), run, lead + core)
        for each, core in zip(tensors, cores, strict=True)
    ]
    if op.name == "cross_block":
        params = (params[0] if params[0] < 0 else params[0] - lead,)
    if op.name == "attention_block":
        return all_wrapped_parts(run, apply(op, tuple(_merge_slices(each, 0) for each in given), params))
    return as_batches(run, apply(op, tuple(given), params))


def all_wrapped_parts(run: VmapRun, results: Operands) -> Operands:
    """Return a tuple of the tensors ``results``, each converted to a batched tensor of the vmap call ``run``.

    ``results`` were computed from one large batch, into which the slices had been merged: the first dimension of each
    result contains the samples of slice 0, followed by the samples of slice 1, and so on.
    """
    return tuple([_unmerge_slices(each, run, 0) for each in results])


@rule("masked_attention_block")
def _attended(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    *operands, mask = tensors
    given = [_merge_slices(slices_to_front(each, run), 0) for each in operands]
    samples = operands[0]._array.shape[0]
    mask = slices_with_rank(batch(run, slices_to_front(mask, run)), run, 4)
    mask = _merge_slices(F.expand(mask, (run.size, samples, *mask._array.shape[2:])), 0)
    return all_wrapped_parts(run, apply(op, (*given, mask), params))


@rule("pinv_block matrix_rank_block")
def _tolerating(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    if any(getattr(each, "ndim", 0) for each in params):  # one tolerance for each matrix of a slice
        return apply_by_slices(run, op, tensors, params)
    return batch(run, apply(op, all_front(tensors, run), params))


@rule("lstsq_block")
def _least_squares(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return apply_by_slices(run, op, tensors, params)


@rule("as_strided_block as_strided_scatter_block")
def _by_strides(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    value, dim = unwrap_batch(tensors[0], run)
    if dim is None or not value._array.strides[dim]:  # slices that share memory must not share gradients
        return apply_by_slices(run, op, tensors, params)
    step, view = strided_layout(value._array, value._array).strides[dim], params[1]
    part = StridedLayout((run.size, *view.shape), (step, *view.strides), view.offset)
    whole = strided_layout(value._array, value._array)
    if op.name == "as_strided_block":
        return batch(run, apply(op, (value,), (whole, part)))
    return batch(run, apply(op, (value, slices_to_front(tensors[1], run)), (whole, part)), dim)


@rule("permute")
def _permuted(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    rank = rank_of(tensors[0])
    return batch(run, apply(op, (slices_to_front(tensors[0], run),), ((0, *(dim % rank + 1 for dim in params[0])),)))


@rule("clone_block")
def _cloned(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    order = contiguous_format if params[0] in (channels_last, channels_last_3d) else params[0]
    return batch(run, apply(op, (slices_to_front(tensors[0], run),), (order,)))


@rule("t")
def _transpose(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x = slices_to_front(tensors[0], run)
    return batch(run, F.transpose(x, 1, 2) if x._array.ndim == 3 else apply(OPS["alias"], (x,), ()))


@rule("squeeze_all")
def _squeezed(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x = slices_to_front(tensors[0], run)
    ones = tuple(dim for dim, size in enumerate(x._array.shape) if dim and size == 1)
    return batch(run, apply(OPS["squeeze_dims"], (x,), (ones,)))


@rule("expand evenly_spread")
def _expand(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    size = tuple(params[0])
    return batch(run, apply(op, (slices_with_rank(tensors[0], run, len(size)),), ((run.size, *size), *params[1:])))


@rule("repeat_block")
def _repeated(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    repeats = tuple(params[0])
    return batch(run, apply(op, (slices_with_rank(tensors[0], run, len(repeats)),), ((1, *repeats),)))


@rule("roll_block")
def _rolled(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, (shifts, dims) = slices_to_front(tensors[0], run), params
    if dims:
        return batch(run, apply(op, (x,), (shifts, shift_dims(dims))))
    flat = F.reshape(x, (run.size, -1))
    return batch(run, F.reshape(apply(op, (flat,), (shifts, (1,))), x._array.shape))


@rule("sum_to_size")
def _summed_to(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, size = slices_to_front(tensors[0], run), tuple(params[0])
    lead = x._array.ndim - 1 - len(size)
    summed = apply(op, (x,), ((run.size, *(1,) * lead, *size),))
    return batch(run, F.reshape(summed, (run.size, *size)) if lead else summed)


# --- Operations over all elements -------------------------------------------------------------------------------------


def _register_full_reduction(name: str, of: str, params: Operands, first: bool = False) -> None:
    """Register a batching rule for the operation ``name``, which reduces all elements to one.

    The rule flattens each slice to a row of a matrix, and reduces each row by another operation. ``of`` is the name of
    this operation, and ``params`` are its parameters. If ``first`` is true, the operation returns several results, of
    which only the first is used.
    """

    def reduced(run: VmapRun, op: Any, tensors: Operands, given: Operands) -> Any:
        rows = F.reshape(slices_to_front(tensors[0], run), (run.size, math.prod(tensors[0]._array.shape)))
        found = apply(OPS[of], (rows,), params)
        return batch(run, found[0] if first else found)

    RULES[name] = reduced


for _name, _of, _given, _first in (
    ("sum_all", "sum_dim", ((1,), False), False), ("mean_all", "mean_dim", ((1,), False), False),
    ("prod_all", "prod_dim", (1, False), False), ("max_all", "amax_block", ((1,), False), False),
    ("min_all", "amin_block", ((1,), False), False), ("median_all", "median_dim", (1, False), True),
    ("nanmedian_all", "nanmedian_dim", (1, False), True),
):  # fmt: skip
    _register_full_reduction(_name, _of, _given, _first)


@rule("argmax_block argmin_block")
def _arg_extreme(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    dim, keepdim = params
    if dim is not None:
        return with_shifted_dims(run, op, tensors, params)
    rank = rank_of(tensors[0])
    rows = F.reshape(slices_to_front(tensors[0], run), (run.size, -1))
    found = apply(op, (rows,), (1, False))
    return batch(run, F.reshape(found, (run.size, *(1,) * rank)) if keepdim else found)


@rule("extreme_share")
def _shared(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    rank = rank_of(tensors[0])
    given = [slices_with_rank(batch(run, slices_to_front(each, run)), run, rank) for each in tensors]
    return batch(run, apply(op, tuple(given), shift_params(op, params, run, rank)))


@rule("identity_like")
def _identity(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return apply(op, (unwrap_batch(tensors[0], run)[0],), params)  # the same for every slice


@rule("trace")
def _traced(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, F.sum_dim(F.diagonal(slices_to_front(tensors[0], run), 0, 1, 2), (1,), False))


# --- Products ---------------------------------------------------------------------------------------------------------


def _product(a: Any, b: Any, run: VmapRun) -> Any:
    """Return the matrix products of the slices of ``a`` and ``b``, stacked along the first dimension.

    If ``b`` is a matrix that is not batched, the slices of ``a`` are combined to one large matrix, so that one matrix
    product is enough.
    """
    (x, at), (y, beside) = unwrap_batch(a, run), unwrap_batch(b, run)
    if at is None and beside is None:
        return expand_over_slices((F.bmm if x._array.ndim == 3 else F.mm)(x, y), run)
    if beside is None and y._array.ndim == 2:
        x = move_dim(x, at or 0, 0)
        rows = F.reshape(x, (math.prod(x._array.shape[:-1]), x._array.shape[-1]))
        return F.reshape(F.mm(rows, y), (*x._array.shape[:-1], y._array.shape[-1]))
    x, y = slices_to_front(a, run), slices_to_front(b, run)
    shape = x._array.shape[:-2]
    flat = [F.reshape(each, (math.prod(shape), *each._array.shape[-2:])) for each in (x, y)]
    return F.reshape(F.bmm(*flat), (*shape, x._array.shape[-2], y._array.shape[-1]))


def _column(x: Any, run: VmapRun) -> Any:
    value, dim = unwrap_batch(x, run)
    return F.unsqueeze(value, -1) if dim is None else batch(run, F.unsqueeze(move_dim(value, dim, 0), -1))


def _vector_product(matrix: Any, vector: Any, run: VmapRun) -> Any:
    found = _product(matrix, _column(vector, run), run)
    return F.reshape(found, found._array.shape[:-1])


@rule("mm bmm")
def _matrices(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, _product(tensors[0], tensors[1], run))


@rule("mv")
def _matrix_vector(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, _vector_product(tensors[0], tensors[1], run))


@rule("outer_conj")
def _outer(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, y = all_front(tensors, run)
    return batch(run, F.unsqueeze(x, -1) * F.unsqueeze(F.conj_physical(y) if y.is_complex() else y, -2))


@rule("dot vdot")
def _dot(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, y = all_front(tensors, run)
    x = F.conj_physical(x) if op.name == "vdot" and x.is_complex() else x
    return batch(run, F.sum_dim(x * y, (1,), False))


@rule("addmm addmv addr addbmm baddbmm")
def _added(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    base, a, b = tensors
    beta, alpha = params
    if op.name == "addmv":
        found = _vector_product(a, b, run)
    elif op.name == "addr":
        found = F.unsqueeze(slices_to_front(a, run), -1) * F.unsqueeze(slices_to_front(b, run), -2)
    else:
        found = _product(a, b, run)
        if op.name == "addbmm":
            found = F.sum_dim(found, (1,), False)
    found = found if alpha == 1 else found * alpha
    if beta == 0:
        return batch(run, found)
    first = slices_with_rank(base, run, found._array.ndim - 1)
    return batch(run, found + (first if beta == 1 else first * beta))


# --- Indexing with tensors --------------------------------------------------------------------------------------------


def _position_of_indexed(picks: Sequence[Any]) -> int | None:
    """Return the position of the indexed dimensions in ``x[tuple(picks)]``: 0 if they move to the front, else None.

    ``picks`` has an index tensor, or None for all elements, for each dimension. As in NumPy, the indexed dimensions
    move to the front if a None separates the index tensors. Otherwise they keep their position.
    """
    places = [i for i, each in enumerate(picks) if each is not None]
    return 0 if places and places[-1] - places[0] + 1 != len(places) else None


def _indexed_rank(picks: Sequence[Any]) -> int:
    return len(numpy.broadcast_shapes(*(each.shape for each in picks if each is not None)))


@rule("index_block")
def _picked(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    (picks,) = params
    found = apply(op, (slices_to_front(tensors[0], run),), ((None, *picks),))
    return batch(run, found, 0 if _position_of_indexed(picks) is None else _indexed_rank(picks))


@rule("index_backward")
def _picked_back(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    shape, picks = params
    x = move_dim(
        slices_to_front(tensors[0], run), 0, 0 if _position_of_indexed(picks) is None else _indexed_rank(picks)
    )
    return batch(run, apply(op, (x,), ((run.size, *shape), (None, *picks))))


@rule("index_put_block index_fill_zero")
def _put(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    picks, *rest = params
    given = [slices_to_front(tensors[0], run)]
    if len(tensors) > 1:
        rank = len(tensors[0]._array.shape) - sum(each is not None for each in picks) + _indexed_rank(picks)
        values = slices_with_rank(tensors[1], run, rank)
        if unwrap_batch(tensors[1], run)[1] is not None and _position_of_indexed(picks) is not None:
            values = move_dim(values, 0, _indexed_rank(picks))
        elif _position_of_indexed(picks) is not None and values._array.ndim > _indexed_rank(picks):
            values = F.unsqueeze(expand_rank(values, rank), _indexed_rank(picks))
        given.append(values)
    return batch(run, apply(op, tuple(given), ((None, *picks), *rest)))


def expand_rank(x: Any, rank: int) -> Any:
    """Return ``x`` with dimensions of size 1 inserted in front until it has ``rank`` dimensions."""
    for _ in range(rank - x._array.ndim):
        x = F.unsqueeze(x, 0)
    return x


@rule("index_select_block index_select_backward index_add_block index_copy_block index_fill_number index_fill_tensor")
def _selected(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    rank = rank_of(tensors[0])
    if unwrap_batch(tensors[1], run)[1] is not None or rank == 0:
        return apply_by_slices(run, op, tensors, params)
    if op.name == "index_fill_tensor" and unwrap_batch(tensors[2], run)[1] is not None:
        return apply_by_slices(run, op, tensors, params)
    given = [tensors[1] if i == 1 else slices_to_front(each, run) for i, each in enumerate(tensors)]
    if op.name == "index_fill_tensor":
        given[2] = tensors[2]
    return batch(run, apply(op, tuple(given), shift_params(op, params, run, rank)))


@rule("embedding_block")
def _embedded(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    weight, index = tensors
    if params[1] or (params[0] >= 0 and unwrap_batch(weight, run)[1] is not None):
        return apply_by_slices(run, op, tensors, params)
    if unwrap_batch(weight, run)[1] is None:
        value, dim = unwrap_batch(index, run)
        return batch(run, apply(op, (weight, move_dim(value, dim or 0, 0)), params))
    rows = weight._array.shape[0]
    flat = F.reshape(slices_to_front(weight, run), (run.size * rows, *weight._array.shape[1:]))
    start = wrap(array_module_of(flat._array).arange(run.size) * rows)
    places = slices_to_front(index, run) + F.reshape(start, (run.size, *(1,) * rank_of(index)))
    return batch(run, apply(op, (flat, places), params))


# --- Losses -----------------------------------------------------------------------------------------------------------


@rule("mse_loss_block smooth_l1_loss_block huber_loss_block soft_margin_loss_block bce_with_logits_block",
      "binary_cross_entropy_block")  # fmt: skip
def _loss(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    at = op.params.index("reduction")
    each = elementwise(run, op, tensors, (*params[:at], "none", *params[at + 1 :]))
    if params[at] == "none":
        return each
    return apply(OPS[f"{params[at]}_all"], (each,), ())


@rule("mse_loss_backward smooth_l1_loss_backward huber_loss_backward soft_margin_loss_backward",
      "binary_cross_entropy_backward bce_with_logits_backward")  # fmt: skip
def _loss_back(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    at = op.params.index("reduction")
    slope, x, *rest = tensors
    shape = x._array.shape
    if params[at] == "mean":
        slope = slope / max(math.prod(shape), 1)
    wide = [slices_with_rank(batch(run, slices_to_front(each, run)), run, len(shape)) for each in (slope, x)]
    given = [F.expand(each, (run.size, *shape)) for each in wide]
    given += [None if each is None else slices_with_rank(each, run, len(shape)) for each in rest]
    return batch(run, apply(op, tuple(given), (*params[:at], "none", *params[at + 1 :])))


@rule("nll_loss_block")
def _likelihood(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    scores, target, weight = tensors
    reduction, ignored = params
    if weight is not None and unwrap_batch(weight, run)[1] is not None:
        return apply_by_slices(run, op, tensors, params)
    lone = rank_of(scores) == 1
    x, y = all_front((scores, target), run)
    rows = F.reshape(x, (-1, x._array.shape[-1]))
    labels = F.reshape(y, (-1,))
    losses = apply(op, (rows, labels, weight), ("none", ignored))[0]
    shares = apply(op, (F.zeros_as(rows) - 1, labels, weight), ("none", ignored))[0]
    losses, shares = (F.reshape(each, (run.size, -1)) for each in (losses, shares))
    total, every = F.sum_dim(losses, (1,), False), F.sum_dim(shares, (1,), False)
    if reduction == "none":
        return batch(run, F.reshape(losses, (run.size,)) if lone else losses), batch(run, F.zeros_as(every))
    return batch(run, total / every if reduction == "mean" else total), batch(run, every)


# --- Windows ----------------------------------------------------------------------------------------------------------


def _merge_slices(x: Any, dim: int) -> Any:
    """Return ``x`` with its first dimension, the batch dimension of vmap, merged into dimension ``dim`` of the slices.

    All slices then form one tensor without batch dimension, with the elements of slice 0 first along ``dim``.
    """
    x = move_dim(x, 0, dim)
    shape = x._array.shape
    return F.reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _unmerge_slices(x: Any, run: VmapRun, dim: int) -> Any:
    """Return ``x``, whose dimension ``dim`` contains all slices one after the other, as a batched tensor.

    This is the inverse of :func:`_merge_slices`, which merges the slices into dimension ``dim``. ``run`` is the vmap
    call.
    """
    shape = x._array.shape
    return batch(run, F.reshape(x, (*shape[:dim], run.size, shape[dim] // run.size, *shape[dim + 1 :])), dim)


@rule("convolution_block")
def _convolved(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, weight, bias = tensors
    if unwrap_batch(weight, run)[1] is None and (bias is None or unwrap_batch(bias, run)[1] is None):
        return _unmerge_slices(apply(op, (_merge_slices(slices_to_front(x, run), 0), weight, bias), params), run, 0)
    *rest, transposed, padding, groups = params
    if transposed:
        return apply_by_slices(run, op, tensors, params)
    bias = None if bias is None else _merge_slices(slices_to_front(bias, run), 0)
    given = _merge_slices(slices_to_front(x, run), 1), _merge_slices(slices_to_front(weight, run), 0), bias
    return _unmerge_slices(apply(op, given, (*rest, transposed, padding, groups * run.size)), run, 1)


@rule("convolution_output convolution_input")
def _windows(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, weight = tensors
    shape, *rest, groups = params
    if unwrap_batch(weight, run)[1] is None:
        return _unmerge_slices(
            apply(
                op,
                (_merge_slices(slices_to_front(x, run), 0), weight),
                ((run.size * shape[0], *shape[1:]), *rest, groups),
            ),
            run,
            0,
        )
    shape = (shape[0], run.size * shape[1], *shape[2:])
    given = _merge_slices(slices_to_front(x, run), 1), _merge_slices(slices_to_front(weight, run), 0)
    return _unmerge_slices(apply(op, given, (shape, *rest, groups * run.size)), run, 1)


@rule("convolution_weight")
def _window_weights(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    shape, *rest, groups = params
    given = tuple(_merge_slices(slices_to_front(each, run), 1) for each in tensors)
    return _unmerge_slices(apply(op, given, ((run.size * shape[0], *shape[1:]), *rest, groups * run.size)), run, 0)


# --- Data-dependent operations ----------------------------------------------------------------------------------------


@rule("masked_select_block")
def _by_mask(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``masked_select`` for all slices; ``tensors`` are the input and the mask.

    The mask must be the same for all slices, so that all results have the same length. Otherwise RuntimeError is
    raised.
    """
    known, along = unwrap_batch(tensors[1], run)
    if along is not None or isinstance(known, TransformTensor):
        return RULES["unique_block"](run, op, tensors, params)
    shape = numpy.broadcast_shapes(tensors[0]._array.shape, known._array.shape)
    rows = F.reshape(F.expand(slices_with_rank(tensors[0], run, len(shape)), (run.size, *shape)), (run.size, -1))
    places = array_module_of(known._array).flatnonzero(array_module_of(known._array).broadcast_to(known._array, shape))
    return batch(run, F.index_select_block(rows, wrap(places), 1))


@rule("unique_block unique_consecutive_block unique_dim_block")
def _of_no_shape(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    name = {"unique": "_unique2"}.get(op.shown, op.shown)
    raise dynamic_shape_error(name)


@rule("bernoulli_block poisson_block binomial_block multinomial_block standard_gamma_block dirichlet_block")
def _random(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    if not run.differs():
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
        )
    return batch(run, apply(op, all_front(tensors, run), params))


@rule("dirichlet_grad")
def _along_the_last(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, apply(op, all_front(tensors, run), params))


# --- Samples ----------------------------------------------------------------------------------------------------------


@rule(
    "max_pool2d_block max_pool3d_block adaptive_max_pool2d_block adaptive_max_pool3d_block fractional_max_pool2d_block",
    "fractional_max_pool3d_block spread_at collect_at",
)
def _pooled(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return with_shifted_dims(run, op, tensors, params)


@rule("grid_sampler_2d_block grid_sampler_3d_block grid_read affine_grid_block affine_grid_back im2col col2im")
@rule("channel_shuffle native_channel_shuffle grid_spread")
def _more_samples(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op``, whose operands are batches of samples, for all slices.

    The samples of all slices are merged into one large batch, on which ``op`` runs once.
    """
    given = tuple([_merge_slices(slices_to_front(each, run), 0) for each in tensors])
    return _unmerge_slices(apply(op, given, _stacked_shapes(op, params, run)), run, 0)


def _stacked_shapes(op: Any, params: Operands, run: VmapRun) -> Operands:
    """Return ``params``, the parameters of ``op``, changed for an operand that contains the samples of all slices.

    The first item of each parameter that is a shape is multiplied by the number of slices.
    """
    return tuple(
        (run.size * value[0], *value[1:]) if name in _SHAPES else value
        for name, value in zip(op.params, params, strict=True)
    )


@rule("nll_loss2d_block")
def _likelihood_of_images(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    scores, target, weight = tensors
    reduction, ignored = params
    if weight is not None and unwrap_batch(weight, run)[1] is not None:
        return apply_by_slices(run, op, tensors, params)
    x, y = (_merge_slices(slices_to_front(each, run), 0) for each in (scores, target))
    losses, shares = (apply(op, (each, y, weight), ("none", ignored))[0] for each in (x, F.zeros_as(x) - 1))
    shape = (run.size, *target._array.shape)
    total, every = (F.sum_dim(F.reshape(each, (run.size, -1)), (1,), False) for each in (losses, shares))
    if reduction == "none":
        return batch(run, F.reshape(losses, shape)), batch(run, F.zeros_as(every))
    return batch(run, total / every if reduction == "mean" else total), batch(run, every)


@rule("embedding_dense_backward")
def _embedded_back(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    slope, index = tensors
    if unwrap_batch(index, run)[1] is not None or params[2]:
        return apply_by_slices(run, op, tensors, params)
    x = move_dim(slices_to_front(slope, run), 0, rank_of(slope) - 1)
    shape = x._array.shape
    wide = apply(op, (F.reshape(x, (*shape[:-2], shape[-2] * shape[-1])), index), params)
    return batch(run, F.reshape(wide, (wide._array.shape[0], *shape[-2:])), 1)


@rule("take_block")
def _taken(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, index = tensors
    size = math.prod(x._array.shape)
    rows = F.reshape(slices_to_front(x, run), (run.size, size))
    places = F.reshape(slices_to_front(index, run), (run.size, math.prod(index._array.shape)))
    places = F.where_block(F.lt(places, 0), places + size, places)
    return batch(run, F.reshape(F.gather_block(rows, places, 1), (run.size, *index._array.shape)))


@rule("dist_block")
def _distance(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    apart = elementwise(run, OPS["sub"], tensors, (1,) * len(OPS["sub"].params))
    return with_shifted_dims(run, OPS["vector_norm_block"], (apart,), (params[0], None, False))


@rule("trilinear")
def _summed_products(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    terms, result = params[0].split("->")
    letter = next(each for each in "zyxwvutsrqponmlkjihgfedcba" if each not in params[0])
    given, named = [], []
    for each, term in zip(tensors, terms.split(","), strict=True):
        batched = unwrap_batch(each, run)[1] is not None
        given.append(slices_to_front(each, run) if batched else each)
        named.append(letter * batched + term)
    return batch(run, apply(op, tuple(given), (f"{','.join(named)}->{letter}{result}",)))


#: Positions of the dimensions among the arguments of the view to which an operation writes.
_PLACES = {"select": (0,), "slice": (0,), "diagonal": (1, 2)}


@rule(*(f"{name}_scatter_block {name}_scatter_block_hole" for name in _PLACES))
def _written_into(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    places = _PLACES[op.name.partition("_")[0]]
    arguments = tuple(shift_dims(each) if i in places else each for i, each in enumerate(params[0]))
    return batch(run, apply(op, all_front(tensors, run), (arguments,)))


# --- Normalisation ----------------------------------------------------------------------------------------------------


def _stacked_layout(layout: Any, run: VmapRun) -> Any:
    """Return ``layout``, changed for one batch that contains the samples of all slices of the vmap call ``run``.

    ``layout`` is a named tuple with the shapes in which a normalisation computes. The first size in ``layout.shape`` is
    multiplied by the number of slices.
    """
    return layout._replace(shape=(run.size * layout.shape[0], *layout.shape[1:]))


@rule("layer_norm_block group_norm_block")
def _normalised(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, *affine = tensors
    layout, eps = params
    own = any(each is not None and unwrap_batch(each, run)[1] is not None for each in affine)
    weight, bias = (None, None) if own else affine
    out, mean, rstd = apply(op, (slices_to_front(x, run), weight, bias), (_stacked_layout(layout, run), eps))
    if own:  # batched weights are applied to the result
        for each, step in zip(affine, (F.mul, F.add), strict=True):
            if each is not None:
                out = step(out, _by_channel(slices_to_front(each, run), op, out))
    parts = [F.reshape(each, (run.size, layout.shape[0], *each._array.shape[1:])) for each in (mean, rstd)]
    return tuple(batch(run, each) for each in (out, *parts))


def _by_channel(x: Any, op: Any, out: Any) -> Any:
    """Return ``x``, the weight or bias of the normalisation ``op``, reshaped to broadcast with the result ``out``.

    The first dimension of ``x`` and ``out`` contains the slices.
    """
    shape, rank = x._array.shape, out._array.ndim
    if op.name == "layer_norm_block":
        return F.reshape(x, (shape[0], *(1,) * (rank - len(shape)), *shape[1:]))
    return F.reshape(x, (shape[0], 1, shape[1], *(1,) * (rank - 3)))


def _channels(x: Any, run: VmapRun) -> Any:
    """Return ``x``, a tensor with an element for each channel, as a 1-d tensor with the channels of all slices.

    If ``x`` is None, return None.
    """
    return None if x is None else F.reshape(slices_to_front(x, run), (-1,))


@rule("batch_norm_block")
def _batch_normalised(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, weight, bias = tensors
    layout, running, momentum, eps, small = params
    if eps is not None and running is not None:
        raise RuntimeError(BATCH_NORM)
    n, channels, width = layout.shape
    layout = layout._replace(shape=(n, run.size * channels, width), weight=(1, run.size * channels, 1))
    if running is not None:
        running = tuple(numpy.tile(each, run.size) for each in running)
    given = move_dim(slices_to_front(x, run), 0, 1), _channels(weight, run), _channels(bias, run)
    out, mean, rstd = apply(op, given, (layout, running, momentum, eps, small))
    parts = [batch(run, F.reshape(each, (run.size, channels))) for each in (mean, rstd)]
    return batch(run, out, 1), *parts


BATCH_NORM = (
    "Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in place, were "
    "not batched.\nIf you are using a module and do not need eval mode, please set `track_running_stats` to be False.If "
    "you are using a prebuilt module and do not need eval mode, please see the functorch website for resources on how to "
    "patch your module to work with vmap"
)


@rule("norm_backward")
def _normalised_back(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    slope, x, weight, mean, rstd = tensors
    layout, eps = params
    if layout.axes == (0, 2):  # normalised by channel: the slices are additional channels
        n, channels, width = layout.shape
        layout = layout._replace(shape=(n, run.size * channels, width), weight=(1, run.size * channels, 1))
        given = [move_dim(slices_to_front(each, run), 0, 1) for each in (slope, x)] + [_channels(weight, run)]
        return batch(run, apply(op, (*given, _channels(mean, run), _channels(rstd, run)), (layout, eps)), 1)
    if weight is not None and unwrap_batch(weight, run)[1] is not None:
        return apply_by_slices(run, op, tensors, params)
    slope, x, mean, rstd = (slices_to_front(each, run) for each in (slope, x, mean, rstd))
    return batch(run, apply(op, (slope, x, weight, mean, rstd), (_stacked_layout(layout, run), eps)))


@rule(
    "norm_weight_backward strided_add strided_read strided_write masked_spread masked_gather shared_out trace_backward",
    "padded_to corner_of take_backward put_zero nll_loss_backward nll_pick margin_mask margin_slope label_margin_slope",
    "ctc_loss_backward embedding_double embedding_bag_backward embedding_bag_again row_products row_sums",
)
def _by_slices(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op`` for all slices, computed for each slice in turn.

    This rule is registered for operations that occur only inside other operations and backward passes. There is no
    performance warning, because users do not call them directly.
    """
    return apply_by_slices(run, op, tensors, params)
