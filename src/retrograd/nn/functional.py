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
from ..ops.distance import cosine_similarity, pairwise_distance, pdist
from ..ops.elementary import relu, sigmoid, tanh
from ..ops.linalg import addmm, matmul
from ..ops.random import dropout
from ..ops.reduce import mean, sum
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
    "cosine_similarity", "cross_entropy", "dropout", "elu", "gelu", "hardtanh", "l1_loss", "leaky_relu", "linear", "log_softmax",
    "logsigmoid", "mse_loss", "nll_loss", "one_hot", "pairwise_distance", "pdist", "relu", "relu6",
    "sigmoid", "silu", "softmax", "softmin",
    "softplus", "tanh",
]  # fmt: skip
publish(globals(), "nn")
__getattr__ = absent(__name__)
