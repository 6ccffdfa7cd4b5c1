"""``AdamW``: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from .adam import Adam
from .optimizer import options


class AdamW(Adam):
    """:class:`Adam` with decoupled weight decay.

    Each step multiplies the parameter by ``1 - lr * weight_decay``. The weight decay is not added to the gradient.

    Source: Loshchilov and Hutter, "Decoupled Weight Decay Regularization", 2017.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.AdamW([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([0.4950, 1.4900], requires_grad=True)
    """

    def __init__(
        self, params: Any, lr: Any = 1e-3, betas: tuple[Any, Any] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: Any = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ) -> None:  # fmt: skip
        super().__init__(params, **options(locals()), decoupled_weight_decay=True)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True


__all__ = ["AdamW"]
