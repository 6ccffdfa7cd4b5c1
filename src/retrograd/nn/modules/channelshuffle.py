"""ChannelShuffle: a layer that permutes the channels of its input."""

from __future__ import annotations

from .. import functional as F
from .declarative import declares_layer
from .module import Module


@declares_layer(F.channel_shuffle, "groups={groups}")
class ChannelShuffle(Module):
    """Layer that permutes the channels of its input (Zhang et al. 2017).

    The channels are split into ``groups`` groups. The result has the first channels of all groups, followed by the
    second channels of all groups, and so on.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    groups: int


__all__ = ["ChannelShuffle"]
