"""``functools.cached_property`` without its lock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """Cached property without a lock. Concurrent first reads may compute it more than once.

    In Python 3.11 the class of the standard library holds a lock, one for all instances, while it computes. A child
    process that is forked meanwhile would deadlock.
    """

    def __init__(self, function: Callable[..., T]) -> None:
        super().__init__(function)
        self.lock: nullcontext[None] = nullcontext()
