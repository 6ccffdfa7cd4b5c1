"""The modules by topic, as ``torch.nn.modules``."""

from __future__ import annotations

from ...core.absent import absent
from . import (
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
    sparse,
    upsampling,
    utils,
)

_TOPICS = (
    module, container, linear, conv, pooling, padding, activation, dropout, loss, distance, flatten, fold, pixelshuffle,
    channelshuffle, upsampling, batchnorm, instancenorm, normalization, sparse, adaptive, lazy,
)  # fmt: skip
__all__: list[str] = []
for _topic in _TOPICS:
    for _name in _topic.__all__:
        _value = getattr(_topic, _name)
        globals()[_name] = _value
        __all__.append(_name)
        if isinstance(_value, type):  # shown as PyTorch's; how such classes are pickled: Module.__reduce_ex__
            _value.__module__ = _topic.__name__.replace("retrograd", "torch", 1)
__getattr__ = absent(__name__)
