"""``SGD``: stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..core.tensor import Tensor
from ..dispatch.operand_promotion import PLAIN
from .elementwise import FIRST_NUMBERS, LAST_NUMBERS, ElementwiseOptimizer, as_number, full_like_param, gradient
from .fused import apply_rule
from .numba_steps import with_loop
from .optimizer import options


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
        super().__init__(params, options(locals()))

    def check_options(self, values: dict[str, Any]) -> None:
        super().check_options(values)
        for name in ("momentum", "weight_decay"):
            if values[name] < 0.0:
                raise ValueError(f"Invalid {name} value: {values[name]}")
        if values["nesterov"] and (values["momentum"] <= 0 or values["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")

    def _check_sparse(self, group: dict[str, Any]) -> None:
        if group["fused"]:
            raise RuntimeError("`_fused_sgd` does not support sparse gradients")

    def _move_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        grad = -grad if group["maximize"] else grad
        if group["weight_decay"] != 0:
            grad = grad.add(param, alpha=group["weight_decay"])  # raises PyTorch's error: it is not sparse
        momentum = group["momentum"]
        if momentum != 0:
            buffer = self.state[param].get("momentum_buffer")
            if buffer is None:
                buffer = grad.detach().clone()
            else:
                buffer = (buffer * momentum).add(grad, alpha=1 - group["dampening"]).coalesce()
            grad = grad.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        param.add_(grad, alpha=-as_number(group["lr"], group))
        if momentum != 0:
            self.state[param]["momentum_buffer"] = buffer

    def _move(
        self, group: dict[str, Any], values: dict[str, Any], param: Tensor, perform: Callable[..., None] = apply_rule
    ) -> None:
        grad = gradient(param)
        if values["momentum"] == 0:  # without momentum no state entry is created, not even an empty one
            perform(_descend, param, grad, [], values["decay"], {"lr": values["lr"]}, (), None)
            return
        state = self.state[param]
        buffer = state.get("momentum_buffer")
        first = buffer is None
        entries = None
        if first:
            buffer = full_like_param(grad if param.__class__ in PLAIN else param.grad)  # type: ignore[arg-type]
            entries = state, {"momentum_buffer": buffer}
        kind = FIRST_NUMBERS if first else LAST_NUMBERS
        numbers = values.get(kind)
        if numbers is None:
            names = ("lr", "momentum", "dampening", "nesterov")
            numbers = values[kind] = {name: values[name] for name in names} | {"first": first}
        perform(_with_momentum, param, grad, [buffer], values["decay"], numbers, (), entries)


@with_loop("descent", 2, lambda shrink, lr: (lr,))
def _descend(F: Any, param: Any, grad: Any, *, lr: Any) -> None:
    F.add_(param, grad, -lr)


def _loop_scalars(
    shrink: Any, lr: Any, momentum: float, dampening: float, nesterov: bool, first: bool
) -> tuple[Any, ...]:
    """Return the last four arguments of the compiled loop for SGD with momentum (see :func:`with_loop`).

    They are the learning rate, the coefficients of the old momentum buffer and of the gradient in the new buffer, and
    the coefficient of the new buffer in a Nesterov step (0 if ``nesterov`` is false). In the first step (``first`` is
    true) the new buffer is the gradient. ``shrink`` is not used.
    """
    stored, added = (0, 1) if first else (momentum, 1 - dampening)
    return lr, stored, added, momentum if nesterov else 0


@with_loop("momentum", 3, _loop_scalars)
def _with_momentum(
    F: Any, param: Any, grad: Any, buffer: Any, *, lr: Any, momentum: float, dampening: float, nesterov: bool,
    first: bool,
) -> None:  # fmt: skip
    if first:
        F.set_(buffer, F.detached(grad))
    else:
        F.mul_(buffer, momentum)
        F.add_(buffer, grad, 1 - dampening)
    F.add_(param, F.add(grad, buffer, momentum) if nesterov else buffer, -lr)


__all__ = ["SGD"]
