"""``ASGD``: gradient descent that also computes the average of each parameter over the steps."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import ElementwiseOptimizer, full_like_param, initial_step_count
from .fused import Counters
from .optimizer import options


class ASGD(ElementwiseOptimizer):
    """Averaged stochastic gradient descent, which also computes the average of each parameter over the steps.

    The average is ``state[param]["ax"]``. The averaging starts after about ``t0`` steps; until then the average is
    equal to the parameter. The learning rate of step ``t`` is ``lr / (1 + lambd * lr * t) ** alpha``.

    Source: Polyak and Juditsky, "Acceleration of stochastic approximation by averaging", 1992.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.ASGD([w], lr=0.25)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    checked = ("lr", "weight_decay")
    counted = ("step", "eta", "mu")
    captured = "params, mus, etas, and state_steps"
    moved = ("ax",)

    def __init__(
        self, params: Any, lr: Any = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals()))

    def fresh(self, group: dict[str, Any], param: Tensor) -> dict[str, Any]:
        step = initial_step_count(group, param)
        return {"step": step, "eta": step + group["lr"], "mu": step + 1, "ax": full_like_param(param)}

    def numbers(self, values: dict[str, Any], state: dict[str, Any], step: float) -> dict[str, Any]:
        return {"eta": state["eta"].item(), "mu": state["mu"].item()}

    def counters(self, values: dict[str, Any], state: dict[str, Any], step: float) -> Counters:
        lr = values["lr"]
        eta = float(lr / (1 + values["lambd"] * lr * step) ** values["alpha"])
        return [(state["eta"], eta), (state["mu"], 1 / max(1, step - values["t0"]))]

    @staticmethod
    def rule(F: Any, param: Any, grad: Any, average: Any, *, eta: float, mu: float, lambd: float) -> None:
        """Update ``param`` in place by one ASGD step; ``average`` is also updated in place.

        ``average`` is the average of ``param`` over the steps; the new value of ``param`` is added with weight ``mu``.
        ``eta`` is the learning rate of this step. ``param`` is first multiplied by ``1 - lambd * eta``. The operations
        are methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for Tensors); see ``fused.py``.
        """
        F.mul_(param, 1 - lambd * eta)
        F.add_(param, grad, -eta)
        if mu == 1:
            F.set_(average, param)
        else:
            F.lerp_(average, param, mu)


__all__ = ["ASGD"]
