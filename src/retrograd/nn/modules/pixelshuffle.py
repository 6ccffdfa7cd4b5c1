"""PixelShuffle, a layer that rearranges channels to pixels, and its inverse PixelUnshuffle."""

from __future__ import annotations

from .. import functional as F
from .declarative import declares_layer
from .module import Module


@declares_layer(F.pixel_shuffle, "upscale_factor={upscale_factor}")
class PixelShuffle(Module):
    """Layer that rearranges images (N, C * r * r, H, W) to (N, C, H * r, W * r), where r is ``upscale_factor``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.PixelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1, 1))
    tensor([[[[0., 1.],
              [2., 3.]]]])
    """

    upscale_factor: int


@declares_layer(F.pixel_unshuffle, "downscale_factor={downscale_factor}")
class PixelUnshuffle(Module):
    """Layer that rearranges images (N, C, H * r, W * r) to (N, C * r * r, H, W), where r is ``downscale_factor``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.PixelUnshuffle(2)(torch.arange(4.0).reshape(1, 1, 2, 2)).flatten()
    tensor([0., 1., 2., 3.])
    """

    downscale_factor: int


__all__ = ["PixelShuffle", "PixelUnshuffle"]
