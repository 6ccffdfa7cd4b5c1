"""Public names of ``torch.autograd``: ``backward``, ``grad``, ``Function``, ``gradcheck`` and the submodules."""

from __future__ import annotations

from ..compat.lazy_imports import module_getattr
from ..core.grad_mode import (  # noqa: F401 - PyTorch has it here, but in no list
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from ..dispatch.saved_values import SavedTensor  # noqa: F401 - PyTorch has it here, but in no list
from . import anomaly_mode, forward_ad, function, grad_mode, graph
from .anomaly_mode import detect_anomaly, set_detect_anomaly
from .backward import backward, grad
from .function import Function
from .gradcheck import gradcheck, gradgradcheck
from .variable import Variable, variable

# The functions ``backward``, ``gradcheck`` and ``variable`` replace the submodules of these names as attributes of this
# package. The submodules are loaded above, so that a later import does not set them as attributes again.
for _public in (Variable, backward, grad, variable):
    _public.__module__ = __name__
del _public

#: Names loaded on first access: submodules, and functions that PyTorch does not have.
_PARTS = {name: name for name in ("functional", "profiler", "profiler_util")}
_LATER = {"explain": ".inspection.explain", "tracing": ".inspection.tracing"}
__all__ = [
    "Function", "Variable", "anomaly_mode", "backward", "detect_anomaly", "enable_grad", "forward_ad", "function", "grad",
    "grad_mode", "gradcheck", "gradgradcheck", "graph", "inference_mode", "no_grad", "set_detect_anomaly",
    "set_grad_enabled", "set_multithreading_enabled", "variable", *_LATER,
]  # fmt: skip
_PRIVATE = {"_profiler_enabled": ".profiler.autograd_profiler"}
__getattr__ = module_getattr(__name__, {**_LATER, **_PARTS, **_PRIVATE})
