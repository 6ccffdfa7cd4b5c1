"""PackedSequence and its functions, as ``torch.nn.utils.rnn``: re-exports of ``nn.packed_sequence``."""

from .. import packed_sequence
from ..packed_sequence import *  # noqa: F403 - all of it is given on

__all__: list[str] = []
__all__ += packed_sequence.__all__
