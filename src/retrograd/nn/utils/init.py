"""skip_init: construction of modules without a change of the state of the random generator."""

from __future__ import annotations

import inspect
from typing import Any

from ...operations.creation.random import default_generator
from ..modules.module import Module


def skip_init(module_cls: Any, *args: Any, **kwargs: Any) -> Any:
    """Return ``module_cls(*args, **kwargs)`` and leave the state of the random generator unchanged.

    The values of the parameters are unspecified, so that the caller has to initialise or load them.

    >>> from retrograd import nn
    >>> nn.utils.skip_init(nn.Linear, 5, 1)
    Linear(in_features=5, out_features=1, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    before = default_generator.get_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        default_generator.set_state(before)


__all__ = ["skip_init"]
