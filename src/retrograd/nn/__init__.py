"""Modules and functions of neural networks, as ``torch.nn``."""

# ruff: noqa: F403 - the modules say themselves what they export

from typing import Any

from ..compat.missing_names import module_getattr
from . import functional, init, modules, parallel, parameter, utils
from .modules import *
from .parallel import DataParallel
from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter


def factory_kwargs(kwargs: dict[str, Any]) -> dict[str, Any]:
    """What of a layer's keyword arguments says where and how its parameters are made: device, dtype, memory_format.

    They may stand by themselves or together, as ``factory_kwargs``. Raises TypeError for others, and for one given twice.
    """
    known = ("device", "dtype", "memory_format")
    other = kwargs.keys() - {*known, "factory_kwargs"}
    if other:
        raise TypeError(f"unexpected kwargs {other}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for name in known:
        if name in kwargs and name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        if name in kwargs:
            found[name] = kwargs[name]
    return found


__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init", "modules", "parameter",
    "utils", "factory_kwargs", "parallel", "DataParallel",
]  # fmt: skip
__all__ += [_name for _name in modules.__all__ if _name != "utils"]
__getattr__ = module_getattr(__name__, {"attention": "attention", "grad": "grad"})
