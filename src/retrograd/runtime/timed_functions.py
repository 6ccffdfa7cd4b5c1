"""What a running profiler times besides operations: functions that say so where they are defined.

Saying so costs nothing when they are called: the profiler exchanges their code while it runs (``profiler/recorder.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Callee = TypeVar("Callee", bound=Callable[..., Any])

#: The functions; what finds the name of a call from its arguments; whether it is an operation (of the user's).
PROFILED: WeakKeyDictionary[Any, tuple[Callable[..., str], bool]] = WeakKeyDictionary()


def profiled(name: Callable[..., str], operation: bool = False) -> Callable[[Callee], Callee]:
    """Let calls of a function be shown by a profiler as ``name(*args, **kwargs)`` of its arguments."""

    def declare(function: Callee) -> Callee:
        PROFILED[function] = name, operation
        return function

    return declare
