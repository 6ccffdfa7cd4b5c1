"""``Muon``: gradient descent with orthogonalised momentum, for parameters that are matrices."""

from __future__ import annotations

from typing import Any

from ..core.tensor import Tensor
from .elementwise import PerParameterOptimizer, full_like_param, gradient
from .optimizer import check_rate, options, parameters


class Muon(PerParameterOptimizer):
    """Muon optimiser: a step is the learning rate times the orthogonal matrix nearest to the mean of the gradients.

    The mean is a running mean with decay rate ``momentum``.

    All parameters must be matrices. The orthogonal matrix is approximated in bfloat16 by ``ns_steps`` steps of a
    Newton-Schulz iteration. The learning rate is multiplied by a factor that depends on the shape of the parameter;
    ``adjust_lr_fn`` selects the factor: ``"original"`` (also None) or ``"match_rms_adamw"``.

    Source: Jordan, "Muon: An optimizer for hidden layers in neural networks", 2024.

    >>> import retrograd as torch
    >>> w = torch.eye(2, requires_grad=True)
    >>> optimizer = torch.optim.Muon([w], lr=0.5)
    >>> (w * torch.tensor([[1.0, 0.0], [0.0, 3.0]])).sum().backward()
    >>> optimizer.step()
    >>> w.shape
    torch.Size([2, 2])
    """

    def __init__(
        self, params: Any, lr: float = 1e-3, weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:  # fmt: skip
        defaults = options(locals())
        check_rate(lr, "Learning rate should be >= 0 but is: {}")
        for words, value in (("momentum", momentum), ("weight decay", weight_decay)):
            if not value >= 0.0:
                raise ValueError(f"{words} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(params, defaults)
        for param in parameters(self.param_groups):
            if param.ndim != 2:
                raise ValueError(
                    f"Muon only supports 2D parameters whereas we found a parameter with size: {param.shape}"
                )

    def _update(self, group: dict[str, Any], values: dict[str, Any], param: Tensor) -> None:
        grad, state, momentum = gradient(param), self.state[param], values["momentum"]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = full_like_param(grad)
        mean = state["momentum_buffer"]
        mean.lerp_(grad, 1 - momentum)
        update = grad.lerp(mean, momentum) if values["nesterov"] else mean
        update = orthogonal(update, values["ns_coefficients"], values["ns_steps"], values["eps"])
        lr, (rows, columns) = values["lr"], param.shape
        if values["adjust_lr_fn"] == "match_rms_adamw":
            size = 0.2 * max(rows, columns) ** 0.5
        else:
            size = max(1, rows / columns) ** 0.5
        param.mul_(1 - lr * values["weight_decay"])
        param.add_(update, alpha=-lr * size)


def orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return the orthogonal matrix nearest to ``matrix``, approximated in bfloat16 by a Newton-Schulz iteration.

    The iteration starts with ``x``, which is ``matrix`` divided by its norm (at least ``eps``). Each of the ``steps``
    steps computes ``x = a*x + (b*s + c*s@s) @ x``, where ``s = x @ x.T`` and ``coefficients`` is ``(a, b, c)``. A step
    applies an odd polynomial to the singular values of ``x``, which moves them towards one.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    high = matrix.shape[0] > matrix.shape[1]
    x = matrix.bfloat16()
    x = x.t() if high else x
    x = x / x.norm().clamp(min=eps)
    for _ in range(steps):
        square = x @ x.t()
        x = x.addmm(square.addmm(square, square, beta=b, alpha=c), x, beta=a)
    return x.t() if high else x


__all__ = ["Muon"]
