"""Interception of functions while ``autocast`` is active in any thread.

# Note [Detours]
Within ``autocast`` some sixty functions convert their tensors first. Their callers (a program that has imported
``matmul``, a module, another function of the package) hold the function object, so the function object itself must
change its behaviour; and because calls outside of ``autocast`` must not become slower, it can not test a flag on each
call. Therefore, while any thread is inside ``autocast``, the ``__code__`` of these functions is replaced by code that
passes the arguments to ``detour``:

    def matmul(input, other, ...):          # before and after
    def matmul(*args, **kwargs): return _detour(_plain, args, kwargs)      # within

A copy of the function, ``_plain``, keeps the original code. Installing or removing a detour is one assignment.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ..dispatch.codegen import UNWRITTEN
from ..dispatch.fast_path import install_fast_path
from ..runtime import user_frame


class Detour:
    """Replacement of the code of ``function`` by code that calls ``detour(plain, args, kwargs)``.

    ``plain`` is a copy of the function with its original code.
    """

    def __init__(self, function: FunctionType, detour: Callable[..., Any]) -> None:
        self.function: Any = function
        self.plain = plain = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.other = _calling_code(function.__code__, function, lambda args, kwargs: detour(plain, args, kwargs))

    def use(self, detour: bool) -> None:
        """Install the detour if ``detour`` is true, otherwise remove it.

        The profiler also replaces ``__code__``. Therefore the original code is read again at each installation.
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
    """Return a code object for ``function`` that returns ``call(args, kwargs)``.

    The code object has the same free variables as ``own``, the function's code, as Python requires for assignment to
    ``__code__``.
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

    An operation may have several of them: fast paths for different arguments, and a public function that calls the
    operation.
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
    """Yield the public functions of ``op`` for which ``wanted(function)`` is true, with their fast paths generated."""
    for function, slow in op.forms:
        if wanted(function):
            if function.__code__.co_filename == UNWRITTEN:
                install_fast_path(op, function, slow)
            yield function


class Detours:
    """All detours of ``autocast``, which are installed while it is active in any thread.

    ``make`` returns the list of detours and is called on first use.
    """

    def __init__(self, make: Callable[[], list[Detour]]) -> None:
        self.make, self.made, self.wanted, self.lock = make, list[Detour](), 0, threading.Lock()

    def want(self, more: int) -> None:
        """Add ``more``, 1 or -1, to the number of active ``autocast`` contexts.

        The detours are installed when the number becomes 1 and removed when it becomes 0.
        """
        with self.lock:
            before, self.wanted = self.wanted, max(self.wanted + more, 0)
            if (before > 0) == (self.wanted > 0):
                return
            self.made = self.made or self.make()
            for each in self.made:
                each.use(self.wanted > 0)
