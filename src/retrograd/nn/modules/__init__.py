"""Neural network layers by topic, as ``torch.nn.modules``."""

# ruff: noqa: F403 - each module defines ``__all__``

from __future__ import annotations

from ...compat.lazy_imports import module_getattr
from ...compat.module_names import shown_as_torch
from . import (  # noqa: F401 - a program reaches it from here
    activation,
    adaptive,
    batchnorm,
    channelshuffle,
    container,
    conv,
    distance,
    dropout,
    flatten,
    fold,
    instancenorm,
    lazy,
    linear,
    loss,
    module,
    normalization,
    padding,
    pixelshuffle,
    pooling,
    rnn,
    sparse,
    transformer,
    upsampling,
    utils,
)
from .activation import *
from .adaptive import *
from .batchnorm import *
from .channelshuffle import *
from .container import *
from .conv import *
from .distance import *
from .dropout import *
from .flatten import *
from .fold import *
from .instancenorm import *
from .linear import *
from .loss import *
from .module import Module
from .normalization import *
from .padding import *
from .pixelshuffle import *
from .pooling import *
from .rnn import *
from .sparse import *
from .transformer import *
from .upsampling import *

__all__: list[str] = []
__all__ += ["Module"]
__all__ += container.__all__
__all__ += linear.__all__
__all__ += conv.__all__
__all__ += pooling.__all__
__all__ += padding.__all__
__all__ += activation.__all__
__all__ += dropout.__all__
__all__ += loss.__all__
__all__ += distance.__all__
__all__ += flatten.__all__
__all__ += fold.__all__
__all__ += pixelshuffle.__all__
__all__ += channelshuffle.__all__
__all__ += upsampling.__all__
__all__ += batchnorm.__all__
__all__ += instancenorm.__all__
__all__ += normalization.__all__
__all__ += sparse.__all__
__all__ += adaptive.__all__
__all__ += rnn.__all__
__all__ += transformer.__all__

__getattr__ = module_getattr(__name__, {"SyncBatchNorm": "sync_batchnorm"})
for _name in __all__:  # repr shows PyTorch's path; pickling: see Module.__reduce_ex__
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = shown_as_torch(globals()[_name])
