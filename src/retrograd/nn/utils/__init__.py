"""What is done with modules and parameters besides calling them, as ``torch.nn.utils``."""

from ...core.absent import absent
from . import rnn

__all__ = ["rnn"]
__getattr__ = absent(__name__)
