"""Batching rules: functions that compute an operation for all slices of a call of vmap at once.

Most operations use one of the general rules, which depend only on the declaration of the operation: its option ``vmap``
(see ``op`` in ``dispatch/declare.py``), or its kind and parameters. The other rules in this file are for single
operations, whose computation depends on which operands are batched.
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
    DIMS,
    RULES,
    Rule,
    VmapRun,
    apply_by_slices,
    as_batches,
    batch,
    dynamic_shape_error,
    expand_over_slices,
    move_dim,
    slices_to_front,
    slices_with_rank,
    slices_with_warning,
    unwrap_batch,
)

Operands = tuple[Any, ...]


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Return a decorator that registers a batching rule: a function that computes an operation for all slices at once.

    A name in ``names`` is the name of an operation, or a value of the option ``vmap`` in declarations of operations.
    """

    def enter(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return enter


def rank_of(x: Any) -> int:
    """Return the number of dimensions of one slice of ``x``, or 0 if ``x`` is not a tensor."""
    return x._array.ndim if isinstance(x, Tensor) else 0


def all_front(tensors: Sequence[Any], run: VmapRun) -> Operands:
    """Return ``tensors`` as ordinary tensors, each of which contains its slices along the first dimension.

    A tensor that is not batched by the vmap call ``run`` is repeated for each slice. Values that are not tensors are
    returned unchanged.
    """
    return tuple([slices_to_front(each, run) if isinstance(each, Tensor) else each for each in tensors])


# --- Rules that operations declare ------------------------------------------------------------------------------------


@rule("elementwise")
def elementwise(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op``, an operation that broadcasts its operands, for all slices.

    Dimensions of size 1 are inserted after the batch dimension of an operand if its slices have fewer dimensions than
    those of other operands. The operands then broadcast in the same way as single slices.
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


@rule("copy_block")
def _copied(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    target, source = slices_to_front(tensors[0], run), slices_with_rank(tensors[1], run, rank_of(tensors[0]))
    return batch(run, apply(op, (target, source), params))


def shift_dims(dim: Any) -> Any:
    """Return ``dim``, an int or a tuple of ints, with 1 added to the ints that are not negative.

    The result selects the same dimensions in a tensor that contains the slices along an additional first dimension.
    """
    if isinstance(dim, int):
        return dim + 1 if dim >= 0 else dim
    return tuple(map(shift_dims, dim))


#: Names of parameters that are shapes.
_SHAPES = frozenset(("shape", "size"))


def shift_params(op: Any, params: Operands, run: VmapRun, rank: int) -> Operands:
    """Return ``params``, the parameters of ``op``, changed for operands with an additional first dimension.

    This dimension contains the slices. Dimensions are increased by 1. None and ``()``, which mean all dimensions, are
    replaced by the ``rank`` dimensions of a slice. Shapes get the number of slices as an additional first item. The
    memory formats ``channels_last`` and ``channels_last_3d`` are replaced by the contiguous format, because they
    require a fixed number of dimensions.
    """
    found = []
    for name, value in zip(op.params, params, strict=True):
        if name in DIMS:
            value = shift_dims(tuple(range(rank)) if value is None or value == () else value)
        elif name in _SHAPES:
            value = value if isinstance(value, int) else (run.size, *value)
        elif value is channels_last or value is channels_last_3d:
            value = contiguous_format
        found.append(value)
    return tuple(found)


#: Views that return a 0-d tensor as it is.
_KEEPS_NUMBERS = {"squeeze_dim", "squeeze_dims", "transpose"}


@rule("leading")
def with_shifted_dims(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op`` for all slices, computed by one call in which each dimension parameter is 1 larger.

    The operands of this call contain the slices along their first dimension, so that dimension 0 of a slice is
    dimension 1 of the operand. ``op`` runs once for each slice if a dimension parameter refers to slices that are 0-d,
    or if a parameter is an empty tuple, other than a shape, or an array.
    """
    rank = rank_of(tensors[0])
    if rank == 0 and op.name in _KEEPS_NUMBERS:
        return as_batches(run, F.alias(slices_to_front(tensors[0], run)))
    lone = rank == 0 and not DIMS.isdisjoint(op.params) and op.name not in ("unsqueeze", "diag_embed_block")
    named = zip(op.params, params, strict=True)
    if lone or any(
        (each.__class__ is tuple and not each and name not in _SHAPES) or getattr(each, "ndim", 0)
        for name, each in named
    ):
        return apply_by_slices(run, op, tensors, params)
    return as_batches(run, apply(op, all_front(tensors, run), shift_params(op, params, run, rank)))


@rule("matrices")
def of_matrices(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op``, an operation on batches of matrices or vectors, for all slices.

    ``op.vmap`` has a number for each operand: 2 if its last dimensions are a matrix, 1 for a vector, 0 for a number.
    Before these, dimensions of size 1 are inserted where operands have fewer of them, so that the operands broadcast.
    """
    cores = list(op.vmap)
    if "vector" in op.params and params[op.params.index("vector")]:
        cores[1] = 1
    lead = max(rank_of(each) - core for each, core in zip(tensors, cores, strict=True))
    given = [
        slices_with_rank(batch(run, slices_to_front(each, run)), run, lead + core)
        for each, core in zip(tensors, cores, strict=True)
    ]
    return as_batches(run, apply(op, tuple(given), shift_params(op, params, run, lead)))


@rule("rows")
def by_rows(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op``, which reduces all elements of a tensor, for all slices.

    Each slice becomes a row of a matrix, and another operation reduces the rows. ``op.vmap`` is the name of this
    operation, followed by its parameters. If it has several results, the first is returned.
    """
    name, *given = op.vmap
    found = apply(
        OPS[name], (F.reshape(slices_to_front(tensors[0], run), (run.size, tensors[0].numel())),), tuple(given)
    )
    return batch(run, found[0] if isinstance(found, tuple) else found)


@rule("loss")
def reduced_loss(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op``, a loss function or its gradient, for all slices.

    The losses are computed without reduction, and then reduced for each slice. The gradient is computed for each
    element; if the reduction is the mean, the incoming gradient is first divided by the number of elements of a slice.
    """
    at = op.params.index("reduction")
    reduction, each_element = params[at], (*params[:at], "none", *params[at + 1 :])
    if op.tensors[0] != "grad_output":
        losses = elementwise(run, op, tensors, each_element)
        return losses if reduction == "none" else apply(OPS[f"{reduction}_all"], (losses,), ())
    slope, x, *rest = tensors
    shape = x._array.shape
    if reduction == "mean":
        slope = slope / max(math.prod(shape), 1)
    wide = [slices_with_rank(batch(run, slices_to_front(each, run)), run, len(shape)) for each in (slope, x)]
    given = [F.expand(each, (run.size, *shape)) for each in wide]
    given += [None if each is None else slices_with_rank(each, run, len(shape)) for each in rest]
    return batch(run, apply(op, tuple(given), each_element))


@rule("shared")
def with_shared_operands(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op`` for all slices, if certain operands are the same for all slices.

    ``op.vmap`` is the set of the names of these operands. ``op`` then runs once; the other operands contain the slices
    along their first dimension. If one of the operands in ``op.vmap`` is batched, or the slices are 0-d, ``op`` runs
    once for each slice.
    """
    rank, names = rank_of(tensors[0]), op.tensors
    same = [unwrap_batch(each, run)[1] is None for each in tensors]
    if rank == 0 or not all(one for name, one in zip(names, same, strict=True) if name in op.vmap):
        return apply_by_slices(run, op, tensors, params)
    given = [x if name in op.vmap else slices_to_front(x, run) for name, x in zip(names, tensors, strict=True)]
    return batch(run, apply(op, tuple(given), shift_params(op, params, run, rank)))


@rule("samples")
def more_samples(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of ``op`` for all slices, where the first dimension of each operand is a batch of samples.

    The samples of all slices are merged into one large batch, on which ``op`` runs once. If an optional operand, such
    as a weight, is different for each slice, ``op`` runs once for each slice.
    """
    given = []
    for name, each in zip(op.tensors, tensors, strict=True):
        if name not in op.optional:
            given.append(_merge_slices(slices_to_front(each, run), 0))
        elif each is None or unwrap_batch(each, run)[1] is None:
            given.append(each)
        else:
            return apply_by_slices(run, op, tensors, params)
    sized = [_times(value, 0, run) if name in _SHAPES else value for name, value in zip(op.params, params, strict=True)]
    found = apply(op, tuple(given), tuple(sized))
    if isinstance(found, tuple):
        return tuple(
            [
                _unmerge_slices(each, run, 0) if each._array.ndim else batch(run, F.expand(each, (run.size,)))
                for each in found
            ]
        )
    return _unmerge_slices(found, run, 0)


@rule("random")
def drawn_by_slices(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the random numbers that ``op`` draws for all slices, which are different for each slice.

    Raises RuntimeError if vmap was called with another value of ``randomness`` than ``"different"``.
    """
    if not run.differs():
        raise RuntimeError(
            "Vmap does not currently support same randomness with a batched tensor input. Please file an issue with functorch"
        )
    return batch(run, apply(op, all_front(tensors, run), params))


@rule("dynamic")
def of_dynamic_shape(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Raise RuntimeError, because the shape of the result of ``op`` could be different for each slice.

    The exception is ``masked_select`` with a mask that is the same for all slices, whose result is returned.
    """
    known, along = unwrap_batch(tensors[-1], run)
    if along is not None or isinstance(known, TransformTensor):
        raise dynamic_shape_error({"unique": "_unique2"}.get(op.shown, op.shown))
    shape = numpy.broadcast_shapes(tensors[0]._array.shape, known._array.shape)
    rows = F.reshape(F.expand(slices_with_rank(tensors[0], run, len(shape)), (run.size, *shape)), (run.size, -1))
    places = array_module_of(known._array).flatnonzero(array_module_of(known._array).broadcast_to(known._array, shape))
    return batch(run, F.index_select_block(rows, wrap(places), 1))


RULES["slices"], RULES["unknown"] = apply_by_slices, slices_with_warning


# --- Rules of single operations: views and reductions -----------------------------------------------------------------


@rule("as_strided_block", "as_strided_scatter_block")
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


@rule("expand", "evenly_spread", "repeat_block")
def _expanded(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    size = tuple(params[0])
    first = 1 if op.name == "repeat_block" else run.size
    return batch(run, apply(op, (slices_with_rank(tensors[0], run, len(size)),), ((first, *size), *params[1:])))


@rule("t")
def _transpose(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x = slices_to_front(tensors[0], run)
    return batch(run, F.transpose(x, 1, 2) if x._array.ndim == 3 else apply(OPS["alias"], (x,), ()))


@rule("squeeze_all")
def _squeezed(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x = slices_to_front(tensors[0], run)
    ones = tuple(dim for dim, size in enumerate(x._array.shape) if dim and size == 1)
    return batch(run, apply(OPS["squeeze_dims"], (x,), (ones,)))


@rule("roll_block")
def _rolled(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, (shifts, dims) = slices_to_front(tensors[0], run), params
    if dims:
        return batch(run, apply(op, (x,), (shifts, shift_dims(dims))))
    flat = F.reshape(x, (run.size, -1))
    return batch(run, F.reshape(apply(op, (flat,), (shifts, (1,))), x._array.shape))


@rule("argmax_block", "argmin_block")
def _arg_extreme(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    dim, keepdim = params
    if dim is not None:
        return with_shifted_dims(run, op, tensors, params)
    rank = rank_of(tensors[0])
    rows = F.reshape(slices_to_front(tensors[0], run), (run.size, -1))
    found = apply(op, (rows,), (1, False))
    return batch(run, F.reshape(found, (run.size, *(1,) * rank)) if keepdim else found)


@rule("sum_to_size")
def _summed_to(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, size = slices_to_front(tensors[0], run), tuple(params[0])
    lead = x._array.ndim - 1 - len(size)
    summed = apply(op, (x,), ((run.size, *(1,) * lead, *size),))
    return batch(run, F.reshape(summed, (run.size, *size)) if lead else summed)


@rule("identity_like")
def _identity(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return apply(op, (unwrap_batch(tensors[0], run)[0],), params)  # the same for every slice


@rule("trace")
def _traced(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, F.sum_dim(F.diagonal(slices_to_front(tensors[0], run), 0, 1, 2), (1,), False))


# --- Products ---------------------------------------------------------------------------------------------------------


def _product(a: Any, b: Any, run: VmapRun) -> Any:
    """Return the product of the matrices in ``a`` and ``b`` for each slice, stacked along the first dimension.

    If ``b`` is a matrix that is not batched, the rows of all slices of ``a`` form one large matrix, so that one matrix
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


@rule("mm", "bmm")
def _matrices(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, _product(tensors[0], tensors[1], run))


@rule("mv")
def _matrix_vector(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    return batch(run, _vector_product(tensors[0], tensors[1], run))


@rule("outer_conj")
def _outer(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, y = all_front(tensors, run)
    return batch(run, F.unsqueeze(x, -1) * F.unsqueeze(F.conj_physical(y) if y.is_complex() else y, -2))


@rule("dot", "vdot")
def _dot(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, y = all_front(tensors, run)
    x = F.conj_physical(x) if op.name == "vdot" and x.is_complex() else x
    return batch(run, F.sum_dim(x * y, (1,), False).to(x.dtype))  # not int64, as a sum of integers is


@rule("addmm", "addmv", "addr", "addbmm", "baddbmm")
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


def _indexed_rank(picks: Sequence[Any]) -> int:
    return len(numpy.broadcast_shapes(*(each.shape for each in picks if each is not None)))


def _slices_dim(picks: Sequence[Any]) -> int:
    """Return the dimension along which the slices are found in the result of ``x[(slice(None), *picks)]``.

    ``x`` contains the slices along its first dimension. ``picks[i]`` is the index tensor for dimension ``i`` of a
    slice, or None for all elements along it. If a None separates index tensors, the slices follow the dimensions of the
    index tensors, which come first as in NumPy. Otherwise they are along dimension 0.
    """
    places = [i for i, each in enumerate(picks) if each is not None]
    return _indexed_rank(picks) if places and places[-1] - places[0] + 1 != len(places) else 0


@rule("index_block")
def _picked(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    (picks,) = params
    return batch(run, apply(op, (slices_to_front(tensors[0], run),), ((None, *picks),)), _slices_dim(picks))


@rule("index_backward")
def _picked_back(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    shape, picks = params
    x = move_dim(slices_to_front(tensors[0], run), 0, _slices_dim(picks))
    return batch(run, apply(op, (x,), ((run.size, *shape), (None, *picks))))


@rule("index_put_block", "index_fill_zero")
def _put(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    picks, *rest = params
    x, *others = tensors
    given, place = [slices_to_front(x, run)], _slices_dim(picks)
    for each in others:
        rank = len(x._array.shape) - sum(pick is not None for pick in picks) + _indexed_rank(picks)
        values = slices_with_rank(each, run, rank)
        if unwrap_batch(each, run)[1] is not None:
            values = move_dim(values, 0, place)
        elif place and values._array.ndim > place:
            values = F.unsqueeze(F.reshape(values, (*(1,) * (rank - values._array.ndim), *values._array.shape)), place)
        given.append(values)
    return batch(run, apply(op, tuple(given), ((None, *picks), *rest)))


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


@rule("nll_loss_block", "nll_loss2d_block")
def _likelihood(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    scores, target, weight = tensors
    reduction, ignored = params
    if weight is not None and unwrap_batch(weight, run)[1] is not None:
        return apply_by_slices(run, op, tensors, params)
    x, y = all_front((scores, target), run)
    shape = y._array.shape
    x, y = (_merge_slices(x, 0), _merge_slices(y, 0)) if rank_of(scores) > 1 else (x, y)
    losses, shares = (apply(op, (each, y, weight), ("none", ignored))[0] for each in (x, F.zeros_as(x) - 1))
    total, every = (F.sum_dim(F.reshape(each, (run.size, -1)), (1,), False) for each in (losses, shares))
    if reduction == "none":
        return batch(run, F.reshape(losses, shape)), batch(run, F.zeros_as(every))
    return batch(run, total / every if reduction == "mean" else total), batch(run, every)


# --- Windows ----------------------------------------------------------------------------------------------------------


def _merge_slices(x: Any, dim: int) -> Any:
    """Return ``x``, which contains slices along its first dimension, with these concatenated along dimension ``dim``.

    ``dim`` is a dimension of a slice. The result has one dimension less than ``x``.
    """
    x = move_dim(x, 0, dim)
    shape = x._array.shape
    return F.reshape(x, (*shape[:dim], shape[dim] * shape[dim + 1], *shape[dim + 2 :]))


def _unmerge_slices(x: Any, run: VmapRun, dim: int) -> Any:
    """Return ``x``, in which slices are concatenated along dimension ``dim``, as a batched tensor.

    This is the inverse of :func:`_merge_slices`. ``run`` is the vmap call.
    """
    shape = x._array.shape
    return batch(run, F.reshape(x, (*shape[:dim], run.size, shape[dim] // run.size, *shape[dim + 1 :])), dim)


def _times(shape: Sequence[int], dim: int, run: VmapRun) -> tuple[int, ...]:
    return (*shape[:dim], run.size * shape[dim], *shape[dim + 1 :])


@rule("convolution_block", "convolution_output", "convolution_input", "convolution_weight")
def _convolved(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    """Return the result of a convolution, or of its gradient, for all slices, computed by one convolution.

    If all slices have the same weight, they are treated as additional samples. Otherwise, and for the gradient of the
    weight, they are treated as additional groups of channels. Transposed convolutions with a different weight for each
    slice run once for each slice.
    """
    x, *others = tensors
    first, *rest, groups = params
    of_weight = op.name == "convolution_weight"
    if not of_weight and all(each is None or unwrap_batch(each, run)[1] is None for each in others):
        dim, given = 0, [_merge_slices(slices_to_front(x, run), 0), *others]
    elif op.name == "convolution_block" and rest[2]:  # transposed
        return apply_by_slices(run, op, tensors, params)
    else:
        dim, groups, given = 1, groups * run.size, [_merge_slices(slices_to_front(x, run), 1)]
        given += [
            each if each is None else _merge_slices(slices_to_front(each, run), int(of_weight)) for each in others
        ]
    dim = 0 if of_weight else dim
    first = first if op.name == "convolution_block" else _times(first, dim, run)
    return _unmerge_slices(apply(op, tuple(given), (first, *rest, groups)), run, dim)


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


@rule(*(f"{name}_scatter_block{end}" for name in _PLACES for end in ("", "_hole")))
def _written_into(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    places = _PLACES[op.name.partition("_")[0]]
    arguments = tuple(shift_dims(each) if i in places else each for i, each in enumerate(params[0]))
    return batch(run, apply(op, all_front(tensors, run), (arguments,)))


# --- Normalisation ----------------------------------------------------------------------------------------------------


def _stacked(layout: Any, run: VmapRun) -> Any:
    return layout._replace(shape=_times(layout.shape, 0, run))


@rule("layer_norm_block", "group_norm_block")
def _normalised(run: VmapRun, op: Any, tensors: Operands, params: Operands) -> Any:
    x, *affine = tensors
    layout, eps = params
    own = any(each is not None and unwrap_batch(each, run)[1] is not None for each in affine)
    weight, bias = (None, None) if own else affine
    out, *parts = apply(op, (slices_to_front(x, run), weight, bias), (_stacked(layout, run), eps))
    for each, step in zip(affine, (F.mul, F.add), strict=True):
        if own and each is not None:  # batched weights are applied to the result
            value, rank = slices_to_front(each, run), out._array.ndim
            first, *rest = value._array.shape
            ones = (1,) * (rank - 1 - len(rest))
            out = step(out, F.reshape(value, (first, *ones, *rest) if op.name == "layer_norm_block" else
                                      (first, 1, *rest, *ones[1:])))  # fmt: skip
    parts = [F.reshape(each, (run.size, layout.shape[0], *each._array.shape[1:])) for each in parts]
    return tuple(batch(run, each) for each in (out, *parts))


def _channels(x: Any, run: VmapRun) -> Any:
    """Return ``x``, whose slices have one element for each channel, as a 1-d tensor with the elements of all slices.

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
    return batch(run, apply(op, (slope, x, weight, mean, rstd), (_stacked(layout, run), eps)))
