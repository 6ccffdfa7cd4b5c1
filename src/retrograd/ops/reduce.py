"""Reductions, norms and scans: many elements to one, or to a running one."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy

from ..core import dtypes
from ..core.tensor import Tensor, dimension
from ..core.where import warn
from ..kernels.summing import summed
from .along import axes_of, chosen_rule, kept_shape, restored
from .arithmetic import true_divide
from .named import named
from .rounding import maximum, minimum
from .shape import spread
from .table import TENSORS, surface
from .table import op as declared

op = partial(declared, in_order=True)  # NumPy would lay results out as the operand is

F: Any = TENSORS


def count_of(shape: tuple[int, ...], dim: Any) -> int:
    """How many elements each result is made of."""
    return math.prod(shape[axis] for axis in axes_of(dim, len(shape)))


def _floats_only(name: str, x: Any, infer: bool = False) -> None:
    if x.dtype.kind in "biu":
        kind = "could not infer output dtype. Input dtype must be" if infer else "Input dtype must be"
        shown = dtypes.scalar_name(dtypes.of(x.dtype))
        raise RuntimeError(f"{name}(): {kind} either a floating point or complex dtype. Got: {shown}")


def wide(np: Any, x: Any) -> Any:
    return x.astype(np.int64) if x.dtype.kind in "biu" else x


# -- Sums and means --------------------------------------------------------------------------------------------------


#: Ones to multiply few numbers with, by how many they are.
_ONES = {numpy.dtype(kind): [numpy.ones(n, kind) for n in range(65)] for kind in (numpy.float32, numpy.float64)}
#: The sum of few floats as a product with ones: 0.3 µs where NumPy's sum needs 0.8.
_FEW = "self.size <= 64", "self.ravel().dot((ones32 if self.dtype is F32 else ones64)[self.size])"
_FEW_ONES = {f"ones{kind.itemsize * 8}": ones for kind, ones in _ONES.items()}


def _total(np: Any, x: Any) -> Any:
    """The sum of all elements."""
    if x.size <= 64 and x.__class__ is numpy.ndarray and x.dtype in _ONES:
        return x.ravel().dot(_ONES[x.dtype][x.size])
    return np.add.reduce(wide(np, x), None)


@op(name="sum_all", backward="SumBackward0", opmath=True, function=False, method=False, linear=True,
    inline=(*_FEW, _FEW_ONES))  # fmt: skip
def sum_all(np: Any, self: Any, /) -> Any:
    """The sum of all elements."""
    return _total(np, self)


sum_all.derivative(self=lambda F, g, self_shape: F.expand(g, self_shape))


@op(name="sum_dim", backward="SumBackward1", opmath=True, function=False, method=False, linear=True)
def sum_dim(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Sums over dimensions."""
    return summed(np, wide(np, self), axes_of(dim, self.ndim), keepdim)


sum_dim.derivative(
    self=lambda F, g, self_shape, dim, keepdim: F.expand(restored(F, g, self_shape, dim, keepdim), self_shape)
)


@surface(quick=sum_all)
def sum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The sum of all elements, or over ``dim`` (an int or several); integers are summed as int64.

    >>> import retrograd as torch
    >>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    if axis is not None or keepdims:
        dim, keepdim = dim if axis is None else axis, keepdim or keepdims
    if dtype is not None and dtype is not input.dtype:
        input = input.to(dtype)
        if dtype.category == dtypes.INTEGER and dtype is not dtypes.int64:
            return sum(input, dim, keepdim).to(dtype)
    if dim is None and not keepdim:
        return sum_all(input, out=out)
    return sum_dim(input, dim, keepdim, out=out)


@op(name="mean_all", backward="MeanBackward0", opmath=True, function=False, method=False, linear=True,
    inline=("0 < " + _FEW[0], _FEW[1] + " / self.size", _FEW_ONES))  # fmt: skip
def mean_all(np: Any, self: Any, /) -> Any:
    """The mean of all elements."""
    _floats_only("mean", self, True)
    return _total(np, self) / self.size if self.size else self.dtype.type(np.nan)


mean_all.derivative(self=lambda F, g, self_shape: F.expand(g, self_shape) / math.prod(self_shape))


@op(name="mean_dim", backward="MeanBackward1", opmath=True, function=False, method=False, linear=True)
def mean_dim(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Means over dimensions."""
    _floats_only("mean", self, True)
    total = summed(np, self, axes_of(dim, self.ndim), keepdim)
    return total / self.dtype.type(count_of(self.shape, dim))


mean_dim.derivative(
    self=lambda F, g, self_shape, dim, keepdim: (
        F.expand(restored(F, g, self_shape, dim, keepdim), self_shape) / count_of(self_shape, dim)
    )
)


@surface(quick=mean_all)
def mean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
    axis: Any = None,
    keepdims: bool = False,
) -> Tensor:
    """The mean of all elements, or over ``dim`` (an int or several)."""
    if axis is not None or keepdims:
        dim, keepdim = dim if axis is None else axis, keepdim or keepdims
    if dtype is not None:
        input = input.to(dtype)
    if dim is None and not keepdim:
        return mean_all(input, out=out)
    return mean_dim(input, dim, keepdim, out=out)


@op(name="nansum_block", backward="NansumBackward0", opmath=True, function=False, method=False)
def nansum_block(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Sums over dimensions, nan counting as 0."""
    return summed(np, wide(np, np.where(self != self, self.dtype.type(0), self)), axes_of(dim, self.ndim), keepdim)


nansum_block.derivative(
    self=lambda F, g, self, self_shape, dim, keepdim: F.where_else(
        self == self, F.expand(restored(F, g, self_shape, dim, keepdim), self_shape)
    )
)


@surface()
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The sum, nan counting as 0."""
    return nansum_block(input if dtype is None else input.to(dtype), dim, keepdim, out=out)


@surface()
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The mean of the elements that are not nan."""
    if input.dtype.category < dtypes.FLOATING:
        shown = dtypes.scalar_name(input.dtype)
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {shown}")
    counted = sum(~input.isnan(), dim, keepdim)
    return true_divide(nansum(input, dim, keepdim, dtype=dtype), counted, out=out)


@op(name="prod_all", backward="ProdBackward0", opmath=True, function=False, method=False)
def prod_all(np: Any, self: Any, /) -> Any:
    """The product of all elements."""
    return np.multiply.reduce(wide(np, self), None)


prod_all.derivative(
    self=lambda F, g, self, self_shape: g * F.reshape(F.product_of_others(F.reshape(self, (-1,)), 0), self_shape)
)


@op(name="prod_dim", backward="ProdBackward1", opmath=True, function=False, method=False)
def prod_dim(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Products over a dimension."""
    return np.multiply.reduce(wide(np, self), axis=axes_of(dim, self.ndim), keepdims=keepdim)


prod_dim.derivative(
    self=lambda F, g, self, self_shape, dim, keepdim: (
        restored(F, g, self_shape, dim, keepdim) * F.product_of_others(self, dimension(dim, len(self_shape)))
        if self_shape
        else g
    )
)


@surface()
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """The product of all elements, or over ``dim``; integers are multiplied as int64."""
    if dtype is not None:
        input = input.to(dtype)
        if dtype.category < dtypes.FLOATING and dtype is not dtypes.int64:
            return prod(input, dim, keepdim).to(dtype)
    return prod_all(input, out=out) if dim is None else prod_dim(input, dim, keepdim, out=out)


@surface(function=False)
def sum_to_size(input: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """The sum over the dimensions along which a tensor of shape ``size`` would be broadcast to this one."""
    target, shape = spread("sum_to_size", size, "size", kwargs), input._array.shape
    lead = len(shape) - len(target)
    if lead < 0 or any(want not in (1, have) for have, want in zip(shape[lead:], target, strict=True)):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    if not target:
        return sum(input)
    axes = (*range(lead), *(lead + i for i, (a, b) in enumerate(zip(shape[lead:], target, strict=True)) if a != b))
    result = sum(input, axes, True) if axes else input
    return result.view(target) if lead else result


# -- Variance --------------------------------------------------------------------------------------------------------


@op(name="var_block", backward="VarBackward0", opmath=True, function=False, method=False, holomorphic=False)
def var_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """The variance over dimensions, dividing by their size less ``correction``."""
    return _variance(np, self, dim, correction, keepdim)


def _variance(np: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    if x.dtype.kind in "biu":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    axes = axes_of(dim, x.ndim)
    count = count_of(x.shape, dim)
    centred = x - summed(np, x, axes, True) / x.dtype.type(max(count, 1))
    squares = (centred * centred.conj()).real
    left = max(count - correction, 0)
    total = summed(np, squares, axes, keepdim)
    return np.divide(total, total.dtype.type(left))


def _var_rule(F: Any, g: Any, self: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    left = max(count_of(self_shape, dim) - correction, 0)
    scale = 2.0 / left if left else math.nan
    return restored(F, g, self_shape, dim, keepdim) * scale * (self - F.mean_dim(self, dim, True))


var_block.derivative(self=_var_rule)


@op(name="std_block", backward="StdBackward0", opmath=True, function=False, method=False, holomorphic=False)
def std_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """The standard deviation over dimensions."""
    return np.sqrt(_variance(np, self, dim, correction, keepdim))


def _std_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    slope = F.masked_fill_scalar(g / (out * 2), out == 0, 0)
    return _var_rule(F, slope, self, self_shape, dim, correction, keepdim)


std_block.derivative(self=_std_rule)


def _spread_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, float, bool]:
    """``(dim, unbiased, keepdim)`` or ``(unbiased)`` or ``(dim, correction=, keepdim=)`` as torch takes them."""
    rest = list(args)
    dim, unbiased, keepdim = kwargs.get("dim"), kwargs.get("unbiased"), kwargs.get("keepdim", False)
    if rest and isinstance(rest[0], bool):
        unbiased = rest.pop(0)
    elif rest:
        dim = rest.pop(0)
        if rest:
            unbiased = rest.pop(0)
    if rest:
        keepdim = rest.pop(0)
    dim = kwargs.get("axis", dim)
    correction = kwargs.get("correction")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, correction, keepdim


def _freedom(input: Tensor, dim: Any, correction: float, name: str) -> None:
    if count_of(input._array.shape, dim) - correction <= 0:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
            f"numel divided by output numel).",
        )


@surface()
def var(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The variance: ``var(dim=None, *, correction=1, keepdim=False)``; ``unbiased=False`` means ``correction=0``."""
    dim, correction, keepdim = _spread_arguments(args, kwargs)
    _freedom(input, dim, correction, "var")
    return var_block(input, dim, correction, keepdim, out=kwargs.get("out"))


@surface()
def std(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """The standard deviation: ``std(dim=None, *, correction=1, keepdim=False)``."""
    dim, correction, keepdim = _spread_arguments(args, kwargs)
    _freedom(input, dim, correction, "std")
    return std_block(input, dim, correction, keepdim, out=kwargs.get("out"))


def _spread_and_mean(np: Any, spread: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    mean = mean_dim.op.kernel(np, x, dim, keepdim)
    return np.asarray(spread.op.kernel(np, x, dim, correction, keepdim)), np.asarray(mean)


def _mean_part(F: Any, g: Any, found: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """``found`` (the part of the spread, or None) plus the part of the mean."""
    if g is None:
        return found
    even = F.expand(restored(F, g, shape, dim, keepdim), shape) / count_of(shape, dim)
    return even if found is None else found + even


@op(backward="VarMeanBackward0", outputs=("var", "mean"), opmath=True, function=False, method=False, holomorphic=False)
def var_mean_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """The variance and the mean."""
    return _spread_and_mean(np, var_block, self, dim, correction, keepdim)


def _var_mean_rule(F: Any, g: Any, self: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    found = None if g[0] is None else _var_rule(F, g[0], self, self_shape, dim, correction, keepdim)
    return _mean_part(F, g[1], found, self_shape, dim, keepdim)


var_mean_block.derivative(self=_var_mean_rule)


@op(backward="StdMeanBackward0", outputs=("std", "mean"), opmath=True, function=False, method=False, holomorphic=False)
def std_mean_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """The standard deviation and the mean."""
    return _spread_and_mean(np, std_block, self, dim, correction, keepdim)


def _std_mean_rule(
    F: Any, g: Any, self: Any, std: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool
) -> Any:
    found = None if g[0] is None else _std_rule(F, g[0], self, std, self_shape, dim, correction, keepdim)
    return _mean_part(F, g[1], found, self_shape, dim, keepdim)


std_mean_block.derivative(self=_std_mean_rule)


def _spread_floats(name: str, input: Tensor) -> None:
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")


@surface(method=False)
def var_mean(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """The variance and the mean."""
    dim, correction, keepdim = _spread_arguments(args, kwargs)
    _spread_floats("var_mean", input)
    _freedom(input, dim, correction, "var_mean")
    return var_mean_block(input, dim, correction, keepdim)


@surface(method=False)
def std_mean(input: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean."""
    dim, correction, keepdim = _spread_arguments(args, kwargs)
    _spread_floats("std_mean", input)
    _freedom(input, dim, correction, "std_mean")
    return std_mean_block(input, dim, correction, keepdim)


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


same.derivative(self=lambda F, g: None, other=lambda F, g: None)


@op(name="extreme_share", function=False, method=False)
def extreme_share(np: Any, self: Any, top: Any, /, dim: Any) -> Any:
    """For each element its share of an extreme: one over how many there are, or 0."""
    mask = (self == top) | ((self != self) & (top != top))
    return (mask / np.add.reduce(mask, axis=axes_of(dim, self.ndim), keepdims=True)).astype(self.dtype)


def _extreme(name: str, backward: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_values_cpu", self.dtype)
        axes = axes_of(dim, self.ndim)
        if self.size == 0 and any(self.shape[axis] == 0 for axis in axes):
            axis = next(axis for axis in axes if self.shape[axis] == 0)
            if dim is None or dim == ():
                _nonempty(name, self)
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
        return getattr(np, name)(self, axis=axes, keepdims=keepdim)

    kernel.__name__ = name
    kernel.__doc__ = doc
    made = op(name=f"{name}_block", backward=backward, opmath=True, function=False, method=False)(kernel)

    def rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, keepdim: bool) -> Any:
        full = restored(F, out, self_shape, dim, keepdim)
        return restored(F, g, self_shape, dim, keepdim) * F.extreme_share(self, full, dim)

    made.derivative(self=rule)
    return made


amax_block = _extreme("amax", "AmaxBackward0", "The largest elements over dimensions.")
amin_block = _extreme("amin", "AminBackward0", "The smallest elements over dimensions.")


def _extreme_of_all(name: str, backward: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /) -> Any:
        _nonempty(name, self)
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_all", self.dtype)
        return getattr(np, "a" + name)(self)

    kernel.__name__ = name + "_all"
    kernel.__doc__ = doc
    made = op(backward=backward, opmath=True, function=False, method=False)(kernel)
    made.derivative(self=lambda F, g, self, out: g * F.extreme_share(self, out, None))
    return made


max_all = _extreme_of_all("max", "MaxBackward1", "The largest element.")
min_all = _extreme_of_all("min", "MinBackward1", "The smallest element.")


def _extreme_along(name: str, doc: str) -> Any:
    def kernel(np: Any, self: Any, /, dim: int, keepdim: bool) -> Any:
        if self.dtype.kind == "c":
            raise RuntimeError(f"{name}(): does not support complex input")
        if self.ndim == 0:
            return self.copy(), np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = first_extreme(np, self, dim, name)
        values = np.take_along_axis(self, index, dim)
        return (values, index) if keepdim else (values.squeeze(dim), index.squeeze(dim))

    kernel.__name__ = name + "_dim"
    kernel.__doc__ = doc
    made = op(
        backward=f"{name.capitalize()}Backward0", opmath=True, outputs=("values", "indices"), differentiable=1,
        function=False, method=False,
    )(kernel)  # fmt: skip
    made.derivative(self=chosen_rule)
    return made


def first_extreme(np: Any, x: Any, dim: int, name: str) -> Any:
    """The index of the first extreme along ``dim`` (a nan counts as extreme), keeping the dimension."""
    if x.dtype.kind == "b":
        x = x.astype(np.uint8)
    if str(x.dtype) == "bfloat16":
        x = x.astype(np.float32)
    return np.expand_dims(np.argmax(x, dim) if name == "max" else np.argmin(x, dim), dim)


max_dim = _extreme_along("max", "The largest elements along a dimension, and where they are.")
min_dim = _extreme_along("min", "The smallest elements along a dimension, and where they are.")
_Max, _Min = named("max", ("values", "indices")), named("min", ("values", "indices"))


def _extreme_surface(name: str, whole: Any, along: Any, pairwise: Any, result: Any, what: str) -> None:
    def extreme(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **kwargs: Any) -> Any:
        dim = kwargs.get("other", kwargs.get("axis", dim))
        if dim is None:
            return whole(input, out=out)
        if isinstance(dim, Tensor):
            return pairwise(input, dim, out=out)
        return result(along(input, dimension(dim, input._array.ndim), keepdim, out=out))

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = (
        f"The {what} element; with ``dim`` the {what} elements along it and their indices; with another tensor the "
        f"{what} of each two elements."
    )
    surface(name=name)(extreme)


_extreme_surface("max", max_all, max_dim, maximum, _Max, "largest")
_extreme_surface("min", min_all, min_dim, minimum, _Min, "smallest")


@surface()
def amax(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The largest elements over ``dim`` (an int or several; all by default)."""
    return amax_block(input, dim, keepdim, out=out)


@surface()
def amin(input: Tensor, dim: Any = (), keepdim: bool = False, *, out: Any = None) -> Tensor:
    """The smallest elements over ``dim`` (an int or several; all by default)."""
    return amin_block(input, dim, keepdim, out=out)


_Aminmax = named("aminmax", ("min", "max"))


@surface()
def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False, out: Any = None) -> Any:
    """The smallest and the largest elements, over all or along ``dim``."""
    return _Aminmax(aminmax_block(input, () if dim is None else dim, keepdim, out=out))


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
            share = F.extreme_share(self, restored(F, extreme, self_shape, dim, keepdim), dim)
            part = restored(F, grad, self_shape, dim, keepdim) * share
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
            return index.reshape((1,) * self.ndim) if keepdim else index[0]
        if self.ndim == 0:
            return np.asarray(0)
        if self.shape[dim] == 0:
            raise IndexError(f"arg{name}(): Expected reduction dim {dim} to have non-zero size.")
        index = first_extreme(np, self, dim, name)
        return index if keepdim else index.squeeze(dim)

    kernel.__name__ = f"arg{name}_block"
    kernel.__doc__ = f"The index of the {what} element."
    block = op(function=False, method=False)(kernel)

    def surfaced(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Tensor:
        at = None if dim is None else dimension(dim, input._array.ndim)
        return block(input, at, keepdim, out=out)

    surfaced.__name__ = surfaced.__qualname__ = "arg" + name
    surfaced.__doc__ = f"The index of the {what} element of all (counted in one row), or along ``dim``."
    surface(name="arg" + name)(surfaced)


_arg("max", "largest")
_arg("min", "smallest")


def _whether(name: str, doc: str) -> None:
    def kernel(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
        # NumPy answers booleans; of uint8 PyTorch keeps the type.
        found = getattr(np, name)(self, axis=axes_of(dim, self.ndim), keepdims=keepdim)
        return np.asarray(found).astype(np.uint8) if self.dtype == np.uint8 else found

    kernel.__name__ = name + "_block"
    kernel.__doc__ = doc
    block = op(function=False, method=False)(kernel)

    def surfaced(input: Tensor, dim: Any = None, keepdim: bool = False, *, out: Any = None, **kwargs: Any) -> Tensor:
        return block(input, kwargs.get("axis", dim), keepdim, out=out)

    surfaced.__name__ = surfaced.__qualname__ = name
    surfaced.__doc__ = doc
    surface(name=name)(surfaced)


_whether("all", "Whether all elements are true (not zero), over all or over ``dim``.")
_whether("any", "Whether any element is true (not zero), over all or over ``dim``.")


@op(name="count_nonzero_block", function=False, method=False)
def count_nonzero_block(np: Any, self: Any, /, dim: Any) -> Any:
    """How many elements are not zero."""
    return np.add.reduce(self != 0, axis=axes_of(dim, self.ndim), dtype=np.int64)


@surface()
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
    whole_block.derivative(self=lambda F, g, self, out: g * F.extreme_share(self, out, None))
    result = named(name, ("values", "indices"))

    def surfaced(input: Tensor, dim: int | None = None, keepdim: bool = False, *, out: Any = None) -> Any:
        if dim is None:
            return whole_block(input)
        return result(block(input, dimension(dim, input._array.ndim), keepdim, out=out))

    surfaced.__name__ = surfaced.__qualname__ = name
    surfaced.__doc__ = "The lower median of all elements; with ``dim`` the medians along it and their indices."
    surface(name=name)(surfaced)


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


@surface()
def mode(input: Tensor, dim: int = -1, keepdim: bool = False, *, out: Any = None) -> Any:
    """The most frequent elements along ``dim`` and their indices."""
    return _Mode(mode_block(input, dimension(dim, input._array.ndim), keepdim, out=out))


# -- Norms -----------------------------------------------------------------------------------------------------------


def _identity(x: Any, ord: float, dim: Any, axes: tuple[int, ...]) -> None:
    """Refuse to take the norm of nothing where that has no value."""
    empty = [axis for axis in axes if x.shape[axis] == 0]
    if empty:
        # PyTorch's text lacks a blank here.
        where = (
            "an empty tensor because" if dim is None else f"the dimension {empty[0]}because this dimension is empty and"
        )
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on {where} the operation does not have an identity"
        )


@op(
    name="vector_norm_block",
    backward="LinalgVectorNormBackward0",
    opmath=True,
    function=False,
    method=False,
    holomorphic=False,
)
def vector_norm_block(np: Any, self: Any, /, ord: float, dim: Any, keepdim: bool) -> Any:
    """The ``ord``-norm of vectors over dimensions."""
    axes = axes_of(dim, self.ndim)
    if ord < 0 or ord == math.inf:
        _identity(self, ord, dim, axes)
    size = np.absolute(self)
    if ord == 2:
        return np.sqrt(summed(np, size * size, axes, keepdim))
    if ord == 1:
        return summed(np, size, axes, keepdim)
    if ord == math.inf:
        return np.amax(size, axis=axes, keepdims=keepdim)
    if ord == -math.inf:
        return np.amin(size, axis=axes, keepdims=keepdim)
    if ord == 0:
        return np.add.reduce(size != 0, axis=axes, keepdims=keepdim).astype(size.dtype)
    total = summed(np, np.power(size, size.dtype.type(ord)), axes, keepdim)
    return np.power(total, size.dtype.type(1 / ord))


def norm_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, ord: float, dim: Any, keepdim: bool) -> Any:
    """The gradient through a norm over dimensions; elements that share an extreme share its gradient."""
    g, norm = restored(F, g, self_shape, dim, keepdim), restored(F, out, self_shape, dim, keepdim)
    if ord in (math.inf, -math.inf):
        return g * F.sgn(self) * F.extreme_share(F.abs(self), norm, dim)
    return slope_of_norm(F, g, self, norm, ord)


def slope_of_norm(F: Any, g: Any, x: Any, norm: Any, ord: float) -> Any:
    """``g`` times the derivative of a norm by each element; 0 where the norm has none."""
    if ord == 0:
        return F.zeros_as(x)
    if ord == 1:
        return g * F.sgn(x)
    if ord == 2:
        return g * F.masked_fill_scalar(x / norm, norm == 0, 0)
    if ord < 1:
        weight = F.masked_fill_scalar(F.sgn(x) * F.pow_scalar(F.abs(x), ord - 1), x == 0, 0)
        return g * weight * F.pow_scalar(norm, 1 - ord)
    if ord < 2:
        weight = F.sgn(x) * F.pow_scalar(F.abs(x), ord - 1)
    else:
        weight = x * F.pow_scalar(F.abs(x), ord - 2)
    return F.masked_fill_scalar(g * weight / F.pow_scalar(norm, ord - 1), norm == 0, 0)


vector_norm_block.derivative(self=norm_rule)
extreme_share.derivative(self=lambda F, g: None, top=lambda F, g: None)


def vector_norm(
    x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """The norm of vectors: ``(sum(abs(x) ** ord)) ** (1 / ord)`` over ``dim`` (all dimensions by default)."""
    if dtype is not None:
        x = x.to(dtype)
    if x.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtypes.scalar_name(x.dtype)}"
        )
    return vector_norm_block(x, float(ord), dim, keepdim, out=out)


@surface()
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """The norm of the elements: Frobenius by default, or the ``p``-norm over ``dim``."""
    if p == "nuc":
        return F.svdvals(input).sum(-1, keepdim)
    if p not in ("fro", None) and not isinstance(p, (int, float)):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if input.dtype.category < dtypes.FLOATING and dtype is None:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtypes.scalar_name(input.dtype)}"
        )
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


@op(name="logsumexp_block", backward="LogsumexpBackward0", opmath=True, function=False, method=False)
def logsumexp_block(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """``log(sum(exp(x)))`` over dimensions, without overflow."""
    axes = axes_of(dim, self.ndim)
    if self.dtype.kind in "biu":
        self = self.astype(np.float32)
    top = (
        np.amax(self.real, axis=axes, keepdims=True) if self.size else np.zeros(kept_shape(self.shape, dim), self.dtype)
    )
    top = np.where(np.isfinite(top), top, 0).astype(self.dtype)
    found = np.log(np.add.reduce(np.exp(self - top), axis=axes, keepdims=True)) + top
    return found if keepdim else found.reshape(tuple(n for i, n in enumerate(self.shape) if i not in axes))


logsumexp_block.derivative(
    self=lambda F, g, self, out, self_shape, dim, keepdim: (
        restored(F, g, self_shape, dim, keepdim) * F.exp(self - restored(F, out, self_shape, dim, keepdim))
    )
)


@surface()
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """``log(sum(exp(x)))`` over ``dim`` (an int or several), without overflow."""
    return logsumexp_block(input, dim, keepdim, out=out)
