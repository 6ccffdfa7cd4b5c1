"""Gradients of convolutions, as ``torch.nn.grad``: conv1d_input, conv1d_weight, and their 2-d and 3-d forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import grad
from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from ..operations.creation.factory import zeros
from .functional import conv1d, conv2d, conv3d


def _pair(convolution: Callable[..., Tensor]) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Return the functions that compute the gradient of the input and the gradient of the weight of ``convolution``.

    For ``conv1d``, for example, they are ``conv1d_input(input_size, weight, grad_output, …)`` and
    ``conv1d_weight(input, weight_size, grad_output, …)``. ``grad_output`` is the gradient of a loss with respect to the
    output of the convolution. ``input_size`` and ``weight_size`` are the shapes of the input and of the weight. The
    remaining arguments are the stride, padding, dilation and groups of the convolution.
    """

    def by_input(
        input_size: Any, weight: Tensor, grad_output: Tensor,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        with enable_grad():
            x = zeros(input_size, dtype=weight.dtype, device=weight.device, requires_grad=True)
            (result,) = grad(convolution(x, weight.detach(), None, stride, padding, dilation, groups), x, grad_output)
        return result

    def by_weight(
        input: Tensor, weight_size: Any, grad_output: Tensor,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    ) -> Tensor:  # fmt: skip
        with enable_grad():
            w = zeros(weight_size, dtype=input.dtype, device=input.device, requires_grad=True)
            (result,) = grad(convolution(input.detach(), w, None, stride, padding, dilation, groups), w, grad_output)
        return result

    name = convolution.__name__
    by_input.__doc__ = (
        f"Return the gradient of a loss with respect to the input of ``{name}``, of shape ``input_size``.\n\n"
        "``grad_output`` is the gradient of the loss with respect to the output."
    )
    by_weight.__doc__ = (
        f"Return the gradient of a loss with respect to the weight of ``{name}``, of shape ``weight_size``.\n\n"
        "``grad_output`` is the gradient of the loss with respect to the output."
    )
    by_input.__name__ = by_input.__qualname__ = f"{name}_input"
    by_weight.__name__ = by_weight.__qualname__ = f"{name}_weight"
    return by_input, by_weight


conv1d_input, conv1d_weight = _pair(conv1d)
conv2d_input, conv2d_weight = _pair(conv2d)
conv3d_input, conv3d_weight = _pair(conv3d)

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
