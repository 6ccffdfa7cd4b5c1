"""Which element: extremes, whether any or all are true, medians and the most frequent."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

from ...core import dtypes
from ...core.tensor import Tensor, dimension
from ...dispatch.declare import op as declared
from ...dispatch.declare import public
from ...dispatch.return_types import named
from ...kernels import reductions_numba, small_arrays
from ...kernels.gather_scatter import taken_along
from ...kernels.numba_dispatch import LARGE
from ...kernels.reductions import FEW
from ..elementwise.rounding import maximum, minimum
from .dims import WHOLE, axes_of, chosen_rule, kept_shape, restored

op = partial(declared, in_order=True)  # NumPy would lay results out as the operand is

# -- Extremes --------------------------------------------------------------------------------------------------------


def _nonempty(name: str, x: Any, dim: Any = None) -> None:
    if x.size == 0 and (dim is None or x.shape[axes_of(dim, x.ndim)[0]] == 0):
        if dim is None:
            raise RuntimeError(
                f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
                "with the 'dim' argument."
            )
        axis = axes_of(dim, x.ndim)[0]
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")


@op(function=False, method=False)
def same(np: Any, self: Any, other: Any, /) -> Any:
    """1.0 where elements are equal or both nan, else 0.0, in the dtype of ``self``."""
    return ((self == other) | ((self != self) & (other != other))).astype(self.dtype)


same.derivative(self=lambda g: None, other=lambda g: None)


@op(name="extreme_share", function=False, method=False)
def extreme_share(np: Any, self: Any, top: Any, /, dim: Any) -> Any:
    """For each element its share of an extreme: one over how many there are, or 0."""
    if (
        self.size >= LARGE
        and (found := reductions_numba.share_of_extreme(self, top, axes_of(dim, self.ndim))) is not None
    ):
        return found
    mask = (self == top) | ((self != self) & (top != top))
    return (mask / np.add.reduce(mask, axis=axes_of(dim, self.ndim), keepdims=True)).astype(self.dtype)


extreme_share.derivative(self=lambda g: None, top=lambda g: None)


def _shared(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
    """The gradient through extremes, which all elements equal to them share; nan where the extreme is."""
    top = restored(F, out, self_shape, dim, keepdim)
    slope = F.masked_fill_scalar(restored(F, g, self_shape, dim, keepdim), top != top, math.nan)
    return slope * F.extreme_share(self, top, dim)


def _extreme(name: str, backward: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if dim.__class__ is int and (found := small_arrays.extreme(self, dim, keepdim, name == "amax")) is not None:
            return found
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_values_cpu", self.dtype)
        axes = axes_of(dim, self.ndim)
        if self.size == 0 and any(self.shape[axis] == 0 for axis in axes):
            axis = next(axis for axis in axes if self.shape[axis] == 0)
            if dim is None or dim == ():
                _nonempty(name, self)
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
        if self.size >= LARGE:
            found = reductions_numba.largest(self, axes, keepdim, 1 if name == "amax" else -1)
            if found is not None:
                return found
        return (np.maximum if name == "amax" else np.minimum).reduce(self, axis=axes, keepdims=keepdim)

    kernel.__name__ = name
    kernel.__doc__ = doc
    made = op(name=f"{name}_block", backward=backward, opmath=True, function=False, method=False)(kernel)

    def rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
        return _shared(F, g, self, out, self_shape, dim, keepdim)

    made.derivative(self=rule)
    return made


amax_block = _extreme("amax", "AmaxBackward0", "The largest elements over dimensions.")
amin_block = _extreme("amin", "AminBackward0", "The smallest elements over dimensions.")


def _extreme_of_all(name: str, backward: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /) -> Any:
        _nonempty(name, self)
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_all", self.dtype)
        if (
            self.size >= LARGE
            and (found := reductions_numba.largest_of_all(self, 1 if name == "max" else -1)) is not None
        ):
            return found
        return (np.maximum if name == "max" else np.minimum).reduce(self, axis=None)

    kernel.__name__ = name + "_all"
    kernel.__doc__ = doc
    few: Any = f"FLOATS and 0 < self.size <= {FEW}", f"self.ravel()[self.arg{name}()]", {}
    made = op(backward=backward, opmath=True, function=False, method=False, inline_expr=few)(kernel)
    made.derivative(self=lambda F, g, self, out: F.masked_product(g, F.extreme_share(self, out, None)))
    return made


max_all = _extreme_of_all("max", "MaxBackward1", "The largest element.")
min_all = _extreme_of_all("min", "MinBackward1", "The smallest element.")


def _extreme_along(name: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /, dim: int, keepdim: bool) -> Any:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if self.ndim == 0:
            dimension(dim, 0)
            return self.copy(), np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = first_extreme(np, self, dim, name)
        values = taken_along(np, self, index, dim)
        if keepdim:
            shape = kept_shape(self.shape, dim)
            return values.reshape(shape), index.reshape(shape)
        return values, index

    kernel.__name__ = name + "_dim"
    kernel.__doc__ = doc
    made = op(
        backward=f"{name.capitalize()}Backward0", opmath=True, outputs=("values", "indices"), differentiable=1,
        function=False, method=False,
    )(kernel)  # fmt: skip
    made.derivative(self=chosen_rule)
    return made


def first_extreme(np: Any, x: Any, dim: int, name: str) -> Any:
    """The index of the first extreme along ``dim`` (a nan counts as extreme), without that dimension."""
    if x.size >= LARGE and (found := reductions_numba.where_largest(x, dim, 1 if name == "max" else -1)) is not None:
        return found
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    if x.dtype.kind == "V":
        x = x.astype(np.float32)
    return x.argmax(dim) if name == "max" else x.argmin(dim)


max_dim = _extreme_along("max", "The largest elements along a dimension, and where they are.")
min_dim = _extreme_along("min", "The smallest elements along a dimension, and where they are.")
_Max, _Min = named("max", ("values", "indices")), named("min", ("values", "indices"))


def _extreme_surface(name: str, whole: Any, along: Any, pairwise: Any, result: Any, what: str) -> None:
    def extreme(
        input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, other: Any = None, axis: Any = None
    ) -> Any:  # fmt: skip
        dim = dim if other is None and axis is None else other if axis is None else axis
        if dim is None:
            return whole(input)
        if isinstance(dim, Tensor):
            return pairwise(input, dim)
        return result(along(input, dimension(dim, input._array.ndim), keepdim))

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {what} element; with ``dim`` the {what} elements along it and their indices; with another tensor the "
        f"{what} of each two elements."
    )
    public(name=name, fast_path=whole, then_try=[(along, WHOLE)], result_class=result)(extreme)


_extreme_surface("max", max_all, max_dim, maximum, _Max, "largest")
_extreme_surface("min", min_all, min_dim, minimum, _Min, "smallest")


@public(fast_path=amax_block)
def amax(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The largest elements over ``dim`` (an int or several; all by default)."""
    return amax_block(input, dim, keepdim)


@public(fast_path=amin_block)
def amin(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The smallest elements over ``dim`` (an int or several; all by default)."""
    return amin_block(input, dim, keepdim)


_Aminmax = named("aminmax", ("min", "max"))


@public()
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest elements, over all or along ``dim``."""
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
    """The smallest and the largest elements over dimensions."""
    return tuple(np.asarray(each.op.kernel(np, self, dim, keepdim)) for each in (amin_block, amax_block))


def _aminmax_rule(F: Any, g: Any, self: Any, low: Any, high: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
    found = None
    for grad, extreme in zip(g, (low, high), strict=True):
        if grad is not None:
            part = _shared(F, grad, self, extreme, self_shape, dim, keepdim)
            found = part if found is None else found + part
    return found


aminmax_block.derivative(self=_aminmax_rule)


def _arg(name: str, what: str) -> None:
    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if self.dtype.kind in "bc":
            kind = "bool" if self.dtype.kind == "b" else "complex"
            raise RuntimeError(f"arg{name}(): does not support {kind} input")
        if dim is None:
            if self.size == 0:
                raise IndexError(f"arg{name}(): Expected reduction dim to be specified for input.numel() == 0.")
            index = first_extreme(np, self.reshape(-1), 0, name)
            return index.reshape((1,) * self.ndim) if keepdim else index
        if self.ndim == 0:
            dimension(dim, 0)
            return np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"arg{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = first_extreme(np, self, dim, name)
        return np.expand_dims(index, dim) if keepdim else index

    kernel.__name__ = f"arg{name}_block"
    kernel.__doc__ = f"The index of the {what} element."
    block = op(function=False, method=False)(kernel)

    def surfaced(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
        at = None if dim is None else dimension(dim, input._array.ndim)
        return block(input, at, keepdim)

    surfaced.__name__ = surfaced.__qualname__ = "arg" + name
    surfaced.__doc__ = f"The index of the {what} element of all (counted in one row), or along ``dim``."
    public(name="arg" + name, fast_path=block)(surfaced)


_arg("max", "largest")
_arg("min", "smallest")


def _whether(name: str, ufunc: str, first: str, doc: str) -> None:
    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if dim is None and not keepdim and self.dtype.kind == "b" and 0 < self.size <= FEW:
            return self.ravel()[getattr(self, first)()]  # the first true or false one: a quarter of the time
        found = getattr(np, ufunc).reduce(self, axis=axes_of(dim, self.ndim), keepdims=keepdim)
        # NumPy answers booleans; of uint8 PyTorch keeps the type.
        return np.asarray(found).astype(np.uint8) if self.dtype == np.uint8 else found

    kernel.__name__ = name + "_block"
    kernel.__doc__ = doc
    block = op(function=False, method=False)(kernel)

    def surfaced(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, axis: Any = None) -> Tensor:
        return block(input, dim if axis is None else axis, keepdim)

    surfaced.__name__ = surfaced.__qualname__ = name
    surfaced.__doc__ = doc
    public(name=name, fast_path=block)(surfaced)


_whether("all", "logical_and", "argmin", "Whether all elements are true (not zero), over all or over ``dim``.")
_whether("any", "logical_or", "argmax", "Whether any element is true (not zero), over all or over ``dim``.")


@op(name="count_nonzero_block", function=False, method=False)
def count_nonzero_block(np: Any, self: Any, /, dim: Any) -> Any:
    """How many elements are not zero."""
    return np.add.reduce(self != 0, axis=axes_of(dim, self.ndim), dtype=np.int64)


@public()
def count_nonzero(input: Tensor, dim: Any = None) -> Tensor:
    """How many elements are not zero, of all or over ``dim``."""
    return count_nonzero_block(input, dim)


# -- Middle and most frequent ----------------------------------------------------------------------------------------


def _middle(np: Any, x: Any, dim: int, ignore_nan: bool) -> Any:
    """The index of the lower median along ``dim``; a nan is the median if there is one, unless ignored."""
    order = np.argsort(x, axis=dim, kind="stable")
    size = x.shape[dim]
    nans = np.add.reduce(x != x, axis=dim, keepdims=True)
    at = np.maximum(size - nans - 1, 0) // 2 if ignore_nan else np.where(nans > 0, size - nans, (size - 1) // 2)
    return np.take_along_axis(order, at, dim)


def _median(name: str, ignore_nan: bool) -> None:
    def along(np: Any, self: Any, /, dim: int, keepdim: bool) -> Any:
        if self.dtype.kind in "bc":
            raise dtypes.unsupported("median_out", self.dtype)
        if self.ndim == 0:
            return self.copy(), np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = _middle(np, self, dim, ignore_nan)
        values = np.take_along_axis(self, index, dim)
        return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))

    along.__name__ = name + "_dim"
    along.__doc__ = "The (lower) median along a dimension, and where it is."
    block = op(
        backward=f"{name.capitalize()}Backward1", outputs=("values", "indices"), differentiable=1, opmath=True,
        function=False, method=False,
    )(along)  # fmt: skip
    block.derivative(self=chosen_rule)

    def whole(np: Any, self: Any, /) -> Any:
        if self.dtype.kind in "bc":
            raise dtypes.unsupported("median_cpu", self.dtype)
        if self.size == 0:
            return self.dtype.type(np.nan)
        flat = self.reshape(-1)
        return flat[_middle(np, flat, 0, ignore_nan)[0]]

    whole.__name__ = name + "_all"
    whole.__doc__ = "The (lower) median of all elements."
    whole_block = op(backward=f"{name.capitalize()}Backward0", opmath=True, function=False, method=False)(whole)
    whole_block.derivative(self=lambda F, g, self, out: F.masked_product(g, F.extreme_share(self, out, None)))
    result = named(name, ("values", "indices"))

    def surfaced(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            return whole_block(input)
        return result(block(input, dimension(dim, input._array.ndim), keepdim))

    surfaced.__name__ = surfaced.__qualname__ = name
    surfaced.__doc__ = "The lower median of all elements; with ``dim`` the medians along it and their indices."
    public(name=name)(surfaced)


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
    """The most frequent element along a dimension (the smallest of several), and the last place where it is."""
    if self.dtype.kind == "c":
        raise dtypes.unsupported("mode_cpu", self.dtype)
    if self.ndim == 0:
        return self.copy(), np.asarray(0)
    rows = np.moveaxis(self, dim, -1)
    if rows.shape[-1] == 0:
        raise IndexError(f"mode(): Expected reduction dim {dim} to have non-zero size.")
    flat = rows.reshape(-1, rows.shape[-1])
    index = np.empty(flat.shape[0], np.int64)
    for i, row in enumerate(flat):
        values, counts = np.unique(row, return_counts=True)
        index[i] = np.nonzero(row == values[np.argmax(counts)])[0][-1]
    index = np.expand_dims(index.reshape(rows.shape[:-1]), dim)
    found = np.take_along_axis(self, index, dim)
    return (found, index) if keepdim else (found.squeeze(dim), index.squeeze(dim))


mode_block.derivative(self=chosen_rule)


@public()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent elements along ``dim`` and their indices."""
    return _Mode(mode_block(input, dimension(dim, input._array.ndim), keepdim))
