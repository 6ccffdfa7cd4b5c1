"""Channel shuffle layer."""

from __future__ import annotations

from .. import functional as F
from .declarative import declares_layer
from .module import Module


@declares_layer(F.channel_shuffle, "groups={groups}")
class ChannelShuffle(Module):
    """Permutation of the channels that interleaves ``groups`` groups (Zhang et al. 2017)."""

    groups: int


__all__ = ["ChannelShuffle"]
