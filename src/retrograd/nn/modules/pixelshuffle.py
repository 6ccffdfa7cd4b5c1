"""Channels made into pixels and the reverse."""

from __future__ import annotations

from .. import functional as F
from .declarative import declares_layer
from .module import Module


@declares_layer(F.pixel_shuffle, "upscale_factor={upscale_factor}")
class PixelShuffle(Module):
    """Images (N, C * r * r, H, W) made into larger ones (N, C, H * r, W * r)."""

    upscale_factor: int


@declares_layer(F.pixel_unshuffle, "downscale_factor={downscale_factor}")
class PixelUnshuffle(Module):
    """Images (N, C, H * r, W * r) made into smaller ones of more channels (N, C * r * r, H, W)."""

    downscale_factor: int


__all__ = ["PixelShuffle", "PixelUnshuffle"]
