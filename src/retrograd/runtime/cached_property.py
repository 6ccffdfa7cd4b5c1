"""``functools.cached_property`` without its lock."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import TypeVar

T = TypeVar("T")


class cached_property(functools.cached_property[T]):
    """Property that is computed once for each instance, or more than once if several threads read it at once.

    In Python 3.11 the class of the standard library holds a lock, one for all instances, while it computes. A child
    process that is forked meanwhile would wait for ever.
    """

    def __init__(self, function: Callable[..., T]) -> None:
        super().__init__(function)
        self.lock = nullcontext()
