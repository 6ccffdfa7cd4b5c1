"""``RAdam``: Adam that does not divide by the root mean square during the first steps."""

from __future__ import annotations

from typing import Any

from .elementwise import ElementwiseOptimizer
from .optimizer import options


class RAdam(ElementwiseOptimizer):
    """Rectified Adam: :class:`Adam` with a correction of the step size during the first steps.

    The running mean of squared gradients has a large variance during the first steps. The step size is multiplied by
    a factor that corrects this variance. As long as the variance is too large to be corrected, the step is not divided
    by the root of the mean.

    Source: Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", 2019.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.RAdam([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0., 0.], requires_grad=True)
    """

    later_options = {
        "foreach": None, "maximize": False, "differentiable": False, "decoupled_weight_decay": False,
        "capturable": False,
    }  # fmt: skip
    checked = ("lr", "eps", "betas", "weight_decay")
    moved = ("exp_avg", "exp_avg_sq")

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals(), maximize="foreach", decoupled_weight_decay="differentiable"))

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        lr, (beta1, beta2) = values["lr"], values["betas"]
        # Length of a simple moving average with the same centre of mass: in the limit, and after `step` steps.
        limit = 2 / (1 - beta2) - 1
        length = limit - 2 * step * beta2**step / (1 - beta2**step)
        rectified = length > 5
        size = lr / (1 - beta1**step)
        if rectified:
            known = (length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length)
            size = size * known**0.5 * (1 - beta2**step) ** 0.5
        return {"size": size, "rectified": rectified}

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, square: Any, *, betas: tuple[float, float], eps: float, size: Any,
        rectified: bool,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one RAdam step; ``mean`` and ``square`` are also updated in place.

        ``mean`` and ``square`` are the running means of the gradient and of its square. ``size`` is the learning rate
        with the bias corrections and the variance correction. The step is divided by the root of ``square`` only if
        ``rectified`` is true. The operations are methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for
        Tensors); see ``fused.py``.
        """
        F.lerp_(mean, grad, 1 - betas[0])
        F.mul_(square, betas[1])
        F.addcmul_(square, grad, grad, 1 - betas[1])
        if rectified:
            F.addcdiv_(param, mean, F.root(square, 1, eps), -size)
        else:
            F.add_(param, mean, -size)


__all__ = ["RAdam"]
