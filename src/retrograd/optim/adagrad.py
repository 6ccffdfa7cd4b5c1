"""``Adagrad``: gradients divided by the root of the sum of their squares."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count, option_value
from .optimizer import check_fused, check_not_negative, check_rate


class Adagrad(ElementwiseOptimizer):
    """Adagrad optimiser: a step is ``p -= lr / (1 + t * lr_decay) * g / (sqrt(s) + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``s`` is the sum of ``g*g`` over all steps, and ``t`` the number of
    earlier steps.

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
    2011.
    """

    later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    moved = ("sum",)

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_rate(lr)
        check_not_negative(
            lr_decay=("lr_decay value", lr_decay), weight_decay=("weight_decay value", weight_decay),
            start=("initial_accumulator_value value", initial_accumulator_value), eps=("epsilon value", eps),
        )  # fmt: skip
        defaults = {
            "lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)
        for group in self.param_groups:  # the state exists before the first step
            for param in group["params"]:
                self.state[param] = self.fresh(group, param)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        start = group["initial_accumulator_value"]
        start = complex(start, start) if param.is_complex() else start
        return {"step": initial_step_count(group, param), "sum": full_like_param(param, start)}

    def share_memory(self) -> None:
        """Do nothing: sharing the state with other processes is not supported."""

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        before = increment_step(state) - 1
        return {
            "size": option_value(group, group["lr"]) / (1 + before * group["lr_decay"]),
            **{name: group[name] for name in ("weight_decay", "maximize", "eps")},
        }

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, sum: Any, *, size: Any, weight_decay: float, maximize: bool, eps: float
    ) -> None:
        """Update ``param`` in place by one Adagrad step; ``sum`` is also updated in place.

        ``sum`` is the sum of the squared gradients and ``size`` the learning rate of this step. ``F`` provides the
        operations (``ArrayOps`` or ``TensorOps`` in ``fused.py``).
        """
        grad = F.direction(param, grad, weight_decay, maximize)
        F.addcmul_(sum, grad, grad)
        F.addcdiv_(param, grad, F.root(sum, 1, eps), -size)


__all__ = ["Adagrad"]
