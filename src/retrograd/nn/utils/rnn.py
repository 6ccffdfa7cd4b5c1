"""PackedSequence and related functions, as ``torch.nn.utils.rnn``. They are defined in ``nn.packed_sequence``."""

from .. import packed_sequence
from ..packed_sequence import *  # noqa: F403 - all of it is given on

__all__: list[str] = []
__all__ += packed_sequence.__all__
