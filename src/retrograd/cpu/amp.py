"""Mixed precision by its old names, as ``torch.cpu.amp``; ``torch.amp`` has the new ones."""

from __future__ import annotations

from typing import Any

from .. import amp
from ..core import dtypes
from ..core.absent import absent, listed
from ..core.where import warn


def _old(name: str, new: str) -> None:
    warn(f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning)


class autocast(amp.autocast):
    """``torch.autocast("cpu", …)``."""

    __module__ = "torch.cpu.amp.autocast_mode"

    def __init__(self, enabled: bool = True, dtype: Any = dtypes.bfloat16, cache_enabled: bool = True) -> None:
        _old("autocast", "autocast('cpu', args...)")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """``torch.amp.GradScaler("cpu", …)``."""

    __module__ = "torch.cpu.amp.grad_scaler"

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        _old("GradScaler", "GradScaler('cpu', args...)")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


__all__ = ["GradScaler", "autocast"]
__getattr__, __dir__ = absent(__name__), listed(globals())
