"""Unfold, a layer that extracts sliding windows of images, and Fold, a layer that sums sliding windows to images."""

from __future__ import annotations

from collections.abc import Sequence

from .. import functional as F
from .declarative import declares_layer
from .module import Module

Sizes = int | Sequence[int]


@declares_layer(
    F.fold,
    "output_size={output_size}, kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}",
)
class Fold(Module):
    """Layer that combines windows of size ``kernel_size`` to images of shape (N, C, *output_size).

    The input has shape (N, C * K, L), where K is the number of pixels of a window and L the number of windows. Each
    column of the input has the elements of one window. Where windows overlap, their elements are added.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Fold(output_size=(2, 4), kernel_size=2, stride=2)(torch.ones(1, 4, 2))
    tensor([[[[1., 1., 1., 1.],
              [1., 1., 1., 1.]]]])
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


@declares_layer(F.unfold, "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}")
class Unfold(Module):
    """Layer that extracts the sliding windows of size ``kernel_size`` from images (N, C, H, W).

    The result has shape (N, C * K, L), where K is the number of pixels of a window and L the number of windows. Each
    column of the result has the elements of one window.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.Unfold(kernel_size=2, stride=2)(torch.arange(8.0).reshape(1, 1, 2, 4))
    tensor([[[0., 2.],
             [1., 3.],
             [4., 6.],
             [5., 7.]]])
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


__all__ = ["Fold", "Unfold"]
