"""``torch.cuda.amp``: deprecated names of ``autocast``, ``GradScaler``, ``custom_fwd`` and ``custom_bwd``.

``torch.amp`` has the current names.
"""

from __future__ import annotations

from typing import Any

from .. import amp
from ..amp import old
from ..core import dtypes

autocast, GradScaler = old.deprecated_classes("cuda", dtypes.float16)


def custom_fwd(fwd: Any = None, *, cast_inputs: Any = None) -> Any:
    """Return ``torch.amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)`` (deprecated)."""
    old.warn_deprecated("cuda", "custom_fwd", "custom_fwd(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any) -> Any:
    """Return ``torch.amp.custom_bwd(bwd, device_type="cuda")`` (deprecated)."""
    old.warn_deprecated("cuda", "custom_bwd", "custom_bwd(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")


__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]
