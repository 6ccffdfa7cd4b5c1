"""``SGD``: stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from . import numba_steps
from .elementwise import ElementwiseOptimizer, full_like_param, gradient, option_value
from .fused import apply_rule
from .numba_steps import with_loop
from .optimizer import check_fused, check_rate


class SGD(ElementwiseOptimizer):
    """Gradient descent, optionally with momentum, Nesterov momentum and weight decay.

    A step is ``p -= lr * v`` with ``v = momentum * v + (1 - dampening) * g`` and ``g = grad + weight_decay * p``, where
    ``p`` is a parameter and ``grad`` its gradient. In the first step ``v = g``. With ``nesterov``, the step is
    ``p -= lr * (g + momentum * v)``.

    Source: Sutskever et al., "On the importance of initialization and momentum in deep learning", 2013.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.SGD([w], lr=0.25, momentum=0.9)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.5000, 1.0000], requires_grad=True)
    """

    foreach_recorded = True
    later_options = {"nesterov": False, "maximize": False, "foreach": None, "differentiable": False, "fused": False}

    def __init__(
        self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0, weight_decay: Any = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:  # fmt: skip
        check_rate(lr)
        for words, value in (("momentum", momentum), ("weight_decay", weight_decay)):
            if value < 0.0:
                raise ValueError(f"Invalid {words} value: {value}")
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        defaults = {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay, "nesterov": nesterov,
            "maximize": maximize, "foreach": foreach, "differentiable": differentiable, "fused": fused,
        }  # fmt: skip
        super().__init__(params, defaults)
        check_fused(fused, foreach, differentiable)

    def _move(self, group: dict[str, Any], param: Tensor) -> None:
        grad = gradient(param)
        numbers = {
            "lr": option_value(group, group["lr"]), "weight_decay": option_value(group, group["weight_decay"]),
            "maximize": group["maximize"],
        }  # fmt: skip
        if group["momentum"] == 0:  # without momentum no state entry is created, not even an empty one
            apply_rule(_descend, param, grad, [], numbers)
            return
        state = self.state[param]
        first = state.get("momentum_buffer") is None
        if first:
            state["momentum_buffer"] = full_like_param(grad)
        numbers |= {"first": first, **{name: group[name] for name in ("momentum", "dampening", "nesterov")}}
        apply_rule(_with_momentum, param, grad, [state["momentum_buffer"]], numbers)


@with_loop(numba_steps.descent)
def _descend(F: Any, param: Any, grad: Any, *, lr: Any, weight_decay: Any, maximize: bool) -> None:
    F.add_(param, F.direction(param, grad, weight_decay, maximize), -lr)


@with_loop(numba_steps.momentum)
def _with_momentum(
    F: Any, param: Any, grad: Any, buffer: Any, *, lr: Any, weight_decay: Any, maximize: bool, momentum: float,
    dampening: float, nesterov: bool, first: bool,
) -> None:  # fmt: skip
    grad = F.direction(param, grad, weight_decay, maximize)
    if first:
        F.set_(buffer, F.detached(grad))
    else:
        F.mul_(buffer, momentum)
        F.add_(buffer, grad, 1 - dampening)
    F.add_(param, F.add(grad, buffer, momentum) if nesterov else buffer, -lr)


__all__ = ["SGD"]
