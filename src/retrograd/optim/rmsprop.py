"""``RMSprop``: gradients divided by the root of their mean square."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import numba_steps
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count, option_value
from .numba_steps import with_loop
from .optimizer import check_not_negative, check_rate


class RMSprop(ElementwiseOptimizer):
    """RMSprop optimiser: a step is ``p -= lr * g / (sqrt(v) + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``v`` is the running mean of ``g*g`` or, if ``centered`` is true, the
    running variance of ``g``.

    Source: Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; centred: Graves, "Generating Sequences
    With Recurrent Neural Networks", 2013.
    """

    later_options = {
        "momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False,
        "capturable": False,
    }  # fmt: skip
    moved = ("square_avg", "momentum_buffer", "grad_avg")

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_rate(lr)
        check_not_negative(
            eps=("epsilon value", eps), momentum=("momentum value", momentum),
            weight_decay=("weight_decay value", weight_decay), alpha=("alpha value", alpha),
        )  # fmt: skip
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        state = {"step": initial_step_count(group, param), "square_avg": full_like_param(param)}
        if group["momentum"] > 0:
            state["momentum_buffer"] = full_like_param(param)
        if group["centered"]:
            state["grad_avg"] = full_like_param(param)
        return state

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        increment_step(state)
        return {
            "lr": option_value(group, group["lr"]),
            **{name: group[name] for name in ("alpha", "eps", "weight_decay", "momentum", "centered", "maximize")},
        }

    @staticmethod
    @with_loop(numba_steps.root_mean_square)
    def rule(
        F: Any, param: Any, grad: Any, square: Any, *buffers: Any, lr: Any, alpha: float, eps: float,
        weight_decay: float, momentum: float, centered: bool, maximize: bool,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one RMSprop step; the state tensors are also updated in place.

        ``square`` is the running mean of the squared gradient with decay rate ``alpha``. ``buffers`` contains the
        momentum buffer (only if ``momentum`` is not 0) and the running mean of the gradient (only if ``centered`` is
        true), in this order. ``F`` provides the operations (``ArrayOps`` or ``TensorOps`` in ``fused.py``).
        """
        grad = F.direction(param, grad, weight_decay, maximize)
        F.mul_(square, alpha)
        F.addcmul_(square, grad, grad, 1 - alpha)
        if centered:
            mean = buffers[-1]
            F.lerp_(mean, grad, 1 - alpha)
            square = F.add(square, F.mul(mean, mean), -1)
        root = F.root(square, 1, eps)
        if momentum > 0:
            F.mul_(buffers[0], momentum)
            F.addcdiv_(buffers[0], grad, root)
            F.add_(param, buffers[0], -lr)
        else:
            F.addcdiv_(param, grad, root, -lr)


__all__ = ["RMSprop"]
