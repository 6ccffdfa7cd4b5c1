"""``torch.utils.flop_counter``: the names of ``python_dispatch/flop_counter.py``, loaded on demand."""

from ..compat.lazy_imports import module_getattr

_NAMES = (
    "FlopCounterMode", "addmm_flop", "baddbmm_flop", "bmm_flop", "conv_backward_flop", "conv_flop", "conv_flop_count",
    "flop_registry", "get_shape", "mm_flop", "register_flop_formula", "sdpa_backward_flop_count", "sdpa_flop_count",
    "shape_wrapper",
)  # fmt: skip
__getattr__ = module_getattr(__name__, dict.fromkeys(_NAMES, "..python_dispatch.flop_counter"))
__all__ = [each for each in _NAMES if each in ("FlopCounterMode", "register_flop_formula")]
