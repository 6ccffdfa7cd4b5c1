"""``RMSprop``: gradients divided by the root of their mean square."""

from __future__ import annotations

from typing import Any

from .elementwise import ElementwiseOptimizer
from .numba_steps import with_loop
from .optimizer import options


class RMSprop(ElementwiseOptimizer):
    """RMSprop optimiser: a step is ``p -= lr * g / (sqrt(v) + eps)``.

    ``p`` is a parameter and ``g`` its gradient. ``v`` is the running mean of ``g*g`` or, if ``centered`` is true, the
    running variance of ``g``.

    Source: Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; centred: Graves, "Generating Sequences
    With Recurrent Neural Networks", 2013.

    >>> import retrograd as torch
    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.RMSprop([w], lr=0.5)
    >>> w.square().sum().backward()
    >>> optimizer.step()
    >>> w
    tensor([-4.0000, -3.0000], requires_grad=True)
    """

    later_options = {
        "momentum": 0, "centered": False, "foreach": None, "maximize": False, "differentiable": False,
        "capturable": False,
    }  # fmt: skip
    checked = ("lr", "eps", "momentum", "weight_decay", "alpha")
    moved = ("square_avg", "momentum_buffer", "grad_avg")
    moved_if = {"momentum_buffer": "momentum", "grad_avg": "centered"}

    def __init__(
        self, params: Any, lr: Any = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(params, options(locals(), momentum="alpha", centered="weight_decay"))

    @staticmethod
    @with_loop("root_mean_square", 3, lambda shrink, lr, alpha, eps, **rest: (alpha, 1 - alpha, eps, lr))
    def rule(
        F: Any, param: Any, grad: Any, square: Any, *buffers: Any, lr: Any, alpha: float, eps: float, momentum: float,
        centered: bool,
    ) -> None:  # fmt: skip
        """Update ``param`` in place by one RMSprop step; the state tensors are also updated in place.

        ``square`` is the running mean of the squared gradient with decay rate ``alpha``. ``buffers`` contains the
        momentum buffer (only if ``momentum`` is not 0) and the running mean of the gradient (only if ``centered`` is
        true), in this order. The operations are methods of ``F``, an ``ArrayOps`` (for arrays) or a ``TensorOps`` (for
        Tensors); see ``fused.py``.
        """
        F.mul_(square, alpha)
        F.addcmul_(square, grad, grad, 1 - alpha)
        if centered:
            mean = buffers[-1]
            F.lerp_(mean, grad, 1 - alpha)
            square = F.add(square, F.mul(mean, mean), -1)
        root = F.root(square, 1, eps)
        if momentum > 0:
            F.mul_(buffers[0], momentum)
            F.addcdiv_(buffers[0], grad, root)
            F.add_(param, buffers[0], -lr)
        else:
            F.addcdiv_(param, grad, root, -lr)


__all__ = ["RMSprop"]
