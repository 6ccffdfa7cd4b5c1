"""Conversion of the weights of 2-d and 3-d convolutions to another memory format, for example channels_last."""

from __future__ import annotations

from typing import Any

from ..modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..modules.module import Module


def _converted(module: Any, memory_format: Any, kinds: tuple[type[Module], ...]) -> Any:
    for each in module.modules():
        if isinstance(each, kinds):
            weight: Any = each.weight
            weight.data = weight.detach().clone().contiguous(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all 2-d convolution layers in ``module`` to ``memory_format``; return ``module``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(3, 4, 3), torch.channels_last)
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last)
    True
    """
    return _converted(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Convert the weights of all 3-d convolution layers in ``module`` to ``memory_format``; return ``module``.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> layer = nn.utils.convert_conv3d_weight_memory_format(nn.Conv3d(3, 4, 3), torch.channels_last_3d)
    >>> layer.weight.is_contiguous(memory_format=torch.channels_last_3d)
    True
    """
    return _converted(module, memory_format, (Conv3d, ConvTranspose3d))


__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]
