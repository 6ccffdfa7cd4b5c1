"""Registry of functions, other than operations, that a running profiler times.

The registration costs nothing in a call, because the profiler replaces the code of these functions while it runs
(``profiler/recorder.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

Callee = TypeVar("Callee", bound=Callable[..., Any])

#: For each function: a function that returns the name of a call from its arguments, and whether it is an operation.
PROFILED: WeakKeyDictionary[Any, tuple[Callable[..., str], bool]] = WeakKeyDictionary()


def profiled(name: Callable[..., str], operation: bool = False) -> Callable[[Callee], Callee]:
    """Return a decorator with which a profiler times a function, and shows its calls as ``name(*args, **kwargs)``."""

    def register(function: Callee) -> Callee:
        PROFILED[function] = name, operation
        return function

    return register
