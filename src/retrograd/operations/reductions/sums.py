"""Reductions: ``sum``, ``mean``, ``prod``, ``nansum``, ``var``, ``std``, ``norm``, ``vector_norm``, ``logsumexp``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy

from ...core import dtypes
from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import ARRAYS, TENSORS, exported, public
from ...dispatch.declare import op as declared
from ...dispatch.operand_promotion import F32, F64, number_in, plain_number
from ...kernels import copying, reductions, softmax
from ...kernels.numba_dispatch import copy_into
from ...kernels.reductions import MOST, mean_along, sum_along, sum_axes, sum_elements, upcast_integers
from ...runtime.user_frame import warn
from ..elementwise.arithmetic import true_divide
from ..shape.views import parse_int_arguments
from .dims import axes_of, restore_dims

op = partial(declared, in_order=True)  # NumPy's results would have the operand's order of strides

F: Any = TENSORS
INT = numpy.dtype(numpy.int64)


def reduced_count(shape: tuple[int, ...], dim: Any) -> int:
    """Return the number of elements that a reduction over ``dim`` combines to one result.

    ``shape`` is the shape of the reduced array. If ``dim`` is None, the result is the number of all elements.
    """
    if dim.__class__ is int and -len(shape) <= dim < len(shape):
        return shape[dim]
    if dim is None:
        return math.prod(shape)
    return math.prod([shape[axis] for axis in axes_of(dim, len(shape))])


def _floats_only(name: str, x: Any, infer: bool = False) -> None:
    """Raise PyTorch's RuntimeError if ``x`` is an integer or bool array.

    ``name`` is the name of the function in the error message. If ``infer`` is true, the message also
    states that the dtype of the result cannot be inferred.
    """
    if x.dtype.kind in "biu":
        kind = "could not infer output dtype. Input dtype must be" if infer else "Input dtype must be"
        shown = dtypes.scalar_name(dtypes.dtype_of(x.dtype))
        raise RuntimeError(f"{name}(): {kind} either a floating point or complex dtype. Got: {shown}")


# -- Sums and means --------------------------------------------------------------------------------------------------


BOOL = numpy.dtype(bool)


@declared(one=True, backward="SumBackward0", opmath=True, function=False, method=False, linear=True,
    inline=lambda self, _d: (
        reductions.sum_floats(numpy, self, _d) if _d is F32 or _d is F64
        else reductions.sum_integers(numpy, self, _d) if _d is INT
        else numpy.asarray(numpy.count_nonzero(self))
    ) if _d is F32 or _d is F64 or _d is INT or _d is BOOL else None, vmap=("sum_dim", (1,), False),
)  # fmt: skip
def sum_all(np: Any, self: Any, /) -> Any:
    """Return the sum of all elements of ``self``; integers are summed as int64."""
    return np.asarray(np.count_nonzero(self)) if self.dtype.kind == "b" else sum_elements(np, upcast_integers(np, self))


sum_all.derivative(self=lambda F, g, self_shape: F.expand(g, self_shape))


@op(name="sum_dim", backward="SumBackward1", opmath=True, function=False, method=False, linear=True,
    inline=lambda self, dim, keepdim, _d: (
        sum_along(numpy, self, dim, keepdim)
        if (_d is F32 or _d is F64) and dim.__class__ is int and -self.ndim <= dim < self.ndim else None
    ),
)  # fmt: skip
def sum_dim(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Return the sum of ``self`` over the dimensions ``dim``; integers are summed as int64."""
    return sum_axes(np, upcast_integers(np, self), axes_of(dim, self.ndim), keepdim)


sum_dim.derivative(
    self=lambda F, g, self_shape, dim, keepdim: F.expand(restore_dims(F, g, self_shape, dim, keepdim), self_shape)
)


@public(fast_path=sum_all, then_try=[(sum_dim, None)])
def sum(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Tensor:
    """Return the sum of ``input`` over ``dim``, an int or a tuple of ints; by default over all dimensions.

    Integers are summed as int64.

    >>> import retrograd as torch
    >>> torch.sum(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    if dtype is not None:
        input = input if dtype is input.dtype else input.to(dtype)
        if dtype.category < dtypes.FLOATING and dtype is not dtypes.int64:
            return sum(input, dim, keepdim).to(dtype)
    if dim is None and not keepdim:
        return sum_all(input)
    return sum_dim(input, dim, keepdim)


@declared(one=True, backward="MeanBackward0", opmath=True, function=False, method=False, linear=True,
    inline=lambda self, _d: reductions.mean_floats(numpy, self, _d) if (_d is F32 or _d is F64) and self.size else None,
    vmap=("mean_dim", (1,), False),
)  # fmt: skip
def mean_all(np: Any, self: Any, /) -> Any:
    """Return the mean of all elements of ``self``; the mean of an empty array is nan."""
    _floats_only("mean", self, True)
    return sum_elements(np, self) / self.size if self.size else self.dtype.type(np.nan)


@op(name="evenly_spread", backward="DivBackward0", opmath=True, function=False, method=False, linear=True)
def evenly_spread(np: Any, grad: Any, /, shape: Any, count: int) -> Any:
    """Return ``grad / count`` broadcast to ``shape``: the gradient of a mean of ``count`` elements."""
    if grad.dtype.char == "e" and count > MOST:
        return evenly_spread.op.kernel(np, grad.astype(np.float32), shape, count).astype(grad.dtype)
    share = np.asarray(grad / count)
    out = np.empty(shape, share.dtype)
    copy_into(out, share)
    return out


_evenly_spread = ARRAYS.evenly_spread


def _evenly_spread_fast(grad: Any, shape: Any, count: int) -> Any:
    """Return the array ``grad / count`` broadcast to ``shape``, the gradient of a mean of ``count`` elements.

    If ``grad`` is a NumPy float32 scalar, a faster function is used.
    """
    if grad.__class__ is numpy.float32 and count > 0:
        return copying.fill(numpy, numpy.empty(shape, F32), float(grad) / count)  # rounded twice, with the same result
    return _evenly_spread(grad, shape, count)


ARRAYS.__dict__["evenly_spread"] = _evenly_spread_fast
evenly_spread.derivative(grad=lambda F, g, grad_shape, count: F.sum_to_size(g, grad_shape) / count)
mean_all.derivative(self=lambda F, g, self_shape: F.evenly_spread(g, self_shape, math.prod(self_shape)))


@op(name="mean_dim", backward="MeanBackward1", opmath=True, function=False, method=False, linear=True,
    inline=lambda self, dim, keepdim, _d: (
        mean_along(numpy, self, dim, keepdim)
        if (_d is F32 or _d is F64) and dim.__class__ is int and -self.ndim <= dim < self.ndim else None
    ),
)  # fmt: skip
def mean_dim(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Return the mean of ``self`` over the dimensions ``dim``."""
    _floats_only("mean", self, True)
    axes = axes_of(dim, self.ndim)
    if len(axes) == 1:
        return mean_along(np, self, axes[0], keepdim)
    return sum_axes(np, self, axes, keepdim) / self.dtype.type(reduced_count(self.shape, dim))


mean_dim.derivative(
    self=lambda F, g, self_shape, dim, keepdim: F.evenly_spread(
        restore_dims(F, g, self_shape, dim, keepdim), self_shape, reduced_count(self_shape, dim)
    )
)


@public(fast_path=mean_all, then_try=[(mean_dim, None)])
def mean(
    input: Tensor,
    dim: Any = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Any = None,
) -> Tensor:
    """Return the mean of ``input`` over ``dim``, an int or a tuple of ints; by default over all dimensions.

    Raises RuntimeError for integers.

    >>> import retrograd as torch
    >>> torch.mean(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 0)
    tensor([2., 3.])
    """
    if dtype is not None:
        if dtype.category < dtypes.FLOATING:
            raise RuntimeError(
                "mean(): could not infer output dtype. Optional dtype must be either a floating point or complex dtype. "
                f"Got: {dtypes.scalar_name(dtype)}"
            )
        input = input.to(dtype)
    if dim is None and not keepdim:
        return mean_all(input)
    return mean_dim(input, dim, keepdim)


@op(name="nansum_block", backward="NansumBackward0", opmath=True, function=False, method=False)
def nansum_block(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Return the sum of ``self`` over the dimensions ``dim``, with nan treated as 0."""
    return sum_axes(
        np, upcast_integers(np, np.where(self != self, self.dtype.type(0), self)), axes_of(dim, self.ndim), keepdim
    )


nansum_block.derivative(
    self=lambda F, g, self, self_shape, self_dtype, dim, keepdim: (
        restore_dims(F, g, self_shape, dim, keepdim) * F.to_dtype(self == self, dtypes.dtype_of(self_dtype))
    )
)


@public()
def nansum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the sum of ``input`` over ``dim``, an int or a tuple of ints, with nan treated as 0.

    By default, all elements are summed.
    """
    if dtype is not None and dtype.category < dtypes.FLOATING:
        return sum(input, dim, keepdim, dtype=dtype)
    return nansum_block(input if dtype is None else input.to(dtype), dim, keepdim)


@public()
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the mean of the elements of ``input`` that are not nan, over ``dim``, an int or a tuple of ints.

    By default, the mean is taken over all dimensions.
    """
    if input.dtype.category < dtypes.FLOATING:
        shown = dtypes.scalar_name(input.dtype)
        raise RuntimeError(f"nanmean(): expected input to have floating point or complex dtype but got {shown}")
    count = sum(~input.isnan(), dim, keepdim)
    return true_divide(nansum(input, dim, keepdim, dtype=dtype), count)


@op(backward="ProdBackward0", opmath=True, function=False, method=False, vmap=("prod_dim", 1, False))
def prod_all(np: Any, self: Any, /) -> Any:
    """Return the product of all elements of ``self``; integers are multiplied as int64."""
    return reductions.product(np, self)


prod_all.derivative(
    self=lambda F, g, self, self_shape: g * F.reshape(F.product_of_others(F.reshape(self, (-1,)), 0), self_shape)
)


@op(name="prod_dim", backward="ProdBackward1", opmath=True, function=False, method=False)
def prod_dim(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Return the product of ``self`` over the dimension ``dim``; integers are multiplied as int64."""
    return reductions.product_axes(np, self, axes_of(dim, self.ndim), keepdim)


prod_dim.derivative(
    self=lambda F, g, self, self_shape, dim, keepdim: (
        restore_dims(F, g, self_shape, dim, keepdim) * F.product_of_others(self, normalize_dim(dim, len(self_shape)))
        if self_shape
        else g
    )
)


@public(fast_path=prod_all, then_try=[(prod_dim, None)])
def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the product of ``input`` over the dimension ``dim``, or of all elements if ``dim`` is None.

    Integers are multiplied as int64.

    >>> import retrograd as torch
    >>> torch.prod(torch.tensor([1, 2, 3]))
    tensor(6)
    """
    if dtype is not None:
        input = input.to(dtype)
        if dtype.category < dtypes.FLOATING and dtype is not dtypes.int64:
            return prod(input, dim, keepdim).to(dtype)
    return prod_all(input) if dim is None else prod_dim(input, dim, keepdim)


@public(function=False)
def sum_to_size(input: Tensor, *size: Any, **kwargs: Any) -> Tensor:
    """Return ``input`` summed over dimensions until it has the shape ``size``.

    Raises RuntimeError unless ``size`` is broadcastable to the shape of ``input``. The operation is the reverse of
    broadcasting: it computes the gradient of an operand that was broadcast from ``size`` to the shape of ``input``.
    """
    target, shape = parse_int_arguments("sum_to_size", size, "size", kwargs), input._array.shape
    lead = len(shape) - len(target)
    if lead < 0 or any(want not in (1, have) for have, want in zip(shape[lead:], target, strict=True)):
        raise RuntimeError(f"size {{{list(target)}}} is not expandable to size {{{list(shape)}}}.")
    if not target:
        return sum(input)
    axes = (*range(lead), *(lead + i for i, (a, b) in enumerate(zip(shape[lead:], target, strict=True)) if a != b))
    result = sum(input, axes, True) if axes else input
    return result.view(target) if lead else result


# -- Variance --------------------------------------------------------------------------------------------------------


def _variance(np: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    """Return the variance of ``x`` over ``dim``, possibly in a higher precision than that of ``x``.

    The caller converts the result to the dtype that it needs. The sum of the squared distances from the mean is divided
    by the number of elements minus ``correction``.
    """
    if x.dtype.kind in "biu":
        raise RuntimeError("std and var only support floating point and complex dtypes")
    count = reduced_count(x.shape, dim)
    return reductions.variance(np, x, dim, count, max(count - correction, 0), keepdim)


def _as_real(np: Any, result: Any, x: Any) -> Any:
    """Return ``result``, a variance or standard deviation of ``x``, as an array of a real dtype.

    The dtype is that of ``x``, or that of the real part of a complex ``x``.
    """
    return np.asarray(result, x.dtype if x.dtype.kind != "c" else x.real.dtype)


def _has_freedom(self: Any, dim: Any, correction: Any, _d: Any) -> Any:
    """Return a true value if the fast implementation of ``var`` or ``std`` may be used.

    ``_d``, the dtype of the array ``self``, must be float32 or float64. One result must be computed from more than
    ``correction`` elements. Otherwise PyTorch issues a warning, which the fast implementation does not.
    """
    return (_d is F32 or _d is F64) and reduced_count(self.shape, dim) > correction


#: The conditions for the fast paths of variances and standard deviations.
_WITH_FREEDOM: dict[str, Any] = {
    "when": lambda dim, correction: dim.__class__ is not bool and correction is not None, "if_arrays": _has_freedom
}  # fmt: skip


@op(
    name="var_block",
    backward="VarBackward0",
    opmath=True,
    function=False,
    method=False,
    holomorphic=False,
)
def var_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """Return the variance of ``self`` over the dimensions ``dim``.

    The variance is the sum of the squared distances from the mean, divided by the number of elements minus
    ``correction``.
    """
    return _as_real(np, _variance(np, self, dim, correction, keepdim), self)


def _var_rule(F: Any, g: Any, self: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    left = reduced_count(self_shape, dim) - correction  # may be negative, as in PyTorch
    scale = 2.0 / left if left else math.inf
    return restore_dims(F, g, self_shape, dim, keepdim) * scale * (self - F.mean_dim(self, dim, True))


var_block.derivative(self=_var_rule)


@op(
    name="std_block",
    backward="StdBackward0",
    opmath=True,
    function=False,
    method=False,
    holomorphic=False,
)
def std_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """Return the standard deviation of ``self`` over the dimensions ``dim``: the square root of the variance.

    For the variance, the sum of the squared distances from the mean is divided by the number of elements minus
    ``correction``.
    """
    return _as_real(np, np.sqrt(_variance(np, self, dim, correction, keepdim)), self)


def _std_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    var_grad = F.masked_fill_scalar(g / (out * 2), out == 0, 0)
    return _var_rule(F, var_grad, self, self_shape, dim, correction, keepdim)


std_block.derivative(self=_std_rule)


def _spread_arguments(dim: Any, unbiased: Any, correction: Any) -> tuple[Any, float]:
    """Return the tuple (dim, correction) from the arguments of ``var`` or ``std``.

    These functions have two signatures in PyTorch. The older one has the parameter ``unbiased``: True means
    ``correction=1``, and False means ``correction=0``. ``unbiased`` may be passed without ``dim``, so that a bool
    ``dim`` is the argument ``unbiased``.
    """
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    if unbiased is not None:
        correction = 1 if unbiased else 0
    return dim, 1 if correction is None else correction


def _freedom(input: Tensor, dim: Any, correction: float, name: str) -> None:
    """Issue PyTorch's warning if a variance of ``input`` over ``dim`` has zero or fewer degrees of freedom.

    The number of degrees of freedom is the number of elements of which one variance is computed, minus ``correction``.
    ``name`` is the name of the function in the message.
    """
    if reduced_count(input._array.shape, dim) - correction <= 0:
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor (input "
            f"numel divided by output numel).",
        )


@public(
    fast_path=var_block,
    when=lambda dim, correction: dim.__class__ is not bool and correction is not None,
    if_arrays=_has_freedom,
)
def var(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = 1,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """Return the variance of ``input`` over ``dim``, an int or a tuple of ints; by default over all dimensions.

    The variance is the sum of the squared distances from the mean, divided by the number of elements minus
    ``correction``. ``unbiased=False`` means ``correction=0``.

    >>> import retrograd as torch
    >>> torch.var(torch.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    dim, correction = _spread_arguments(dim, unbiased, correction)
    _freedom(input, dim, correction, "var")
    return var_block(input, dim, correction, keepdim)


@public(
    fast_path=std_block,
    when=lambda dim, correction: dim.__class__ is not bool and correction is not None,
    if_arrays=_has_freedom,
)
def std(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = 1,
    out: Any = None,
) -> Tensor:  # fmt: skip
    """Return the standard deviation of ``input`` over ``dim``: the square root of the variance.

    The parameters have the same meaning as in :func:`var`.

    >>> import retrograd as torch
    >>> torch.std(torch.tensor([1.0, 2.0, 3.0]), correction=0)
    tensor(0.8165)
    """
    dim, correction = _spread_arguments(dim, unbiased, correction)
    _freedom(input, dim, correction, "std")
    return std_block(input, dim, correction, keepdim)


def _with_mean(np: Any, block: Any, x: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    """Return the tuple (variance or standard deviation, mean) of ``x`` over ``dim``.

    ``block`` is the internal operation that computes the first item, ``var_block`` or ``std_block``. The divisor of the
    variance is the number of elements minus ``correction``.
    """
    mean = mean_dim.op.kernel(np, x, dim, keepdim)
    return np.asarray(block.op.kernel(np, x, dim, correction, keepdim)), np.asarray(mean)


def _add_mean_gradient(F: Any, g: Any, other: Any, shape: tuple[int, ...], dim: Any, keepdim: bool) -> Any:
    """Return the gradient of ``var_mean`` or ``std_mean`` with respect to the operand.

    ``other`` is the gradient through the variance or standard deviation. The gradient through the mean is added to it.
    ``g`` is the gradient of the mean over ``dim``, and ``shape`` is the shape of the operand. If ``g`` or ``other`` is
    None, it is treated as zero. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    """
    if g is None:
        return other
    mean_part = F.evenly_spread(restore_dims(F, g, shape, dim, keepdim), shape, reduced_count(shape, dim))
    return mean_part if other is None else other + mean_part


@op(
    backward="VarMeanBackward0", outputs=("var", "mean"), opmath=True, function=False, method=False,
    holomorphic=False,
)  # fmt: skip
def var_mean_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """Return the tuple (variance, mean) of ``self`` over ``dim``; the variance is computed as in ``var_block``."""
    return _with_mean(np, var_block, self, dim, correction, keepdim)


def _var_mean_rule(F: Any, g: Any, self: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool) -> Any:
    var_part = None if g[0] is None else _var_rule(F, g[0], self, self_shape, dim, correction, keepdim)
    return _add_mean_gradient(F, g[1], var_part, self_shape, dim, keepdim)


var_mean_block.derivative(self=_var_mean_rule)


@op(
    backward="StdMeanBackward0", outputs=("std", "mean"), opmath=True, function=False, method=False,
    holomorphic=False,
)  # fmt: skip
def std_mean_block(np: Any, self: Any, /, dim: Any, correction: float, keepdim: bool) -> Any:
    """Return the tuple (standard deviation, mean) of ``self`` over ``dim``, the first computed as in ``std_block``."""
    return _with_mean(np, std_block, self, dim, correction, keepdim)


def _std_mean_rule(
    F: Any, g: Any, self: Any, std: Any, self_shape: Any, dim: Any, correction: float, keepdim: bool
) -> Any:
    std_part = None if g[0] is None else _std_rule(F, g[0], self, std, self_shape, dim, correction, keepdim)
    return _add_mean_gradient(F, g[1], std_part, self_shape, dim, keepdim)


std_mean_block.derivative(self=_std_mean_rule)


def _check_floating(name: str, input: Tensor) -> None:
    """Raise PyTorch's RuntimeError if ``input`` is an integer or bool tensor.

    ``name`` is the name of the function in the error message.
    """
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"{name} only support floating point and complex dtypes")


@public(
    method=False, fast_path=var_mean_block, **_WITH_FREEDOM
)  # fmt: skip
def var_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = 1
) -> tuple[Tensor, Tensor]:
    """Return the tuple (variance, mean) of ``input`` over ``dim``; by default over all dimensions.

    The parameters have the same meaning as in :func:`var`.
    """
    dim, correction = _spread_arguments(dim, unbiased, correction)
    _check_floating("var_mean", input)
    _freedom(input, dim, correction, "var_mean")
    return var_mean_block(input, dim, correction, keepdim)


@public(
    method=False, fast_path=std_mean_block, **_WITH_FREEDOM
)  # fmt: skip
def std_mean(
    input: Tensor, dim: Any = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Any = 1
) -> tuple[Tensor, Tensor]:
    """Return the tuple (standard deviation, mean) of ``input`` over ``dim``; by default over all dimensions.

    The parameters have the same meaning as in :func:`var`.
    """
    dim, correction = _spread_arguments(dim, unbiased, correction)
    _check_floating("std_mean", input)
    _freedom(input, dim, correction, "std_mean")
    return std_mean_block(input, dim, correction, keepdim)


# -- Norms -----------------------------------------------------------------------------------------------------------


def _check_nonempty(x: Any, ord: float, dim: Any, axes: tuple[int, ...]) -> None:
    """Raise PyTorch's RuntimeError if one of the dimensions ``axes`` of ``x`` has size 0.

    Some norms, such as the maximum norm, are not defined for an empty dimension. ``ord`` is the order of the norm in
    the error message. ``dim`` is the argument ``dim`` of the norm. If ``dim`` is None, the message does not name a
    dimension.
    """
    empty = [axis for axis in axes if x.shape[axis] == 0]
    if empty:
        # PyTorch's text lacks a space here.
        where = (
            "an empty tensor because" if dim is None else f"the dimension {empty[0]}because this dimension is empty and"
        )
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on {where} the operation does not have an identity"
        )


@op(
    name="vector_norm_block", backward="LinalgVectorNormBackward0", opmath=True, function=False, method=False,
    holomorphic=False,
)  # fmt: skip
def vector_norm_block(np: Any, self: Any, /, ord: float, dim: Any, keepdim: bool) -> Any:
    """Return the ``ord``-norm of ``self`` over the dimensions ``dim``."""
    if ord == 2:
        return reductions.norm(np, self, dim, keepdim)
    axes = axes_of(dim, self.ndim)
    if ord < 0 or ord == math.inf:
        _check_nonempty(self, ord, dim, axes)
    size = np.absolute(self)
    if ord == 1:
        return sum_axes(np, size, axes, keepdim)
    if ord == math.inf:
        return np.amax(size, axis=axes, keepdims=keepdim)
    if ord == -math.inf:
        return np.amin(size, axis=axes, keepdims=keepdim)
    if ord == 0:
        return np.add.reduce(size != 0, axis=axes, keepdims=keepdim).astype(size.dtype)
    total = sum_axes(np, np.power(size, size.dtype.type(ord)), axes, keepdim)
    return np.power(total, size.dtype.type(1 / ord))


def norm_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, ord: float, dim: Any, keepdim: bool) -> Any:
    """Return the gradient of a norm over ``dim`` with respect to ``self``.

    ``g`` is the gradient of the norm ``out``. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on
    arrays. ``ord`` is the order of the norm. If ``ord`` is infinite, the gradient is divided evenly among the elements
    whose magnitude is equal to the norm.
    """
    g, norm = restore_dims(F, g, self_shape, dim, keepdim), restore_dims(F, out, self_shape, dim, keepdim)
    if ord in (math.inf, -math.inf):
        return g * F.sgn(self) * F.extreme_share(F.abs(self), norm, dim)
    return norm_gradient(F, g, self, norm, ord)


def norm_gradient(F: Any, g: Any, x: Any, norm: Any, ord: float) -> Any:
    """Return the gradient of ``norm``, the ``ord``-norm of ``x``, with respect to ``x``.

    ``g`` is the gradient of ``norm``. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays. The
    result is 0 where the norm has no derivative.
    """
    if ord == 0:
        return F.zeros_as(x)
    if ord == 1:
        return g * F.sgn(x)
    if ord == 2:
        return g * _over(F, x, F.masked_fill_scalar(norm, norm == 0, math.inf))
    if ord < 1:
        weight = F.masked_fill_scalar(F.sgn(x) * F.pow_scalar(F.abs(x), ord - 1), x == 0, 0)
        return g * weight * F.pow_scalar(norm, 1 - ord)
    if ord < 2:
        weight = F.sgn(x) * F.pow_scalar(F.abs(x), ord - 1)
    else:
        weight = x * F.pow_scalar(F.abs(x), ord - 2)
    safe = F.masked_fill_scalar(norm, norm == 0, math.inf)  # the second derivative is 0 there, too
    return F.masked_fill_scalar(_over(F, g * weight, F.pow_scalar(safe, ord - 1)), norm == 0, 0)


def _over(F: Any, x: Any, divisor: Any) -> Any:
    """Return ``x / divisor`` for a real divisor that may be infinite.

    A GPU divides a complex number by a complex infinity, and the quotient is nan; a complex ``x`` is multiplied instead.
    """
    complex_ = (x._array if isinstance(x, Tensor) else x).dtype.kind == "c"
    return x * F.reciprocal(divisor) if complex_ else x / divisor


vector_norm_block.derivative(self=norm_rule)


@exported("linalg")
def vector_norm(
    input: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, out: Any = None
) -> Tensor:
    """Return the vector norm ``sum(abs(input) ** ord) ** (1 / ord)`` over ``dim``, by default over all dimensions.

    ``ord=inf`` is the maximum of ``abs(input)``, ``-inf`` the minimum, and 0 the number of nonzero elements.

    >>> import retrograd as torch
    >>> torch.linalg.vector_norm(torch.tensor([3.0, -4.0]))
    tensor(5.)
    >>> torch.linalg.vector_norm(torch.tensor([3.0, -4.0]), ord=float("inf"))
    tensor(4.)
    """
    if dtype is not None:
        input = input.to(dtype)
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtypes.scalar_name(input.dtype)}"
        )
    return vector_norm_block(input, float(ord), dim, keepdim)


@public(method=False, fast_path=vector_norm_block, if_arrays=lambda _d: _d is F32 or _d is F64, ord=2.0)
def norm(
    input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, out: Any = None, dtype: Any = None
) -> Tensor:
    """Return the ``p``-norm of ``input`` over ``dim``, by default over all dimensions.

    ``p="fro"``, the Frobenius norm, is the same as ``p=2``. ``p="nuc"`` is the nuclear norm of matrices.

    >>> import retrograd as torch
    >>> torch.norm(torch.tensor([3.0, 4.0]))
    tensor(5.)
    """
    p = plain_number(number_in(p))
    if p == "nuc":
        if dim is not None and (isinstance(dim, int) or len(dim) != 2):
            raise RuntimeError(f"linalg.matrix_norm: dim must be a 2-tuple. Got {dim}")
        return F.matrix_norm(input, "nuc", (-2, -1) if dim is None else dim, keepdim, dtype=dtype)
    if p not in ("fro", None) and not isinstance(p, (int, float)):
        raise RuntimeError(f"linalg.matrix_norm: Order {p} not supported.")
    if input.dtype.category < dtypes.FLOATING and dtype is None:
        raise RuntimeError(
            f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtypes.scalar_name(input.dtype)}"
        )
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


@public(name="norm", function=False, fast_path=vector_norm_block, if_arrays=lambda _d: _d is F32 or _d is F64, ord=2.0)
def norm_method(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """Return the ``p``-norm of ``input`` over ``dim``; see :func:`norm`."""
    return norm(input, p, dim, keepdim, None, dtype)


@op(name="logsumexp_block", backward="LogsumexpBackward0", opmath=True, function=False, method=False)
def logsumexp_block(np: Any, self: Any, /, dim: Any, keepdim: bool) -> Any:
    """Return ``log(sum(exp(self)))`` over the dimensions ``dim``, computed without overflow."""
    if self.dtype.kind in "biu":
        self = self.astype(np.float32)
    return softmax.logsumexp(np, self, dim, keepdim)


logsumexp_block.derivative(
    self=lambda F, g, self, out, self_shape, dim, keepdim: (
        restore_dims(F, g, self_shape, dim, keepdim) * F.exp(self - restore_dims(F, out, self_shape, dim, keepdim))
    )
)


@exported("special")
@public(fast_path=logsumexp_block)
def logsumexp(input: Tensor, dim: Any, keepdim: bool = False, *, out: Any = None) -> Tensor:
    """Return ``log(sum(exp(input)))`` over ``dim``, an int or a tuple of ints, computed without overflow.

    >>> import retrograd as torch
    >>> torch.logsumexp(torch.tensor([0.0, 0.0]), 0)
    tensor(0.6931)
    """
    return logsumexp_block(input, dim, keepdim)
