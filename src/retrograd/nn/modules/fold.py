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
    """Layer that adds overlapping windows at their positions in images of shape (N, C, *output_size).

    The input has shape (N, C * window size, number of windows), where each column is one window.
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


@declares_layer(F.unfold, "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}")
class Unfold(Module):
    """Layer that extracts the sliding windows of images (N, C, H, W).

    The result has shape (N, C * window size, number of windows), where each column is one window.
    """

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


__all__ = ["Fold", "Unfold"]
