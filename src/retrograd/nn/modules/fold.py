"""Images made of blocks, and blocks cut out of images."""

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
    """Blocks (N, C * block, L) added up to an image (N, C, *output_size)."""

    output_size: Sizes
    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


@declares_layer(F.unfold, "kernel_size={kernel_size}, dilation={dilation}, padding={padding}, stride={stride}")
class Unfold(Module):
    """The blocks (N, C * block, L) of an image that overlap as a convolution's windows do."""

    kernel_size: Sizes
    dilation: Sizes = 1
    padding: Sizes = 0
    stride: Sizes = 1


__all__ = ["Fold", "Unfold"]
