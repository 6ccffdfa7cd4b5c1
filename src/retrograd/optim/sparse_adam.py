"""``SparseAdam``: Adam for sparse gradients, which updates only the elements that have a gradient."""

from __future__ import annotations

from typing import Any

from ..compat.lazy_imports import load_part
from ..core.tensor import Tensor
from .elementwise import PerParameterOptimizer, as_number, full_like_param
from .optimizer import options


def with_values(grad: Tensor, values: Tensor) -> Tensor:
    """Return a sparse tensor with the indices of the sparse tensor ``grad`` and the given values."""
    made: Tensor = load_part("sparse.tensor").with_values(grad, values)
    return made


class SparseAdam(PerParameterOptimizer):
    """Adam for parameters with sparse gradients: moments and elements without a gradient do not change.

    It is meant for ``nn.Embedding(sparse=True)``, of which a step uses few rows.

    >>> import retrograd as torch
    >>> table = torch.nn.Embedding(10, 2, sparse=True)
    >>> optimizer = torch.optim.SparseAdam(table.parameters(), lr=0.1)
    >>> table(torch.tensor([1, 7])).sum().backward()
    >>> optimizer.step()
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        for name, value, valid in (
            ("learning rate", lr, lr > 0.0), ("epsilon value", eps, eps > 0.0),
            ("beta parameter at index 0", betas[0], 0.0 <= betas[0] < 1.0),
            ("beta parameter at index 1", betas[1], 0.0 <= betas[1] < 1.0),
        ):  # fmt: skip
            if not valid:
                raise ValueError(f"Invalid {name}: {value}")
        super().__init__(params, options(locals()))
        places = [(i, j, each) for i, group in enumerate(self.param_groups) for j, each in enumerate(group["params"])]
        sparse = [[i, j] for i, j, each in places if each.is_sparse]
        complex_ = [[i, j] for i, j, each in places if each.is_complex()]
        if sparse:
            raise ValueError(f"Sparse params at indices {sparse}: SparseAdam requires dense parameter tensors")
        if complex_:
            raise ValueError(f"Complex params at indices {complex_}: SparseAdam does not support complex parameters")

    def _check_sparse(self, group: dict[str, Any]) -> None:
        pass

    def _move(self, group: dict[str, Any], values: dict[str, Any], param: Tensor) -> None:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")

    def _move_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        state = self.state[param]
        if not state:
            state.update(step=0, exp_avg=full_like_param(param), exp_avg_sq=full_like_param(param))
        state["step"] += 1
        grad = (-grad if group.get("maximize") else grad).coalesce()
        values = grad.values()
        if not values.numel():
            return
        beta1, beta2 = group["betas"]
        mean, square = (state[name].sparse_mask(grad).values() for name in ("exp_avg", "exp_avg_sq"))
        to_mean, to_square = (values - mean) * (1 - beta1), (values * values - square) * (1 - beta2)
        state["exp_avg"].add_(with_values(grad, to_mean))
        state["exp_avg_sq"].add_(with_values(grad, to_square))
        corrections = 1 - beta1 ** state["step"], 1 - beta2 ** state["step"]
        size = as_number(group["lr"], group) * corrections[1] ** 0.5 / corrections[0]
        change = (to_mean + mean) / ((to_square + square).sqrt() + group["eps"])
        param.add_(with_values(grad, change * -size))


__all__ = ["SparseAdam"]
