"""Neural network functions, as ``torch.nn.functional``. The functions are defined in ``retrograd.operations``."""

# ruff: noqa: F403, F405 - each module defines ``__all__``

from ..dispatch import declare as _table
from ..operations.elementwise.elementary import sigmoid as sigmoid
from ..operations.elementwise.elementary import tanh as tanh
from ..operations.nn.activation import *
from ..operations.nn.attention import *
from ..operations.nn.class_losses import *
from ..operations.nn.convolution import *
from ..operations.nn.dropout import *
from ..operations.nn.embedding import *
from ..operations.nn.interpolation import *
from ..operations.nn.linear import *
from ..operations.nn.losses import *
from ..operations.nn.normalization import *
from ..operations.nn.pooling import *
from ..operations.nn.softmax import *
from ..operations.reductions.distance import *
from ..operations.shape.padding import pad as pad

__all__ = sorted(_name for _name in globals() if _name[0] != "_")
#: Aliases: functions that PyTorch exports under two names.
SHARED = (
    "adaptive_avg_pool1d", "avg_pool1d", "bilinear", "celu_", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_tbc",
    "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_similarity", "hardshrink",
    "native_channel_shuffle", "pairwise_distance", "pdist", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu_",
    "rrelu_", "selu_", "threshold_",
)  # fmt: skip
_table.publish(globals(), "nn", SHARED)
logsigmoid.__name__, threshold.__name__ = "log_sigmoid", "_threshold"  # PyTorch's ``__name__`` of these functions
