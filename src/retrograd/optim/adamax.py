"""``Adamax``: Adam with a decaying maximum of absolute gradients instead of the root mean square."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count, option_value
from .optimizer import check_betas, check_not_negative, check_rate


class Adamax(ElementwiseOptimizer):
    """Adamax optimiser: a step is ``p -= lr * m / u`` with ``u = max(beta2 * u, |g| + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``m`` is the bias-corrected running mean of ``g``, as in
    :class:`Adam`.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014, section 7.1.
    """

    later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    moved = ("exp_avg", "exp_inf")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        check_rate(lr)
        check_not_negative(eps=("epsilon value", eps))
        check_betas(betas)
        check_not_negative(weight_decay=("weight_decay value", weight_decay))
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "foreach": foreach,
            "maximize": maximize, "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {
            "step": initial_step_count(group, param),
            "exp_avg": full_like_param(param),
            "exp_inf": full_like_param(param),
        }

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        beta1, beta2 = group["betas"]
        return {
            "weight_decay": group["weight_decay"], "maximize": group["maximize"], "beta1": beta1, "beta2": beta2,
            "eps": group["eps"], "size": option_value(group, group["lr"]) / (1 - beta1 ** increment_step(state)),
        }  # fmt: skip

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, greatest: Any, *, weight_decay: float, maximize: bool, beta1: float,
        beta2: float, eps: float, size: Any,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one Adamax step; ``mean`` and ``greatest`` are also updated in place.

        ``mean`` is the running mean of the gradient. ``greatest`` is the maximum of the absolute gradients over the
        steps; it is multiplied by ``beta2`` at every step. ``size`` is the learning rate divided by the bias correction
        of ``mean``. ``F`` provides the operations (``ArrayOps`` or ``TensorOps`` in ``fused.py``).
        """
        grad = F.direction(param, grad, weight_decay, maximize)
        F.lerp_(mean, grad, 1 - beta1)
        F.mul_(greatest, beta2)
        F.maximum_(greatest, F.shift(F.abs(grad), eps))
        F.addcdiv_(param, mean, greatest, -size)


__all__ = ["Adamax"]
