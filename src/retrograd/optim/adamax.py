"""``Adamax``: Adam with a decaying maximum of absolute gradients instead of the root mean square."""

from __future__ import annotations

from typing import Any

from .elementwise import ElementwiseOptimizer
from .optimizer import options


class Adamax(ElementwiseOptimizer):
    """Adamax optimiser: a step is ``p -= lr * m / u`` with ``u = max(beta2 * u, |g| + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``m`` is the bias-corrected running mean of ``g``, as in
    :class:`Adam`.

    Source: Kingma and Ba, "Adam: A Method for Stochastic Optimization", 2014, section 7.1.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Adamax([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    checked = ("lr", "eps", "betas", "weight_decay")
    moved = ("exp_avg", "exp_inf")

    def __init__(
        self, params: Any, lr: Any = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        return {"size": values["lr"] / (1 - values["betas"][0] ** step)}

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, mean: Any, greatest: Any, *, betas: tuple[float, float], eps: float, size: Any
    ) -> None:
        """Update ``param`` in place by one Adamax step; ``mean`` and ``greatest`` are also updated in place.

        ``mean`` is the running mean of the gradient. ``greatest`` is the maximum of the absolute gradients over the
        steps; it is multiplied by ``betas[1]`` at every step. ``size`` is the learning rate divided by the bias
        correction of ``mean``. The operations are methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps``
        (for Tensors); see ``fused.py``.
        """
        F.lerp_(mean, grad, 1 - betas[0])
        F.mul_(greatest, betas[1])
        F.maximum_(greatest, F.shift(F.abs(grad), eps))
        F.addcdiv_(param, mean, greatest, -size)


__all__ = ["Adamax"]
