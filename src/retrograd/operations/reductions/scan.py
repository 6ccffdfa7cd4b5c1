"""Cumulative operations along a dimension: ``cumsum``, ``cumprod``, ``cummax``, ``logcumsumexp``, ``trapezoid``.

The derivatives of products such as ``cumprod``, and of ``logcumsumexp``, are computed by a linear recurrence,
``s[k] = summand[k] + factor[k] * s[k - 1]`` (``kernels/scan.py``). The gradient of the recurrence is computed by a
recurrence in the opposite direction. Therefore these operations can be differentiated any number of times. The
recurrence contains no division, so that factors may be 0.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import dtypes
from ...core.tensor import Tensor, normalize_dim
from ...dispatch.declare import op, pointwise, public
from ...dispatch.generic_path import modify
from ...dispatch.operand_promotion import F32
from ...dispatch.return_types import named
from ...kernels import scan
from ...kernels.reductions import upcast_integers
from ..elementwise.arithmetic import add, mul, sub
from ..shape.slicing import select_block, slice_block
from ..shape.views import reshape
from .sums import sum

# -- Shifts and recurrences ------------------------------------------------------------------------------------------


@op(function=False, method=False, linear=True)
def shifted(np: Any, self: Any, /, dim: int, by: int, fill: float) -> Any:
    """Return ``self`` shifted by one index along ``dim``: to higher indices if ``by`` is 1, to lower indices if -1.

    The first slice (``by=1``) or the last slice (``by=-1``) of the result is filled with ``fill``.
    """
    return scan.shift_by_one(np, self, dim, by, fill)


shifted.derivative(self=lambda F, g, dim, by: F.shifted(g, dim, -by, 0))


@op(function=False, method=False, opmath=True, vmap="leading")
def recurrence(np: Any, summand: Any, factor: Any, /, dim: int, backward: bool) -> Any:
    """Return ``s``, the solution of the recurrence ``s[k] = summand[k] + factor[k] * s[k - 1]`` along ``dim``.

    If ``backward`` is true, the recurrence is ``s[k] = summand[k] + factor[k + 1] * s[k + 1]``.
    """
    return scan.recurrence(np, factor, summand, dim, backward)


def _factor_rule(F: Any, g: Any, factor: Any, out: Any, dim: int, backward: bool) -> Any:
    ahead = F.recurrence(g, factor, dim, not backward)
    return F.shifted(ahead, dim, 1, 0) * out if backward else ahead * F.shifted(out, dim, 1, 0)


recurrence.derivative(
    summand=lambda F, g, factor, dim, backward: F.recurrence(g, factor, dim, not backward), factor=_factor_rule
)


# -- Cumulative sums and products ------------------------------------------------------------------------------------


def _accumulated(np: Any, x: Any, dim: int, product: bool) -> Any:
    """Return the cumulative sum of ``x`` along ``dim``, or the cumulative product if ``product`` is true."""
    if x.dtype in dtypes.HALF_PRECISION:  # calls by derivative rules: a cumulative sum of ones in bfloat16 stops at 256
        return _accumulated(np, x.astype(np.float32), dim, product).astype(x.dtype)
    x = upcast_integers(np, x)
    if not x.ndim:
        normalize_dim(dim, 0)
        return x.copy()
    return scan.running(np, x, dim, product)


@op(
    name="cumsum_block", backward="CumsumBackward0", opmath=True, function=False, method=False, linear=True,
    inline=lambda self, dim, _d: scan.float32_sums(numpy, self, dim) if _d is F32 and self.ndim else None,
)  # fmt: skip
def cumsum_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return the cumulative sum of ``self`` along ``dim``."""
    return _accumulated(np, self, dim, False)


cumsum_block.derivative(self=lambda F, g, dim: F.cumsum_reversed(g, dim))


@op(function=False, method=False, linear=True, opmath=True)
def cumsum_reversed(np: Any, self: Any, /, dim: int) -> Any:
    """Return the cumulative sum of ``self`` along ``dim`` from the last element to the first."""
    if not self.ndim:
        return self.copy()
    return scan.running_back(np, self, dim)


cumsum_reversed.derivative(self=lambda F, g, dim: F.cumsum_block(g, dim))


@op(name="cumprod_block", backward="CumprodBackward0", opmath=True, function=False, method=False)
def cumprod_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return the cumulative product of ``self`` along ``dim``."""
    return _accumulated(np, self, dim, True)


def _cumprod_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: int) -> Any:
    """Return the gradient of ``cumprod`` with respect to ``self``.

    ``g`` is the gradient of the result ``out``. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on
    arrays. The gradient of element k is ``out[k - 1] * s[k]``, where s is the recurrence
    ``s[k] = g[k] + self[k + 1] * s[k + 1]`` along ``dim``.
    """
    return F.masked_product(F.recurrence(g, self, dim, True), F.shifted(out, dim, 1, 1)) if self_shape else g


cumprod_block.derivative(self=_cumprod_rule)


def _scan(name: str, block: Any, title: str) -> Any:
    """Define ``torch.cumsum`` or ``torch.cumprod`` and its in-place method, and return the function.

    ``name`` is "cumsum" or "cumprod". ``block`` is the internal operation that computes the result. ``title`` is "sum"
    or "product", for the docstring.
    """

    def cumulative(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
        result = block(input if dtype is None else input.to(dtype), _int_dimension(name, dim, input))
        if dtype is dtypes.bool_:
            raise dtypes.unsupported(f"{name}_out_cpu", dtype.numpy)
        return result if dtype in (None, result.dtype) else result.to(dtype)

    def in_place(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        axis = _int_dimension(name, dim, input)
        if dtype not in (None, input.dtype):
            a, b = (dtypes.scalar_name(each).lower() for each in (input.dtype, dtype))
            raise RuntimeError(f"Bad in-place call: input tensor dtype {a} and output tensor dtype {b} should match")
        if input.dtype is dtypes.bool_:
            raise dtypes.unsupported(f"{name}_out_cpu", input._array.dtype)
        return modify(block.op, (input,), (axis,))

    for function, public_name, doc in (
        (
            cumulative,
            name,
            f"Return the cumulative {title} of ``input`` along ``dim``, in ``dtype`` (by default int64 for integers).",
        ),
        (in_place, name + "_", f"Overwrite ``input`` with the result of :func:`{name}`, and return ``input``."),
    ):
        function.__name__ = function.__qualname__ = public_name
        function.__doc__ = doc
        shortcut = {"fast_path": block, "when": lambda dim: dim.__class__ is int} if function is cumulative else {}
        public(name=public_name, function=function is cumulative, **shortcut)(function)
    return cumulative


def _int_dimension(name: str, dim: Any, input: Tensor) -> int:
    """Return ``dim``, the argument of a cumulative operation on ``input``, as a non-negative int.

    Raises TypeError if ``dim`` is not an int, and IndexError if ``dim`` is out of range. ``name`` is the name of the
    function in the error message.
    """
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    return normalize_dim(dim, input._array.ndim)


cumsum = _scan("cumsum", cumsum_block, "sum")
cumprod = _scan("cumprod", cumprod_block, "product")


# -- The product of all other elements: the derivative of a product --------------------------------------------------


@op(function=False, method=False)
def product_of_others(np: Any, self: Any, /, dim: int) -> Any:
    """Return, for each element of ``self``, the product of all other elements along ``dim``.

    This is the derivative of ``prod`` with respect to the element. The products are computed without division and are
    therefore correct even if elements are 0.
    """
    return scan.products_of_others(np, self, dim)


def _others_rule(F: Any, g: Any, self: Any, dim: int) -> Any:
    """Return the gradient of ``product_of_others(self, dim)`` with respect to ``self``.

    ``g`` is the gradient of the products. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on arrays.
    Each product has two factors: the product of the elements at lower indices and the product of the elements at higher
    indices. The gradient is the sum of the gradients through the two factors.
    """
    turned = F.flip_block(self, (dim,))
    ahead, behind = F.cumprod_block(self, dim), F.cumprod_block(turned, dim)
    before, after = F.shifted(ahead, dim, 1, 1), F.shifted(behind, dim, 1, 1)
    one = F.recurrence(F.shifted(g * F.flip_block(after, (dim,)), dim, -1, 0), self, dim, True)
    other = F.recurrence(
        F.shifted(F.flip_block(g, (dim,)) * F.flip_block(before, (dim,)), dim, -1, 0), turned, dim, True
    )
    return before * one + F.flip_block(after * other, (dim,))


product_of_others.derivative(self=_others_rule)


# -- Cumulative extremes ---------------------------------------------------------------------------------------------


def _cumulative_extreme(name: str, title: str) -> None:
    """Define ``torch.cummax`` or ``torch.cummin``, and the internal operation that computes its result.

    ``name`` is "cummax" or "cummin", and ``title`` is "maximum" or "minimum", for the docstrings.
    """

    def kernel(np: Any, self: Any, /, dim: int) -> Any:
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_cpu", self.dtype)
        if self.ndim == 0:
            return self.copy(), np.asarray(0)
        best = (np.maximum if name == "cummax" else np.minimum).accumulate(self, axis=dim)
        here = np.arange(self.shape[dim]).reshape((-1,) + (1,) * (self.ndim - dim - 1))
        # The last index so far with the cumulative extreme; a nan is one.
        index = np.maximum.accumulate(np.where((self == best) | (self != self), here, -1), axis=dim)
        return np.ascontiguousarray(best), np.ascontiguousarray(index)

    kernel.__name__ = name + "_block"
    kernel.__doc__ = (
        f"Return the cumulative {title} of ``self`` along ``dim`` and the index of its last occurrence so far."
    )
    block = op(
        backward=f"{name.capitalize()}Backward0", outputs=("values", "indices"), differentiable=1, function=False,
        method=False,
    )(kernel)  # fmt: skip
    block.derivative(self=lambda F, g, indices, self_shape, dim: F.add_along(g, indices, self_shape, dim))
    result = named(name, ("values", "indices"))

    def function(input: Tensor, dim: int, *, out: Any = None) -> Any:
        array = input._array
        if not array.ndim and dim not in (-1, 0):
            raise IndexError(f"{name}(): Expected reduction dim -1 or 0 for scalar but got {dim}")
        return result(block(input, normalize_dim(dim, array.ndim) if array.size else 0))  # not checked without elements

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Return the named tuple (values, indices) of the cumulative {title} of ``input`` along ``dim``."
    public(name=name)(function)


@op(function=False, method=False, linear=True, opmath=True, vmap="leading")
def add_along(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Return zeros of ``shape`` to which the elements of ``self`` are added at the indices ``index`` along ``dim``.

    Elements with equal indices are summed.
    """
    if not shape:
        return self.reshape(shape)
    out = np.zeros(shape, self.dtype)
    indices = [np.arange(n).reshape((-1,) + (1,) * (self.ndim - axis - 1)) for axis, n in enumerate(self.shape)]
    indices[dim] = index
    np.add.at(out, tuple(indices), self)
    return out


add_along.derivative(self=lambda F, g, index, dim: F.take_along(g, index, dim))
_cumulative_extreme("cummax", "maximum")
_cumulative_extreme("cummin", "minimum")


# -- logcumsumexp ----------------------------------------------------------------------------------------------------


@op(name="logcumsumexp_block", backward="LogcumsumexpBackward0", opmath=True, function=False, method=False)
def logcumsumexp_block(np: Any, self: Any, /, dim: int) -> Any:
    """Return ``log(cumsum(exp(self)))`` along ``dim``, computed without overflow."""
    if self.dtype.kind in "biu":
        raise dtypes.unsupported("logcumsumexp_out_cpu", self.dtype)
    return np.ascontiguousarray(scan.log_running_sum(np, self, dim)) if self.ndim else self.copy()


def _logcumsumexp_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: int) -> Any:
    """Return the gradient of ``logcumsumexp`` with respect to ``self``.

    ``g`` is the gradient of the result ``out``. ``F`` is a namespace of operations (``F.matmul``, …) on tensors or on
    arrays. The gradient of element k is ``exp(self[k] - out[k]) * s[k]``, where s is the recurrence
    ``s[k] = g[k] + exp(out[k] - out[k + 1]) * s[k + 1]`` along ``dim``. The factors of s are at most 1 for real
    elements.
    """
    if not self_shape:
        return g
    finite = F.masked_fill_scalar(out, F.real(out) == -math.inf, 0)
    before = F.shifted(out, dim, 1, 0)
    beyond = (F.real(before) == math.inf) & (F.real(out) == math.inf)  # inf - inf: the factor is exp(0)
    steps = F.exp(F.masked_fill_scalar(before - finite, beyond, 0))
    return F.exp(self - finite) * F.recurrence(g, steps, dim, True)


logcumsumexp_block.derivative(self=_logcumsumexp_rule)


@public()
def logcumsumexp(input: Tensor, dim: int, *, out: Any = None) -> Tensor:
    """Return ``log(cumsum(exp(input)))`` along ``dim``, computed without overflow."""
    return logcumsumexp_block(input, normalize_dim(dim, input._array.ndim))


# -- The trapezoidal rule --------------------------------------------------------------------------------------------


@pointwise(lambda g, number: g * number, floats=True, backward="MulBackward1", function=False, method=False,
           in_place=False)  # fmt: skip
def times_number(np: Any, self: Any, /, number: float) -> Any:
    """Return ``self * number`` elementwise, for a Python number.

    The name of the node in the autograd graph is ``MulBackward1``. PyTorch's graphs of functions such as ``trapezoid``
    have this node, so that these functions call this operation and not ``mul``.
    """
    return self * self.dtype.type(number)


@pointwise(lambda g, number: g / number, floats=True, backward="DivBackward1", function=False, method=False,
           in_place=False)  # fmt: skip
def by_number(np: Any, self: Any, /, number: float) -> Any:
    """Return ``self / number`` elementwise, for a Python number.

    The name of the node in the autograd graph is ``DivBackward1``. PyTorch's graphs of functions such as ``trapezoid``
    have this node, so that these functions call this operation and not ``div``.
    """
    return self / self.dtype.type(number)


def _samples(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> int:
    """Check the arguments of ``trapezoid`` or ``cumulative_trapezoid`` and return ``dim`` as a non-negative int.

    Raises PyTorch's errors for invalid arguments. ``name`` is the name of the function in the error message.
    """
    axis = normalize_dim(dim, y._array.ndim, wrap_scalar=False)
    if y.dtype is dtypes.bool_ and (y._array.shape[axis] or name != "trapezoid"):
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is not None and x.dtype is dtypes.bool_:
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    if x is not None and x._array.ndim == 1 and x._array.shape[0] != y._array.shape[axis]:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    return axis


def _widths(x: Tensor, y: Tensor, axis: int) -> Tensor:
    """Return the differences of neighbouring coordinates ``x`` along ``axis``, for ``trapezoid``.

    These are the widths of the trapezoids. ``y`` is the tensor to integrate. The result has at least as many dimensions
    as ``y``, so that it broadcasts with slices of ``y``.
    """
    ndim = y._array.ndim
    if x._array.ndim == 1:
        x = reshape(x, [-1 if at == axis else 1 for at in range(ndim)])
    elif x._array.ndim < ndim:
        x = reshape(x, (*(1,) * (ndim - x._array.ndim), *x._array.shape))
    return sub(*_neighbours(x, axis))


def _neighbours(y: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """Return two slices of ``y`` along ``axis``: all elements but the first, and all elements but the last."""
    size = y._array.shape[axis]
    return slice_block(y, axis, 1, size, 1), slice_block(y, axis, 0, max(size - 1, 0), 1)


@public(method=False)
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral of ``y`` along ``dim`` by the trapezoidal rule.

    ``x`` is the tensor of the coordinates at which ``y`` is given. Without ``x``, the coordinates have the constant
    distance ``dx`` (default 1).

    >>> import retrograd as torch
    >>> torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return _trapezoid("trapezoid", y, x, dx, dim)


@public(method=False)
def trapz(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the integral of ``y`` along ``dim`` by the trapezoidal rule (older name of :func:`trapezoid`).

    ``x`` is the tensor of the coordinates at which ``y`` is given. Without ``x``, the coordinates have the constant
    distance ``dx`` (default 1).
    """
    return _trapezoid("trapezoid", y, x, dx, dim)


def _coordinates(name: str, x: Any, dx: Any) -> tuple[Any, Any]:
    """Return the tuple (coordinates, distance) from the arguments ``x`` and ``dx`` of ``trapezoid``.

    If ``x`` is a tensor, it holds the coordinates. If ``x`` is a number, it is the distance, and the coordinates are
    None. If ``x`` is None, the distance is ``dx``, or 1 if ``dx`` is None. Raises TypeError if both a tensor ``x`` and
    ``dx`` are passed. ``name`` is the name of the function in the error message.
    """
    if x is not None and not isinstance(x, Tensor):
        x, dx = None, x
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, dx={type(dx).__name__}), but "
            "expected one of:"
        )
    if isinstance(dx, bool):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    return x, 1 if dx is None else dx


def _trapezoid(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> Tensor:
    """Return the integral of ``y`` along ``dim`` by the trapezoidal rule.

    ``x`` and ``dx`` are the arguments of ``trapezoid``. ``name`` is the name of the function in error messages.
    """
    x, dx = _coordinates(name, x, dx)
    axis = _samples(name, y, x, dx, dim)
    shape = y._array.shape
    size = shape[axis]
    if size == 0:
        return y.new_zeros((*shape[:axis], *shape[axis + 1 :]))
    if x is not None:
        after, before = _neighbours(y, axis)
        return by_number(sum(mul(add(before, after), _widths(x, y, axis)), axis), 2)
    ends = times_number(add(select_block(y, axis, 0), select_block(y, axis, size - 1)), 0.5)
    return times_number(sub(sum(y, axis), ends), dx)


@public(method=False)
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """Return the cumulative integral of ``y`` along ``dim`` by the trapezoidal rule.

    ``x`` is the tensor of the coordinates at which ``y`` is given. Without ``x``, the coordinates have the constant
    distance ``dx`` (default 1). Along ``dim``, the result has one element less than ``y``.

    >>> import retrograd as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    x, dx = _coordinates("cumulative_trapezoid", x, dx)
    if not y._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = _samples("cumulative_trapezoid", y, x, dx, dim)
    after, before = _neighbours(y, axis)
    total = add(before, after)
    if x is not None:
        return by_number(cumsum_block(mul(total, _widths(x, y, axis)), axis), 2)
    return cumsum_block(times_number(total, dx / 2), axis)
