"""``torch.cpu.amp`` and ``torch.cuda.amp``: deprecated names of ``autocast`` and ``GradScaler``."""

from __future__ import annotations

from typing import Any

from .. import amp
from ..runtime.user_frame import warn


def warn_deprecated(device: str, name: str, new: str) -> None:
    """Warn that ``torch.<device>.amp.<name>`` is deprecated and that ``torch.amp.<new>`` replaces it."""
    warn(f"`torch.{device}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{new}` instead.", FutureWarning)


def deprecated_classes(device: str, usual: Any) -> tuple[type[amp.autocast], type[amp.GradScaler]]:
    """Return the deprecated classes ``autocast`` and ``GradScaler`` of ``torch.<device>.amp``.

    ``usual`` is the default value of the parameter ``dtype`` of the returned class ``autocast``.
    """

    class autocast(amp.autocast):
        __doc__ = f'Deprecated form of ``torch.autocast("{device}", …)``.'
        __module__ = f"torch.{device}.amp.autocast_mode"
        __qualname__ = "autocast"

        def __init__(self, enabled: bool = True, dtype: Any = usual, cache_enabled: bool = True) -> None:
            warn_deprecated(device, "autocast", f"autocast('{device}', args...)")
            super().__init__(device, dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)

    class GradScaler(amp.GradScaler):
        __doc__ = f'Deprecated form of ``torch.amp.GradScaler("{device}", …)``.'
        __module__ = f"torch.{device}.amp.grad_scaler"
        __qualname__ = "GradScaler"

        def __init__(
            self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
            growth_interval: int = 2000, enabled: bool = True,
        ) -> None:  # fmt: skip
            warn_deprecated(device, "GradScaler", f"GradScaler('{device}', args...)")
            super().__init__(device, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return autocast, GradScaler


__all__ = ["deprecated_classes", "warn_deprecated"]
