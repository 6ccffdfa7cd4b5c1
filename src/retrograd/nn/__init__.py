"""Neural network modules and functions, as ``torch.nn``."""

# ruff: noqa: F403 - each module defines ``__all__``

from typing import Any

from ..compat.lazy_imports import module_getattr
from . import functional, init, modules, parallel, parameter, utils
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments in ``kwargs`` that configure a layer's parameters: device, dtype, memory_format.

    Each of them is an item of ``kwargs``, or an item of the dictionary ``kwargs["factory_kwargs"]``. Raises TypeError
    if ``kwargs`` has another key, or if a key is in both dictionaries.

    >>> import retrograd as torch
    >>> from retrograd import nn
    >>> nn.factory_kwargs({"dtype": torch.float64})
    {'dtype': torch.float64}
    """
    known = ("device", "dtype", "memory_format")
    other = kwargs.keys() - {*known, "factory_kwargs"}
    if other:
        raise TypeError(f"unexpected kwargs {other}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for name in known:
        if name in kwargs and name in result:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        if name in kwargs:
            result[name] = kwargs[name]
    return result


__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules", "parameter",
    "utils", "factory_kwargs", "parallel", "DataParallel",
]  # fmt: skip
__all__ += [_name for _name in modules.__all__ if _name != "utils"]
__getattr__ = module_getattr(
    __name__,
    {"SyncBatchNorm": "modules.sync_batchnorm", "attention": "attention", "grad": "grad", "quantized": ".ao.nn"},
)
