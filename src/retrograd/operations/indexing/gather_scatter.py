"""Operations with an index tensor: ``index_select``, ``gather``, ``scatter``, ``index_add``, ``take``, ``put``, ….

In most of these operations, the elements of the index tensor are indices along one dimension of the input. In ``take``
and ``put``, they are indices of the flattened input.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy

from ...core import dtypes
from ...core.devices import array_module_of, on_gpu
from ...core.tensor import Tensor, normalize_dim, wrap
from ...core.views import check_partial_overlap
from ...dispatch.declare import TENSORS, op, public
from ...dispatch.generic_path import modify
from ...dispatch.operand_promotion import broadcast_mismatch, plain_number
from ...dispatch.transform_tensor import TransformTensor
from ...kernels import copying, indexing
from ...kernels.gather_scatter import all_in_range, index_fits, put_along, take_along, take_axis
from ...runtime.user_frame import warn
from ..engine_ops import expand

#: The dtypes that an index tensor may have.
INDEX_DTYPES = (dtypes.int64, dtypes.int32)
INT = numpy.dtype(numpy.int64)

# -- Along a dimension -----------------------------------------------------------------------------------------------


def _check_range(index: Tensor, size: int, error: Callable[[int], Exception], low: int = 0) -> None:
    """Raise an exception if an element of ``index`` is less than ``low``, or is not less than ``size``.

    The exception is ``error(i)``, where ``i`` is the first such element.
    """
    array = index._array
    if not low and array.dtype is INT and array.__class__ is numpy.ndarray and all_in_range(numpy, array, size):
        return
    if array.size and not on_gpu(array) and (array.max() >= size or array.min() < low):
        raise error(int(array[(array >= size) | (array < low)].reshape(-1)[0]))


def _bounds_error(
    dim: int, size: int, kind: type[Exception] = RuntimeError, name: str = ""
) -> Callable[[int], Exception]:
    """Return a function that creates PyTorch's exception for an index that is out of bounds.

    The argument of the returned function is the index. ``dim`` and ``size`` are the indexed dimension and its size,
    ``kind`` is the class of the exception, and ``name`` is the beginning of the error message.
    """
    return lambda bad: kind(f"{name}index {bad} is out of bounds for dimension {dim} with size {size}")


def _vector_bounds_error(bad: int) -> Exception:
    return IndexError("index out of range in self")


def _size(x: Tensor, dim: int) -> int:
    return x._array.shape[dim] if x._array.ndim else 1


@op(
    backward="IndexSelectBackward0", function=False, method=False, linear=True, vmap={"index"},
    inline=lambda self, index, dim: take_axis(numpy, self, index, dim)
    if index.dtype is INT and index.ndim == 1 and self.ndim and dim.__class__ is int and -self.ndim <= dim < self.ndim
    and all_in_range(numpy, index, self.shape[dim]) else None,
)  # fmt: skip
def index_select_block(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """Return a copy of the slices of ``self`` along dimension ``dim`` at the indices ``index``."""
    if not self.ndim:
        return self.copy()
    return take_axis(np, self, index if index.ndim == 1 else index.reshape(-1), dim)


index_select_block.derivative(
    self=lambda F, g, self_shape, index, dim: F.index_select_backward(g, index, self_shape, dim)
)


@op(function=False, method=False, linear=True, opmath=True, vmap={"index"})
def index_select_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Return the gradient of ``index_select``: zeros of ``shape`` to which the slices of ``self`` are added.

    ``self`` is the gradient of the result of ``index_select``. Its slices along ``dim`` are added at the indices
    ``index``.
    """
    if not shape:
        return self.reshape(shape)
    return indexing.add(
        np, np.zeros(shape, self.dtype), (None,) * normalize_dim(dim, len(shape)) + (index.reshape(-1),), self
    )


index_select_backward.derivative(self=lambda F, g, index, dim: F.index_select_block(g, index, dim))


@public(fast_path=index_select_block, inline_only=True, operands=("input", "index"))
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor:
    """Return a copy of the slices of ``input`` along ``dim`` at the indices ``index``.

    ``index`` is an integer tensor with at most one dimension.

    >>> import retrograd as torch
    >>> torch.index_select(torch.tensor([[1, 2], [3, 4]]), 0, torch.tensor([1]))
    tensor([[3, 4]])
    """
    at = normalize_dim(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in INDEX_DTYPES:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input._array.ndim and index._array.size != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index._array.size} value(s)")
    size = _size(input, at)
    if input._array.ndim > 1 and (at or not input._array.size) and index._array.size:  # another loop of PyTorch's
        if not size:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        _check_range(
            index, size, lambda bad: RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={size}")
        )
    _check_range(index, size, lambda bad: IndexError("index out of range in self"))
    return index_select_block(input, index, at)


def _is_plain_scatter(self: Any, index: Any, src: Any, dim: Any) -> Any:
    """Return a true value if the arguments of a ``scatter`` function are simple and need no checks.

    In this case, the result is computed directly on the arrays. The arguments are simple if ``index`` is an int64 array
    whose elements are in range, ``self``, ``index`` and ``src`` have the same shape, ``self`` and ``src`` have the same
    dtype, and ``dim`` is valid.
    """
    return (
        index.dtype is INT and index.shape == self.shape == src.shape and src.dtype is self.dtype and self.ndim
        and dim.__class__ is int and -self.ndim <= dim < self.ndim and all_in_range(numpy, index, self.shape[dim])
    )  # fmt: skip


@op(
    backward="GatherBackward0", function=False, method=False, linear=True,
    inline=lambda self, index, dim: take_along(numpy, self, index, dim)
    if index.dtype is INT and dim.__class__ is int and -self.ndim <= dim < self.ndim
    and (index.shape == self.shape or index_fits(index.shape, self.shape, dim)) and all_in_range(numpy, index, self.shape[dim])
    else None, vmap="leading",
)  # fmt: skip
def gather_block(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """Return the elements of ``self`` at the indices ``index`` along dimension ``dim``, in the shape of ``index``.

    For ``dim=0`` in two dimensions: ``out[i, j] = self[index[i, j], j]``.
    """
    return indexing.gather(np, self, index, dim)


gather_block.derivative(self=lambda F, g, self_shape, index, dim: F.gather_backward(g, index, self_shape, dim))


@op(function=False, method=False, linear=True, opmath=True, vmap="leading")
def gather_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Return the gradient of ``gather``: zeros of ``shape`` to which the elements of ``self`` are added at ``index``.

    ``self`` is the gradient of the result of ``gather``. The indices count along dimension ``dim``. For ``dim=0`` in
    two dimensions: ``out[index[i, j], j] += self[i, j]``.
    """
    return indexing.scatter_add(np, index, np.zeros(shape, self.dtype), self, dim)


gather_backward.derivative(self=lambda F, g, index, dim: F.gather_block(g, index, dim))


def _check_along(name: str, input: Tensor, dim: int, index: Tensor, src: Any = None) -> int:
    """Check the arguments of ``gather`` or of a ``scatter`` function and return ``dim`` as a non-negative int.

    Raise IndexError or RuntimeError for invalid arguments. ``name`` is the name of the function in the error message.
    ``src`` is the tensor or number that a ``scatter`` function writes; it is None for ``gather``.
    """
    at = normalize_dim(dim, input._array.ndim)
    shape, picked = input._array.shape or (1,), index._array.shape or (1,)
    if index.dtype not in INDEX_DTYPES and index._array.size:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if isinstance(src, Tensor) and src.dtype is not input.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if not index._array.size:
        return at
    if len(shape) != len(picked):
        whole = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {whole} tensor")
    if isinstance(src, Tensor):
        _check_source(shape, picked, src._array.shape or (1,), at)
    elif any(have > want for axis, (have, want) in enumerate(zip(picked, shape, strict=True)) if axis != at):
        wrong = next(i for i, (have, want) in enumerate(zip(picked, shape, strict=True)) if i != at and have > want)
        start = f"Size does not match at dimension {wrong} expected" if name == "gather" else "Expected"
        raise RuntimeError(
            f"{start} index {list(picked)} to be no larger than self {list(shape)} apart from dimension {at}"
        )
    size = _size(input, at)
    _check_range(index, size, _bounds_error(at, size))
    return at


def _check_source(shape: tuple[int, ...], picked: tuple[int, ...], given: tuple[int, ...], dim: int) -> None:
    if len(given) != len(picked):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for axis, (have, want) in enumerate(zip(picked, shape, strict=True)):
        if (axis != dim and have > want) or have > given[normalize_dim(axis, len(given))]:
            raise RuntimeError(
                f"Expected index {list(picked)} to be no larger than self {list(shape)} apart from dimension {dim} and to "
                f"be no larger size than src {list(given)}"
            )


@public(fast_path=gather_block, inline_only=True, operands=("input", "index"))
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Any = None) -> Tensor:
    """Return the elements of ``input`` at the indices ``index`` along dimension ``dim``, in the shape of ``index``.

    For ``dim=0`` in two dimensions: ``out[i, j] = input[index[i, j], j]``. ``sparse_grad`` has no effect.

    >>> import retrograd as torch
    >>> torch.gather(torch.tensor([[1, 2], [3, 4]]), 1, torch.tensor([[0], [1]]))
    tensor([[1],
            [4]])
    """
    return gather_block(input, index, _check_along("gather", input, dim, index))


@op(
    backward="ScatterBackward0", function=False, method=False, linear=True, vmap="leading",
    inline=lambda self, index, src, dim: put_along(numpy, copying.c_copy(numpy, self), index, src, dim)
    if index.dtype is INT and index.shape == self.shape == src.shape and src.dtype is self.dtype and self.ndim
    and dim.__class__ is int and -self.ndim <= dim < self.ndim and all_in_range(numpy, index, self.shape[dim]) else None,
)  # fmt: skip
def scatter_src(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """Return a copy of ``self`` with the elements of ``src`` written at the indices ``index`` along dimension ``dim``.

    For ``dim=0`` in two dimensions: ``out[index[i, j], j] = src[i, j]``.
    """
    return indexing.scatter(np, copying.c_copy(np, self), index, src, dim)


scatter_src.derivative(
    self=lambda F, g, index, dim: F.scatter_value(g, index, dim, 0),
    src=lambda F, g, index, src_shape, dim: F.padded_to(F.gather_block(g, index, dim), src_shape),
)


@op(backward="ScatterBackward1", function=False, method=False, linear=True, vmap="leading")
def scatter_value(np: Any, self: Any, index: Any, /, dim: int, value: Any) -> Any:
    """Return a copy of ``self`` with the number ``value`` written at the indices ``index`` along dimension ``dim``.

    For ``dim=0`` in two dimensions: ``out[index[i, j], j] = value``.
    """
    return indexing.scatter(np, copying.c_copy(np, self), index, dtypes.number_to_scalar(value, self.dtype), dim)


scatter_value.derivative(self=lambda F, g, index, dim: F.scatter_value(g, index, dim, 0))


@op(
    backward="ScatterAddBackward0", function=False, method=False, linear=True, opmath=True, vmap="leading",
)  # fmt: skip
def scatter_add_block(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """Return a copy of ``self`` with the elements of ``src`` added at the indices ``index`` along dimension ``dim``.

    For ``dim=0`` in two dimensions: ``out[index[i, j], j] += src[i, j]``.
    """
    return indexing.scatter_add(np, index, copying.c_copy(np, self), src, dim)


scatter_add_block.derivative(
    self=1, src=lambda F, g, index, src_shape, dim: F.padded_to(F.gather_block(g, index, dim), src_shape)
)


@op(function=False, method=False, linear=True, vmap="slices")
def padded_to(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """Return ``self`` padded with zeros to ``shape``; the zeros are added at the end of each dimension.

    In ``scatter``, ``src`` may be larger than ``index``. The zeros are the gradient of the elements of ``src`` that are
    not used.
    """
    if self.size == math.prod(shape):
        return self.reshape(shape)
    out = np.zeros(shape, self.dtype)
    if not self.size:  # maybe of other dimensions: an empty index picks nothing
        return out
    out[tuple(slice(0, n) for n in self.shape)] = self
    return out


padded_to.derivative(self=lambda F, g, self_shape: F.corner_of(g, self_shape))


@op(function=False, method=False, linear=True, vmap="slices")
def corner_of(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """Return a copy of the slice of ``self`` that starts at index 0 in each dimension and has the shape ``shape``.

    This is the gradient of :func:`padded_to`.
    """
    if not math.prod(shape):
        return np.zeros(shape, self.dtype)
    return self.reshape(shape) if len(shape) != self.ndim else self[tuple(slice(0, n) for n in shape)].copy()


corner_of.derivative(self=lambda F, g, self_shape: F.padded_to(g, self_shape))


def _scatter(
    input: Tensor, dim: int, index: Tensor, src: Any, reduce: Any
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Check the arguments of ``scatter``, and return the call for its result: (operation, tensors, parameters).

    The caller computes the result as ``operation(*tensors, *parameters)``, or in place. Raise IndexError or
    RuntimeError for invalid arguments. ``src`` is a tensor or a number. ``reduce`` is ``"add"``, ``"multiply"`` or
    None.
    """
    at = _check_along("scatter", input, dim, index, src)
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        if isinstance(src, Tensor):
            warn(
                "The reduce argument of torch.scatter with Tensor src is deprecated and will be removed in a future "
                "PyTorch release. Use torch.scatter_reduce instead for more reduction options.",
            )
        else:
            np = array_module_of(input._array)
            src = wrap(np.full(index._array.shape, dtypes.number_to_scalar(src, input._array.dtype)))
        return scatter_reduce_block, (input, index, src), (at, {"add": "sum", "multiply": "prod"}[reduce], True)
    if not isinstance(src, Tensor):
        return scatter_value, (input, index), (at, src)
    return scatter_src, (input, index, src), (at,)


def _scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    """Check the arguments of ``scatter_reduce``, and return the call for its result: (operation, tensors, parameters).

    The caller computes the result as ``operation(*tensors, *parameters)``, or in place. Raise IndexError or
    RuntimeError for invalid arguments.
    """
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce)
    at = _check_along("scatter", input, dim, index, src)
    return scatter_reduce_block, (input, index, src), (at, reduce, include_self)


@public(fast_path=scatter_src, inline_only=True, operands=("input", "index", "src"))
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Any = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Any = None,
) -> Tensor:
    """Return a copy of ``input`` with the elements of ``src`` written at the indices ``index`` along dimension ``dim``.

    For ``dim=0`` in two dimensions: ``out[index[i, j], j] = src[i, j]``. A number, passed as ``src`` or ``value``, is
    written at all indices. With ``reduce="add"`` the elements of ``src`` are added to those of ``input``, and with
    ``reduce="multiply"`` they are multiplied with those of ``input`` (see also :func:`scatter_reduce`).

    >>> import retrograd as torch
    >>> torch.scatter(torch.zeros(3), 0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
    tensor([2., 0., 1.])
    """
    call, tensors, params = _scatter(input, dim, index, value if src is None else src, reduce)
    return call(*tensors, *params)


@public(function=False)
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """Overwrite ``input`` with the result of :func:`scatter` for the same arguments, and return ``input``."""
    check_partial_overlap(input, (index, src), same=False)
    call, tensors, params = _scatter(input, dim, index, value if src is None else src, reduce)
    return modify(call.op, tensors, params)


@public(fast_path=scatter_add_block, if_arrays=_is_plain_scatter, operands=("input", "index", "src"))
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor, *, out: Any = None) -> Tensor:
    """Return a copy of ``input`` with the elements of ``src`` added at the indices ``index`` along dimension ``dim``.

    For ``dim=0`` in two dimensions: ``out[index[i, j], j] += src[i, j]``.
    """
    return scatter_add_block(input, index, src, _check_along("scatter", input, dim, index, src))


@public(function=False)
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """Overwrite ``input`` with the result of :func:`scatter_add` for the same arguments, and return ``input``."""
    check_partial_overlap(input, (index, src), same=False)
    return modify(scatter_add_block.op, (input, index, src), (_check_along("scatter", input, dim, index, src),))


@public()
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True, out: Any = None
) -> Tensor:
    """Return a copy of ``input`` in which each element is combined with elements of ``src`` by a reduction.

    For ``dim=0`` in two dimensions, ``src[i, j]`` is combined with the element ``input[index[i, j], j]``. ``reduce`` is
    ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``. If ``include_self`` is false, the value of an element
    of ``input`` is not included in its reduction. Elements that no index selects are unchanged.
    """
    call, tensors, params = _scatter_reduce(input, dim, index, src, reduce, include_self=include_self)
    return call(*tensors, *params)


@public(function=False)
def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """Overwrite ``input`` with the result of :func:`scatter_reduce` for the same arguments, and return ``input``."""
    check_partial_overlap(input, (index, src), same=False)
    call, tensors, params = _scatter_reduce(input, dim, index, src, reduce, include_self=include_self)
    return modify(call.op, tensors, params)


# -- Reductions at indices -------------------------------------------------------------------------------------------


@op(backward="ScatterReduceBackward0", function=False, method=False, vmap="leading")
def scatter_reduce_block(np: Any, self: Any, index: Any, src: Any, /, dim: int, reduce: str, include_self: bool) -> Any:
    """Return a copy of ``self`` in which each element is combined with elements of ``src`` by a reduction.

    For ``dim=0`` in two dimensions, ``src[i, j]`` is combined with the element ``self[index[i, j], j]``. ``reduce`` is
    ``"sum"``, ``"prod"``, ``"mean"``, ``"amax"`` or ``"amin"``. If ``include_self`` is false, the value of an element
    of ``self`` is not included in its reduction. Elements that no index selects are unchanged.
    """
    return indexing.scatter_reduce(np, self, index, src, dim, reduce, include_self)


def _reduce_self(
    F: Any, g: Any, self: Any, index: Any, index_shape: Any, src: Any, out: Any, dim: int, reduce: str,
    include_self: bool,
) -> Any:  # fmt: skip
    if not include_self:
        return F.scatter_value(g, index, dim, 0)
    if reduce == "sum":
        return g
    if reduce == "mean":
        return g / F.scatter_count(self, index, dim, 1)
    if reduce == "prod":  # the product of the other factors; not a division, because the own element may be 0
        return g * F.scatter_reduce_block(F.zeros_as(self) + 1, index, src, dim, "prod", True)
    return g * F.same(self, out) / F.scatter_ties(self, index, F.corner_of(src, index_shape), out, dim, 1)


def _reduce_src(
    F: Any, g: Any, self: Any, index: Any, index_shape: Any, src: Any, src_shape: Any, out: Any, dim: int, reduce: str,
    include_self: bool,
) -> Any:  # fmt: skip
    src = F.corner_of(src, index_shape)
    if reduce == "mean":
        g = g / F.scatter_count(self, index, dim, int(include_self))
    elif reduce == "prod":
        return F.padded_to(_product_of_others(F, g, self, index, src, out, dim, include_self), src_shape)
    elif reduce != "sum":
        arrived, hits = _shared_extremes(F, g, self, index, src, out, dim, include_self)
        return F.padded_to(arrived * hits, src_shape)
    return F.padded_to(F.gather_block(g, index, dim), src_shape)


def _shared_extremes(
    F: Any, g: Any, self: Any, index: Any, src: Any, out: Any, dim: int, include_self: bool
) -> tuple[Any, Any]:
    """Return the tuple (quotients, mask) for the gradient of ``amax`` or ``amin`` in ``scatter_reduce``.

    The product of both arrays is the gradient with respect to ``src``, and both have the shape of ``src``. ``out``
    holds the maxima or minima, and ``g`` is the gradient of ``out``. The gradient of a maximum is divided evenly among
    the elements equal to it: these are the quotients. The mask is 1 where an element of ``src`` is equal to the maximum
    or minimum at its index, else 0. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    shared = g / F.scatter_ties(self, index, src, out, dim, int(include_self))
    return F.gather_block(shared, index, dim), F.same(src, F.gather_block(out, index, dim))


def segment_reduce_src_rule(
    F: Any, g: Any, self: Any, index: Any, index_shape: Any, src: Any, src_shape: Any, out: Any, dim: int, reduce: str,
    include_self: bool,
) -> Any:  # fmt: skip
    """Return the gradient of ``segment_reduce`` with respect to ``src``.

    ``segment_reduce`` computes its result ``out`` as :func:`scatter_reduce` does, with the arguments ``self``,
    ``index``, ``src``, ``dim``, ``reduce`` and ``include_self``. ``g`` is the gradient of ``out``. ``index_shape`` and
    ``src_shape`` are the shapes of ``index`` and ``src``. ``F`` is a namespace of operations (``F.matmul``, …) on
    tensors or on arrays.

    For "amax" and "amin", the gradient is 0 at elements that are not the maximum or minimum, even if ``g`` is infinite.
    """
    if reduce not in ("amax", "amin"):
        return _reduce_src(F, g, self, index, index_shape, src, src_shape, out, dim, reduce, include_self)
    return F.masked_product(*_shared_extremes(F, g, self, index, src, out, dim, include_self))


def _product_of_others(F: Any, g: Any, self: Any, index: Any, src: Any, out: Any, dim: int, include_self: bool) -> Any:
    """Return the gradient of ``scatter_reduce`` with ``reduce="prod"`` with respect to ``src``.

    The derivative of a product with respect to one factor is the product of the other factors. If the factor is not 0,
    this is the product divided by the factor. If it is 0, the other factors are multiplied. On arrays this is done only
    for the first 0 of each product, because if there is another one, the derivatives are 0. On tensors it is done for
    all, because the derivatives of these derivatives need not be 0.

    ``out`` holds the products, ``g`` is the gradient of ``out``, and ``F`` is a namespace of operations (``F.matmul``,
    …) on tensors or on arrays.
    """
    zero, ranks = src == 0, F.zero_ranks(self, index, src, dim)
    divided = F.gather_block(g * out, index, dim) / F.masked_fill_number(src, zero, 1)
    total = F.where_else(F.logical_not(zero), divided)
    times = int(ranks._array.max()) + 1 if ranks.__class__ is Tensor and not ranks.is_meta and ranks._array.size else 1
    for rank in range(times):
        alone = ranks == rank
        without = F.scatter_reduce_block(self, index, F.masked_fill_number(src, alone, 1), dim, "prod", include_self)
        total = total + F.where_else(alone, F.gather_block(g * without, index, dim))
    return total


scatter_reduce_block.derivative(self=_reduce_self, src=_reduce_src)


@op(function=False, method=False, vmap="leading")
def scatter_count(np: Any, self: Any, index: Any, /, dim: int, start: int) -> Any:
    """Return the number of elements that ``scatter_reduce`` combines to each element of its result, but at least 1.

    The gradient of a mean is divided by these numbers. The result has the shape of ``self``, as that of
    ``scatter_reduce``. ``index`` holds, for each combined element, the index of its result along ``dim``. ``start`` is
    1 if the elements of ``self`` are included in the reduction, else 0.
    """
    count = indexing.scatter_add(
        np, index, np.full(self.shape, start, self.dtype), np.ones(index.shape, self.dtype), dim
    )
    return np.maximum(count, 1)


@op(function=False, method=False, vmap="leading")
def scatter_ties(np: Any, self: Any, index: Any, src: Any, top: Any, /, dim: int, start: int) -> Any:
    """Return, for each maximum or minimum in ``top``, the number of elements that are equal to it, but at least 1.

    The gradient of a maximum or minimum is divided by this number. ``top`` is the result of ``scatter_reduce``, which
    combines the elements of ``src`` with those of ``self`` at the indices ``index`` along ``dim``. The elements of
    ``self`` are counted only if ``start`` is 1; if it is 0, the reduction does not include them.
    """
    ties = (self == top).astype(self.dtype) * start
    hits = (src == indexing.gather(np, top, index, dim)).astype(self.dtype)
    return np.maximum(indexing.scatter_add(np, index, ties, hits, dim), 1)


@op(function=False, method=False, vmap="leading")
def zero_ranks(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """Return, for each element of ``src`` that is 0, the number of zeros before it in its product, and -1 for others.

    The products are those of ``scatter_reduce`` with ``reduce="prod"``. ``index`` holds the index along ``dim`` of the
    product to which each element of ``src`` belongs.
    """
    return indexing.ranks_in_groups(np, src == 0, index, self.shape, dim)


for _constant in (scatter_count, scatter_ties, zero_ranks):
    _constant.derivative(self=lambda g: None)


@op(name="index_reduce_block", backward="IndexReduceBackward0", function=False, method=False)
def index_reduce_block(
    np: Any, self: Any, index: Any, source: Any, /, dim: int, reduce: str, include_self: bool
) -> Any:
    """Return a copy of ``self`` in which slices along ``dim`` are combined with slices of ``source`` by a reduction.

    ``index[i]`` is the index along ``dim`` of the slice of ``self`` with which slice ``i`` of ``source`` is combined.
    ``reduce`` is "prod", "mean", "amax" or "amin". If ``include_self`` is false, the values of ``self`` at the indices
    ``index`` are not included in the reductions.
    """
    wide = _spread(np, index, source.shape, dim)
    return indexing.scatter_reduce(np, self, wide, source, dim, reduce, include_self)


def _spread(np: Any, index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """Return ``index``, a 1-d array of indices along ``dim``, broadcast to ``shape``.

    Functions such as ``index_add`` have one index for each slice. The result has one index for each element.
    """
    return np.broadcast_to(index.reshape((-1,) + (1,) * (len(shape) - dim - 1)), shape) if shape else index.reshape(())


@op(function=False, method=False)
def spread_index(np: Any, self: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Return ``self``, a 1-d array of indices along ``dim``, broadcast to ``shape``.

    Functions such as ``index_add`` have one index for each slice. The result has one index for each element.
    """
    return _spread(np, self, shape, dim)


def _index_reduce_self(
    F: Any, g: Any, self: Any, index: Any, source: Any, source_shape: Any, out: Any, dim: int, reduce: str,
    include_self: bool,
) -> Any:  # fmt: skip
    wide = F.spread_index(index, source_shape, dim)
    return _reduce_self(F, g, self, wide, source_shape, source, out, dim, reduce, include_self)


def _index_reduce_source(
    F: Any, g: Any, self: Any, index: Any, source: Any, source_shape: Any, out: Any, dim: int, reduce: str,
    include_self: bool,
) -> Any:  # fmt: skip
    wide = F.spread_index(index, source_shape, dim)
    return _reduce_src(F, g, self, wide, source_shape, source, source_shape, out, dim, reduce, include_self)


index_reduce_block.derivative(self=_index_reduce_self, source=_index_reduce_source)


# -- index_add, index_copy, index_fill -------------------------------------------------------------------------------


@op(backward="IndexAddBackward0", function=False, method=False, linear=True, vmap={"index"})
def index_add_block(np: Any, self: Any, index: Any, source: Any, /, dim: int, alpha: Any) -> Any:
    """Return a copy of ``self`` with ``alpha * source`` added to the slices at the indices ``index`` along ``dim``."""
    added = source if alpha == 1 else source * dtypes.number_to_scalar(alpha, source.dtype)
    if not self.ndim:
        return self + added.reshape(())
    return indexing.add(np, copying.c_copy(np, self), (None,) * dim + (index.reshape(-1),), added)


def _index_add_source(F: Any, g: Any, index: Any, source_shape: Any, dim: int, alpha: Any) -> Any:
    selected = F.reshape(F.index_select_block(g, index, dim), source_shape)
    return selected if alpha == 1 else selected * alpha


index_add_block.derivative(self=1, source=_index_add_source)


@op(backward="IndexCopyBackward0", function=False, method=False, linear=True, vmap={"index"})
def index_copy_block(np: Any, self: Any, index: Any, source: Any, /, dim: int) -> Any:
    """Return a copy of ``self`` with the slices of ``source`` written at the indices ``index`` along ``dim``."""
    if not self.ndim:
        return source.reshape(-1)[-1:].copy().reshape(())
    if source.ndim < self.ndim:  # a number, or in vmap a batch of numbers
        source = np.expand_dims(source, dim)
    return indexing.put(np, copying.c_copy(np, self), (None,) * dim + (index.reshape(-1),), source)


index_copy_block.derivative(
    self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0),
    source=lambda F, g, index, source_shape, dim: F.reshape(F.index_select_block(g, index, dim), source_shape),
)


@op(backward="IndexFillBackward0", function=False, method=False, linear=True, vmap={"index"})
def index_fill_number(np: Any, self: Any, index: Any, /, dim: int, value: Any) -> Any:
    """Return a copy of ``self`` with the number ``value`` written to the slices at ``index`` along ``dim``."""
    if not self.ndim:
        return np.asarray(dtypes.number_to_array(value, self.dtype))
    return indexing.put(
        np, copying.c_copy(np, self), (None,) * dim + (index.reshape(-1),), dtypes.number_to_scalar(value, self.dtype)
    )


index_fill_number.derivative(self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0))


@op(backward="IndexFillBackward1", function=False, method=False, linear=True, vmap={"index", "value"})
def index_fill_tensor(np: Any, self: Any, index: Any, value: Any, /, dim: int) -> Any:
    """Return a copy of ``self`` with the 0-d array ``value`` written to the slices at ``index`` along ``dim``."""
    if not self.ndim:
        return value.astype(self.dtype)
    return indexing.put(np, copying.c_copy(np, self), (None,) * dim + (index.reshape(-1),), value.astype(self.dtype))


index_fill_tensor.derivative(
    self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0),
    value=lambda F, g, index, dim: F.sum_all(F.where_else(F.index_fill_number(F.zeros_as(g), index, dim, 1) != 0, g)),
)


def _check_slices(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Raise PyTorch's IndexError or RuntimeError for invalid arguments of the function ``name``.

    ``name`` is ``index_add`` or ``index_reduce``.
    """
    if index._array.ndim > 1:
        raise IndexError(
            f"{name}_(): Index is supposed to be a vector, but got dim: {index._array.ndim} with type: "
            f"{dtypes.scalar_name(index.dtype)} and size: {list(index._array.shape)}"
        )
    if index.dtype not in INDEX_DTYPES:
        shown = dtypes.scalar_name(index.dtype)
        raise RuntimeError(f"{name}_(): Expected dtype int32/int64 for index but got: {shown}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            f"{name}_(): self ({dtypes.scalar_name(input.dtype)}) and source ({dtypes.scalar_name(source.dtype)}) must "
            "have the same scalar type"
        )
    if index._array.size != _size(source, dim) if dim < max(source._array.ndim, 1) else False:
        raise RuntimeError(
            f"{name}_(): Number of indices ({index._array.size}) should be equal to source.size(dim): "
            f"({_size(source, dim)}), for dim: {dim}"
        )
    have, want = list(input._array.shape), list(source._array.shape)
    if len(have) != len(want) or have[:dim] + have[dim + 1 :] != want[:dim] + want[dim + 1 :]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{have} source.shape = {want}"
        )
    size = _size(input, dim)
    if name == "index_add":
        vector = len(have) < 2
        _check_range(index, size, _vector_bounds_error if vector else _bounds_error(dim, size))
    else:
        _check_range(index, size, lambda bad: IndexError("index out of range in self"))


def _check_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Raise PyTorch's errors for invalid arguments of ``index_copy``."""
    if index._array.ndim > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index._array.ndim})")
    shape, given, count = input._array.shape, source._array.shape, index._array.size
    if not given and count != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {count})")
    if given and shape and len(given) != len(shape):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({len(given)}), destination dimensionality ({len(shape)})"
        )
    if index.dtype is not dtypes.int64:
        raise RuntimeError(
            f"index_copy_(): Expected a long tensor for index, but got {dtypes.scalar_name(index.dtype)}"
        )
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{dtypes.scalar_name(input.dtype)} and (source) {dtypes.scalar_name(source.dtype)}"
        )
    have, want = shape[:dim] + shape[dim + 1 :], given[:dim] + given[dim + 1 :]
    if have != want:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, have))} at dimension {dim} and source slice shape: {' '.join(map(str, want))} at "
            "dimension 0."
        )
    if given and count != given[dim]:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) ({given[dim]})"
        )
    _check_range(index, _size(input, dim), _bounds_error(dim, _size(input, dim), IndexError, "index_copy_(): "))


def _check_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """Check the arguments of ``index_fill`` and return ``index`` as non-negative indices.

    The size of dimension ``dim`` is added to negative indices. Raise IndexError or RuntimeError for invalid arguments.
    """
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value._array.ndim} dimension(s)."
        )
    if index.dtype is not dtypes.int64:
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index._array.ndim > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if not input.is_complex() and (value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)):
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")
    size = _size(input, dim)
    _check_range(index, size, _bounds_error(dim, size, IndexError), -size)
    return _non_negative(index, size)


def _non_negative(index: Tensor, size: int) -> Tensor:
    """Return ``index`` with ``size`` added to its negative elements."""
    if isinstance(index, TransformTensor):
        return TENSORS.where_block(index < 0, index + size, index)
    return wrap(numpy.where(index._array < 0, index._array + size, index._array))


def _index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Any:
    at = normalize_dim(dim, input._array.ndim)
    _check_slices("index_add", input, at, index, source)
    return index_add_block, (input, index, source), (at, alpha)


def _index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Any:
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    warn("index_reduce() is in beta and the API may change at any time.")
    at = normalize_dim(dim, input._array.ndim)
    _check_slices("index_reduce", input, at, index, source)
    if input._array.dtype.kind in "bc":
        raise dtypes.unsupported("index_func_", input._array.dtype)
    return index_reduce_block, (input, index, source), (at, reduce, include_self)


def _index_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> Any:
    at = normalize_dim(dim, input._array.ndim)
    _check_copy(input, at, index, source)
    return index_copy_block, (input, index, source), (at,)


def _index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> Any:
    value = plain_number(value)
    at = normalize_dim(dim, input._array.ndim)
    index = _check_fill(input, at, index, value)
    if isinstance(value, Tensor):
        return index_fill_tensor, (input, index, value), (at,)
    return index_fill_number, (input, index), (at, value)


def _index_functions(name: str, arrange: Any, doc: str) -> None:
    """Define the public function ``name``, such as ``index_add``, and the method for its in-place version.

    ``arrange`` takes the arguments of the public function, checks them, and returns a tuple (operation, tensors,
    parameters). The result of the function is ``operation(*tensors, *parameters)``. ``doc`` is the part of the
    docstring that follows "Return a copy of the tensor".
    """

    def out_of_place(input: Tensor, *args: Any, out: Any = None, **kwargs: Any) -> Tensor:
        call, tensors, params = arrange(input, *args, **kwargs)
        return call(*tensors, *params)

    def in_place(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        read = (*args, *kwargs.values()) if name != "index_fill" else (*args[1:2], kwargs.get("index"))
        check_partial_overlap(input, read, same=False)
        call, tensors, params = arrange(input, *args, **kwargs)
        return modify(call.op, tensors, params)

    for function, title, text in (
        (out_of_place, name, f"Return a copy of the tensor {doc}."),
        (in_place, name + "_", f"Overwrite ``input`` with the result of :func:`{name}`, and return ``input``."),
    ):
        function.__name__ = function.__qualname__ = title
        function.__doc__ = text
        public(name=title, function=title == name)(function)


for _name, _arrange, _doc in (
    ("index_add", _index_add, "with ``alpha`` times the slices of ``source`` added at ``index`` along ``dim``"),
    ("index_copy", _index_copy, "with the slices of ``source`` written at ``index`` along ``dim``"),
    ("index_fill", _index_fill, "with ``value`` written to the slices at ``index`` along ``dim``"),
    (
        "index_reduce",
        _index_reduce,
        "in which the slices at ``index`` along ``dim`` are combined with those of ``source`` by the reduction ``reduce``",
    ),
):
    _index_functions(_name, _arrange, _doc)


# -- Indices of the flattened tensor ---------------------------------------------------------------------------------


@op(backward="TakeBackward0", function=False, method=False, linear=True)
def take_block(np: Any, self: Any, index: Any, /) -> Any:
    """Return the elements of the flattened ``self`` at the indices ``index``, in the shape of ``index``."""
    return self.reshape(-1)[index]


take_block.derivative(self=lambda F, g, self_shape, index: F.take_backward(g, index, self_shape))


@op(function=False, method=False, linear=True, vmap="slices", event="retrograd::take_backward")
def take_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...]) -> Any:
    """Return the gradient of ``take``: zeros of ``shape`` to which the elements of ``self`` are added.

    ``self`` is the gradient of the result of ``take``. ``index`` holds, for each element of ``self``, its index in the
    flattened zeros.
    """
    size = math.prod(shape)
    return indexing.add(np, np.zeros(size, self.dtype), (np.where(index < 0, index + size, index),), self).reshape(
        shape
    )


take_backward.derivative(self=lambda F, g, index: F.take_block(g, index))


def _check_row(name: str, input: Tensor, index: Tensor) -> None:
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {dtypes.scalar_name(index.dtype)}")
    size = input._array.size
    if not size and index._array.size:
        raise IndexError(
            f"{name}(): tried to {name.rstrip('_')} {'from' if name == 'take' else 'into'} an empty tensor"
        )
    _check_range(
        index,
        size,
        lambda bad: IndexError(f"out of range: tried to access index {bad} on a tensor of {size} elements."),
        -size,
    )


@public()
def take(input: Tensor, index: Tensor, *, out: Any = None) -> Tensor:
    """Return the elements of the flattened ``input`` at the indices ``index``, in the shape of ``index``."""
    _check_row("take", input, index)
    return take_block(input, index)


@public()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """Return the elements of ``input`` at ``indices`` along dimension ``dim``.

    In the other dimensions, ``input`` and ``indices`` are broadcast. Without ``dim`` both are flattened. Unlike in
    :func:`gather`, negative indices count from the end.
    """
    ndim = input._array.ndim
    if dim is not None and ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {dtypes.scalar_name(indices.dtype)}"
        )
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    at = normalize_dim(dim, ndim)
    size = input._array.shape[at]
    index = _non_negative(indices, size)
    have = (*input._array.shape[:at], 1, *input._array.shape[at + 1 :])
    want = (*index._array.shape[:at], 1, *index._array.shape[at + 1 :])
    error = broadcast_mismatch(have, want)
    if error is not None:
        raise error
    shape = numpy.broadcast_shapes(have, want)
    wide = expand(input, (*shape[:at], size, *shape[at + 1 :]))
    return gather(wide, at, expand(index, (*shape[:at], index._array.shape[at], *shape[at + 1 :])))


@op(name="put_block", backward="PutBackward0", function=False, method=False, linear=True)
def put_block(np: Any, self: Any, index: Any, source: Any, /, accumulate: bool) -> Any:
    """Return a copy of ``self`` with the elements of ``source`` written at ``index``.

    ``index`` holds indices of the flattened ``self``. If ``accumulate`` is true, the elements of ``source`` are added
    to those of ``self``.
    """
    flat = copying.c_copy(np, self).reshape(-1)
    indices = (np.where(index < 0, index + flat.size, index).reshape(-1),)
    change = indexing.add if accumulate else indexing.put
    out = np.empty_like(self)  # in the memory order of the tensor
    out[...] = change(np, flat, indices, source.reshape(-1)).reshape(self.shape)
    return out


put_block.derivative(
    self=lambda F, g, index, accumulate: g if accumulate else F.put_zero(g, index),
    source=lambda F, g, index, source_shape: F.reshape(F.take_block(g, index), source_shape),
)


@op(function=False, method=False, linear=True, vmap="slices")
def put_zero(np: Any, self: Any, index: Any, /) -> Any:
    """Return a copy of ``self`` with zeros written at the indices ``index`` of the flattened ``self``."""
    flat = copying.c_copy(np, self).reshape(-1)
    flat[index.reshape(-1)] = 0
    return flat.reshape(self.shape)


put_zero.derivative(self=lambda F, g, index: F.put_zero(g, index))


def _put(input: Tensor, index: Tensor, source: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {dtypes.scalar_name(index.dtype)}")
    if source.dtype is not input.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{dtypes.scalar_name(input.dtype)} and source.dtype = {dtypes.scalar_name(source.dtype)}"
        )
    if source._array.size != index._array.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source._array.size}, index.numel() = {index._array.size}"
        )
    _check_row("put_", input, index)
    return input, index, source


@public()
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of ``input`` with the elements of ``source`` written at ``index``.

    ``index`` holds indices of the flattened ``input``. If ``accumulate`` is true, the elements of ``source`` are added
    to those of ``input``.
    """
    return put_block(*_put(input, index, source), accumulate)


@public(function=False)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """Overwrite ``input`` with the result of :func:`put` for the same arguments, and return ``input``."""
    check_partial_overlap(input, (index, source), same=False)
    return modify(put_block.op, _put(input, index, source), (accumulate,))
