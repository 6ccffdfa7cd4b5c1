"""PyTorch's tensors and autograd in readable Python: ``import retrograd as torch``."""

# ruff: noqa: F401 - a front door imports in order to export

import math as _math
import sys as _sys
from typing import Any as _Any

from . import _tensor_str as _tensor_str
from . import autograd, cuda, fft, func, linalg, nn, optim, random, serialization, signal, special, utils
from .autograd import functional as _functional  # it becomes an attribute of autograd
from .core import absent as _absent
from .core import devices as _devices
from .core import dtypes as _dtypes
from .core import quiet as _quiet
from .core import tensor as _tensor
from .core import where as _where
from .core.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled, set_anomaly_enabled
from .core.devices import device, get_default_device, set_default_device
from .core.dtypes import can_cast, dtype, finfo, get_default_dtype, iinfo, promote_types, set_default_dtype
from .core.modes import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from .core.size import Size
from .core.tensor import (
    Tensor,
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from .core.threads import (
    get_num_interop_threads,
    get_num_threads,
    set_num_interop_threads,
    set_num_threads,
)
from .func import vmap
from .kernels.text import set_printoptions
from .ops import methods as _methods
from .ops import oldtypes as _oldtypes
from .ops import table as _table
from .ops.random import Generator, default_generator
from .serialization import load, save

__version__ = "0.1.0"

inf, nan, pi, e = _math.inf, _math.nan, _math.pi, _math.e
newaxis = None

_here = _sys.modules[__name__]
for _each in _dtypes.ALL:
    setattr(_here, _each.name, _each)
for _name, _value in (*_dtypes.ALIASES.items(), *_oldtypes.CPU_TYPES.items()):
    setattr(_here, _name, _value)
for _name, _value in _table.FUNCTIONS.items():
    setattr(_here, _name, _table.public_form(_value, "torch", _name))
for _value in (get_default_dtype, is_grad_enabled, is_inference_mode_enabled):
    setattr(_here, _value.__name__, _table.public_form(_value, "torch", _value.__name__))
bool = _dtypes.bool_

_where.mark_package()
_quiet.hush()
__all__ = [_name for _name, _value in globals().items() if not (_name[0] == "_" or isinstance(_value, type(_here)))]
_sys.meta_path.append(_absent.Absences(__name__))
__getattr__, __dir__ = _absent.absent(__name__), _absent.listed(globals())
