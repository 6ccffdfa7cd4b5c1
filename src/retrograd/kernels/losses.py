"""Kernels of mse_loss, smooth_l1_loss and binary_cross_entropy_with_logits, and of their gradients.

A loss is computed elementwise and then reduced: ``reduction`` is "none", "mean" or "sum". ``grad`` is the gradient of
the reduced loss.
"""

from __future__ import annotations

from typing import Any

from .numba_dispatch import looped
from .reductions import MOST, sum_elements
from .select import NUMBA, Variant, at_least, elementwise_loop, kernel
from .thresholds import LARGE


def reduced(np: Any, each: Any, reduction: str) -> Any:
    """Return the elementwise losses ``each``, reduced by ``reduction``: "none", "mean" or "sum"."""
    if reduction == "none":
        return each
    result = sum_elements(np, each)
    return result / each.dtype.type(each.size) if reduction == "mean" else result


def scaled_by_grad(np: Any, slope: Any, grad: Any, reduction: str) -> Any:
    """Multiply ``slope``, the derivatives of the unreduced losses, by the gradients of these losses, in place.

    ``grad`` is the gradient of the reduced loss. The gradient of each unreduced loss is ``grad``, divided by the number
    of elements if ``reduction`` is "mean". The result is ``slope``.
    """
    if reduction == "mean":
        kind = np.float32 if slope.dtype.char == "e" and slope.size > MOST else slope.dtype.type
        grad = grad / kind(slope.size or 1)
    slope *= grad
    return slope


def _gradient_loop(name: str, factor: float) -> Variant:
    """Return an implementation of the gradient of a loss for large arrays, which calls the Numba loop ``name``.

    The implementation has the parameters ``(np, x, y, grad, reduction, *numbers)``. It passes ``numbers`` and a scale
    to the loop. The scale is ``factor * grad``, divided by the number of elements if ``reduction`` is "mean". If
    ``reduction`` is "none", the implementation returns None, and NumPy computes the gradient.
    """

    def loop(np: Any, x: Any, y: Any, grad: Any, reduction: str, *numbers: float) -> Any:
        if reduction == "none" or len(grad.shape):
            return None
        scale = factor * float(grad) / (x.size if reduction == "mean" else 1)
        return looped(name, x, y, numbers=(*numbers, scale))

    return at_least(LARGE, NUMBA)(loop)


# -- Squared and absolute differences --------------------------------------------------------------------------------


@kernel(elementwise_loop("square_of_gap", 2))
def squared_error(np: Any, x: Any, y: Any) -> Any:
    """Return ``(x - y)**2`` elementwise."""
    gap = np.subtract(x, y)
    return np.multiply(gap, gap)


@kernel(_gradient_loop("scaled_gap", 2))
def squared_error_gradient(np: Any, x: Any, y: Any, grad: Any, reduction: str) -> Any:
    """Return the gradient of ``x``, given ``grad``, the gradient of the reduced :func:`squared_error` of x and y."""
    return scaled_by_grad(np, 2 * np.subtract(x, y), grad, reduction)


@kernel(elementwise_loop("smooth_gap", 2))
def smooth_error(np: Any, x: Any, y: Any, beta: float) -> Any:
    """Return ``0.5 * d**2 / beta`` where ``d = abs(x - y)`` is less than ``beta``, and ``d - 0.5 * beta`` elsewhere."""
    size = np.absolute(x - y)
    return np.where(size < beta, 0.5 * size * size / beta, size - 0.5 * beta)


@kernel(_gradient_loop("smooth_gap_backward", 1))
def smooth_error_gradient(np: Any, x: Any, y: Any, grad: Any, reduction: str, beta: float) -> Any:
    """Return the gradient of ``x``, given ``grad``, the gradient of the reduced :func:`smooth_error` of x and y."""
    return scaled_by_grad(np, np.minimum(np.maximum((x - y) / beta, -1), 1), grad, reduction)


# -- Cross entropy of logits -----------------------------------------------------------------------------------------

_logit_loop, _logit_gradient_loop = elementwise_loop("logit_loss", 2), _gradient_loop("logit_loss_backward", 1)


@at_least(LARGE, NUMBA)
def _logit_loss_by_loop(np: Any, x: Any, target: Any, weight: Any, pos_weight: Any) -> Any:
    return _logit_loop.function(np, x, target) if weight is None and pos_weight is None else None


@kernel(_logit_loss_by_loop)
def logit_loss(np: Any, x: Any, target: Any, weight: Any, pos_weight: Any) -> Any:
    """Return the binary cross entropy of ``sigmoid(x)`` with ``target`` elementwise, computed without overflow.

    ``weight`` is None or has one factor per loss. ``pos_weight`` is None or has factors for the term
    ``-target * log(sigmoid(x))`` of the loss.
    """
    softplus = np.log1p(np.exp(np.negative(np.absolute(x))))  # log(1 + exp(-abs(x))), which cannot overflow
    softplus += np.maximum(-x, 0)
    if pos_weight is not None:
        softplus *= 1 + (pos_weight - 1) * target
    each = (1 - target) * x
    each += softplus
    return each if weight is None else each * weight


@at_least(LARGE, NUMBA)
def _logit_loss_gradient_by_loop(
    np: Any, x: Any, target: Any, weight: Any, pos_weight: Any, grad: Any, reduction: str
) -> Any:
    if weight is not None or pos_weight is not None:
        return None
    return _logit_gradient_loop.function(np, x, target, grad, reduction)


@kernel(_logit_loss_gradient_by_loop)
def logit_loss_gradient(np: Any, x: Any, target: Any, weight: Any, pos_weight: Any, grad: Any, reduction: str) -> Any:
    """Return the gradient of ``x``, given ``grad``, the gradient of the :func:`logit_loss` reduced by ``reduction``."""
    slope = 1 / (1 + np.exp(-x))
    if pos_weight is None:
        slope -= target
    else:
        hit = pos_weight * target
        slope = slope * (hit + (1 - target)) - hit
    return scaled_by_grad(np, slope if weight is None else slope * weight, grad, reduction)
