"""``Rprop``: steps that depend only on the signs of the gradients."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param
from .optimizer import options


class Rprop(ElementwiseOptimizer):
    """Rprop optimiser: each element of a parameter has its own step size.

    A step subtracts the step size times the sign of the gradient. The step size grows while the gradient of the element
    keeps its sign, and shrinks when the sign changes.

    Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm",
    1993.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Rprop([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.5000], requires_grad=True)
    """

    checked = ("lr", "etas")
    moved = ("prev", "step_size")

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(
            params, options(locals(), foreach="capturable", maximize="capturable", differentiable="capturable")
        )

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        return super().fresh(group, param) | {"step_size": full_like_param(param, float(group["lr"]))}

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, before: Any, size: Any, *, etas: tuple[float, float],
        step_sizes: tuple[float, float],
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one Rprop step; ``before`` and ``size`` are also updated in place.

        ``before`` is the previous gradient and ``size`` the step size of each element. An element of ``size`` is
        multiplied by ``etas[0]`` if the gradient has changed its sign, by ``etas[1]`` if the sign is the same, and
        clamped to the range ``step_sizes``. Elements of ``param`` whose gradient has changed its sign are not updated.
        The operations are methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for Tensors); see
        ``fused.py``.
        """
        stored = F.mul(grad, before)
        F.mul_(size, F.select(stored, etas[0], 1, etas[1]))
        F.clamp_(size, *step_sizes)
        grad = F.select(stored, 0, grad, grad)
        F.addcmul_(param, F.sign(grad), size, -1)
        F.set_(before, grad)


__all__ = ["Rprop"]
