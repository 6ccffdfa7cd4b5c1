"""Kernels of elementwise operations that are more than one ufunc or have a Numba loop of their own.

They are the kernels of arithmetic, powers, signs, sigmoid, clamp, where and masks. Activations are in
``kernels/activations.py``. Operations that are one NumPy ufunc, such as exp, are not defined here; ``for_ufunc`` in
``kernels/numba_dispatch.py`` selects the Numba loops for them.
"""

from __future__ import annotations

import math
from operator import setitem
from typing import Any

import numpy

from ..core.dtypes import HALF_PRECISION, cast, number_to_array
from .numba_dispatch import into, looped, multiply, negative
from .numpy_internals import where
from .scipy_backend import special
from .select import NUMBA, at_least, elementwise_loop, kernel
from .thresholds import BRANCHES, LARGE, LARGE_ERF

# -- Arithmetic ------------------------------------------------------------------------------------------------------


@kernel(elementwise_loop("add_scaled", 2))
def add_scaled(np: Any, x: Any, y: Any, alpha: float) -> Any:
    """Return ``x + alpha * y`` for floating-point arrays of one dtype."""
    return np.add(x, y if alpha == 1 else np.multiply(y, np.asarray(alpha, y.dtype)))


def add_scaled_into(x: Any, y: Any, alpha: float) -> bool:
    """Add ``alpha * y`` to the large array ``x`` in place by a Numba loop; return whether that was possible."""
    return y is not x and into("add_scaled_into", x, y, numbers=(alpha,))


@at_least(LARGE, NUMBA)
def _square_by_loop(np: Any, x: Any) -> Any:
    return multiply(x, x)


@kernel(_square_by_loop)
def square(np: Any, x: Any) -> Any:
    """Return ``x * x`` elementwise."""
    return np.multiply(x, x)


@at_least(LARGE, NUMBA)
def _negate_by_loop(np: Any, x: Any) -> Any:
    return negative(x)


@kernel(_negate_by_loop)
def negate(np: Any, x: Any) -> Any:
    """Return ``-x`` elementwise."""
    return np.negative(x)


@kernel(elementwise_loop("cube"))
def cube(np: Any, x: Any) -> Any:
    """Return ``x * x * x`` elementwise."""
    return x * x * x


@kernel(elementwise_loop("rsqrt"))
def rsqrt(np: Any, x: Any) -> Any:
    """Return ``1 / sqrt(x)`` elementwise."""
    return np.divide(1, np.sqrt(x))


@kernel(elementwise_loop("reciprocal"))
def reciprocal(np: Any, x: Any) -> Any:
    """Return ``1 / x`` elementwise."""
    return np.divide(1, x)


@kernel(elementwise_loop("lerp", 2))
def lerp(np: Any, x: Any, end: Any, weight: float) -> Any:
    """Return ``x + weight * (end - x)`` elementwise."""
    return x + weight * (end - x)


@at_least(LARGE, NUMBA)
def _addcmul_by_loop(np: Any, x: Any, y: Any, z: Any, value: Any) -> Any:
    return looped("addcmul", x, y, z, numbers=(value,)) if value.__class__ in (int, float) else None


@kernel(_addcmul_by_loop)
def addcmul(np: Any, x: Any, y: Any, z: Any, value: Any) -> Any:
    """Return ``x + value * y * z`` elementwise."""
    return x + y * z if value == 1 else x + np.asarray(value).astype(x.dtype) * y * z


# -- Signs -----------------------------------------------------------------------------------------------------------


@kernel(elementwise_loop("sign"))
def sign(np: Any, x: Any) -> Any:
    """Return the sign of each element of ``x``, which must not be complex. The sign of nan is 0."""
    signs = np.sign(x)
    return np.where(x != x, 0, signs).astype(x.dtype) if x.dtype.kind in "fV" else signs


# -- Functions -------------------------------------------------------------------------------------------------------


@kernel(elementwise_loop("log1p"))
def log1p(np: Any, x: Any) -> Any:
    """Return ``log(1 + x)`` elementwise."""
    return np.log1p(x)


@kernel(elementwise_loop("erf", least=LARGE_ERF))
def erf(np: Any, x: Any) -> Any:
    """Return the error function of each element of ``x``."""
    return special(np, "erf", x)


@kernel(elementwise_loop("tanh_backward", 2))
def tanh_gradient(np: Any, grad: Any, out: Any) -> Any:
    """Return ``grad * (1 - out * out)``, the gradient of tanh with respect to its input."""
    return grad * np.subtract(1, np.multiply(out, out))


@at_least(LARGE, NUMBA)
def _sigmoid_by_loop(np: Any, x: Any, one: Any) -> Any:
    return looped("sigmoid", x)


@kernel(_sigmoid_by_loop)
def sigmoid(np: Any, x: Any, one: Any = 1) -> Any:
    """Return ``1 / (1 + exp(-x))`` elementwise.

    ``one`` is 1, as a Python number or as a 0-d array, which NumPy adds faster.
    """
    return np.reciprocal(np.add(np.exp(np.negative(x)), one))


@kernel(elementwise_loop("sigmoid_backward", 2))
def sigmoid_gradient(np: Any, grad: Any, out: Any) -> Any:
    """Return ``grad * (1 - out) * out``, the gradient of sigmoid with respect to its input."""
    return grad * np.subtract(1, out) * out


# -- Bounds ----------------------------------------------------------------------------------------------------------


@kernel(elementwise_loop("relu"))
def relu(np: Any, x: Any) -> Any:
    """Return ``max(0, x)`` elementwise."""
    return np.maximum(np.asarray(0, x.dtype), x)  # in this order -0.0 is preserved


@kernel(elementwise_loop("above", 2, least=BRANCHES))
def threshold_gradient(np: Any, grad: Any, x: Any, threshold: float) -> Any:
    """Return 0 where ``x <= threshold``, and ``grad`` elsewhere."""
    return keep(np, grad, np.logical_not(x <= threshold))


def bound_of(np: Any, value: Any, dtype: Any) -> Any:
    """Return ``value``, a number that is a bound of ``clamp``, as an array or scalar of ``dtype``.

    Raise RuntimeError if ``dtype`` cannot hold ``value``.
    """
    if dtype.kind == "f" and (-65504 <= value <= 65504 or value - value != 0):  # inf and nan are in all ranges
        return np.asarray(value, dtype)
    return number_to_array(value, dtype)[()] if dtype.kind in "iuf" else np.asarray(value).astype(dtype)


def _bounds(low: Any, high: Any) -> tuple[Any, Any]:
    return (-math.inf if low is None else low, math.inf if high is None else high)


@at_least(LARGE, NUMBA)
def _clamp_by_loop(np: Any, x: Any, low: Any, high: Any) -> Any:
    bounds = _bounds(low, high)
    return looped("clamp", x, numbers=bounds) if x.dtype.kind == "f" and bounds[0] <= bounds[1] else None


@kernel(_clamp_by_loop)
def clamp(np: Any, x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` with each element clamped to the range from ``low`` to ``high``. A bound of None is ignored."""
    if low is not None:
        x = np.maximum(x, bound_of(np, low, x.dtype))
    return x if high is None else np.minimum(x, bound_of(np, high, x.dtype))


@at_least(BRANCHES, NUMBA)
def _clamp_gradient_by_loop(np: Any, grad: Any, x: Any, low: Any, high: Any) -> Any:
    return looped("within", grad, x, numbers=_bounds(low, high)) if x.dtype.kind == "f" else None


@kernel(_clamp_gradient_by_loop)
def clamp_gradient(np: Any, grad: Any, x: Any, low: Any, high: Any) -> Any:
    """Return ``grad`` where ``low <= x <= high``, and 0 elsewhere. A bound of None is ignored."""
    if low is None:
        inside = x <= high
    else:
        inside = (x >= low) if high is None else (x >= low) & (x <= high)
    return keep(np, grad, inside)


# -- Masks -----------------------------------------------------------------------------------------------------------


#: Integers of the size of an element, as which elements are chosen by bitwise operations.
INTEGERS = {1: numpy.int8, 2: numpy.int16, 4: numpy.int32, 8: numpy.int64}


def _all_bits(condition: Any, *arrays: Any) -> Any:
    """Return an int8 for each element of ``condition``: all bits where it is true (-1), and no bits elsewhere (0).

    The result is None unless ``arrays`` are NumPy arrays of one shape, to which ``condition`` broadcasts, and of one dtype,
    whose elements can be read as integers.
    """
    dtype, shape = arrays[0].dtype, arrays[0].shape
    if condition.shape != shape and not _broadcasts(condition.shape, shape):
        return None
    if condition.__class__ is not numpy.ndarray or condition.dtype != bool or dtype.itemsize not in INTEGERS:
        return None
    if any(each.__class__ is not numpy.ndarray or each.shape != shape or each.dtype != dtype for each in arrays):
        return None
    return numpy.negative(numpy.not_equal(condition.view(numpy.int8), 0).view(numpy.int8))  # any byte but 0 is true


def _order(condition: Any, *arrays: Any) -> Any:
    """Return the memory order of ``numpy.where(condition, *arrays)``, or None if it is neither "C" nor "F".

    An operand in C order decides. ``arrays`` have one shape, to which ``condition`` broadcasts.
    """
    if arrays[0].ndim < 2:
        return "C"
    operands = [each.flags for each in (condition, *arrays) if each.shape == arrays[0].shape]
    if any(flags.c_contiguous for flags in operands):
        return "C"
    return "F" if len(operands) > len(arrays) and all(flags.f_contiguous for flags in operands) else None


def _broadcasts(given: tuple[int, ...], shape: tuple[int, ...]) -> bool:
    """Whether an array of the shape ``given`` broadcasts to ``shape``."""
    return len(given) <= len(shape) and all(
        own in (1, size) for own, size in zip(reversed(given), reversed(shape), strict=False)
    )


def _chosen(bits: Any, x: Any, y: Any, order: Any) -> Any:
    """Return the elements of ``x`` where ``bits``, a result of :func:`_all_bits`, are set, and those of ``y`` elsewhere.

    ``y`` has the shape of the result, ``order`` is its memory order.
    """
    kind = INTEGERS[y.dtype.itemsize]
    found = numpy.bitwise_xor(x.view(kind), y.view(kind), order=order)
    numpy.bitwise_and(found, bits, out=found)
    return numpy.bitwise_xor(found, y.view(kind), out=found).view(y.dtype)


@at_least(BRANCHES)
def _choose_by_bits(np: Any, x: Any, y: Any, condition: Any) -> Any:
    bits, order = _all_bits(condition, x, y), _order(condition, x, y)
    return None if bits is None or order is None else _chosen(bits, x, y, order)


@kernel(elementwise_loop("choose", 3, least=BRANCHES), _choose_by_bits)
def choose(np: Any, x: Any, y: Any, condition: Any) -> Any:
    """Return the elements of ``x`` where ``condition`` is true, and those of ``y`` elsewhere."""
    return where(condition, x, y) if np is numpy else np.where(condition, x, y)


@at_least(BRANCHES)
def _keep_by_bits(np: Any, x: Any, condition: Any) -> Any:
    bits, order = _all_bits(condition, x), _order(condition, x)
    if bits is None or order is None:
        return None
    return numpy.bitwise_and(x.view(INTEGERS[x.dtype.itemsize]), bits, order=order).view(x.dtype)


@kernel(elementwise_loop("keep", 2, least=BRANCHES), _keep_by_bits)
def keep(np: Any, x: Any, condition: Any) -> Any:
    """Return ``x`` where ``condition`` is true, and 0 elsewhere."""
    return np.where(condition, x, np.zeros((), x.dtype))


@at_least(BRANCHES)
def _fill_by_bits(np: Any, x: Any, mask: Any, value: Any) -> Any:
    bits, order = _all_bits(mask, x), _order(mask, x)
    return None if bits is None or order is None else _chosen(bits, numpy.asarray(value).astype(x.dtype), x, order)


@at_least(BRANCHES)
def _fill_by_bits_in_c_order(np: Any, x: Any, mask: Any, value: Any) -> Any:
    bits = _all_bits(mask, x)
    return None if bits is None else _chosen(bits, numpy.asarray(value).astype(x.dtype), x, "C")


@kernel(elementwise_loop("fill_where", 2, least=BRANCHES), _fill_by_bits)
def fill_where(np: Any, x: Any, mask: Any, value: Any) -> Any:
    """Return ``x`` with the elements where ``mask`` is true replaced by the number ``value``."""
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


@kernel(elementwise_loop("fill_where", 2, least=BRANCHES), _fill_by_bits_in_c_order)
def fill_where_equal_shape(np: Any, x: Any, mask: Any, value: Any) -> Any:
    """Return the result of :func:`fill_where` in C order, for a mask of the shape of ``x``."""
    out = np.array(x, order="C")  # a gradient may be a NumPy scalar
    out[mask] = value
    return out


# -- Copies ----------------------------------------------------------------------------------------------------------


@at_least(LARGE, NUMBA)
def _convert_by_loop(np: Any, x: Any, kind: Any) -> Any:
    return None if kind in HALF_PRECISION else looped("copy", x, kind=kind)


@kernel(_convert_by_loop)
def convert(np: Any, x: Any, kind: Any) -> Any:
    """Return a copy of ``x`` in the dtype ``kind``; that of an expanded array is contiguous."""
    return cast(x, kind) if kind.kind == "V" else x.astype(kind, order="C" if 0 in x.strides else "K")


def copy_where(np: Any, out: Any, values: Any, condition: Any) -> None:
    """Replace the elements of ``out`` where ``condition`` is true by those of ``values``.

    ``values`` has the dtype of ``out``. It and ``condition`` broadcast to the shape of ``out``. Calling the function a
    second time, as after an interrupt, has no other effect.
    """
    bits = _all_bits(condition, out) if out.size >= BRANCHES else None
    if bits is None:
        np.copyto(out, values, where=condition)
        return
    kind = INTEGERS[out.dtype.itemsize]
    changed = numpy.bitwise_xor(out.view(kind), values.view(kind))
    numpy.bitwise_and(changed, bits, out=changed)
    numpy.bitwise_xor(out.view(kind), changed, out=out.view(kind))


def fill_in_place(x: Any, mask: Any, value: Any) -> None:
    """Replace the elements of the NumPy array ``x`` where ``mask``, of its shape, is true by the number ``value``."""
    if x.size < BRANCHES:
        x[mask] = value
    else:
        copy_where(numpy, x, numpy.asarray(value).astype(x.dtype), mask)


#: :func:`fill_in_place`, or for few elements NumPy, as an expression that generated functions contain.
FILL: Any = lambda self, mask, value: (  # noqa: E731
    setitem(self, mask, value) if self.size < BRANCHES else fill_in_place(self, mask, value)
)
