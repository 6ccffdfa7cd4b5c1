"""``Adam``: steps divided by the root of a running mean of squared gradients."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import numba_steps
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count, option_value
from .numba_steps import with_loop
from .optimizer import check_betas, check_fused, check_not_negative, check_rate


class Adam(ElementwiseOptimizer):
    """Adam optimiser: a step is ``p -= lr * m / (sqrt(v) + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``m`` and ``v`` are the bias-corrected running means of ``g`` and
    ``g*g``. The weight decay ``weight_decay * p`` is added to ``g``. With ``decoupled_weight_decay``, ``p`` is
    multiplied by ``1 - lr * weight_decay`` instead (see :class:`AdamW`). With ``amsgrad``, ``v`` is replaced by its
    maximum over all steps.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014; Reddi et al., "On the Convergence of Adam
    and Beyond", 2018.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Adam([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    later_options = {
        "amsgrad": False, "maximize": False, "foreach": None, "capturable": False, "differentiable": False,
        "decoupled_weight_decay": False, "fused": None,
    }  # fmt: skip
    moved = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: Any = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        _check_tensors(lr, betas, bool(foreach and not capturable))
        check_rate(lr)
        check_not_negative(eps=("epsilon value", eps))
        check_betas(betas)
        check_not_negative(weight_decay=("weight_decay value", weight_decay))
        for kind in (float, Tensor):
            if isinstance(betas[0], kind) and isinstance(betas[1], kind):
                break
        else:
            raise ValueError("betas must be either both floats or both Tensors")
        defaults = {
            "lr": lr, "betas": tuple(betas), "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad,
            "maximize": maximize, "foreach": foreach, "capturable": capturable, "differentiable": differentiable,
            "fused": fused, "decoupled_weight_decay": decoupled_weight_decay,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        state = {
            "step": initial_step_count(group, param),
            "exp_avg": full_like_param(param),
            "exp_avg_sq": full_like_param(param),
        }
        return state | ({"max_exp_avg_sq": full_like_param(param)} if group["amsgrad"] else {})

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        step = increment_step(state)
        lr, (beta1, beta2) = option_value(group, group["lr"]), (option_value(group, beta) for beta in group["betas"])
        decay = option_value(group, group["weight_decay"])
        decoupled = group["decoupled_weight_decay"]
        return {
            "shrink": 1 - lr * decay if decoupled else None, "weight_decay": 0 if decoupled else decay,
            "maximize": group["maximize"], "beta1": beta1, "beta2": beta2, "eps": group["eps"],
            "size": lr / (1 - beta1**step), "correction": (1 - beta2**step) ** 0.5,
        }  # fmt: skip

    @staticmethod
    @with_loop(numba_steps.adam)
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, square: Any, greatest: Any = None, *, shrink: Any, weight_decay: Any,
        maximize: bool, beta1: Any, beta2: Any, eps: float, size: Any, correction: Any,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one Adam step; ``mean``, ``square`` and ``greatest`` are also updated in place.

        ``mean`` and ``square`` are the running means of the gradient and of its square. ``greatest`` is the maximum of
        ``square`` over all steps, or None without ``amsgrad``. ``size`` is the learning rate divided by the bias
        correction of ``mean``; ``correction`` is the root of the bias correction of ``square``. ``param`` is first
        multiplied by ``shrink``, unless ``shrink`` is None. ``F`` provides the operations (``ArrayOps`` or
        ``TensorOps`` in ``fused.py``).
        """
        if shrink is not None:
            F.mul_(param, shrink)
        grad = F.direction(param, grad, weight_decay, maximize)
        F.lerp_(mean, grad, 1 - beta1)
        F.mul_(square, beta2)
        F.addcmul_(square, grad, grad, 1 - beta2)
        if greatest is not None:
            F.maximum_(greatest, square)
            square = greatest
        F.addcdiv_(param, mean, F.root(square, correction, eps), -size)


def _check_tensors(lr: Any, betas: Any, many_at_once: bool) -> None:
    for name, value in (("lr", lr), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
        if isinstance(value, Tensor):
            if many_at_once:
                raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
            if value.numel() != 1:
                raise ValueError(f"Tensor {name} must be 1-element")


__all__ = ["Adam"]
