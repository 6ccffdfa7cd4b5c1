"""``Adam``: steps divided by the root of a running mean of squared gradients."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, as_number
from .numba_steps import with_loop
from .optimizer import options


def _loop_scalars(shrink: Any, betas: Any, eps: float, size: Any, correction: Any) -> tuple[Any, ...]:
    """Return the last arguments of the compiled loop for :meth:`Adam.rule` (see :func:`with_loop`).

    They are ``shrink``, the factor of decoupled weight decay, and numbers computed from the arguments of the rule: ``1
    - beta1``, ``beta2``, ``1 - beta2``, ``eps``, ``size`` and ``correction``.
    """
    return shrink, 1 - betas[0], betas[1], 1 - betas[1], eps, size, correction


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
    checked = ("lr", "eps", "betas", "weight_decay")
    moved = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq")
    moved_if = {"max_exp_avg_sq": "amsgrad"}

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: Any = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals(), maximize="foreach"))

    def check_options(self, values: dict[str, Any]) -> None:
        betas, many_at_once = values["betas"], bool(values["foreach"] and not values["capturable"])
        for name, value in (("lr", values["lr"]), ("betas[0]", betas[0]), ("betas[1]", betas[1])):
            if isinstance(value, Tensor):
                if many_at_once:
                    raise ValueError(f"{name} as a Tensor is not supported for capturable=False and foreach=True")
                if value.numel() != 1:
                    raise ValueError(f"Tensor {name} must be 1-element")
        super().check_options(values)
        if not any(isinstance(betas[0], kind) and isinstance(betas[1], kind) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        values["betas"] = tuple(betas)

    def _check_sparse(self, group: dict[str, Any]) -> None:
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        beta1, beta2 = betas = values["betas"]
        if isinstance(beta1, Tensor):
            beta1, beta2 = betas = tuple(as_number(beta, values) for beta in betas)
        return {"betas": betas, "size": values["lr"] / (1 - beta1**step), "correction": (1 - beta2**step) ** 0.5}

    @staticmethod
    @with_loop("adam", 4, _loop_scalars)
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, square: Any, greatest: Any = None, *, betas: tuple[Any, Any],
        eps: float, size: Any, correction: Any,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one Adam step; ``mean``, ``square`` and ``greatest`` are also updated in place.

        ``mean`` and ``square`` are the running means of the gradient and of its square. ``greatest`` is the maximum of
        ``square`` over all steps, or None without ``amsgrad``. ``size`` is the learning rate divided by the bias
        correction of ``mean``; ``correction`` is the root of the bias correction of ``square``. The operations are
        methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for Tensors); see ``fused.py``.
        """
        F.lerp_(mean, grad, 1 - betas[0])
        F.mul_(square, betas[1])
        F.addcmul_(square, grad, grad, 1 - betas[1])
        if greatest is not None:
            F.maximum_(greatest, square)
            square = greatest
        F.addcdiv_(param, mean, F.root(square, correction, eps), -size)


__all__ = ["Adam"]
