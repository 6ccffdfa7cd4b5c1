"""Functions that a pickle calls to rebuild objects, under names that do not change when the code is moved.

A pickle contains the name of such a function in this module; ``compat.pickle_names.pickled_as`` defines these names.
The module that defines a function is imported when the function is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

FUNCTIONS = {
    "device": "core.devices.device_at",
    "dtype": "core.dtypes.named",
    "generator": "operations.creation.random._generator",
    "instance": "compat.pickle_names.new_instance",
    "layout": "core.tensor.layout_named",
    "meta_array": "kernels.meta.array.rebuild",
    "parameter": "nn.parameter.rebuild",
    "return_type": "dispatch.return_types.rebuild",
    "size": "core.size.size_from",
    "sparse_tensor": "sparse.tensor.rebuild",
    "tensor": "operations.tensor_protocols.rebuild",
    "uninitialized": "nn.parameter._unmade",
}


def __getattr__(name: str) -> Any:
    if name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, function = FUNCTIONS[name].rpartition(".")
    return getattr(importlib.import_module(f".{module}", __package__), function)
