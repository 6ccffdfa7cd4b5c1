"""Layers that extract sliding blocks of images and sum them back."""

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
    """Layer that sums overlapping blocks (N, C * block, L) to images (N, C, *output_size)."""

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


@declares_layer(F.unfold, "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}")
class Unfold(Module):
    """Layer that extracts the sliding blocks (N, C * block, L) of images, as a convolution's windows."""

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


__all__ = ["Fold", "Unfold"]
