"""``NAdam``: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count, option_value
from .optimizer import check_betas, check_not_negative, check_rate


class NAdam(ElementwiseOptimizer):
    """NAdam optimiser: :class:`Adam` with Nesterov momentum.

    A step combines the current gradient with the running mean of the gradients. The momentum, the weight of the mean,
    grows from ``beta1 / 2`` to ``beta1`` during training; a larger ``momentum_decay`` makes it grow faster.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.
    """

    later_options = {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False,
    }  # fmt: skip
    counted = ("step", "mu_product")
    captured = "params, mu_products and state_steps"
    moved = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_rate(lr)
        check_not_negative(eps=("epsilon value", eps))
        check_betas(betas)
        check_not_negative(
            weight_decay=("weight_decay value", weight_decay), momentum_decay=("momentum_decay value", momentum_decay)
        )
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay, "maximize": maximize, "foreach": foreach,
            "capturable": capturable, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        step = initial_step_count(group, param)
        return {
            "step": step,
            "mu_product": step + 1,
            "exp_avg": full_like_param(param),
            "exp_avg_sq": full_like_param(param),
        }

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        step, lr, (beta1, beta2) = increment_step(state), option_value(group, group["lr"]), group["betas"]
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (each * group["momentum_decay"])) for each in (step, step + 1))
        state["mu_product"].mul_(now)
        product = state["mu_product"].item()
        decoupled, decay = group["decoupled_weight_decay"], group["weight_decay"]
        return {
            "shrink": 1 - lr * decay if decoupled and decay != 0 else None, "weight_decay": 0 if decoupled else decay,
            "maximize": group["maximize"], "beta1": beta1, "beta2": beta2, "eps": group["eps"],
            "correction": (1 - beta2**step) ** 0.5, "of_grad": lr * (1 - now) / (1 - product),
            "of_mean": lr * later / (1 - product * later),
        }  # fmt: skip

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, square: Any, *, shrink: Any, weight_decay: float, maximize: bool,
        beta1: float, beta2: float, eps: float, correction: float, of_grad: Any, of_mean: Any,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one NAdam step; ``mean`` and ``square`` are also updated in place.

        ``mean`` and ``square`` are the running means of the gradient and of its square. ``of_grad`` and ``of_mean`` are
        the step sizes along the gradient and along ``mean``. ``correction`` is the root of the bias correction of
        ``square``. ``param`` is first multiplied by ``shrink``, unless ``shrink`` is None. ``F`` provides the
        operations (``ArrayOps`` or ``TensorOps`` in ``fused.py``).
        """
        if shrink is not None:
            F.mul_(param, shrink)
        grad = F.direction(param, grad, weight_decay, maximize)
        F.lerp_(mean, grad, 1 - beta1)
        F.mul_(square, beta2)
        F.addcmul_(square, grad, grad, 1 - beta2)
        root = F.root(square, correction, eps)
        F.addcdiv_(param, grad, root, -of_grad)
        F.addcdiv_(param, mean, root, -of_mean)


__all__ = ["NAdam"]
