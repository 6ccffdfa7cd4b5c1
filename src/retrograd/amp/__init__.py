"""``torch.amp``: automatic mixed precision.

``autocast`` runs some operations in half precision. ``GradScaler`` multiplies losses by a factor, so that
half-precision gradients do not underflow.
"""

from __future__ import annotations

from . import autocast_mode, grad_scaler
from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = [
    "GradScaler",
    "autocast",
    "autocast_mode",
    "grad_scaler",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]
