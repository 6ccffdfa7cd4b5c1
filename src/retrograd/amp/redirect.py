"""Interception of function calls while ``autocast`` is active in any thread.

# Note [Detours]
Inside ``autocast``, about sixty functions first convert their tensor arguments. Their callers (a program that has
imported ``matmul``, a module, another function of the package) hold a reference to the function object. Therefore the
function object itself must change its behaviour. It cannot test a flag on each call, because calls outside of
``autocast`` must not become slower. Instead, while any thread is inside ``autocast``, the ``__code__`` of these
functions is replaced by code that passes the arguments to a function ``detour``:

    def matmul(input, other, ...):          # before and after
    def matmul(*args, **kwargs): return _detour(_plain, args, kwargs)      # within

A copy of the function, ``_plain``, keeps the original code. Installing or removing a detour is one assignment to
``__code__``.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ..dispatch.codegen import UNWRITTEN
from ..runtime import user_frame


class Detour:
    """Replacement of the code of ``function`` by code that calls ``detour(plain, args, kwargs)``.

    ``plain`` is a copy of ``function`` with its original code. See Note [Detours].
    """

    def __init__(self, function: FunctionType, detour: Callable[..., Any]) -> None:
        self.function: Any = function
        self.plain = plain = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.other = _calling_code(function.__code__, function, lambda args, kwargs: detour(plain, args, kwargs))

    def use(self, detour: bool) -> None:
        """Install the replacement code if ``detour`` is true, otherwise restore the original code.

        The original code is read again at each installation, because the profiler also replaces ``__code__``.
        """
        function, plain = self.function, self.plain
        if not detour and function.__code__ is self.other:
            function.__code__ = plain.__code__
            del function.own_code
        elif detour and function.__code__ is not self.other:
            plain.__defaults__, plain.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
            plain.__code__ = function.__code__
            function.own_code = plain.__code__  # read by code generators that need the parameters
            function.__code__ = self.other


def _calling_code(own: CodeType, function: FunctionType, call: Callable[..., Any]) -> CodeType:
    """Return a code object for ``function`` that takes any arguments and returns ``call(args, kwargs)``.

    The code object has the same free variables as ``own``, the original code of ``function``. Python requires this for
    an assignment to ``__code__``.
    """
    name = f"_detour_{id(function)}"
    function.__globals__[name] = call
    cells = ", ".join(own.co_freevars)
    text = [f"def around({cells}):", "    def called(*args, **kwargs):", f"        return {name}(args, kwargs)"]
    if cells:
        text.insert(2, f"        if 0: {cells}")
    space: dict[str, Any] = {user_frame.MARK: True}
    exec(compile("\n".join([*text, "    return called"]), f"<{own.co_name}>", "exec"), space)
    made: CodeType = space["around"](*own.co_freevars).__code__
    return made.replace(co_name=own.co_name, co_qualname=own.co_qualname)


def underlying_functions(found: Any) -> Iterator[FunctionType]:
    """Yield the function objects that run when the public function ``found`` is called.

    An operation may have several function objects: fast paths for different arguments, and a public function that calls
    the operation.
    """
    op, front = getattr(found, "op", None), getattr(found, "front", None)
    if op is not None:
        yield from specialised_functions(
            op, lambda function: getattr(function, "front", None) is None and not function.over
        )
        return
    if front is None:
        yield found
        return
    yield front.target
    while front is not None:
        yield from specialised_functions(front.op, functools.partial(_has_target, front.target))
        front = front.other


def _has_target(target: Any, function: Any) -> bool:
    front = getattr(function, "front", None)
    return front is not None and front.target is target


def specialised_functions(op: Any, wanted: Callable[[Any], bool]) -> Iterator[FunctionType]:
    """Yield the public functions of the operation ``op`` for which ``wanted(function)`` is true.

    If the fast path of a function has not been generated yet, it is generated first.
    """
    for function, _ in op.forms:
        if wanted(function):
            if function.__code__.co_filename == UNWRITTEN:
                function.__globals__["write"](function)
            yield function


class Detours:
    """All detours of ``autocast``, which are installed while ``autocast`` is active in any thread.

    ``make`` is a function that returns the list of detours. It is called on first use.
    """

    def __init__(self, make: Callable[[], list[Detour]]) -> None:
        self.make, self.made, self.wanted, self.lock = make, list[Detour](), 0, threading.Lock()

    def want(self, more: int) -> None:
        """Add ``more``, which is 1 or -1, to the number of active ``autocast`` contexts.

        The detours are installed when the number changes from 0 to 1, and removed when it changes to 0.
        """
        with self.lock:
            before, self.wanted = self.wanted, max(self.wanted + more, 0)
            if (before > 0) == (self.wanted > 0):
                return
            self.made = self.made or self.make()
            for each in self.made:
                each.use(self.wanted > 0)
