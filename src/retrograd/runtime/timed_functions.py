"""Registry of functions, other than operations, that a running profiler times.

The body of each registered function contains the code that reports its calls to the profiler (Note [Interception] in
``dispatch/intercept.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from .typing import Function

Callee = TypeVar("Callee", bound=Callable[..., Any])

#: For each function: a function that returns the name of a call from its arguments, and whether it is an operation.
PROFILED: WeakKeyDictionary[Function, tuple[Callable[..., str], bool]] = WeakKeyDictionary()


def profiled(name: Callable[..., str], operation: bool = False) -> Callable[[Callee], Callee]:
    """Return a decorator that registers a function, so that a running profiler times its calls.

    The profiler shows a call under the name ``name(*args, **kwargs)``, where ``args`` and ``kwargs`` are the arguments
    of the call. If ``operation`` is true, the profiler treats a call as an operation.
    """

    def register(function: Callee) -> Callee:
        PROFILED[function] = name, operation
        return function

    return register
