"""Numba loops of the optimizers SGD, Adam, AdamW and RMSprop: one pass over a parameter, its gradient and its state.

The loops compute the operations of ``optim/`` in the same order, so that large and small parameters get the same
values. ``sign`` is 1, or -1 to maximise. ``decay`` is the weight decay. ``slope`` is ``sign * grad + decay * param``.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from numba import njit, prange

from .jit import loop_as_written
from .math import like


@njit(forceinline=True)
def slope_of(grad: Any, param: Any, sign: Any, decay: Any) -> Any:
    """Return the gradient that an optimizer uses, ``sign * grad + decay * param``.

    ``sign`` is -1 to maximize the loss, otherwise 1. ``decay`` is the weight decay. The result is rounded after every
    operation, as in NumPy.
    """
    slope = sign * grad
    if decay != 0:
        slope += decay * param
    return slope


@loop_as_written
def descent(param: Any, grad: Any, sign: Any, decay: Any, rate: Any) -> None:
    """Update ``param`` in place by plain SGD: subtract ``rate * (sign * grad + decay * param)``.

    ``rate`` is the learning rate and ``decay`` the weight decay.
    """
    for i in prange(param.size):
        slope = slope_of(grad[i], param[i], sign, decay)
        param[i] -= rate * slope


@loop_as_written
def momentum(
    param: Any, grad: Any, velocity: Any, sign: Any, decay: Any, rate: Any, kept: Any, added: Any, ahead: Any
) -> None:
    """Update ``param`` and ``velocity`` in place by SGD with momentum and the learning rate ``rate``.

    The new velocity is ``kept * velocity + added * slope``, where slope is ``sign * grad + decay * param``. ``ahead``
    is the momentum of a Nesterov step, or 0.
    """
    for i in prange(param.size):
        slope = slope_of(grad[i], param[i], sign, decay)
        speed = kept * velocity[i] + added * slope
        velocity[i] = speed
        param[i] -= rate * (slope + ahead * speed if ahead != 0 else speed)


@loop_as_written
def adam(
    param: Any, grad: Any, mean: Any, square: Any, sign: Any, decay: Any, shrink: Any, weight: Any, beta: Any,
    rest: Any, eps: Any, size: Any, correction: Any,
) -> None:  # fmt: skip
    """Update ``param``, ``mean`` and ``square`` in place by Adam or AdamW.

    ``mean`` and ``square`` are the running averages of the gradient and of its square. The parameter is first
    multiplied by ``shrink`` (AdamW's weight decay). Then ``mean += weight * (slope - mean)`` and
    ``square = beta * square + rest * slope**2``, where slope is ``sign * grad + decay * param``. Last,
    ``size * mean / (sqrt(square) / correction + eps)`` is subtracted from the parameter. ``size`` is the learning rate
    divided by the bias correction of ``mean``, and ``correction`` the root of the bias correction of ``square``.
    """
    for i in prange(param.size):
        here = param[i] * shrink
        slope = slope_of(grad[i], here, sign, decay)
        gap = slope - mean[i]
        average = mean[i] + weight * gap if weight < 0.5 else slope + (weight - like(weight, 1)) * gap
        power = beta * square[i] + (slope * rest) * slope
        mean[i], square[i] = average, power
        param[i] = here + (average * -size) / (sqrt(power) / correction + eps)


@loop_as_written
def root_mean_square(
    param: Any, grad: Any, square: Any, sign: Any, decay: Any, kept: Any, rest: Any, eps: Any, rate: Any
) -> None:
    """Update ``param`` and ``square`` in place by RMSprop with the learning rate ``rate``.

    ``square`` is the running average of the squared gradient: ``square = kept * square + rest * slope**2``, where slope
    is ``sign * grad + decay * param``. Then ``rate * slope / (sqrt(square) + eps)`` is subtracted from ``param``.
    """
    for i in prange(param.size):
        slope = slope_of(grad[i], param[i], sign, decay)
        power = kept * square[i] + (slope * rest) * slope
        square[i] = power
        param[i] += (slope * -rate) / (sqrt(power) + eps)
