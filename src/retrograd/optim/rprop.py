"""``Rprop``: steps that depend only on the signs of the gradients."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param, increment_step, initial_step_count
from .optimizer import check_rate


class Rprop(ElementwiseOptimizer):
    """Rprop optimiser: each element of a parameter has its own step size.

    A step subtracts the step size times the sign of the gradient. The step size grows while the gradient of the element
    keeps its sign, and shrinks when the sign changes.

    Source: Riedmiller and Braun, "A direct adaptive method for faster backpropagation learning: the RPROP algorithm",
    1993.
    """

    later_options = {"foreach": None, "maximize": False, "differentiable": False, "capturable": False}
    moved = ("prev", "step_size")

    def __init__(
        self, params: Any, lr: Any = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        check_rate(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        defaults = {
            "lr": lr, "etas": etas, "step_sizes": step_sizes, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable, "capturable": capturable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        lr = float(group["lr"])
        size = full_like_param(param, complex(lr, lr) if param.is_complex() else lr)
        return {"step": initial_step_count(group, param), "prev": full_like_param(param), "step_size": size}

    def numbers(self, group: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        increment_step(state)
        return {name: group[name] for name in ("etas", "step_sizes", "maximize")}

    @staticmethod
    def rule(
        F: Any, param: Any, grad: Any, before: Any, size: Any, *, etas: tuple[float, float],
        step_sizes: tuple[float, float], maximize: bool,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one Rprop step; ``before`` and ``size`` are also updated in place.

        ``before`` is the previous gradient and ``size`` the step size of each element. An element of ``size`` is
        multiplied by ``etas[0]`` if the gradient has changed its sign, by ``etas[1]`` if the sign is the same, and
        clamped to the range ``step_sizes``. Elements of ``param`` whose gradient has changed its sign are not updated.
        ``F`` provides the operations (``ArrayOps`` or ``TensorOps`` in ``fused.py``).
        """
        grad = F.direction(param, grad, 0, maximize)
        stored = F.mul(grad, before)
        F.mul_(size, F.select(stored, etas[0], 1, etas[1]))
        F.clamp_(size, *step_sizes)
        grad = F.select(stored, 0, grad, grad)
        F.addcmul_(param, F.sign(grad), size, -1)
        F.set_(before, grad)


__all__ = ["Rprop"]
