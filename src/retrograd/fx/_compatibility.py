"""``torch.fx._compatibility``: a decorator that libraries import."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Decorated = TypeVar("Decorated")


def compatibility(is_backward_compatible: bool) -> Callable[[Decorated], Decorated]:
    """Return a decorator that returns its argument; PyTorch's adds a note on its promises to the docstring."""
    return lambda decorated: decorated


__all__ = ["compatibility"]
