"""``torch._C``: the names of this module that PyTorch's documentation mentions, or that packages import.

Here are context managers that disable ``__torch_function__``, and options of the profiler; ``private_names.py`` and
``_functorch.py`` have the names that are loaded on demand.
"""

from __future__ import annotations

from typing import Any

from ..compat.lazy_imports import module_getattr
from ..core import torch_function

_disabled_torch_function_impl = torch_function.disabled


class _OverridesOff:
    """Base class of context managers in which ``__torch_function__`` of classes does not override functions.

    In a subclass, the attribute ``level`` is a constant of ``core/torch_function.py``. With ``MODES``, active
    ``TorchFunctionMode`` contexts still override functions; with ``NONE``, they do not.
    """

    __module__ = "torch._C"
    level: int

    def __enter__(self) -> None:
        self.block = torch_function.disabled_overrides(self.level)
        self.block.__enter__()

    def __exit__(self, *error: Any) -> None:
        self.block.__exit__(*error)


class DisableTorchFunctionSubclass(_OverridesOff):
    """Context manager that disables ``__torch_function__`` of classes; modes (``TorchFunctionMode``) stay active."""

    __module__ = "torch._C"
    level = torch_function.MODES


class DisableTorchFunction(_OverridesOff):
    """Context manager that disables ``__torch_function__`` of classes and modes (``TorchFunctionMode``)."""

    __module__ = "torch._C"
    level = torch_function.NONE


def _is_torch_function_enabled() -> bool:
    """Whether ``__torch_function__`` of classes is enabled."""
    return torch_function.state()[0] == torch_function.ALL


def _len_torch_function_stack() -> int:
    """Return the number of ``TorchFunctionMode`` contexts that are active."""
    return len(torch_function.state()[1])


class _profiler:
    """Namespace that replaces PyTorch's submodule ``torch._C._profiler``."""

    class _ExperimentalConfig:
        """Options of PyTorch's profiler; they are stored as attributes and have no effect."""

        def __init__(self, **options: Any) -> None:
            self.__dict__.update(options)


__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass"]
_PRIVATE = (
    "DispatchKey", "DispatchKeySet", "Graph", "Node", "ScriptMethod", "ScriptObject", "Value",
    "_ExcludeDispatchKeyGuard", "_TensorMeta", "_are_functorch_transforms_active", "_fft", "_get_accelerator",
    "_get_default_device", "_get_privateuse1_backend_name", "_get_tracing_state", "_linalg", "_log_api_usage_once",
    "_nn", "_special", "_current_autograd_node", "_current_graph_task_id", "_get_cudnn_enabled", "_has_xpu", "_is_alias_of",
    "_is_torch_function_mode_enabled", "_is_tracing", "_jit_can_fuse_on_cpu", "_jit_can_fuse_on_gpu",
    "_jit_override_can_fuse_on_cpu", "_jit_override_can_fuse_on_gpu", "_jit_set_nvfuser_enabled",
    "_jit_set_profiling_executor", "_jit_set_profiling_mode", "_jit_set_texpr_fuser_enabled",
    "_set_math_sdp_allow_fp16_bf16_reduction",
)  # fmt: skip
__getattr__ = module_getattr(__name__, {"_functorch": "_functorch"} | dict.fromkeys(_PRIVATE, ".private_names"))
