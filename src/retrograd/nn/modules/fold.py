"""Unfold and Fold: layers that extract the windows of images as columns, and sum such columns to images."""

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
    """Layer that sums overlapping windows to images of shape (N, C, *output_size).

    The input (N, C * window size, number of windows) has one window per column.
    """

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


@declares_layer(F.unfold, "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}")
class Unfold(Module):
    """Layer that returns the windows of images (N, C, H, W) as columns (N, C * window size, number of windows)."""

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


__all__ = ["Fold", "Unfold"]
