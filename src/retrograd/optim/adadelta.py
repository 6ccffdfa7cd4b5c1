"""``Adadelta``: gradient descent with step sizes computed from running means of squared steps and gradients."""

from __future__ import annotations

from typing import Any

from .elementwise import ElementwiseOptimizer
from .optimizer import options


class Adadelta(ElementwiseOptimizer):
    """Adadelta optimiser: a step is ``p -= lr * d`` with ``d = g * sqrt(D + eps) / sqrt(G + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``G`` and ``D`` are the running means of ``g*g`` and of ``d*d``, both
    with decay rate ``rho``.

    Source: Zeiler, "ADADELTA: An Adaptive Learning Rate Method", 2012.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Adadelta([w], lr=1.0)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.9968, 1.9968], requires_grad=True)
    """

    checked = ("lr", "rho", "eps", "weight_decay")
    capturable_on = ("cuda", "xpu", "hpu", "privateuseone")
    moved = ("square_avg", "acc_delta")

    def __init__(
        self, params: Any, lr: Any = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False,
        differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals(), foreach="differentiable", maximize="capturable"))

    @staticmethod
    def rule(F: Any, param: Any, grad: Any, square: Any, steps: Any, *, lr: Any, rho: float, eps: float) -> None:
        """Update ``param`` in place by one Adadelta step; ``square`` and ``steps`` are also updated in place.

        ``square`` is the running mean of the squared gradients and ``steps`` the running mean of the squared steps. The
        decay rate of the two means is ``rho``. The operations are methods of ``F``, an ``ArrayOps`` (for arrays) or a
        ``TensorOps`` (for Tensors); see ``fused.py``.
        """
        F.mul_(square, rho)
        F.addcmul_(square, grad, grad, 1 - rho)
        ratio = F.div(F.sqrt(F.shift(steps, eps)), F.sqrt(F.shift(square, eps)))
        delta = F.mul(ratio, grad)
        F.mul_(steps, rho)
        F.addcmul_(steps, delta, delta, 1 - rho)
        F.add_(param, delta, -lr)


__all__ = ["Adadelta"]
