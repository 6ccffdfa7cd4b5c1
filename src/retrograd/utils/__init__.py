"""Utilities (counterpart of ``torch.utils``): data loading, checkpointing, pytrees, benchmarks, hook handles."""

from ..compat.lazy_imports import module_getattr

_PARTS = (
    "_python_dispatch", "_pytree", "benchmark", "checkpoint", "collect_env", "data", "dlpack", "flop_counter", "hooks",
    "model_zoo", "module_tracker", "weak",
)  # fmt: skip
_LATER = {name: name for name in _PARTS} | {"swap_tensors": ".core.swap"}
__all__ = list(_LATER)
__getattr__ = module_getattr(__name__, _LATER)
