"""Reading and writing at indices along a dimension, or counted in one row: gather, scatter, index_add, take, put."""

from __future__ import annotations

from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, dimension, wrap
from ..kernels import indexing
from .calls import modify
from .inner import expand
from .table import op, surface

# -- Along a dimension -----------------------------------------------------------------------------------------------


def _check_index(name: str, index: Tensor, size: int, dim: int) -> None:
    array = index._array
    if array.dtype.kind not in "iu" or index.dtype is dtypes.uint8:
        if name in ("gather", "scatter"):
            raise RuntimeError(f"{name}(): Expected dtype int64 for index")
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index but got: {dtypes.scalar_name(index.dtype)}"
                           if name != "index_select" else
                           "index_select(): Expected dtype int32 or int64 for index")  # fmt: skip
    if array.size and (int(array.max()) >= size or int(array.min()) < 0):
        bad = int(array[(array >= size) | (array < 0)].reshape(-1)[0])
        if name in ("gather", "scatter"):
            raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
        raise (RuntimeError if name == "index_add" else IndexError)("index out of range in self")


@op(name="index_select_block", backward="IndexSelectBackward0", function=False, method=False, linear=True)
def index_select_block(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """The slices at ``index`` of dimension ``dim``."""
    return np.take(self, index.reshape(-1), dim) if self.ndim else self.copy()


index_select_block.derivative(
    self=lambda F, g, self_shape, index, dim: F.index_select_backward(g, index, self_shape, dim)
)


@op(function=False, method=False, linear=True)
def index_select_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Zeros of ``shape`` to which the slices of ``self`` are added at ``index``."""
    if not shape:
        return self.reshape(shape)
    return indexing.add(np, np.zeros(shape, self.dtype), (None,) * dim + (index.reshape(-1),), self)


index_select_backward.derivative(self=lambda F, g, index, dim: F.index_select_block(g, index, dim))


@surface()
def index_select(input: Tensor, dim: int, index: Tensor, *, out: Any = None) -> Tensor:
    """The slices of dimension ``dim`` at the places that the vector ``index`` gives, as a copy."""
    at = dimension(dim, input._array.ndim)
    if index._array.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    _check_index("index_select", index, input._array.shape[at] if input._array.ndim else 1, at)
    return index_select_block(input, index, at, out=out)


@op(name="gather_block", backward="GatherBackward0", function=False, method=False, linear=True)
def gather_block(np: Any, self: Any, index: Any, /, dim: int) -> Any:
    """The elements at ``index`` along ``dim``."""
    return indexing.gather(np, self, index, dim)


gather_block.derivative(self=lambda F, g, self_shape, index, dim: F.gather_backward(g, index, self_shape, dim))


@op(function=False, method=False, linear=True)
def gather_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Zeros of ``shape`` to which ``self`` is added at ``index`` along ``dim``."""
    return indexing.scatter_add(np, np.zeros(shape, self.dtype), index, self, dim)


gather_backward.derivative(self=lambda F, g, index, dim: F.gather_block(g, index, dim))


def _check_gather(name: str, input: Tensor, index: Tensor, dim: int) -> None:
    shape, picked = input._array.shape, index._array.shape
    if index.dtype is not dtypes.int64 and index.dtype is not dtypes.int32:
        raise RuntimeError(f"{name}(): Expected dtype int64 for index")
    if max(len(shape), 1) != max(len(picked), 1) and index._array.size:
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as "
            + ("input" if name == "gather" else "self")
            + " tensor"
        )
    if name == "gather":
        for axis, (have, want) in enumerate(zip(picked, shape, strict=False)):
            if axis != dim and have > want:
                raise RuntimeError(
                    f"Size does not match at dimension {axis} expected index {list(picked)} to be no larger than self "
                    f"{list(shape)} apart from dimension {dim}"
                )
    _check_index(name, index, shape[dim] if shape else 1, dim)


@surface()
def gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False, out: Any = None) -> Tensor:
    """For each place of ``index`` the element of ``input`` there, but at ``index``'s value along ``dim``."""
    at = dimension(dim, input._array.ndim)
    _check_gather("gather", input, index, at)
    return gather_block(input, index, at, out=out)


@op(name="scatter_src", backward="ScatterBackward0", function=False, method=False, linear=True)
def scatter_src(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """``self`` with elements of ``src`` put at ``index`` along ``dim``."""
    return indexing.scatter(np, self.copy(), index, src, dim)


scatter_src.derivative(
    self=lambda F, g, index, dim: F.scatter_value(g, index, dim, 0),
    src=lambda F, g, index, src_shape, dim: F.padded_to(F.gather_block(g, index, dim), src_shape),
)


@op(name="scatter_value", backward="ScatterBackward1", function=False, method=False, linear=True)
def scatter_value(np: Any, self: Any, index: Any, /, dim: int, value: Any) -> Any:
    """``self`` with a number put at ``index`` along ``dim``."""
    return indexing.scatter(np, self.copy(), index, np.asarray(value).astype(self.dtype), dim)


scatter_value.derivative(self=lambda F, g, index, dim: F.scatter_value(g, index, dim, 0))


@op(name="scatter_add_block", backward="ScatterAddBackward0", function=False, method=False, linear=True)
def scatter_add_block(np: Any, self: Any, index: Any, src: Any, /, dim: int) -> Any:
    """``self`` to which elements of ``src`` are added at ``index`` along ``dim``."""
    return indexing.scatter_add(np, self.copy(), index, src, dim)


scatter_add_block.derivative(
    self=1, src=lambda F, g, index, src_shape, dim: F.padded_to(F.gather_block(g, index, dim), src_shape)
)


@op(function=False, method=False, linear=True)
def padded_to(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """``self`` in the corner of zeros of ``shape``."""
    if self.shape == tuple(shape):
        return self
    out = np.zeros(shape, self.dtype)
    out[tuple(slice(0, n) for n in self.shape)] = self
    return out


padded_to.derivative(self=lambda F, g, self_shape: F.corner_of(g, self_shape))


@op(function=False, method=False, linear=True)
def corner_of(np: Any, self: Any, /, shape: tuple[int, ...]) -> Any:
    """The corner of ``self`` that has ``shape``."""
    return self[tuple(slice(0, n) for n in shape)].copy()


corner_of.derivative(self=lambda F, g, self_shape: F.padded_to(g, self_shape))


def _scatter(
    input: Tensor, dim: int, index: Tensor, src: Any, reduce: Any
) -> tuple[Any, tuple[Any, ...], tuple[Any, ...]]:
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        source = src if isinstance(src, Tensor) else wrap(numpy.full(index._array.shape, src, input._array.dtype))
        return scatter_reduce_block, (input, index, source), (at, {"add": "sum", "multiply": "prod"}[reduce], True)
    if not isinstance(src, Tensor):
        return scatter_value, (input, index), (at, src)
    if src.dtype is not input.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    for have, want in zip(index._array.shape, src._array.shape, strict=False):
        if have > want:
            raise RuntimeError(
                f"Expected index {list(index._array.shape)} to be no larger than self {list(input._array.shape)} apart "
                f"from dimension {at} and to be no larger size than src {list(src._array.shape)}"
            )
    return scatter_src, (input, index, src), (at,)


@surface()
def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """The tensor with elements of ``src`` (or the number ``value``) put at ``index`` along ``dim``."""
    call, tensors, params = _scatter(input, dim, index, value if src is None else src, reduce)
    return call(*tensors, *params)


@surface(function=False)
def scatter_(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """In-place version of :func:`scatter`."""
    call, tensors, params = _scatter(input, dim, index, value if src is None else src, reduce)
    return modify(call.op, tensors, params)


@surface()
def scatter_add(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """The tensor to which elements of ``src`` are added at ``index`` along ``dim``."""
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    return scatter_add_block(input, index, src, at)


@surface(function=False)
def scatter_add_(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """In-place version of :func:`scatter_add`."""
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    return modify(scatter_add_block.op, (input, index, src), (at,))


@op(name="scatter_reduce_block", backward="ScatterReduceBackward0", function=False, method=False)
def scatter_reduce_block(np: Any, self: Any, index: Any, src: Any, /, dim: int, reduce: str, include_self: bool) -> Any:
    """``self`` with elements of ``src`` reduced into it at ``index`` along ``dim``."""
    return indexing.scatter_reduce(np, self, index, src, dim, reduce, include_self)


def _reduce_self(
    F: Any, g: Any, self: Any, index: Any, src: Any, out: Any, dim: int, reduce: str, include_self: bool
) -> Any:
    if not include_self:
        g = F.scatter_value(g, index, dim, 0)
        return g
    if reduce == "sum":
        return g
    if reduce == "mean":
        return g / F.scatter_count(self, index, dim, 1)
    if reduce == "prod":
        return g * out / self
    return g * F.same(self, out) / F.scatter_ties(self, index, src, out, dim, 1)


def _reduce_src(
    F: Any, g: Any, self: Any, index: Any, src: Any, out: Any, dim: int, reduce: str, include_self: bool
) -> Any:
    picked = F.gather_block(g, index, dim)
    if reduce == "mean":
        picked = F.gather_block(g / F.scatter_count(self, index, dim, int(include_self)), index, dim)
    elif reduce == "prod":
        picked = F.gather_block(g * out, index, dim) / src
    elif reduce != "sum":
        ties = F.scatter_ties(self, index, src, out, dim, int(include_self))
        picked = F.gather_block(g / ties, index, dim) * F.same(src, F.gather_block(out, index, dim))
    return picked


scatter_reduce_block.derivative(self=_reduce_self, src=_reduce_src)


@op(function=False, method=False)
def scatter_count(np: Any, self: Any, index: Any, /, dim: int, start: int) -> Any:
    """How many elements meet at each place (at least 1), ``start`` counting what was there."""
    count = indexing.scatter_add(
        np, np.full(self.shape, start, self.dtype), index, np.ones(index.shape, self.dtype), dim
    )
    return np.maximum(count, 1)


@op(function=False, method=False)
def scatter_ties(np: Any, self: Any, index: Any, src: Any, top: Any, /, dim: int, start: int) -> Any:
    """How many elements at each place are the extreme that came out there (at least 1)."""
    ties = (self == top).astype(self.dtype) * start
    hits = (src == indexing.gather(np, top, index, dim)).astype(self.dtype)
    return np.maximum(indexing.scatter_add(np, ties, index, hits, dim), 1)


for _constant in (scatter_count, scatter_ties):
    _constant.derivative(self=lambda F, g: None)


@surface()
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """The tensor with elements of ``src`` reduced into it: ``reduce`` is sum, prod, mean, amax or amin."""
    at = _check_reduce(input, dim, index, reduce)
    return scatter_reduce_block(input, index, src, at, reduce, include_self)


def _check_reduce(input: Tensor, dim: int, index: Tensor, reduce: str) -> int:
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError("reduce argument must be either sum, prod, mean, amax or amin, got " + reduce + ".")
    at = dimension(dim, input._array.ndim)
    _check_gather("scatter", input, index, at)
    return at


@surface(function=False)
def scatter_reduce_(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """In-place version of :func:`scatter_reduce`."""
    at = _check_reduce(input, dim, index, reduce)
    return modify(scatter_reduce_block.op, (input, index, src), (at, reduce, include_self))


# -- index_add, index_copy, index_fill -------------------------------------------------------------------------------


@op(name="index_add_block", backward="IndexAddBackward0", function=False, method=False, linear=True)
def index_add_block(np: Any, self: Any, index: Any, source: Any, /, dim: int, alpha: Any) -> Any:
    """``self`` to which slices of ``source`` are added at ``index``."""
    added = source if alpha == 1 else source * np.asarray(alpha).astype(source.dtype)
    if not self.ndim:
        return self + added.reshape(()) if added.size == 1 else self
    return indexing.add(np, self.copy(), (None,) * dim + (index.reshape(-1),), added)


def _index_add_source(F: Any, g: Any, index: Any, source_shape: Any, dim: int, alpha: Any) -> Any:
    found = F.reshape(F.index_select_block(g, index, dim), source_shape)
    return found if alpha == 1 else found * alpha


index_add_block.derivative(self=1, source=_index_add_source)


@op(name="index_copy_block", backward="IndexCopyBackward0", function=False, method=False, linear=True)
def index_copy_block(np: Any, self: Any, index: Any, source: Any, /, dim: int) -> Any:
    """``self`` with slices of ``source`` put at ``index``."""
    if not self.ndim:
        return source.reshape(()).copy()
    return indexing.put(np, self.copy(), (None,) * dim + (index.reshape(-1),), source)


index_copy_block.derivative(
    self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0),
    source=lambda F, g, index, source_shape, dim: F.reshape(F.index_select_block(g, index, dim), source_shape),
)


@op(name="index_fill_number", backward="IndexFillBackward0", function=False, method=False, linear=True)
def index_fill_number(np: Any, self: Any, index: Any, /, dim: int, value: Any) -> Any:
    """``self`` with a number in the slices at ``index``."""
    if not self.ndim:
        return np.asarray(value).astype(self.dtype)
    return indexing.put(np, self.copy(), (None,) * dim + (index.reshape(-1),), np.asarray(value).astype(self.dtype))


index_fill_number.derivative(self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0))


@op(name="index_fill_tensor", backward="IndexFillBackward1", function=False, method=False, linear=True)
def index_fill_tensor(np: Any, self: Any, index: Any, value: Any, /, dim: int) -> Any:
    """``self`` with the 0-d ``value`` in the slices at ``index``."""
    return index_fill_number.op.kernel(np, self, index, dim, value)


index_fill_tensor.derivative(
    self=lambda F, g, index, dim: F.index_fill_number(g, index, dim, 0),
    value=lambda F, g, index, dim: F.sum_all(F.index_select_block(g, index, dim)),
)


def _index_call(name: str, input: Tensor, dim: int, index: Tensor, other: Any, **rest: Any) -> Any:
    at = dimension(dim, input._array.ndim)
    _check_index(name, index, input._array.shape[at] if input._array.ndim else 1, at)
    if name == "index_add":
        if other.dtype is not input.dtype:
            raise RuntimeError("index_add_(): self and source expected to have the same dtype, but got (self) "
                               f"{dtypes.scalar_name(input.dtype)} and (source) {dtypes.scalar_name(other.dtype)}")  # fmt: skip
        return index_add_block, (input, index, other), (at, rest.get("alpha", 1))
    if name == "index_copy":
        return index_copy_block, (input, index, other), (at,)
    if isinstance(other, Tensor):
        if other._array.ndim:
            raise RuntimeError("index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
                               f"{other._array.ndim} dimension(s).")  # fmt: skip
        return index_fill_tensor, (input, index, other), (at,)
    return index_fill_number, (input, index), (at, other)


def _index_functions(name: str, argument: str, doc: str) -> None:
    def out_of_place(input: Tensor, dim: int, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        other = args[0] if args else kwargs.pop(argument)
        call, tensors, params = _index_call(name, input, dim, index, other, **kwargs)
        return call(*tensors, *params)

    def in_place(input: Tensor, dim: int, index: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        other = args[0] if args else kwargs.pop(argument)
        call, tensors, params = _index_call(name, input, dim, index, other, **kwargs)
        return modify(call.op, tensors, params)

    for function, title, text in (
        (out_of_place, name, f"The tensor {doc}."),
        (in_place, name + "_", f"In-place version of :func:`{name}`."),
    ):
        function.__name__ = function.__qualname__ = title
        function.__doc__ = text
        surface(name=title, function=title == name)(function)


_index_functions("index_add", "source", "to which the slices of ``source`` are added at ``index`` along ``dim``")
_index_functions("index_copy", "source", "with the slices of ``source`` put at ``index`` along ``dim``")
_index_functions("index_fill", "value", "with ``value`` in the slices at ``index`` along ``dim``")


# -- In one row ------------------------------------------------------------------------------------------------------


@op(name="take_block", backward="TakeBackward0", function=False, method=False, linear=True)
def take_block(np: Any, self: Any, index: Any, /) -> Any:
    """The elements at ``index``, counted in one row."""
    return self.reshape(-1)[index]


take_block.derivative(self=lambda F, g, self_shape, index: F.take_backward(g, index, self_shape))


@op(function=False, method=False, linear=True)
def take_backward(np: Any, self: Any, index: Any, /, shape: tuple[int, ...]) -> Any:
    """Zeros of ``shape`` to which ``self`` is added at ``index``, counted in one row."""
    size = int(np.prod(shape))
    return indexing.add(np, np.zeros(size, self.dtype), (np.where(index < 0, index + size, index),), self).reshape(
        shape
    )


take_backward.derivative(self=lambda F, g, index: F.take_block(g, index))


@surface()
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at the places that ``index`` gives, counted as if all stood in one row."""
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {dtypes.scalar_name(index.dtype)}")
    size, array = input._array.size, index._array
    if array.size and (int(array.max()) >= size or int(array.min()) < -size):
        raise IndexError(
            "out of range: tried to access index "
            f"{int(array[(array >= size) | (array < -size)].reshape(-1)[0])} on a tensor of {size} elements."
        )
    return take_block(input, index)


@surface()
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Any = None) -> Tensor:
    """The elements at ``indices`` along ``dim``, other dimensions broadcast; without ``dim`` in one row."""
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {dtypes.scalar_name(indices.dtype)}"
        )
    if dim is None:
        return input.reshape(-1).gather(0, indices.reshape(-1))
    ndim = input._array.ndim
    if ndim != indices._array.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{ndim} dimensions for input, and {indices._array.ndim} dimensions for indices"
        )
    at = dimension(dim, ndim)
    size = input._array.shape[at]
    index = wrap(numpy.where(indices._array < 0, indices._array + size, indices._array))
    shape = numpy.broadcast_shapes(
        (*input._array.shape[:at], 1, *input._array.shape[at + 1 :]),
        (*index._array.shape[:at], 1, *index._array.shape[at + 1 :]),
    )
    wide = expand(input, (*shape[:at], size, *shape[at + 1 :]))
    return gather(wide, at, expand(index, (*shape[:at], index._array.shape[at], *shape[at + 1 :])), out=out)


@op(name="put_block", backward="PutBackward0", function=False, method=False, linear=True)
def put_block(np: Any, self: Any, index: Any, source: Any, /, accumulate: bool) -> Any:
    """``self`` with elements of ``source`` put (or added) at ``index``, counted in one row."""
    flat = np.array(self, order="C").reshape(-1)
    picks = (np.where(index < 0, index + flat.size, index).reshape(-1),)
    change = indexing.add if accumulate else indexing.put
    return change(np, flat, picks, source.reshape(-1)).reshape(self.shape)


put_block.derivative(
    self=lambda F, g, index, accumulate: g if accumulate else F.put_zero(g, index),
    source=lambda F, g, index, source_shape: F.reshape(F.take_block(g, index), source_shape),
)


@op(function=False, method=False, linear=True)
def put_zero(np: Any, self: Any, index: Any, /) -> Any:
    """``self`` with zeros at ``index``, counted in one row."""
    flat = np.array(self, order="C").reshape(-1)
    flat[index.reshape(-1)] = 0
    return flat.reshape(self.shape)


put_zero.derivative(self=lambda F, g, index: F.put_zero(g, index))


@surface()
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with elements of ``source`` put (or added) at ``index``, counted in one row."""
    return put_block(input, index, source, accumulate)


@surface(function=False)
def put_(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place version of :func:`put`."""
    return modify(put_block.op, (input, index, source), (accumulate,))
