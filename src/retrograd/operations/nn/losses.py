"""Elementwise losses: mse_loss, l1_loss, smooth_l1_loss, huber_loss, binary_cross_entropy, kl_div and others.

The gradients of the most common losses are computed by operations named ``…_backward``. Losses whose targets are class
indices are in ``operations/nn/class_losses.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ...core.devices import on_gpu
from ...core.dtypes import FLOATING, dtype, dtype_of, float32, scalar_name, unsupported
from ...core.grad_mode import no_grad
from ...core.tensor import Tensor
from ...dispatch.declare import op, public
from ...dispatch.generic_path import check_cast
from ...dispatch.operand_promotion import F32, F64, common_dtype
from ...dispatch.transform_tensor import innermost_batch
from ...kernels import losses
from ...runtime.user_frame import warn
from ..creation.factory import ones_like, zeros_like
from ..elementwise.arithmetic import abs as absolute
from ..elementwise.comparison import eq, ne
from ..elementwise.elementary import exp, log
from ..elementwise.rounding import clamp_min, minimum
from ..elementwise.special import xlogy
from ..reductions.sums import mean, norm, sum
from ..shape.join import where_
from ..shape.views import broadcast_tensors, renamed_node_class, unsqueeze
from .activation import logsigmoid

#: Names of the reductions; PyTorch's ``torch.*`` functions take the index.
REDUCTIONS = ("none", "mean", "sum")

# -- Reductions ------------------------------------------------------------------------------------------------------


def parse_reduction(size_average: bool | None, reduce: bool | None, reduction: str) -> str:
    """Return the name of the reduction: ``"none"``, ``"mean"`` or ``"sum"``.

    ``size_average`` and ``reduce`` are deprecated. If one of them is not None, they determine the result, and PyTorch's
    warning is issued. Otherwise the result is ``reduction``. Raises ValueError if ``reduction`` is not one of the three
    names.
    """
    if reduction == "mean" and size_average is None and reduce is None:
        return reduction
    if size_average is not None or reduce is not None:
        average, reduced_ = size_average is None or bool(size_average), reduce is None or bool(reduce)
        reduction = "none" if not reduced_ else "mean" if average else "sum"
        warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
        )
    if reduction == "elementwise_mean":
        warn("reduction='elementwise_mean' is deprecated. Please use reduction='mean' instead.")
        return "mean"
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def numbered_reduction(number: int) -> str:
    """Return the name of a reduction; as in PyTorch, any number but those of ``"mean"`` and ``"sum"`` is none."""
    return REDUCTIONS[number] if number in (1, 2) else "none"


def reduce_losses(each: Tensor, reduction: str) -> Tensor:
    """Return ``each``, the losses of single elements or samples, reduced by ``reduction``.

    The result is the mean for ``"mean"``, the sum for ``"sum"``, and ``each`` itself for ``"none"``.
    """
    if reduction == "none":
        return each
    return mean(each) if reduction == "mean" else sum(each)


def _reduce(F: Any, each: Any, reduction: str) -> Any:
    if reduction == "none":
        return each
    return F.mean_all(each) if reduction == "mean" else F.sum_all(each)


def _grad_per_element(F: Any, g: Any, shape: tuple[int, ...], reduction: str) -> Any:
    return g / (math.prod(shape) or 1) if reduction == "mean" else g


def _loss(backward: str | None = None, **options: Any) -> Any:
    return op(function=False, method=False, opmath=True, backward=backward, vmap="loss", **options)


def _is_plain(self: Any, target: Any, reduction: Any, _d: Any) -> Any:
    """Return a true value if the arguments of a loss are simple and need no checks.

    In this case, the loss is computed directly on the arrays. The arguments are simple if ``self`` and ``target`` have
    the same shape and the same dtype, float32 or float64, and ``reduction`` is a valid name. ``_d`` is the dtype of
    ``self``.
    """
    return (_d is F32 or _d is F64) and self.shape == target.shape and target.dtype is _d and reduction in REDUCTIONS


def _floats(name: str, *operands: Any) -> None:
    for each in operands:
        if each.dtype.kind in "biuc":
            raise unsupported(name, each.dtype)


def _second_order(backward: Any, slope: Callable[..., Any], bend: Callable[..., Any], symmetric: bool) -> None:
    """Define the derivatives of ``backward``, the operation that computes the gradient of a loss.

    ``slope(F, self, target, parameter)`` and ``bend(F, self, target, parameter)`` return the first and the second
    derivative of the unreduced loss with respect to ``self``. ``F`` is a namespace of operations, and ``parameter`` a
    number such as ``delta`` of ``huber_loss``. If ``symmetric`` is true, the loss depends only on ``self - target``.
    Then the derivative with respect to ``target`` is defined, too: it is the negative of the derivative with respect to
    ``self``.
    """

    def for_grad(F: Any, g: Any, self: Any, target: Any, reduction: str, parameter: float) -> Any:
        return _reduce(F, g * slope(F, self, target, parameter), reduction)

    def for_self(
        F: Any, g: Any, grad_output: Any, self: Any, target: Any, out_shape: Any, reduction: str, parameter: float
    ) -> Any:
        return _grad_per_element(F, g * grad_output, out_shape, reduction) * bend(F, self, target, parameter)

    def for_target(
        F: Any, g: Any, grad_output: Any, self: Any, target: Any, out_shape: Any, reduction: str, parameter: float
    ) -> Any:
        return -for_self(F, g, grad_output, self, target, out_shape, reduction, parameter)

    backward.derivative(grad_output=for_grad, self=for_self, **({"target": for_target} if symmetric else {}))


def _first_order(forward: Any, backward: str, symmetric: bool) -> None:
    """Define the derivatives of ``forward``, an operation that computes a loss.

    ``backward`` is the name of the operation that computes the gradient of the loss with respect to ``self``. If
    ``symmetric`` is true, the loss depends only on ``self - target``. Then the gradient with respect to ``target`` is
    defined, too: it is the negative of the gradient with respect to ``self``.
    """

    def for_self(F: Any, g: Any, self: Any, target: Any, reduction: str, parameter: float) -> Any:
        return getattr(F, backward)(g, self, target, reduction, parameter)

    def for_target(F: Any, g: Any, self: Any, target: Any, reduction: str, parameter: float) -> Any:
        return -getattr(F, backward)(g, self, target, reduction, parameter)

    forward.derivative(self=for_self, **({"target": for_target} if symmetric else {}))


# -- Squared and absolute differences ---------------------------------------------------------------------------------


@_loss("MseLossBackward0")
def mse_loss_block(np: Any, self: Any, target: Any, /, reduction: str, parameter: float) -> Any:
    """Return the squared differences ``(self - target)**2``, reduced by ``reduction``.

    ``parameter``, a number that other losses such as the Huber loss need, is not used.
    """
    _floats("mse_cpu", self, target)
    return losses.reduced(np, losses.squared_error(np, self, target), reduction)


@_loss()
def mse_loss_backward(np: Any, grad_output: Any, self: Any, target: Any, /, reduction: str, parameter: float) -> Any:
    """Return the gradient of ``mse_loss`` with respect to ``self``.

    ``parameter``, a number that other losses such as the Huber loss need, is not used.
    """
    return losses.squared_error_gradient(np, self, target, grad_output, reduction)


_first_order(mse_loss_block, "mse_loss_backward", True)
_second_order(mse_loss_backward, lambda F, self, target, _: 2 * (self - target), lambda F, self, target, _: 2.0, True)


@_loss("SmoothL1LossBackward0")
def smooth_l1_loss_block(np: Any, self: Any, target: Any, /, reduction: str, parameter: float) -> Any:
    """Return the smooth L1 loss of ``self`` and ``target``, reduced by ``reduction``.

    With ``d = abs(self - target)`` and ``p = parameter``, the loss is ``0.5 * d**2 / p`` where ``d < p``, and
    ``d - 0.5 * p`` elsewhere.
    """
    _floats("smooth_l1_cpu", self, target)
    return losses.reduced(np, losses.smooth_error(np, self, target, parameter), reduction)


@_loss()
def smooth_l1_loss_backward(
    np: Any, grad_output: Any, self: Any, target: Any, /, reduction: str, parameter: float
) -> Any:
    """Return the gradient of ``smooth_l1_loss`` with respect to ``self``; ``parameter`` is ``beta``."""
    return losses.smooth_error_gradient(np, self, target, grad_output, reduction, parameter)


_first_order(smooth_l1_loss_block, "smooth_l1_loss_backward", True)
_second_order(
    smooth_l1_loss_backward,
    lambda F, self, target, parameter: F.clamp_scalar((self - target) / parameter, -1, 1),
    lambda F, self, target, parameter: F.same_kind(F.abs(self - target) < parameter, self) / parameter,
    True,
)


@_loss("HuberLossBackward0")
def huber_loss_block(np: Any, self: Any, target: Any, /, reduction: str, parameter: float) -> Any:
    """Return the Huber loss of ``self`` and ``target``, reduced by ``reduction``.

    With ``d = abs(self - target)`` and ``p = parameter``, the loss is ``0.5 * d**2`` where ``d <= p``, and
    ``p * (d - 0.5 * p)`` elsewhere.
    """
    _floats("huber_cpu", self, target)
    size = np.absolute(self - target)
    each = np.where(size <= parameter, 0.5 * size * size, parameter * (size - 0.5 * parameter))
    return losses.reduced(np, each, reduction)


@_loss()
def huber_loss_backward(np: Any, grad_output: Any, self: Any, target: Any, /, reduction: str, parameter: float) -> Any:
    """Return the gradient of ``huber_loss`` with respect to ``self``; ``parameter`` is ``delta``."""
    return losses.scaled_by_grad(
        np, np.minimum(np.maximum(self - target, -parameter), parameter), grad_output, reduction
    )


_first_order(huber_loss_block, "huber_loss_backward", True)
_second_order(
    huber_loss_backward,
    lambda F, self, target, parameter: F.clamp_scalar(self - target, -parameter, parameter),
    lambda F, self, target, parameter: F.same_kind(F.abs(self - target) < parameter, self),
    True,
)


@op(function=False, method=False, vmap="elementwise")
def same_kind(np: Any, self: Any, like: Any, /) -> Any:
    """Return the boolean array ``self`` as an array of zeros and ones in the dtype of ``like``.

    The second derivatives of ``smooth_l1_loss`` and ``huber_loss`` are computed from such arrays.
    """
    return self.astype(like.dtype)


same_kind.derivative(self=lambda g: None, like=lambda g: None)


@_loss("SoftMarginLossBackward0")
def soft_margin_loss_block(np: Any, self: Any, target: Any, /, reduction: str, parameter: float) -> Any:
    """Return ``log(1 + exp(-target * self))``, reduced by ``reduction``.

    ``parameter``, a number that other losses such as the Huber loss need, is not used.
    """
    each = np.exp(self * -target)
    return losses.reduced(np, np.log1p(each, out=each if each.ndim else None), reduction)


@_loss()
def soft_margin_loss_backward(
    np: Any, grad_output: Any, self: Any, target: Any, /, reduction: str, parameter: float
) -> Any:
    """Return the gradient of ``soft_margin_loss`` with respect to ``self``.

    ``parameter``, a number that other losses such as the Huber loss need, is not used.
    """
    return losses.scaled_by_grad(np, -target / (1 + np.exp(self * target)), grad_output, reduction)


_first_order(soft_margin_loss_block, "soft_margin_loss_backward", False)
_second_order(
    soft_margin_loss_backward,
    lambda F, self, target, _: -target * F.sigmoid(-self * target),
    lambda F, self, target, _: F.sigmoid_backward(target * target, F.sigmoid(self * target)),
    False,
)


def _broadcast_pair(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``input`` and ``target`` of a loss, broadcast to a common shape.

    If their shapes differ, PyTorch's warning is issued.
    """
    if input._array.shape == target._array.shape:
        return input, target
    warn(
        f"Using a target size ({target.size()}) that is different to the input size ({input.size()}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size.",
    )
    x, y = broadcast_tensors(input, target)
    return x, y


def _in_common_dtype(x: Tensor, y: Tensor, result: dtype | None = None) -> tuple[Tensor, Tensor]:
    """Return the operands ``x`` and ``y`` of a loss, converted to the dtype to which they promote.

    If ``result``, the dtype that the loss must have, is not None, raise RuntimeError if the promoted dtype cannot be
    cast to it.
    """
    if x.dtype is y.dtype:
        return x, y
    common = common_dtype((x, y))
    if result is not None:
        check_cast(common, result)
    return x.to(common), y.to(common)


def _in_dtype(result: Tensor, target: dtype, name: str) -> Tensor:
    """Return ``result`` in the dtype ``target``; its node has the name of the loss's, which PyTorch computes in one step."""
    converted: Tensor = result.to(target)
    node = converted.grad_fn if converted is not result else None
    if node is not None:
        node.__class__ = renamed_node_class(type(node), name)
    return converted


def _weighted(each: Tensor, weight: Tensor, input: Tensor, reduction: str, by_weight: bool = True) -> Tensor:
    """Return the unreduced losses ``each`` times ``weight``, reduced by ``reduction``.

    If ``by_weight`` is true, a mean is the sum divided by the sum of the weights, otherwise by the number of elements.
    Raises ValueError if ``weight`` and ``input`` have different shapes.
    """
    if weight.size() != input.size():
        raise ValueError("Weights and input must have the same size.")
    result = each * weight
    if reduction == "mean" and by_weight:
        return sum(result) / sum(weight)
    return reduce_losses(result, reduction)


@public(function=False, method=False, fast_path=mse_loss_block, if_arrays=_is_plain, parameter=0.0)
def mse_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean squared difference of ``input`` and ``target``.

    ``reduction`` is ``"mean"``, ``"sum"``, or ``"none"`` for one loss per element. ``weight`` has the shape of
    ``input`` and one factor for each loss. With ``weight``, a mean is divided by the sum of the weights.

    >>> import retrograd as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    x, y = _in_common_dtype(*_broadcast_pair(input, target))
    if weight is None:
        result: Tensor = mse_loss_block(x, y, reduction_name, 0.0)
        return result
    return _weighted((x - y) ** 2, weight, input, reduction_name)


def l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return the mean absolute difference of ``input`` and ``target``.

    ``reduction`` and ``weight`` are those of :func:`mse_loss`.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    x, y = _broadcast_pair(input, target)
    each = absolute(x - y)
    return reduce_losses(each, reduction_name) if weight is None else _weighted(each, weight, input, reduction_name)


def smooth_l1_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", beta: float = 1.0,
) -> Tensor:  # fmt: skip
    """Return the smooth L1 loss of ``input`` and ``target`` (arXiv 1504.08083), reduced as in :func:`mse_loss`.

    With ``d = abs(input - target)``, the loss is ``0.5 * d**2 / beta`` where ``d < beta``, and ``d - 0.5 * beta``
    elsewhere.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    x, y = _in_common_dtype(*_broadcast_pair(input, target))
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduce_losses(absolute(x - y), reduction_name)
    result: Tensor = smooth_l1_loss_block(x, y, reduction_name, float(beta))
    return result


def huber_loss(
    input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0, weight: Tensor | None = None
) -> Tensor:
    """Return the Huber loss of ``input`` and ``target``, reduced as in :func:`mse_loss`.

    With ``d = abs(input - target)``, the loss is ``0.5 * d**2`` where ``d <= delta``, and ``delta * (d - 0.5 * delta)``
    elsewhere. Unlike in :func:`mse_loss`, a weighted mean is divided by the number of elements.
    """
    reduction_name = parse_reduction(None, None, reduction)
    x, y = _broadcast_pair(input, target)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    result: Tensor = huber_loss_block(
        *_in_common_dtype(x, y, x.dtype), reduction_name if weight is None else "none", float(delta)
    )
    result = _in_dtype(result, input.dtype, "HuberLossBackward0")
    return result if weight is None else _weighted(result, weight, input, reduction_name, by_weight=False)


def soft_margin_loss(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
) -> Tensor:
    """Return ``log(1 + exp(-target * input))``, reduced as in :func:`mse_loss`. Each target is 1 or -1."""
    reduction_name = parse_reduction(size_average, reduce, reduction)
    if input.dtype.category < FLOATING:
        check_cast(float32, input.dtype)
    result: Tensor = soft_margin_loss_block(*_in_common_dtype(input, target, input.dtype), reduction_name, 0.0)
    return result.to(input.dtype)


# -- Binary cross entropy --------------------------------------------------------------------------------------------


def _clipped_log(np: Any, x: Any) -> Any:
    return np.maximum(np.log(x), -100)  # at least -100, as in PyTorch: a certain mistake has a finite loss


@_loss("BinaryCrossEntropyBackward0")
def binary_cross_entropy_block(np: Any, self: Any, target: Any, weight: Any, /, reduction: str) -> Any:
    """Return the binary cross entropy of the probabilities ``self`` with ``target``, reduced by ``reduction``.

    The loss of a probability x and a target t is ``-(t * log(x) + (1 - t) * log(1 - x))``, multiplied by ``weight`` if
    ``weight`` is not None. Both logarithms are clamped to at least -100.
    """
    _floats("binary_cross_entropy", self)
    if self.size and not on_gpu(self) and not (self.min() >= 0 and self.max() <= 1):
        raise RuntimeError("all elements of input should be between 0 and 1")
    each = (target - 1) * np.maximum(np.log1p(-self), -100) - target * _clipped_log(np, self)
    return losses.reduced(np, each if weight is None else each * weight, reduction)


@_loss()
def binary_cross_entropy_backward(
    np: Any, grad_output: Any, self: Any, target: Any, weight: Any, /, reduction: str
) -> Any:
    """Return the gradient of ``binary_cross_entropy`` with respect to ``self``."""
    slope = np.subtract(self, target)
    slope /= np.maximum((1 - self) * self, 1e-12)
    return losses.scaled_by_grad(np, slope if weight is None else slope * weight, grad_output, reduction)


def _times(x: Any, weight: Any) -> Any:
    return x if weight is None else x * weight


def _bce_target(F: Any, g: Any, self: Any, weight: Any, self_shape: Any, reduction: str) -> Any:
    slope = F.log1p(-self) - F.log(self)
    return _grad_per_element(F, g, self_shape, reduction) * _times(slope, weight)


binary_cross_entropy_block.derivative(
    self=lambda F, g, self, target, weight, reduction: F.binary_cross_entropy_backward(
        g, self, target, weight, reduction
    ),
    target=_bce_target,
)


def _bce_backward_grad(F: Any, g: Any, self: Any, target: Any, weight: Any, reduction: str) -> Any:
    slope = (self - target) / F.clamp_scalar((1 - self) * self, 1e-12, None)
    return _reduce(F, _times(g * slope, weight), reduction)


def _bce_backward_self(
    F: Any, g: Any, grad_output: Any, self: Any, target: Any, weight: Any, out_shape: Any, reduction: str
) -> Any:
    spread = (self + 1e-12) * (1 - self + 1e-12)  # as in PyTorch, not the bound of the first derivative
    bend = ((1 - self) * self - (self - target) * (1 - 2 * self)) / (spread * spread)
    return _times(_grad_per_element(F, g * grad_output, out_shape, reduction) * bend, weight)


def _bce_backward_target(
    F: Any, g: Any, grad_output: Any, self: Any, weight: Any, out_shape: Any, reduction: str
) -> Any:
    slope = -1 / F.clamp_scalar((1 - self) * self, 1e-12, None)
    return _times(_grad_per_element(F, g * grad_output, out_shape, reduction) * slope, weight)


binary_cross_entropy_backward.derivative(
    grad_output=_bce_backward_grad, self=_bce_backward_self, target=_bce_backward_target
)


@_loss(
    "BinaryCrossEntropyWithLogitsBackward0", optional=("weight", "pos_weight"),
)  # fmt: skip
def bce_with_logits_block(np: Any, self: Any, target: Any, weight: Any, pos_weight: Any, /, reduction: str) -> Any:
    """Return the binary cross entropy of ``sigmoid(self)`` with ``target``, computed without overflow.

    The result is reduced by ``reduction``. ``weight`` is None or has one factor per loss. ``pos_weight`` is None or has
    factors for the term ``-target * log(sigmoid(self))`` of the loss.
    """
    _floats("log_sigmoid_cpu", self)
    return losses.reduced(np, losses.logit_loss(np, self, target, weight, pos_weight), reduction)


@_loss()
def bce_with_logits_backward(
    np: Any, grad_output: Any, self: Any, target: Any, weight: Any, pos_weight: Any, /, reduction: str
) -> Any:
    """Return the gradient of ``binary_cross_entropy_with_logits`` with respect to ``self``."""
    return losses.logit_loss_gradient(np, self, target, weight, pos_weight, grad_output, reduction)


def _logits_slope(F: Any, self: Any, target: Any, pos_weight: Any) -> Any:
    share = F.sigmoid(self)
    if pos_weight is None:
        return share - target
    return share * (pos_weight * target + (1 - target)) - pos_weight * target


def _logits_backward_grad(F: Any, g: Any, self: Any, target: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    return _reduce(F, _times(g * _logits_slope(F, self, target, pos_weight), weight), reduction)


def _logits_backward_self(
    F: Any, g: Any, grad_output: Any, self: Any, target: Any, weight: Any, pos_weight: Any, out_shape: Any,
    reduction: str,
) -> Any:  # fmt: skip
    bend = F.sigmoid_backward(_grad_per_element(F, g * grad_output, out_shape, reduction), F.sigmoid(self))
    return _times(bend if pos_weight is None else bend * (pos_weight * target + (1 - target)), weight)


def _logits_backward_target(
    F: Any, g: Any, grad_output: Any, self: Any, weight: Any, pos_weight: Any, out_shape: Any, reduction: str
) -> Any:
    spread = _grad_per_element(F, g * grad_output, out_shape, reduction)
    slope = -spread if pos_weight is None else spread * (F.sigmoid(self) * (pos_weight - 1) - pos_weight)
    return _times(slope, weight)


def _logits_target(F: Any, g: Any, self: Any, weight: Any, pos_weight: Any, self_shape: Any, reduction: str) -> Any:
    slope = -self if pos_weight is None else F.logsigmoid(-self) - pos_weight * F.logsigmoid(self)
    return _times(_grad_per_element(F, g, self_shape, reduction) * slope, weight)


bce_with_logits_backward.derivative(
    grad_output=_logits_backward_grad, self=_logits_backward_self, target=_logits_backward_target
)
bce_with_logits_block.derivative(
    self=lambda F, g, self, target, weight, pos_weight, reduction: F.bce_with_logits_backward(
        g, self, target, weight, pos_weight, reduction
    ),
    target=_logits_target,
)


def _check_not_differentiated(name: str, **given: Tensor | None) -> None:
    for argument, each in given.items():
        if each is not None and each.requires_grad:
            raise RuntimeError(
                f"The function '{name}' is not differentiable with respect to argument '{argument}'. This input cannot "
                "have requires_grad True."
            )


def _check_broadcast(shape: Sequence[int], target: Sequence[int]) -> None:
    for back in range(1, min(len(shape), len(target)) + 1):
        if shape[-back] not in (1, target[-back]):
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {shape[-back]} at {-back}! Mismatching argument at index 1 "
                f"had torch.Size({list(shape)}); but expected shape should be broadcastable to {list(target)}"
            )


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return the binary cross entropy of the probabilities ``input`` with ``target``, both between 0 and 1.

    ``weight`` is None or has one factor per loss, and is broadcast to the shape of ``input``. ``reduction`` is
    ``"mean"``, ``"sum"`` or ``"none"``. A mean is divided by the number of elements, even if ``weight`` is not None.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(
            f"Using a target size ({target.size()}) that is different to the input size ({input.size()}) is deprecated. "
            "Please ensure they have the same size."
        )
    if target.dtype is not input.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_name(target.dtype)} but expected {scalar_name(dtype_of(input._array.dtype))}"
        )
    _check_not_differentiated("binary_cross_entropy", weight=weight)
    if weight is not None:
        _check_broadcast(weight.shape, input.shape)
    result: Tensor = binary_cross_entropy_block(input, target, weight, reduction_name)
    return result


@public(
    function=False, method=False, fast_path=bce_with_logits_block,
    if_arrays=lambda self, target, weight, pos_weight, reduction, _d: (
        weight is None and pos_weight is None and _is_plain(self, target, reduction, _d)
    ),
    operands=("input", "target", "weight", "pos_weight"),
)  # fmt: skip
def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean", pos_weight: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Return :func:`binary_cross_entropy` of ``sigmoid(input)`` with ``target``, computed without overflow.

    ``pos_weight`` is None or has factors for the term ``-target * log(sigmoid(input))`` of the loss.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    if target.size() != input.size():
        raise ValueError(f"Target size ({target.size()}) must be the same as input size ({input.size()})")
    _check_not_differentiated("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    x, y = _in_common_dtype(input, target, target.dtype) if input.is_floating_point() else (input, target)
    result: Tensor = bce_with_logits_block(x, y, weight, pos_weight, reduction_name)
    return _in_dtype(result, target.dtype, "BinaryCrossEntropyWithLogitsBackward0")


@public(method=False, name="binary_cross_entropy_with_logits")
def _torch_bce_with_logits(
    input: Tensor, target: Tensor, weight: Tensor | None = None, pos_weight: Tensor | None = None, reduction: int = 0
) -> Tensor:
    """Return ``nn.functional.binary_cross_entropy_with_logits`` of the arguments.

    ``reduction`` is 0 for none, 1 for the mean, 2 for the sum.
    """
    _check_not_differentiated("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    result: Tensor = bce_with_logits_block(input, target, weight, pos_weight, numbered_reduction(reduction))
    return result


# -- Losses composed of other operations -----------------------------------------------------------------------------


def _divergence(input: Tensor, target: Tensor, log_target: bool) -> Tensor:
    for each in (input, target):
        if each.is_complex():
            raise RuntimeError("kl_div: Complex inputs not supported.")
        if not each.is_floating_point():
            raise RuntimeError("kl_div: Integral inputs not supported.")
    if log_target:
        return exp(target) * (target - input)
    return xlogy(target, target) - target * input


def kl_div(
    input: Tensor, target: Tensor, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean", log_target: bool = False,
) -> Tensor:  # fmt: skip
    """Return the Kullback-Leibler divergence ``target * (log(target) - input)``, reduced by ``reduction``.

    ``input`` holds log-probabilities. ``reduction`` is ``"mean"``, ``"sum"``, ``"none"`` or ``"batchmean"``. For
    ``"batchmean"``, the sum is divided by the size of the first dimension, as in the mathematical definition. If
    ``log_target`` is true, ``target`` holds log-probabilities instead of probabilities.
    """
    legacy = size_average is not None or reduce is not None
    if reduction == "mean" and not legacy:
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
        )
    batch = reduction == "batchmean" and not legacy
    reduction_name = "sum" if batch else parse_reduction(size_average, reduce, reduction)
    result = reduce_losses(_divergence(input, target, log_target), reduction_name)
    return result / input.size()[0] if batch and input.ndim else result


@public(method=False, name="kl_div")
def _kl_div(input: Tensor, target: Tensor, reduction: int = 0, *, log_target: bool = False) -> Tensor:
    """Return ``nn.functional.kl_div`` of the arguments.

    ``reduction`` is 0 for none, 1 for the mean, 2 for the sum.
    """
    return reduce_losses(_divergence(input, target, log_target), numbered_reduction(reduction))


def _export_with_int_reduction(
    name: str, defaults: dict[str, Any]
) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Return a decorator that exports a loss function as ``torch.<name>``, with ``reduction`` as an int.

    The decorated function, a loss of ``nn.functional``, is returned unchanged. The last argument of the function in
    ``torch`` is ``reduction``: 0 for none, 1 for the mean, 2 for the sum. ``defaults`` maps the names of the preceding
    arguments, in order, to their default values.
    """

    def declare(each: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def by_number(*args: Any, **kwargs: Any) -> Tensor:
            arguments = {
                **defaults,
                "reduction": 0,
                **dict(zip([*defaults, "reduction"], args, strict=False)),
                **kwargs,
            }
            missing = [key for key, value in arguments.items() if value is REQUIRED_ARGUMENT]
            if missing:
                raise TypeError(
                    f"{name}() missing {len(missing)} required positional arguments: "
                    + ", ".join(f'"{key}"' for key in missing)
                )
            number = arguments.pop("reduction")
            return each(**arguments, reduction=numbered_reduction(number))

        by_number.__name__ = by_number.__qualname__ = name
        by_number.__doc__ = (
            f"Return ``nn.functional.{name}`` of the arguments.\n\n"
            "``reduction`` is 0 for none, 1 for the mean, 2 for the sum."
        )
        public(method=False, name=name)(by_number)
        return each

    return declare


REQUIRED_ARGUMENT = object()


@_export_with_int_reduction(
    "cosine_embedding_loss",
    {"input1": REQUIRED_ARGUMENT, "input2": REQUIRED_ARGUMENT, "target": REQUIRED_ARGUMENT, "margin": 0.0},
)
def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return ``1 - cos`` where ``target`` is 1, and ``max(0, cos - margin)`` where ``target`` is -1.

    ``cos`` is the cosine similarity of ``input1`` and ``input2`` along the last dimension. The inputs have shape (N, D)
    and ``target`` (N,), or the inputs have shape (D,) and ``target`` is 0-d. The losses are reduced as in
    :func:`mse_loss`.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if target.ndim and (input1.ndim, input2.ndim) != (2, 2):
        raise RuntimeError(
            f"1D target tensor expects 2D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    if not target.ndim and (input1.ndim, input2.ndim) != (1, 1):
        raise RuntimeError(
            f"0D target tensor expects 1D input tensors, but found inputs with sizes {list(input1.shape)} and "
            f"{list(input2.shape)}."
        )
    dot = sum(input1 * input2, -1)
    lengths = (sum(input1 * input1, -1) + 1e-12) * (sum(input2 * input2, -1) + 1e-12)
    cos = dot / lengths.sqrt()
    zero = zeros_like(cos)
    alike = where_(eq(target, 1), 1 - cos, zero)
    return reduce_losses(alike + where_(eq(target, -1), clamp_min(cos - margin, 0), zero), reduction_name)


@_export_with_int_reduction(
    "hinge_embedding_loss", {"input": REQUIRED_ARGUMENT, "target": REQUIRED_ARGUMENT, "margin": 1.0}
)
def hinge_embedding_loss(
    input: Tensor, target: Tensor, margin: float = 1.0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return ``input`` where ``target`` is 1, and ``max(0, margin - input)`` where ``target`` is -1.

    The losses are reduced as in :func:`mse_loss`.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    zero = zeros_like(input)
    apart = where_(ne(target, 1), clamp_min(margin - input, 0), zero)
    return reduce_losses(apart + where_(ne(target, -1), input, zero), reduction_name)


@_export_with_int_reduction(
    "margin_ranking_loss",
    {"input1": REQUIRED_ARGUMENT, "input2": REQUIRED_ARGUMENT, "target": REQUIRED_ARGUMENT, "margin": 0.0},
)
def margin_ranking_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return ``max(0, margin - target * (input1 - input2))``, reduced as in :func:`mse_loss`.

    If ``target`` is 1, the loss is small if ``input1`` is greater than ``input2``. If ``target`` is -1, the loss is
    small if ``input1`` is less than ``input2``.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    if input1.ndim != input2.ndim or input1.ndim != target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.size()}, input2: {input2.size()}, target: {target.size()} "
        )
    return reduce_losses(clamp_min(-target * (input1 - input2) + margin, 0), reduction_name)


def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """Return the negative log-density of ``target`` under a normal distribution, reduced as in :func:`mse_loss`.

    ``input`` is the mean of the distribution. ``var``, its variance, has the shape of ``input`` or one element per row,
    and is clamped to at least ``eps``. The constant term ``0.5 * log(2 * pi)`` is included only if ``full`` is true.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = var * ones_like(input)
    elif innermost_batch((var,)) is None and not on_gpu(var._array) and bool((var._array < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.size() != input.size():
        if input.size()[:-1] == var.size():
            var = unsqueeze(var, -1)
        elif input.ndim != var.ndim or any(b not in (a, 1) for a, b in zip(input.shape, var.shape, strict=True)):
            raise ValueError("var is of incorrect size")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    var = var.clone()
    with no_grad():
        var.clamp_(min=eps)
    each = 0.5 * (log(var) + (input - target) ** 2 / var)
    return reduce_losses(each + 0.5 * math.log(2 * math.pi) if full else each, reduction)


def poisson_nll_loss(
    input: Tensor, target: Tensor, log_input: bool = True, full: bool = False, size_average: bool | None = None,
    eps: float = 1e-08, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return the negative log-probability of ``target`` under a Poisson distribution, reduced as in :func:`mse_loss`.

    The mean of the distribution is ``exp(input)`` if ``log_input`` is true, otherwise ``input``. The term
    ``log(target!)``, which does not depend on ``input``, is included only if ``full`` is true, by Stirling's
    approximation.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    each = exp(input) - target * input if log_input else input - target * log(input + eps)
    if full:
        stirling = target * log(target) - target + 0.5 * log(2 * math.pi * target)
        each = each + stirling.masked_fill(target <= 1, 0)
    return reduce_losses(each, reduction_name)


@public(method=False, name="poisson_nll_loss")
def _poisson_nll_loss(input: Tensor, target: Tensor, log_input: bool, full: bool, eps: float, reduction: int) -> Tensor:
    """Return ``nn.functional.poisson_nll_loss`` of the arguments.

    ``reduction`` is 0 for none, 1 for the mean, 2 for the sum.
    """
    return poisson_nll_loss(input, target, log_input, full, None, eps, None, numbered_reduction(reduction))


def multilabel_soft_margin_loss(
    input: Tensor, target: Tensor, weight: Tensor | None = None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return the binary cross entropy of ``sigmoid(input)`` with ``target``, averaged over the classes.

    The last dimension holds the classes. The averages are reduced as in :func:`mse_loss`. ``weight`` is None or has one
    factor per class.
    """
    if size_average is not None or reduce is not None:
        reduction = parse_reduction(size_average, reduce, reduction)
    each = -(target * logsigmoid(input) + (1 - target) * logsigmoid(-input))
    if weight is not None:
        each = each * weight
    each = sum(each, input.ndim - 1) / input.size(input.ndim - 1)
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not valid")
    return reduce_losses(each, reduction)


# -- Triplet losses --------------------------------------------------------------------------------------------------


def _distance(a: Tensor, b: Tensor, p: float, eps: float) -> Tensor:
    return norm(a - b + eps, p, -1)


def _triplet(
    distance: Callable[[Tensor, Tensor], Tensor], anchor: Tensor, positive: Tensor, negative: Tensor, margin: float,
    swap: bool, reduction: str,
) -> Tensor:  # fmt: skip
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return reduce_losses(clamp_min(margin + near - far, 0), reduction)


@_export_with_int_reduction(
    "triplet_margin_loss",
    {"anchor": REQUIRED_ARGUMENT, "positive": REQUIRED_ARGUMENT, "negative": REQUIRED_ARGUMENT,
     "margin": 1.0, "p": 2.0, "eps": 1e-06,
     "swap": False},
)  # fmt: skip
def triplet_margin_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2, eps: float = 1e-06,
    swap: bool = False, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return ``max(0, margin + |anchor - positive| - |anchor - negative|)``, reduced as in :func:`mse_loss`.

    ``|…|`` is the norm of order ``p`` along the last dimension. ``eps`` is added to each difference. If ``swap`` is
    true, ``|anchor - negative|`` is replaced by ``|positive - negative|`` where the latter is smaller.
    """
    reduction_name = parse_reduction(size_average, reduce, reduction)
    return _triplet(lambda a, b: _distance(a, b, p, eps), anchor, positive, negative, margin, swap, reduction_name)


def triplet_margin_with_distance_loss(
    anchor: Tensor, positive: Tensor, negative: Tensor, *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
) -> Tensor:  # fmt: skip
    """Return :func:`triplet_margin_loss` with ``distance_function(x, y)`` instead of the norm ``|x - y|``.

    If ``distance_function`` is None, the distance is the 2-norm of ``x - y``.
    """
    reduction_name = parse_reduction(None, None, reduction)
    measure = distance_function or (lambda a, b: _distance(a, b, 2.0, 1e-06))
    return _triplet(measure, anchor, positive, negative, margin, swap, reduction_name)


__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "gaussian_nll_loss",
    "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss", "margin_ranking_loss", "mse_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip
