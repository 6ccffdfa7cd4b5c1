"""Loops element by element: arrays of one length, numbers, and last the array for the results.

A gradient may be a number, if it is the same for all elements (``at``).
"""

from __future__ import annotations

from math import sqrt as sqrt_of
from typing import Any

from numba import prange

from .compile import loop
from .scalars import DENSITY, at, decay, like, normal_cdf
from .scalars import erf as erf_of
from .scalars import exp as exp_of
from .scalars import sigmoid as sigmoid_of

# -- Arithmetic ----------------------------------------------------------------------------------------------------------


@loop
def add(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] + y[i]


@loop
def add_number(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] + y


@loop
def add_scaled(x: Any, y: Any, scale: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] + scale * y[i]


@loop
def subtract(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] - y[i]


@loop
def subtract_number(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] - y


@loop
def subtract_from(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = y - x[i]


@loop
def multiply(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * y[i]


@loop
def multiply_number(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * y


@loop
def divide(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] / y[i]


@loop
def divide_number(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] / y


@loop
def negative(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = -x[i]


@loop
def absolute(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = abs(x[i])


@loop
def sqrt(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = sqrt_of(x[i])


@loop
def rsqrt(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = like(x[i], 1) / sqrt_of(x[i])


@loop
def reciprocal(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = like(x[i], 1) / x[i]


@loop
def cube(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * x[i] * x[i]


@loop
def lerp(x: Any, y: Any, weight: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] + weight * (y[i] - x[i])


@loop
def addcmul(x: Any, y: Any, z: Any, value: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] + value * y[i] * z[i]


# -- Choosing: nan is neither smaller nor larger than anything -----------------------------------------------------------


@loop
def maximum(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] if x[i] > y[i] or x[i] != x[i] else y[i]


@loop
def maximum_number(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] if x[i] > y or x[i] != x[i] else y


@loop
def minimum(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] if x[i] < y[i] or x[i] != x[i] else y[i]


@loop
def minimum_number(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] if x[i] < y or x[i] != x[i] else y


@loop
def clamp(x: Any, low: Any, high: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = min(max(x[i], low), high)


@loop
def within(g: Any, x: Any, low: Any, high: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = at(g, i) if low <= x[i] <= high else like(x[i], 0)


@loop
def above(g: Any, x: Any, bound: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = like(x[i], 0) if x[i] <= bound else at(g, i)


@loop
def relu(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = like(x[i], 0) if x[i] < 0 else x[i]


@loop
def leaky_relu(x: Any, slope: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] if x[i] > 0 else x[i] * slope


@loop
def leaky_relu_backward(g: Any, x: Any, slope: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = at(g, i) if x[i] > 0 else at(g, i) * slope


@loop
def choose(x: Any, y: Any, condition: Any, out: Any) -> None:
    for i in prange(out.size):
        out[i] = at(x, i) if condition[i] else at(y, i)


@loop
def fill_where(g: Any, condition: Any, value: Any, out: Any) -> None:
    for i in prange(condition.size):
        out[i] = value if condition[i] else at(g, i)


@loop
def keep(g: Any, condition: Any, out: Any) -> None:
    for i in prange(condition.size):
        out[i] = at(g, i) if condition[i] else like(at(g, i), 0)


@loop
def sign(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = like(x[i], 1) if x[i] > 0 else like(x[i], -1) if x[i] < 0 else like(x[i], 0)


# -- Functions and their slopes ------------------------------------------------------------------------------------------


@loop
def exp(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = exp_of(x[i])


@loop
def erf(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = erf_of(x[i])


@loop
def sigmoid(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = sigmoid_of(x[i])


@loop
def sigmoid_backward(g: Any, x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = at(g, i) * (like(x[i], 1) - x[i]) * x[i]


@loop
def tanh_backward(g: Any, x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = at(g, i) * (like(x[i], 1) - x[i] * x[i])


@loop
def silu(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * sigmoid_of(x[i])


@loop
def silu_backward(g: Any, x: Any, out: Any) -> None:
    for i in prange(x.size):
        one, share = like(x[i], 1), sigmoid_of(x[i])
        out[i] = at(g, i) * (share * (one + x[i] * (one - share)))


@loop
def gelu(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * normal_cdf(x[i])


@loop
def gelu_backward(g: Any, x: Any, out: Any) -> None:
    for i in prange(x.size):
        density = decay(like(x[i], -0.5) * (x[i] * x[i])) * like(x[i], DENSITY)
        out[i] = at(g, i) * (normal_cdf(x[i]) + x[i] * density)


# -- Filling and copying -------------------------------------------------------------------------------------------------


@loop
def fill(out: Any, value: Any) -> None:
    for i in prange(out.size):
        out[i] = value


@loop
def copy(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i]
