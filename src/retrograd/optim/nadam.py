"""``NAdam``: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer
from .fused import Counters
from .optimizer import options


class NAdam(ElementwiseOptimizer):
    """NAdam optimiser: :class:`Adam` with Nesterov momentum.

    A step combines the current gradient with the running mean of the gradients. The momentum, the weight of the mean,
    grows from ``beta1 / 2`` to ``beta1`` during training; a larger ``momentum_decay`` makes it grow faster.

    Source: Dozat, "Incorporating Nesterov Momentum into Adam", 2016.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.NAdam([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.4718, 1.4718], requires_grad=True)
    """

    later_options = {
        "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False,
    }  # fmt: skip
    checked = ("lr", "eps", "betas", "weight_decay", "momentum_decay")
    counted = ("step", "mu_product")
    captured = "params, mu_products and state_steps"
    moved = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals(), maximize="foreach"))

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        state = super().fresh(group, param)
        return {"step": state["step"], "mu_product": state["step"] + 1, **state}

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        lr, (beta1, beta2) = values["lr"], values["betas"]
        now, later = (beta1 * (1 - 0.5 * 0.96 ** (each * values["momentum_decay"])) for each in (step, step + 1))
        ((_, product),) = self.counters(values, state, step)  # a Tensor if it is differentiated
        return {
            "correction": (1 - beta2**step) ** 0.5, "of_grad": lr * (1 - now) / (1 - product),
            "of_mean": lr * later / (1 - product * later),
        }  # fmt: skip

    def counters(self, values: dict[str, Any], state: dict[str, Any], step: float) -> Counters:
        factor = values["betas"][0] * (1 - 0.5 * 0.96 ** (step * values["momentum_decay"]))
        product = state["mu_product"]
        return [(product, product * factor if product.requires_grad else float(product._array * factor))]

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, square: Any, *, betas: tuple[float, float], eps: float,
        correction: float, of_grad: Any, of_mean: Any,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one NAdam step; ``mean`` and ``square`` are also updated in place.

        ``mean`` and ``square`` are the running means of the gradient and of its square. ``of_grad`` and ``of_mean`` are
        the step sizes along the gradient and along ``mean``. ``correction`` is the root of the bias correction of
        ``square``. The operations are methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for Tensors);
        see ``fused.py``.
        """
        F.lerp_(mean, grad, 1 - betas[0])
        F.mul_(square, betas[1])
        F.addcmul_(square, grad, grad, 1 - betas[1])
        root = F.root(square, correction, eps)
        F.addcdiv_(param, grad, root, -of_grad)
        F.addcdiv_(param, mean, root, -of_mean)


__all__ = ["NAdam"]
