"""``torch.utils._python_dispatch``: the names of ``python_dispatch/modes.py``, loaded on demand."""

from ..compat.lazy_imports import module_getattr

_NAMES = (
    "TorchDispatchMode", "_disable_current_modes", "_get_current_dispatch_mode", "_get_current_dispatch_mode_stack",
    "is_in_torch_dispatch_mode", "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing", "transform_subclass",
)  # fmt: skip
__getattr__ = module_getattr(__name__, dict.fromkeys(_NAMES, "..python_dispatch.modes"))
__all__ = [each for each in _NAMES if each[0] != "_"]
