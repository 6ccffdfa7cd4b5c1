"""Helpers for tests, as ``torch.testing``: comparison of tensors with a report of differences, and random tensors."""

from __future__ import annotations

from .close import assert_allclose, assert_close
from .make import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
