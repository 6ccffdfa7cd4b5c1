"""``Adagrad``: gradients divided by the root of the sum of their squares."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, as_number, full_like_param, increment_step, initial_step_count
from .optimizer import options
from .sparse_adam import with_values


class Adagrad(ElementwiseOptimizer):
    """Adagrad optimiser: a step is ``p -= lr / (1 + t * lr_decay) * g / (sqrt(s) + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``s`` is the sum of ``g*g`` over all steps, and ``t`` the number of
    earlier steps.

    Source: Duchi, Hazan and Singer, "Adaptive Subgradient Methods for Online Learning and Stochastic Optimization",
    2011.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Adagrad([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    later_options = {"foreach": None, "maximize": False, "differentiable": False, "fused": None}
    checked = ("lr", "lr_decay", "weight_decay", "initial_accumulator_value", "eps")
    moved = ("sum",)

    def __init__(
        self, params: Any, lr: Any = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals(), eps="weight_decay"))
        for group in self.param_groups:  # the state exists before the first step
            for param in group["params"]:
                self.state[param] = self.fresh(group, param)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        total = full_like_param(param, group["initial_accumulator_value"])
        return {"step": initial_step_count(group, param), "sum": total}

    def share_memory(self) -> None:
        """Do nothing: sharing the state with other processes is not supported."""

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        return {"size": values["lr"] / (1 + (step - 1) * values["lr_decay"])}

    def _check_sparse(self, group: dict[str, Any]) -> None:
        if group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        if group["fused"]:
            raise RuntimeError("`fused` does not support sparse grad or complex param")

    def _move_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        state = self.state[param]
        step = increment_step(state)
        grad = (-grad if group["maximize"] else grad).coalesce()
        state["sum"].add_(grad.pow(2))
        root = state["sum"].sparse_mask(grad).sqrt()
        size = as_number(group["lr"], group) / (1 + (step - 1) * group["lr_decay"])
        param.add_(with_values(grad, grad.values() / (root.values() + group["eps"])), alpha=-size)

    @staticmethod
    def rule(F: Any, param: Any, grad: Any, sum: Any, *, size: Any, eps: float) -> None:
        """Update ``param`` in place by one Adagrad step; ``sum`` is also updated in place.

        ``sum`` is the sum of the squared gradients and ``size`` the learning rate of this step. The operations are
        methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for Tensors); see ``fused.py``.
        """
        F.addcmul_(sum, grad, grad)
        F.addcdiv_(param, grad, F.root(sum, 1, eps), -size)


__all__ = ["Adagrad"]
