"""Scans: running sums, products, extremes and integrals along a dimension, and the product of all elements but one.

What has a factor and a summand at every step is one recurrence (``kernels/scan.py``), whose derivative is a
recurrence from the far end: so these can be differentiated as often as one likes, zeros among the factors or not.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...core import dtypes
from ...core.tensor import Tensor, dimension
from ...dispatch.declare import op, pointwise, public
from ...dispatch.generic_path import modify
from ...dispatch.return_types import named
from ...kernels import reductions_numba, scan
from ...kernels.gather_scatter import flipped
from ...kernels.numba_dispatch import LARGE
from ..elementwise.arithmetic import add, mul, sub
from ..shape.slicing import select_block, slice_block
from ..shape.views import reshape
from .dims import WHOLE
from .sums import sum, upcast_integers

# -- Steps -----------------------------------------------------------------------------------------------------------


@op(function=False, method=False, linear=True)
def shifted(np: Any, self: Any, /, dim: int, by: int, fill: float) -> Any:
    """The elements moved on by one place along ``dim`` (``by`` 1, or -1 for back), the free place filled."""
    return scan.shifted(np, self, dim, by, fill)


shifted.derivative(self=lambda F, g, dim, by: F.shifted(g, dim, -by, 0))


@op(function=False, method=False, opmath=True)
def recurrence(np: Any, summand: Any, factor: Any, /, dim: int, backward: bool) -> Any:
    """``s[k] = summand[k] + factor[k] * s[k - 1]``; ``backward``: ``s[k] = summand[k] + factor[k + 1] * s[k + 1]``."""
    return scan.recurrence(np, summand, factor, dim, backward)


def _factor_rule(F: Any, g: Any, factor: Any, out: Any, dim: int, backward: bool) -> Any:
    ahead = F.recurrence(g, factor, dim, not backward)
    return F.shifted(ahead, dim, 1, 0) * out if backward else ahead * F.shifted(out, dim, 1, 0)


recurrence.derivative(
    summand=lambda F, g, factor, dim, backward: F.recurrence(g, factor, dim, not backward), factor=_factor_rule
)


# -- Running sums and products ---------------------------------------------------------------------------------------


_LONGER = {"f": numpy.float64, "F": numpy.complex128}  # these are calculated in twice the precision, as in PyTorch


def _accumulated(np: Any, ufunc: Any, x: Any, dim: int) -> Any:
    if x.dtype in dtypes.SHORT:  # a derivative's own: a running sum in bfloat16 stops at 256
        return _accumulated(np, ufunc, x.astype(np.float32), dim).astype(x.dtype)
    x = upcast_integers(np, x)
    if not x.ndim:
        dimension(dim, 0)
        return x.copy()
    if x.size >= LARGE and (found := reductions_numba.running(x, dim, ufunc is np.multiply)) is not None:
        return found
    longer = _LONGER.get(x.dtype.char)
    return ufunc.accumulate(x if longer is None else x.astype(longer), dim).astype(x.dtype, order="C", copy=False)


#: What needs no further checks, and is the most common.
_SHORT = (
    f"_d is F32 and self.ndim and self.size < {LARGE}",
    "running_sum(self.astype(WIDE), dim).astype(_d, 'C')",
    {"running_sum": numpy.add.accumulate, "WIDE": numpy.dtype(numpy.float64)},
)


@op(
    name="cumsum_block", backward="CumsumBackward0", opmath=True, function=False, method=False, linear=True, inline_expr=_SHORT
)  # fmt: skip
def cumsum_block(np: Any, self: Any, /, dim: int) -> Any:
    """Running sums along a dimension."""
    return _accumulated(np, np.add, self, dim)


cumsum_block.derivative(self=lambda F, g, dim: F.cumsum_reversed(g, dim))


@op(function=False, method=False, linear=True, opmath=True)
def cumsum_reversed(np: Any, self: Any, /, dim: int) -> Any:
    """Running sums from the far end."""
    if self.size >= LARGE and (found := reductions_numba.running(self, dim, False, True)) is not None:
        return found
    return flipped(cumsum_block.op.kernel(np, flipped(self, dim), dim), dim) if self.ndim else self.copy()


cumsum_reversed.derivative(self=lambda F, g, dim: F.cumsum_block(g, dim))


@op(name="cumprod_block", backward="CumprodBackward0", opmath=True, function=False, method=False)
def cumprod_block(np: Any, self: Any, /, dim: int) -> Any:
    """Running products along a dimension."""
    return _accumulated(np, np.multiply, self, dim)


def _cumprod_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: int) -> Any:
    """The product so far times what the steps ahead hand back."""
    return F.masked_product(F.recurrence(g, self, dim, True), F.shifted(out, dim, 1, 1)) if self_shape else g


cumprod_block.derivative(self=_cumprod_rule)


def _scan(name: str, block: Any, what: str) -> Any:
    """The function, the method and the in-place form of a running sum or product."""

    def running(input: Tensor, dim: int, *, dtype: Any = None, out: Any = None) -> Tensor:
        found = block(input if dtype is None else input.to(dtype), _whole(name, dim, input))
        if dtype is dtypes.bool_:
            raise dtypes.unsupported(f"{name}_out_cpu", dtype.numpy)
        return found if dtype in (None, found.dtype) else found.to(dtype)

    def in_place(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
        axis = _whole(name, dim, input)
        if dtype not in (None, input.dtype):
            a, b = (dtypes.scalar_name(each).lower() for each in (input.dtype, dtype))
            raise RuntimeError(f"Bad in-place call: input tensor dtype {a} and output tensor dtype {b} should match")
        if input.dtype is dtypes.bool_:
            raise dtypes.unsupported(f"{name}_out_cpu", input._array.dtype)
        return modify(block.op, (input,), (axis,))

    for made, title, doc in (
        (running, name, f"Running {what}s along ``dim``, of ``dtype`` if one is given; of integers as int64."),
        (in_place, name + "_", f"In-place version of :func:`{name}`."),
    ):
        made.__name__ = made.__qualname__ = title
        made.__doc__ = doc
        shortcut = {"fast_path": block, "when": WHOLE} if made is running else {}
        public(name=title, function=made is running, **shortcut)(made)
    return running


def _whole(name: str, dim: Any, input: Tensor) -> int:
    if not hasattr(dim, "__index__"):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    return dimension(dim, input._array.ndim)


cumsum = _scan("cumsum", cumsum_block, "sum")
cumprod = _scan("cumprod", cumprod_block, "product")


# -- The product of the others: the derivative of a product ----------------------------------------------------------


@op(function=False, method=False)
def product_of_others(np: Any, self: Any, /, dim: int) -> Any:
    """For each element the product of the others along ``dim``: right where zeros are too."""
    if self.size >= LARGE and (found := reductions_numba.products_of_others(self, dim)) is not None:
        return found
    before = scan.shifted(np, self.cumprod(dim), dim, 1, 1)
    after = scan.shifted(np, np.flip(np.flip(self, dim).cumprod(dim), dim), dim, -1, 1)
    return before * after


def _others_rule(F: Any, g: Any, self: Any, dim: int) -> Any:
    """Through the products before each element, and through those after it."""
    turned = F.flip_block(self, (dim,))
    ahead, behind = F.cumprod_block(self, dim), F.cumprod_block(turned, dim)
    before, after = F.shifted(ahead, dim, 1, 1), F.shifted(behind, dim, 1, 1)
    one = F.recurrence(F.shifted(g * F.flip_block(after, (dim,)), dim, -1, 0), self, dim, True)
    other = F.recurrence(
        F.shifted(F.flip_block(g, (dim,)) * F.flip_block(before, (dim,)), dim, -1, 0), turned, dim, True
    )
    return before * one + F.flip_block(after * other, (dim,))


product_of_others.derivative(self=_others_rule)


# -- Running extremes ------------------------------------------------------------------------------------------------


def _running(name: str, what: str) -> None:
    def kernel(np: Any, self: Any, /, dim: int) -> Any:
        if self.dtype.kind == "c":
            raise dtypes.unsupported(f"{name}_cpu", self.dtype)
        if self.ndim == 0:
            return self.copy(), np.asarray(0)
        best = (np.maximum if name == "cummax" else np.minimum).accumulate(self, axis=dim)
        here = np.arange(self.shape[dim]).reshape((-1,) + (1,) * (self.ndim - dim - 1))
        # The last place so far that holds the running extreme.
        index = np.maximum.accumulate(np.where((self == best) | (self != self), here, -1), axis=dim)
        return np.ascontiguousarray(best), np.ascontiguousarray(index)

    kernel.__name__ = name + "_block"
    kernel.__doc__ = f"The {what} element so far along a dimension, and where it is."
    block = op(
        backward=f"{name.capitalize()}Backward0", outputs=("values", "indices"), differentiable=1, function=False,
        method=False,
    )(kernel)  # fmt: skip
    block.derivative(self=lambda F, g, indices, self_shape, dim: F.add_along(g, indices, self_shape, dim))
    result = named(name, ("values", "indices"))

    def surfaced(input: Tensor, dim: int, *, out: Any = None) -> Any:
        return result(block(input, dimension(dim, input._array.ndim)))

    surfaced.__name__ = surfaced.__qualname__ = name
    surfaced.__doc__ = f"The {what} element so far along ``dim``, and its index."
    public(name=name)(surfaced)


@op(function=False, method=False, linear=True, opmath=True)
def add_along(np: Any, self: Any, index: Any, /, shape: tuple[int, ...], dim: int) -> Any:
    """Zeros of ``shape`` to which ``self`` is added at ``index`` along ``dim``."""
    if not shape:
        return self.reshape(shape)
    out = np.zeros(shape, self.dtype)
    places = [np.arange(n).reshape((-1,) + (1,) * (self.ndim - axis - 1)) for axis, n in enumerate(self.shape)]
    places[dim] = index
    np.add.at(out, tuple(places), self)
    return out


add_along.derivative(self=lambda F, g, index, dim: F.take_along(g, index, dim))
_running("cummax", "largest")
_running("cummin", "smallest")


# -- In logarithms ---------------------------------------------------------------------------------------------------


@op(name="logcumsumexp_block", backward="LogcumsumexpBackward0", opmath=True, function=False, method=False)
def logcumsumexp_block(np: Any, self: Any, /, dim: int) -> Any:
    """``log(cumsum(exp(x)))`` without overflow."""
    if self.dtype.kind in "biu":
        raise dtypes.unsupported("logcumsumexp_out_cpu", self.dtype)
    return np.ascontiguousarray(scan.log_running_sum(np, self, dim)) if self.ndim else self.copy()


def _logcumsumexp_rule(F: Any, g: Any, self: Any, out: Any, self_shape: Any, dim: int) -> Any:
    """``exp(x[k] - out[k])`` times what is handed back; a step ahead counts ``exp(out[k - 1] - out[k])``, at most 1."""
    if not self_shape:
        return g
    finite = F.masked_fill_scalar(out, F.real(out) == -math.inf, 0)
    before = F.shifted(out, dim, 1, 0)
    beyond = (F.real(before) == math.inf) & (F.real(out) == math.inf)  # which nothing adds to
    steps = F.exp(F.masked_fill_scalar(before - finite, beyond, 0))
    return F.exp(self - finite) * F.recurrence(g, steps, dim, True)


logcumsumexp_block.derivative(self=_logcumsumexp_rule)


@public()
def logcumsumexp(input: Tensor, dim: int, *, out: Any = None) -> Tensor:
    """``log(cumsum(exp(x)))`` along ``dim`` without overflow."""
    return logcumsumexp_block(input, dimension(dim, input._array.ndim))


# -- Integrals by trapezoids -----------------------------------------------------------------------------------------


@pointwise(lambda g, number: g * number, floats=True, backward="MulBackward1", function=False, method=False,
           in_place=False)  # fmt: skip
def times_number(np: Any, self: Any, /, number: float) -> Any:
    """The elements times a number."""
    return self * self.dtype.type(number)


@pointwise(lambda g, number: g / number, floats=True, backward="DivBackward1", function=False, method=False,
           in_place=False)  # fmt: skip
def by_number(np: Any, self: Any, /, number: float) -> Any:
    """The elements divided by a number."""
    return self / self.dtype.type(number)


def _samples(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> int:
    """The dimension along which to integrate, where there is something to be integrated."""
    axis = dimension(dim, y._array.ndim, wrap_scalar=False)
    if y.dtype is dtypes.bool_:
        raise RuntimeError(f"{name}: received a bool input for `y`, but bool is not supported")
    if x is not None and x.dtype is dtypes.bool_:
        raise RuntimeError(f"{name}: received a bool input for `x`, but bool is not supported")
    if isinstance(dx, complex):
        raise RuntimeError(f"{name}: Currently, we only support dx as a real number.")
    if x is not None and x._array.ndim == 1 and x._array.shape[0] != y._array.shape[axis]:
        raise RuntimeError(f"{name}: There must be one `x` value for each sample point")
    return axis


def _widths(x: Tensor, y: Tensor, axis: int) -> Tensor:
    """The distances of the places ``x``, shaped so that they go with ``y``."""
    ndim = y._array.ndim
    if x._array.ndim == 1:
        x = reshape(x, [-1 if at == axis else 1 for at in range(ndim)])
    elif x._array.ndim < ndim:
        x = reshape(x, (*(1,) * (ndim - x._array.ndim), *x._array.shape))
    return sub(*_neighbours(x, axis))


def _neighbours(y: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    """All elements but the first, and all but the last."""
    size = y._array.shape[axis]
    return slice_block(y, axis, 1, size, 1), slice_block(y, axis, 0, max(size - 1, 0), 1)


@public(method=False)
def trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along ``dim`` by trapezoids, of samples at the places ``x`` or ``dx`` (1) apart.

    >>> import retrograd as torch
    >>> torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return _trapezoid("trapezoid", y, x, dx, dim)


@public(method=False)
def trapz(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The older name of :func:`trapezoid`."""
    return _trapezoid("trapezoid", y, x, dx, dim)


def _given(name: str, x: Any, dx: Any) -> tuple[Any, Any]:
    if x is not None and not isinstance(x, Tensor):
        x, dx = None, x
    if x is not None and dx is not None:
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got (Tensor, Tensor, dx={type(dx).__name__}), but "
            "expected one of:"
        )
    return x, 1 if dx is None else dx


def _trapezoid(name: str, y: Tensor, x: Any, dx: Any, dim: int) -> Tensor:
    x, dx = _given(name, x, dx)
    axis = _samples(name, y, x, dx, dim)
    if x is not None:
        after, before = _neighbours(y, axis)
        return by_number(sum(mul(add(before, after), _widths(x, y, axis)), axis), 2)
    size = y._array.shape[axis]
    if size == 0:
        return times_number(sum(y, axis), 1)
    ends = mul(add(select_block(y, axis, 0), select_block(y, axis, size - 1)), 0.5)
    return times_number(sub(sum(y, axis), ends), dx)


@public(method=False)
def cumulative_trapezoid(y: Tensor, x: Any = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The running integral along ``dim`` by trapezoids: one element less than there are samples.

    >>> import retrograd as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    x, dx = _given("cumulative_trapezoid", x, dx)
    if not y._array.ndim:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    axis = _samples("cumulative_trapezoid", y, x, dx, dim)
    after, before = _neighbours(y, axis)
    total = add(before, after)
    if x is not None:
        return by_number(cumsum_block(mul(total, _widths(x, y, axis)), axis), 2)
    return cumsum_block(times_number(total, dx / 2), axis)
