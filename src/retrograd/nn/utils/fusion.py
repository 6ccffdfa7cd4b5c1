"""fuse_conv_bn_eval and fuse_linear_bn_eval: fusion of a layer with the batch normalisation that follows.

In evaluation mode, batch normalisation multiplies each channel by a constant and adds a constant. The constants are
merged into the weight and bias of the preceding layer.
"""

from __future__ import annotations

import copy
import functools
from typing import Any

from ...core.tensor import Tensor
from ...operations.creation.factory import ones_like, zeros_like
from ..parameter import Parameter


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Return a copy of the convolution ``conv`` whose output is equal to ``bn(conv(x))`` in evaluation mode.

    ``bn`` is a batch normalisation layer. ``transpose`` must be true if ``conv`` is a transposed convolution.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> conv, bn = nn.Conv2d(3, 4, 3).eval(), nn.BatchNorm2d(4).eval()
    >>> x = torch.randn(1, 3, 8, 8)
    >>> torch.allclose(nn.utils.fuse_conv_bn_eval(conv, bn)(x), bn(conv(x)), atol=1e-6)
    True
    """
    return _fused(conv, bn, functools.partial(fuse_conv_bn_weights, transpose=transpose))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Return a copy of the layer ``linear`` whose output is equal to ``bn(linear(x))`` in evaluation mode.

    ``bn`` is a batch normalisation layer.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> linear, bn = nn.Linear(3, 4).eval(), nn.BatchNorm1d(4).eval()
    >>> x = torch.randn(2, 3)
    >>> torch.allclose(nn.utils.fuse_linear_bn_eval(linear, bn)(x), bn(linear(x)), atol=1e-6)
    True
    """
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fused(linear, bn, fuse_linear_bn_weights)


def _fused(layer: Any, bn: Any, fuse: Any) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    created = copy.deepcopy(layer)
    created.weight, created.bias = fuse(
        created.weight, created.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias
    )
    return created


def fuse_conv_bn_weights(
    conv_w: Tensor, conv_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None, transpose: bool = False,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Return the weight and bias of a convolution that is fused with the batch normalisation that follows.

    ``conv_w`` and ``conv_b`` are the weight and bias of the convolution. ``bn_rm``, ``bn_rv``, ``bn_eps``, ``bn_w`` and
    ``bn_b`` are the running mean, running variance, eps, weight and bias of the batch normalisation. ``transpose`` must
    be true for a transposed convolution.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> mean, variance, scale, shift = torch.zeros(1), torch.ones(1), torch.full((1,), 2.0), torch.ones(1)
    >>> weight, bias = nn.utils.fuse_conv_bn_weights(torch.ones(1, 1, 2), None, mean, variance, 0.0, scale, shift)
    >>> weight.data, bias.data
    (tensor([[[2., 2.]]]), tensor([1.]))
    """
    conv_b = zeros_like(bn_rm) if conv_b is None else conv_b
    bn_w = ones_like(bn_rm) if bn_w is None else bn_w
    bn_b = zeros_like(bn_rm) if bn_b is None else bn_b
    scale = bn_w * (bn_rv + bn_eps).rsqrt()
    shape = [1] * conv_w.dim()
    shape[1 if transpose else 0] = -1
    weight = conv_w * scale.reshape(shape)
    bias = (conv_b - bn_rm) * scale + bn_b
    return (
        Parameter(weight.to(conv_w.dtype), conv_w.requires_grad),
        Parameter(bias.to(conv_b.dtype), conv_b.requires_grad),
    )


def fuse_linear_bn_weights(
    linear_w: Tensor, linear_b: Tensor | None, bn_rm: Tensor, bn_rv: Tensor, bn_eps: float, bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:  # fmt: skip
    """Return the weight and bias of a linear layer that is fused with the batch normalisation that follows.

    ``linear_w`` and ``linear_b`` are the weight and bias of the layer. ``bn_rm``, ``bn_rv``, ``bn_eps``, ``bn_w`` and
    ``bn_b`` are the running mean, running variance, eps, weight and bias of the batch normalisation.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> mean, variance, scale, shift = torch.zeros(1), torch.ones(1), torch.full((1,), 2.0), torch.ones(1)
    >>> weight, bias = nn.utils.fuse_linear_bn_weights(torch.ones(1, 2), None, mean, variance, 0.0, scale, shift)
    >>> weight.data, bias.data
    (tensor([[2., 2.]]), tensor([1.]))
    """
    return fuse_conv_bn_weights(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)


__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]
