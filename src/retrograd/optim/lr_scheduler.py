"""Learning rate schedulers, as in ``torch.optim.lr_scheduler``; the classes are in the ``*_schedulers`` modules."""

from __future__ import annotations

from ..compat.module_names import ModuleName
from .composite_schedulers import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from .cyclic_schedulers import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from .factor_schedulers import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .lr_scheduler_base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from .lr_scheduler_base import LRScheduler

_LRScheduler = LRScheduler  # the class name in PyTorch 1

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "CyclicLR", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
for _name in __all__:  # PyTorch's module path
    globals()[_name].__module__ = ModuleName(__name__, globals()[_name].__module__)
