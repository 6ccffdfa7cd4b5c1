"""Numba loops of elementwise operations: arithmetic, clamp, activations, losses and their gradients, fill and copy.

The arguments are contiguous 1-d arrays of one length, then numbers, then the array for the result. A gradient (``g`` or
``h``) may be a number if it is the same for all elements; the function ``at`` accepts an array or a number.
"""

from __future__ import annotations

from math import sqrt as sqrt_of
from typing import Any

from numba import prange

from .jit import loop
from .math import DENSITY, at, decay, decay_less_one, like, normal_cdf
from .math import erf as erf_of
from .math import exp as exp_of
from .math import log1p as log1p_of
from .math import sigmoid as sigmoid_of

# -- Arithmetic ------------------------------------------------------------------------------------------------------


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
def divide_from(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = y / x[i]


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


# -- Selection: nan compares as neither smaller nor larger -----------------------------------------------------------


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
def choose(g: Any, h: Any, condition: Any, out: Any) -> None:
    for i in prange(out.size):
        first, second = at(g, i), at(h, i)  # both are read unconditionally, which allows vector instructions
        out[i] = first if condition[i] else second


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


# -- Functions and their gradients -----------------------------------------------------------------------------------


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


@loop
def gelu_by_tanh(x: Any, linear: Any, cubic: Any, out: Any) -> None:
    # (1 + tanh(u)) / 2 is the sigmoid of 2 u = x (linear + cubic x**2), which does not cancel for a negative u.
    for i in prange(x.size):
        double = x[i] * (linear + cubic * (x[i] * x[i]))
        fade = decay(-abs(double))
        out[i] = x[i] * ((like(x[i], 1) if double > 0 else fade) / (like(x[i], 1) + fade))


@loop
def gelu_by_tanh_backward(g: Any, x: Any, linear: Any, cubic: Any, out: Any) -> None:
    for i in prange(x.size):
        one, square = like(x[i], 1), x[i] * x[i]
        double = x[i] * (linear + cubic * square)
        fade = decay(-abs(double))
        share = one / (one + fade)
        slope = x[i] * (linear + like(x[i], 3) * cubic * square) * (fade * share)  # nan where square is infinite
        out[i] = at(g, i) * (share * ((one if double > 0 else fade) + slope))


@loop
def log1p(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = log1p_of(x[i])


@loop
def elu(x: Any, alpha: Any, scale: Any, inner: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * scale if x[i] > 0 else alpha * scale * decay_less_one(min(x[i], like(x[i], 0)) * inner)


@loop
def elu_backward(g: Any, x: Any, alpha: Any, scale: Any, inner: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = at(g, i) * (scale if x[i] > 0 else alpha * scale * inner * decay(min(x[i], like(x[i], 0)) * inner))


@loop
def hardswish(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i] * min(max(x[i] + like(x[i], 3), like(x[i], 0)), like(x[i], 6)) / like(x[i], 6)


@loop
def hardswish_backward(g: Any, x: Any, out: Any) -> None:
    for i in prange(x.size):
        slope = x[i] / like(x[i], 3) + like(x[i], 0.5) if x[i] < 3 else like(x[i], 1)
        out[i] = like(x[i], 0) if x[i] <= -3 else at(g, i) * slope


@loop
def softplus(x: Any, beta: Any, threshold: Any, out: Any) -> None:
    for i in prange(x.size):
        scaled = x[i] * beta
        found = (max(scaled, like(scaled, 0)) + log1p_of(decay(-abs(scaled)))) / beta
        out[i] = x[i] if scaled > threshold else found


@loop
def softplus_backward(g: Any, x: Any, beta: Any, threshold: Any, out: Any) -> None:
    for i in prange(x.size):
        scaled = x[i] * beta
        out[i] = at(g, i) if scaled > threshold else at(g, i) * sigmoid_of(scaled)


@loop
def logsigmoid(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = min(x[i], like(x[i], 0)) - log1p_of(decay(-abs(x[i])))


@loop
def mish(x: Any, out: Any) -> None:
    # tanh(log(1 + e)) = n / (n + 2) with n = e * (e + 2); beyond 20 it is 1.
    for i in prange(x.size):
        e = exp_of(min(x[i], like(x[i], 20)))
        n = e * (e + like(e, 2))
        out[i] = x[i] * (n / (n + like(e, 2)))


@loop
def mish_backward(g: Any, x: Any, out: Any) -> None:
    for i in prange(x.size):
        one = like(x[i], 1)
        e = exp_of(min(x[i], like(x[i], 20)))
        n = e * (e + like(e, 2))
        share = n / (n + like(e, 2))
        out[i] = at(g, i) * (share + x[i] * (e / (one + e)) * (one - share * share))


# -- Losses: the loss of each element, and its gradient times a number -----------------------------------------------


@loop
def square_of_gap(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = (x[i] - y[i]) * (x[i] - y[i])


@loop
def scaled_gap(x: Any, y: Any, scale: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = (x[i] - y[i]) * scale


@loop
def smooth_gap(x: Any, y: Any, beta: Any, out: Any) -> None:
    for i in prange(x.size):
        size, half = abs(x[i] - y[i]), like(x[i], 0.5)
        out[i] = half * size * size / beta if size < beta else size - half * beta


@loop
def smooth_gap_backward(x: Any, y: Any, beta: Any, scale: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = min(max((x[i] - y[i]) / beta, like(x[i], -1)), like(x[i], 1)) * scale


@loop
def logit_loss(x: Any, y: Any, out: Any) -> None:
    for i in prange(x.size):
        softplus_of_minus = log1p_of(decay(-abs(x[i]))) + max(-x[i], like(x[i], 0))
        out[i] = (like(x[i], 1) - y[i]) * x[i] + softplus_of_minus


@loop
def logit_loss_backward(x: Any, y: Any, scale: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = (sigmoid_of(x[i]) - y[i]) * scale


# -- In place: the array is one argument, because overlapping arguments would prevent vector instructions ------------


@loop
def add_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] += y[i]


@loop
def add_number_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] += y


@loop
def add_scaled_into(x: Any, y: Any, scale: Any) -> None:
    for i in prange(x.size):
        x[i] += scale * y[i]


@loop
def multiply_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] *= y[i]


@loop
def multiply_number_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] *= y


@loop
def subtract_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] -= y[i]


@loop
def divide_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] /= y[i]


@loop
def divide_number_into(x: Any, y: Any) -> None:
    for i in prange(x.size):
        x[i] /= y


# -- Filling and copying ---------------------------------------------------------------------------------------------


@loop
def fill(out: Any, value: Any) -> None:
    for i in prange(out.size):
        out[i] = value


@loop
def copy(x: Any, out: Any) -> None:
    for i in prange(x.size):
        out[i] = x[i]
