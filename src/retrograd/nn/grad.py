"""Gradients of convolutions, as ``torch.nn.grad``: conv1d_input, conv1d_weight and the same for 2-d and 3-d."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import grad
from ..core.grad_mode import enable_grad
from ..core.tensor import Tensor
from ..operations.creation.factory import zeros
from .functional import conv1d, conv2d, conv3d


def _pair(convolution: Callable[..., Tensor]) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """Return two functions: the gradient of ``convolution`` with respect to its input, and with respect to its weight.

    A convolution is linear in its input and in its weight. Therefore the gradient with respect to one of the two does
    not depend on the values of that operand: only the shape of the operand is passed.
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
    by_input.__doc__ = f"The gradient of ``{name}`` by its input, of size ``input_size``, from that by its output."
    by_weight.__doc__ = f"The gradient of ``{name}`` by its weight, of size ``weight_size``, from that by its output."
    by_input.__name__ = by_input.__qualname__ = f"{name}_input"
    by_weight.__name__ = by_weight.__qualname__ = f"{name}_weight"
    return by_input, by_weight


conv1d_input, conv1d_weight = _pair(conv1d)
conv2d_input, conv2d_weight = _pair(conv2d)
conv3d_input, conv3d_weight = _pair(conv3d)

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]
