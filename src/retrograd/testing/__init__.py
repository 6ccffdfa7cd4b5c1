"""``torch.testing``: ``assert_close``, which compares tensors, and ``make_tensor``, which returns random tensors."""

from __future__ import annotations

from .close import assert_allclose, assert_close
from .make import make_tensor

__all__ = ["assert_allclose", "assert_close", "make_tensor"]
