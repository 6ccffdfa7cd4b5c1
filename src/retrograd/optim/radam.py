"""``RAdam``: Adam that does not divide by the root mean square during the first steps."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count, option_value
from .optimizer import check_betas, check_not_negative, check_rate


class RAdam(ElementwiseOptimizer):
    """Rectified Adam: :class:`Adam` with a correction of the step size during the first steps.

    The running mean of squared gradients has a large variance during the first steps. The step size is multiplied by
    a factor that corrects this variance. As long as the variance is too large to be corrected, the step is not divided
    by the root of the mean.

    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2019.
    """

    later_options = {
        "foreach": None, "maximize": False, "differentiable": False, "decoupled_weight_decay": False,
        "capturable": False,
    }  # fmt: skip
    moved = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_rate(lr)
        check_not_negative(eps=("epsilon value", eps))
        check_betas(betas)
        check_not_negative(weight_decay=("weight_decay value", weight_decay))
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return {
            "step": initial_step_count(group, param),
            "exp_avg": full_like_param(param),
            "exp_avg_sq": full_like_param(param),
        }

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        step, lr, (beta1, beta2) = increment_step(state), option_value(group, group["lr"]), group["betas"]
        decoupled, decay = group["decoupled_weight_decay"], group["weight_decay"]
        # Length of a simple moving average with the same centre of mass: in the limit, and after `step` steps.
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / (1 - beta2**step)
        rectified = length > 5
        size = lr / (1 - beta1**step)
        if rectified:
            known = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            size = size * known**0.5 * (1 - beta2**step) ** 0.5
        return {
            "shrink": 1 - lr * decay if decoupled and decay != 0 else None, "weight_decay": 0 if decoupled else decay,
            "maximize": group["maximize"], "beta1": beta1, "beta2": beta2, "eps": group["eps"], "size": size,
            "rectified": rectified,
        }  # fmt: skip

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, square: Any, *, shrink: Any, weight_decay: float, maximize: bool,
        beta1: float, beta2: float, eps: float, size: Any, rectified: bool,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one RAdam step; ``mean`` and ``square`` are also updated in place.

        ``mean`` and ``square`` are the running means of the gradient and of its square. ``size`` is the learning rate
        with the bias corrections and the variance correction. The step is divided by the root of ``square`` only if
        ``rectified`` is true. ``param`` is first multiplied by ``shrink``, unless ``shrink`` is None. ``F`` provides
        the operations (``ArrayOps`` or ``TensorOps`` in ``fused.py``).
        """
        if shrink is not None:
            F.mul_(param, shrink)
        grad = F.direction(param, grad, weight_decay, maximize)
        F.lerp_(mean, grad, 1 - beta1)
        F.mul_(square, beta2)
        F.addcmul_(square, grad, grad, 1 - beta2)
        if rectified:
            F.addcdiv_(param, mean, F.root(square, 1, eps), -size)
        else:
            F.add_(param, mean, -size)


__all__ = ["RAdam"]
