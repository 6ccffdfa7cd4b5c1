"""Masked tensors: ``MaskedTensor`` and the functions that create it."""

from __future__ import annotations

from . import reductions as reductions
from .core import MaskedTensor, as_masked_tensor, is_masked_tensor, masked_tensor

__all__ = ["MaskedTensor", "as_masked_tensor", "is_masked_tensor", "masked_tensor"]
