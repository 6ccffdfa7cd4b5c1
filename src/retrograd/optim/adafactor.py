"""``Adafactor``: variant of Adam whose state of a matrix is only one number for each row and for each column."""

from __future__ import annotations

from typing import Any

from ..core import dtypes
from ..core.tensor import Tensor
from .elementwise import PerParameterOptimizer, full_like_param, gradient, increment_step
from .optimizer import check_rate, options, step_counter


class Adafactor(PerParameterOptimizer):
    """Adafactor optimiser: Adam without momentum, with less memory for the running mean of squared gradients.

    For a matrix, only the row means and the column means of this running mean are stored. A step is the gradient
    divided by the square root of the running mean. If the root mean square of the step exceeds ``d``, the step is
    scaled down to ``d``. The step is then multiplied by the root mean square of the parameter and by ``min(lr,
    t**-0.5)``, where ``t`` is the number of steps.

    Source: Shazeer and Stern, "Adafactor: Adaptive Learning Rates with Sublinear Memory Cost", 2018.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.Adafactor([w], lr=0.1)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.8419, 1.8419], requires_grad=True)
    """

    later_options = {"foreach": None}
    counted: tuple[str, ...] = ("step",)

    def __init__(
        self, params: Any, lr: Any = 1e-2, beta2_decay: float = -0.8, eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0, weight_decay: float = 0.0, *, foreach: bool | None = None, maximize: bool = False,
    ) -> None:  # fmt: skip
        defaults = options(locals())
        check_rate(lr, "Learning rate should be >= 0 but is: {}")
        for holds, words, value in (
            (beta2_decay <= 0.0, "beta2_decay should be <= 0", beta2_decay),
            (eps[0] is None or eps[0] >= 0.0, "epsilon1 should be >= 0", eps[0]),
            (eps[1] >= 0.0, "epsilon2 should be >= 0", eps[1]),
            (d >= 1.0, "Clipping threshold d should be >= 1", d),
            (weight_decay >= 0.0, "weight_decay should be >= 0", weight_decay),
        ):
            if not holds:
                raise ValueError(f"{words} but is: {value}")
        super().__init__(params, defaults)

    def _update(self, group: dict[str, Any], values: dict[str, Any], param: Tensor) -> None:
        grad, state = gradient(param), self.state[param]
        if not state:
            state["step"] = step_counter()
            if grad.ndim > 1:
                state["row_var"] = grad.new_zeros((*grad.shape[:-1], 1))
                state["col_var"] = grad.new_zeros((*grad.shape[:-2], 1, grad.shape[-1]))
            else:
                state["variance"] = full_like_param(grad)
        grad = -grad if values["maximize"] else grad
        step, lr = increment_step(state), values["lr"]
        least, eps = values["eps"]
        least = dtypes.finfo(param.dtype).eps if least is None else least
        size = max(eps, _root_mean_square(param)) * min(lr, step**-0.5)
        if values["weight_decay"] != 0:
            param.mul_(1 - lr * values["weight_decay"])
        square = _mean_square(state, grad, step ** values["beta2_decay"], least)
        update = square.clamp_(min=least * least).rsqrt_().mul_(grad)
        param.add_(update, alpha=-size / max(1.0, _root_mean_square(update) / values["d"]))


def _root_mean_square(x: Tensor) -> float:
    return float(x.norm(2).item()) / x.numel() ** 0.5


def _mean_square(state: dict[str, Any], grad: Tensor, weight: float, least: float) -> Tensor:
    """Update the running mean of the squared gradient, which ``state`` stores, and return the new mean.

    The new mean is ``(1 - weight) * old + weight * grad**2``. For a matrix, ``state`` stores only its row means and
    column means. The mean of an element is then computed as (mean of its row) * (mean of its column) / (mean of all
    elements), where the divisor is at least ``least``.
    """
    if grad.ndim <= 1:
        return state["variance"].lerp_(grad * grad, weight).clone()
    row, column = state["row_var"], state["col_var"]
    for kept, dim in ((row, -1), (column, -2)):
        kept.lerp_(grad.norm(dim=dim, keepdim=True).square_().div_(grad.shape[dim]), weight)
    return (row @ column).div_(row.mean(dim=-2, keepdim=True).clamp_(min=least))


__all__ = ["Adafactor"]
