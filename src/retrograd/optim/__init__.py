"""Optimisers, schedules of their learning rates, and averages of what they reach: ``torch.optim``."""

from __future__ import annotations

from ..core.absent import absent
from .adam import Adam
from .adamw import AdamW
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer"]
__getattr__ = absent(__name__)
