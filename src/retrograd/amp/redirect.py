"""Sends calls of some functions over a detour while somebody casts, and leaves them as they are otherwise.

# Note [Detours]
Within ``autocast`` some sixty functions convert their tensors first. Whoever calls them (a program that has imported
``matmul``, a module, another function of the package) holds the function itself, so it is the function that must do
otherwise; and as nothing may be paid outside of such blocks, it can not ask each time. So while any thread is within a
block, these functions have another code, which calls ``detour`` with the arguments as they are:

    def matmul(input, other, ...):          # before and after
    def matmul(*args, **kwargs): return _detour(_plain, args, kwargs)      # within

A function keeps its own code in a copy, ``_plain``. Putting in or taking out the detours is one assignment each.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from ..dispatch.codegen import UNWRITTEN
from ..dispatch.fast_path import specialise
from ..runtime import user_frame


class Detour:
    """A function with its own code and with the one that calls ``detour(plain, args, kwargs)``."""

    def __init__(self, function: FunctionType, detour: Callable[..., Any]) -> None:
        self.function: Any = function
        self.plain = plain = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
        )
        self.other = _code(function.__code__, function, lambda args, kwargs: detour(plain, args, kwargs))

    def use(self, detour: bool) -> None:
        """Take the detour from now on, or not. Others exchange code, too: what is there now is what is put back."""
        function, plain = self.function, self.plain
        if not detour and function.__code__ is self.other:
            function.__code__ = plain.__code__
            del function.own_code
        elif detour and function.__code__ is not self.other:
            plain.__defaults__, plain.__kwdefaults__ = function.__defaults__, function.__kwdefaults__
            plain.__code__ = function.__code__
            function.own_code = plain.__code__  # for who writes code by its parameters
            function.__code__ = self.other


def _code(own: CodeType, function: FunctionType, call: Callable[..., Any]) -> CodeType:
    """Code with the cells of ``own`` (a function's code may only be replaced by one with as many) that calls ``call``."""
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


def behind(found: Any) -> Iterator[FunctionType]:
    """Every function that stands for ``found``, a function of the table: what is written for it, and the surface."""
    op, front = getattr(found, "op", None), getattr(found, "front", None)
    if op is not None:
        yield from written(op, lambda function: getattr(function, "front", None) is None and not function.over)
        return
    if front is None:
        yield found
        return
    yield front.target
    while front is not None:
        yield from written(front.op, functools.partial(_fronts, front.target))
        front = front.other


def _fronts(target: Any, function: Any) -> bool:
    front = getattr(function, "front", None)
    return front is not None and front.target is target


def written(op: Any, wanted: Callable[[Any], bool]) -> Iterator[FunctionType]:
    """The public functions of an operation, with their own code."""
    for function, slow in op.forms:
        if wanted(function):
            if function.__code__.co_filename == UNWRITTEN:
                specialise(op, function, slow)
            yield function


class Detours:
    """All detours: they are taken while anybody wants them."""

    def __init__(self, make: Callable[[], list[Detour]]) -> None:
        self.make, self.made, self.wanted, self.lock = make, list[Detour](), 0, threading.Lock()

    def want(self, more: int) -> None:
        """One more who wants them (1), or one less (-1)."""
        with self.lock:
            before, self.wanted = self.wanted, max(self.wanted + more, 0)
            if (before > 0) == (self.wanted > 0):
                return
            self.made = self.made or self.make()
            for each in self.made:
                each.use(self.wanted > 0)
