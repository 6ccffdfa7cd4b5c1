"""Functions of neural networks, as ``torch.nn.functional``: activations, dropout and the everyday losses."""

from __future__ import annotations

from typing import Any

import numpy

from ..core.absent import absent
from ..core.tensor import Tensor, wrap
from ..ops.activate import (
    elu,
    gelu,
    hardtanh,
    leaky_relu,
    log_softmax,
    logsigmoid,
    mse_loss_block,
    nll_loss_block,
    silu,
    softmax,
    softplus,
)
from ..ops.attend import multi_head_attention_forward, scaled_dot_product_attention
from ..ops.convolve import (
    conv1d,
    conv2d,
    conv3d,
    conv_tbc,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
)
from ..ops.distance import cosine_similarity, pairwise_distance, pdist
from ..ops.elementary import relu, sigmoid, tanh
from ..ops.linalg import addmm, matmul
from ..ops.pad import pad
from ..ops.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    fractional_max_pool2d,
    fractional_max_pool2d_with_indices,
    fractional_max_pool3d,
    fractional_max_pool3d_with_indices,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ..ops.random import dropout
from ..ops.reduce import mean, sum
from ..ops.resample import (
    affine_grid,
    channel_shuffle,
    fold,
    grid_sample,
    interpolate,
    native_channel_shuffle,
    pixel_shuffle,
    pixel_unshuffle,
    unfold,
    upsample,
    upsample_bilinear,
    upsample_nearest,
)
from ..ops.shape import t
from ..ops.table import publish


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """``input @ weight.T + bias``: ``input`` (…, in), ``weight`` (out, in), ``bias`` (out)."""
    turned = t(weight)
    if bias is not None and input.ndim == 2:
        return addmm(bias, input, turned)
    found = matmul(input, turned)
    return found if bias is None else found + bias


def _checked(reduction: str) -> str:
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(each: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        return mean(each)
    return sum(each) if _checked(reduction) == "sum" else each


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the squares of the differences (``reduction``: mean, sum or none)."""
    return mse_loss_block(input, target, _checked(reduction))


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of the absolute differences (``reduction``: mean, sum or none)."""
    return _reduced((input - target).abs(), reduction)


def nll_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The mean of ``-input[i, target[i]]``: ``input`` (N, classes) log-probabilities, ``target`` (N) integers."""
    return nll_loss_block(input, target, _checked(reduction))


def cross_entropy(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """:func:`nll_loss` of :func:`log_softmax`: ``input`` (N, classes) scores, ``target`` (N) integers."""
    return nll_loss(log_softmax(input, 1), target, reduction)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """For each integer a row of zeros with a one at its place."""
    array = tensor._array
    classes = int(array.max()) + 1 if num_classes == -1 else num_classes
    if array.size and int(array.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if array.size and int(array.max()) >= classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return wrap((array[..., None] == numpy.arange(classes)).astype(numpy.int64))


def softmin(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """:func:`softmax` of the negative."""
    return softmax(-input, dim, dtype)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Each element, cut off below 0 and above 6."""
    return hardtanh(input, 0.0, 6.0)


__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "affine_grid", "avg_pool1d", "avg_pool2d",
    "avg_pool3d", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d", "cosine_similarity", "cross_entropy", "dropout", "elu", "fold", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices", "gelu",
    "grid_sample", "hardtanh", "interpolate", "l1_loss", "leaky_relu", "linear", "log_softmax", "logsigmoid",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d", "max_pool1d_with_indices", "max_pool2d",
    "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices", "max_unpool1d", "max_unpool2d",
    "max_unpool3d", "mse_loss", "multi_head_attention_forward", "native_channel_shuffle", "nll_loss", "one_hot",
    "pad", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "relu", "relu6",
    "scaled_dot_product_attention", "sigmoid", "silu", "softmax", "softmin", "softplus", "tanh", "unfold", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip
publish(globals(), "nn")
__getattr__ = absent(__name__)
