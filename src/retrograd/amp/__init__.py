"""Mixed precision, as ``torch.amp``: blocks in which some operations calculate in short floats, and gradients that are
scaled so that these do not underflow.
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
