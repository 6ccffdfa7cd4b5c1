"""Reductions that select elements: ``max``, ``min``, ``amax``, ``argmax``, ``all``, ``any``, ``median``, ``mode``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy

from ...core import dtypes
from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import op as declared
from ...dispatch.declare import public
from ...dispatch.operand_promotion import F32, F64
from ...dispatch.return_types import named
from ...kernels import extrema
from ...kernels.gather_scatter import take_along
from ..elementwise.rounding import maximum, minimum
from .dims import axes_of, keepdim_shape, restore_dims, select_one_rule

op = partial(declared, in_order=True)  # NumPy's results would have the operand's order of strides

# -- Extremes --------------------------------------------------------------------------------------------------------


def _nonempty(name: str, x: Any, dim: Any = None) -> None:
    """Raise PyTorch's error if a function such as ``max`` has no elements of ``x`` to reduce.

    If ``dim`` is None, raise RuntimeError if ``x`` has no elements. Otherwise, raise IndexError if the dimension
    ``dim`` of ``x`` has size 0. ``name`` is the name of the function in the error message.
    """
    if x.size == 0 and (dim is None or x.shape[axes_of(dim, x.ndim)[0]] == 0):
        if dim is None:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        axis = axes_of(dim, x.ndim)[0]
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


@op(function=False, method=False, vmap="elementwise")
def same(np: Any, self: Any, other: Any, /) -> Any:
    """Return 1 where ``self == other`` or both elements are nan, else 0, in the dtype of ``self``."""
    return ((self == other) | ((self != self) & (other != other))).astype(self.dtype)


same.derivative(self=lambda g: None, other=lambda g: None)


@op(name="extreme_share", function=False, method=False, vmap=(0, 0))
def extreme_share(np: Any, self: Any, top: Any, /, dim: Any) -> Any:
    """Return the fraction of the gradient of a maximum or minimum that each element of ``self`` receives.

    ``top`` holds the maxima or minima of ``self`` over the dimensions ``dim``, which have size 1 in ``top``. If n
    elements are equal to the maximum or minimum, the fraction is ``1 / n`` for these elements, and 0 for all others.
    """
    return extrema.share_of_extreme(np, self, top, axes_of(dim, self.ndim))


def _shared_gradient(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
    """Return the gradient of ``amax`` or ``amin`` with respect to ``self``.

    ``out`` holds the maxima or minima of ``self`` over ``dim``, and ``g`` is the gradient of ``out``. The gradient of a
    maximum or minimum is divided evenly among the elements equal to it. Where ``out`` is nan, the gradient is nan.
    ``self_shape`` is the shape of ``self``. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on
    arrays.
    """
    top = restore_dims(F, out, self_shape, dim, keepdim)
    grad = F.masked_fill_scalar(restore_dims(F, g, self_shape, dim, keepdim), top != top, math.nan)
    return grad * F.extreme_share(self, top, dim)


def _extreme(name: str, backward: str, doc: str) -> Any:
    """Define the internal operation that computes ``amax`` or ``amin``, with its derivative rule, and return it.

    ``name`` is "amax" or "amin". ``backward`` is the name of the operation's node in the autograd graph, and ``doc`` is
    its docstring.
    """

    largest = name == "amax"

    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_values_cpu", self.dtype)
        try:
            return extrema.extreme(np, self, dim, keepdim, largest)
        except ValueError:  # there is no extreme of no elements
            given = dim if isinstance(dim, (tuple, list)) else axes_of(dim, self.ndim) if dim is None else (dim,)
            empty = [each for each in given or range(self.ndim) if self.shape[each] == 0]
            if empty and (dim is None or dim == ()):
                _nonempty(name, self)
            if empty:
                raise IndexError(f"{name}(): Expected reduction dim {empty[0]} to have non-zero size.") from None
            raise

    kernel.__name__ = name
    kernel.__doc__ = doc
    block = op(name=f"{name}_block", backward=backward, opmath=True, function=False, method=False)(kernel)

    def rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
        return _shared_gradient(F, g, self, out, self_shape, dim, keepdim)

    block.derivative(self=rule)
    return block


amax_block = _extreme("amax", "AmaxBackward0", "Return the maximum of ``self`` over the dimensions ``dim``.")
amin_block = _extreme("amin", "AminBackward0", "Return the minimum of ``self`` over the dimensions ``dim``.")


def _extreme_of_all(name: str, backward: str, doc: str) -> Any:
    """Define the internal operation for the maximum or minimum of all elements of a tensor, and return it.

    ``name`` is "max" or "min". ``backward`` is the name of the operation's node in the autograd graph, and ``doc`` is
    its docstring.
    """

    largest = name == "max"

    def kernel(np: Any, self: Any, /) -> Any:
        _nonempty(name, self)
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_all", self.dtype)
        return extrema.extreme_of_all(np, self, largest)

    kernel.__name__ = name + "_all"
    kernel.__doc__ = doc
    block = op(
        backward=backward, opmath=True, function=False, method=False, vmap=(f"{name}_dim", 1, False),
        inline=lambda self, _d: extrema.extreme_of_all(numpy, self, largest) if _d is F32 or _d is F64 else None,
    )(kernel)  # fmt: skip
    block.derivative(self=lambda F, g, self, out: F.masked_product(g, F.extreme_share(self, out, None)))
    return block


max_all = _extreme_of_all("max", "MaxBackward1", "Return the maximum of all elements.")
min_all = _extreme_of_all("min", "MinBackward1", "Return the minimum of all elements.")


def _extreme_along(name: str, doc: str) -> Any:
    """Define the internal operation for the maximum or minimum along a dimension, and return it.

    ``name`` is "max" or "min", and ``doc`` is the docstring of the operation.
    """

    largest = name == "max"

    def kernel(np: Any, self: Any, /, dim: int, keepdim: bool) -> Any:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if self.ndim == 0:
            normalize_dim(dim, 0)
            return self.copy(), np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = extrema.position_of_extreme(np, self, dim, largest)
        values = take_along(np, self, index, dim)
        if keepdim:
            shape = keepdim_shape(self.shape, dim)
            return values.reshape(shape), index.reshape(shape)
        return values, index

    kernel.__name__ = name + "_dim"
    kernel.__doc__ = doc
    block = op(
        backward=f"{name.capitalize()}Backward0", opmath=True, outputs=("values", "indices"), differentiable=1,
        function=False, method=False,
    )(kernel)  # fmt: skip
    block.derivative(self=select_one_rule)
    return block


max_dim = _extreme_along("max", "Return the maximum of ``self`` along ``dim`` and the index of the maximum.")
min_dim = _extreme_along("min", "Return the minimum of ``self`` along ``dim`` and the index of the minimum.")
_Max, _Min = named("max", ("values", "indices")), named("min", ("values", "indices"))


def _public_extreme(name: str, of_all: Any, along: Any, pairwise: Any, result: Any, title: str) -> None:
    """Define ``torch.max`` or ``torch.min``, as selected by ``name``, "max" or "min".

    The function calls one of three operations, depending on its arguments. ``of_all`` reduces all elements. ``along``
    reduces along a dimension, and its results are returned as a named tuple (values, indices) of the class ``result``.
    ``pairwise`` computes the elementwise maximum or minimum of two tensors. ``title`` is "maximum" or "minimum", for
    the docstring of the function.
    """

    def extreme(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, other: Any = None) -> Any:
        dim = dim if other is None else other
        if dim is None:
            return of_all(input)
        if isinstance(dim, Tensor):
            return pairwise(input, dim)
        return result(along(input, normalize_dim(dim, input._array.ndim), keepdim))

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"Return the {title} of all elements of ``input``.\n\nIf ``dim`` is an int, return the named tuple (values, indices) "
        f"of the {title} along ``dim``. If a second tensor is passed, return the elementwise {title} of the two tensors."
    )
    public(name=name, fast_path=of_all, then_try=[(along, lambda dim: dim.__class__ is int)], result_class=result)(
        extreme
    )


_public_extreme("max", max_all, max_dim, maximum, _Max, "maximum")
_public_extreme("min", min_all, min_dim, minimum, _Min, "minimum")


@public(fast_path=amax_block)
def amax(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Return the maximum of ``input`` over ``dim``, an int or a tuple of ints; by default over all dimensions.

    In the backward pass, the gradient of a maximum is divided evenly among the elements equal to the maximum.
    """
    return amax_block(input, dim, keepdim)


@public(fast_path=amin_block)
def amin(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Return the minimum of ``input`` over ``dim``, an int or a tuple of ints; by default over all dimensions.

    In the backward pass, the gradient of a minimum is divided evenly among the elements equal to the minimum.
    """
    return amin_block(input, dim, keepdim)


_Aminmax = named("aminmax", ("min", "max"))


@public()
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """Return the named tuple (min, max) of ``input`` along ``dim``, or of all its elements if ``dim`` is None."""
    shape = input._array.shape
    if dim is None and 0 in shape:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    if dim is not None and shape and shape[normalize_dim(dim, len(shape))] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {dim} to have non-zero size.")
    return _Aminmax(aminmax_block(input, () if dim is None else dim, keepdim))


@op(
    name="aminmax_block",
    backward="AminmaxBackward0",
    outputs=("low", "high"),
    opmath=True,
    function=False,
    method=False,
)
def aminmax_block(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Return the tuple (minimum, maximum) of ``self`` over the dimensions ``dim``."""
    return tuple(np.asarray(each.op.kernel(np, self, dim, keepdim)) for each in (amin_block, amax_block))


def _aminmax_rule(F: Any, g: Any, self: Any, low: Any, high: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
    total = None
    for grad, extreme in zip(g, (low, high), strict=True):
        if grad is not None:
            part = _shared_gradient(F, grad, self, extreme, self_shape, dim, keepdim)
            total = part if total is None else total + part
    return total


aminmax_block.derivative(self=_aminmax_rule)


def _arg(name: str, title: str) -> None:
    """Define ``torch.argmax`` or ``torch.argmin``, and the internal operation that computes its result.

    ``name`` is "max" or "min", and ``title`` is "maximum" or "minimum", for the docstrings.
    """

    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if self.dtype.kind in "bc":
            kind = "bool" if self.dtype.kind == "b" else "complex"
            raise RuntimeError(f"arg{name}(): does not support {kind} input")
        if dim is None:
            if self.size == 0:
                raise IndexError(f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            index = extrema.position_of_extreme(np, self.reshape(-1), 0, name == "max")
            return index.reshape((1,) * self.ndim) if keepdim else index
        if self.ndim == 0:
            normalize_dim(dim, 0)
            return np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"arg{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = extrema.position_of_extreme(np, self, dim, name == "max")
        return np.expand_dims(index, dim) if keepdim else index

    kernel.__name__ = f"arg{name}_block"
    kernel.__doc__ = f"Return the index of the {title} of ``self`` along ``dim``."

    block = op(function=False, method=False)(kernel)

    def function(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
        at = None if dim is None else normalize_dim(dim, input._array.ndim)
        return block(input, at, keepdim)

    function.__name__ = function.__qualname__ = "arg" + name
    function.__doc__ = (
        f"Return the index of the {title} of ``input`` along ``dim``, by default in the flattened tensor."
    )
    public(name="arg" + name, fast_path=block)(function)


_arg("max", "maximum")
_arg("min", "minimum")


def _logical_reduction(name: str, ufunc: str, doc: str) -> None:
    """Define ``torch.all`` or ``torch.any``, as selected by ``name``, "all" or "any".

    ``doc`` is the docstring of the function. ``ufunc`` is the name of the NumPy function whose method ``reduce``
    computes the result, such as "logical_and".
    """

    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if dim is None and not keepdim:
            result = extrema.truth_of_all(np, self, name == "all")
        elif isinstance(dim, tuple | list) and not dim:
            result = self != 0  # unlike other reductions, which reduce all dimensions
        else:
            result = getattr(np, ufunc).reduce(self, axis=axes_of(dim, self.ndim), keepdims=keepdim)
        if self.dtype.kind == "b":
            return result
        # NumPy's result is bool; for uint8 PyTorch's result is uint8.
        return np.asarray(result).astype(np.uint8) if self.dtype == np.uint8 else result

    kernel.__name__ = name + "_block"
    kernel.__doc__ = doc
    block = op(function=False, method=False)(kernel)

    def function(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
        return block(input, dim, keepdim)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    public(name=name, fast_path=block)(function)


_logical_reduction(
    "all",
    "logical_and",
    "Return whether all elements over ``dim``, by default over all dimensions, are nonzero.",
)
_logical_reduction(
    "any",
    "logical_or",
    "Return whether any element over ``dim``, by default over all dimensions, is nonzero.",
)


@op(name="count_nonzero_block", function=False, method=False)
def count_nonzero_block(np: Any, self: Any, /, dim: Any) -> Any:
    """Return the number of nonzero elements of ``self`` over the dimensions ``dim``, as int64."""
    return np.add.reduce(self != 0, axis=axes_of(dim, self.ndim), dtype=np.int64)


@public()
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """Return the number of nonzero elements of ``input`` over ``dim``, an int or a tuple of ints, as int64.

    If ``dim`` is None, all elements are counted.
    """
    return count_nonzero_block(input, dim)


# -- Median and mode -------------------------------------------------------------------------------------------------


def _median_index(np: Any, x: Any, dim: int, ignore_nan: bool) -> Any:
    """Return the index along ``dim`` of the median of ``x``.

    Of two middle elements, the lower one is the median. If ``ignore_nan`` is true, nan elements are ignored. Otherwise,
    if an element is nan, its index is returned.
    """
    order = np.argsort(x, axis=dim, kind="stable")
    size = x.shape[dim]
    nans = np.add.reduce(x != x, axis=dim, keepdims=True)
    at = np.maximum(size - nans - 1, 0) // 2 if ignore_nan else np.where(nans > 0, size - nans, (size - 1) // 2)
    return np.take_along_axis(order, at, dim)


def _median(name: str, ignore_nan: bool) -> None:
    """Define ``torch.median`` or ``torch.nanmedian``, and the internal operations that compute its result.

    One operation is for the median of all elements, the other for medians along a dimension. ``name`` is "median" or
    "nanmedian". If ``ignore_nan`` is true, nan elements are ignored. Otherwise the median is nan if an element is nan.
    """

    def along(np: Any, self: Any, /, dim: int, keepdim: bool) -> Any:
        if self.dtype.kind in "bc":
            raise dtypes.unsupported("median_out", self.dtype)
        if self.ndim == 0:
            return self.copy(), np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = _median_index(np, self, dim, ignore_nan)
        values = np.take_along_axis(self, index, dim)
        return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))

    along.__name__ = name + "_dim"
    along.__doc__ = "Return the lower median of ``self`` along ``dim`` and the index of the median."
    block = op(
        backward=f"{name.capitalize()}Backward1", outputs=("values", "indices"), differentiable=1, opmath=True,
        function=False, method=False,
    )(along)  # fmt: skip
    block.derivative(self=select_one_rule)

    def of_all(np: Any, self: Any, /) -> Any:
        if self.dtype.kind in "bc":
            raise dtypes.unsupported("median_cpu", self.dtype)
        if self.size == 0:
            kind = self.dtype
            return kind.type(np.nan if kind.kind in "fV" else np.iinfo(kind).min if kind.itemsize > 2 else 0)
        flat = self.reshape(-1)
        return flat[_median_index(np, flat, 0, ignore_nan)[0]]

    of_all.__name__ = name + "_all"
    of_all.__doc__ = "Return the lower median of all elements of ``self``."
    all_block = op(
        backward=f"{name.capitalize()}Backward0",
        opmath=True,
        function=False,
        method=False,
        vmap=(f"{name}_dim", 1, False),
    )(of_all)
    all_block.derivative(self=lambda F, g, self, out: F.masked_product(g, F.extreme_share(self, out, None)))
    result = named(name, ("values", "indices"))

    def function(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            return all_block(input)
        return result(block(input, normalize_dim(dim, input._array.ndim), keepdim))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "Return the median of all elements of ``input``, or with ``dim`` the named tuple (values, indices) of medians.\n\n"
        "The median of an even number of elements is the lower of the two middle elements. "
        + ("Elements that are nan are ignored." if ignore_nan else "The result is nan if an element is nan.")
    )
    public(name=name)(function)


_median("median", False)
_median("nanmedian", True)
_Mode = named("mode", ("values", "indices"))


@op(
    name="mode_block",
    backward="ModeBackward0",
    outputs=("values", "indices"),
    differentiable=1,
    function=False,
    method=False,
)
def mode_block(np: Any, self: Any, /, dim: int, keepdim: bool) -> Any:
    """Return the tuple (values, indices) of the most frequent element of ``self`` along ``dim``.

    The index is that of the last occurrence of the element. If several elements are equally frequent, the smallest of
    them is returned.
    """
    if self.dtype.kind == "c":
        raise dtypes.unsupported("mode_cpu", self.dtype)
    if self.ndim == 0:
        return self.copy(), np.asarray(0)
    rows = np.moveaxis(self, dim, -1)
    if rows.shape[-1] == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    flat = rows.reshape(-1, rows.shape[-1])
    order = np.argsort(flat, -1, kind="stable")
    ordered, place = np.take_along_axis(flat, order, -1), np.arange(flat.shape[-1])
    changes = np.zeros(flat.shape, np.int64)
    changes[:, 1:] = np.where(ordered[:, 1:] != ordered[:, :-1], place[1:], 0)
    # How often each element has occurred among the sorted ones up to its place; the first maximum is the least mode.
    occurrence = place - np.maximum.accumulate(changes, axis=-1)
    index = np.take_along_axis(order, np.expand_dims(np.argmax(occurrence, -1), -1), -1)[:, 0]
    index = np.expand_dims(index.reshape(rows.shape[:-1]), dim)
    values = np.take_along_axis(self, index, dim)
    return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))


mode_block.derivative(self=select_one_rule)


@public()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """Return the named tuple (values, indices) of the most frequent element of ``input`` along ``dim``.

    ``indices`` holds the index of the last occurrence of each element in ``values``.
    """
    return _Mode(mode_block(input, normalize_dim(dim, input._array.ndim), keepdim))
