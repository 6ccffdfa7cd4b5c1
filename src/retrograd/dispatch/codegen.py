"""Compilation of generated source text, and functions whose code is generated at their first call."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any

from ..runtime import user_frame


def compile_source(filename: str, lines: Sequence[str], space: dict[str, Any], name: str) -> Any:
    """The function that ``lines`` define, shown with its source in tracebacks and debuggers."""
    source = "\n".join(lines) + "\n"
    kept, whole, written = source.splitlines(keepends=True), filename, 1
    while filename in linecache.cache and linecache.cache[filename][2:3] != (kept,):
        written += 1  # a surface with two quick ways has two
        filename = f"{whole[:-1]} {written}>"
    space[user_frame.MARK] = True  # its frames are the package's
    exec(compile(source, filename, "exec"), space)
    linecache.cache[filename] = (len(source), None, kept, filename)
    return space[name]


UNWRITTEN, TIMED = "<first call>", "<timed>"
#: How the file names of code begin that only stands between a call and the function called.
PASSED_OVER = (UNWRITTEN[:-1], TIMED[:-1])
#: All functions whose code is written when they are first called, for those who exchange it (``profiler/recorder.py``).
LAZY_FUNCTIONS: list[FunctionType] = []


def lazy_function(name: str, write: Callable[[FunctionType], None], space: dict[str, Any]) -> FunctionType:
    """A function with ``space`` for its globals, whose code ``write`` is to give it when it is first called."""
    made = FunctionType(_FIRST_CALL.replace(co_name=name, co_qualname=name), space, name)
    LAZY_FUNCTIONS.append(made)
    space.update(write=write, function=made, brief=user_frame.strip_frames, __name__=None)
    space[user_frame.MARK] = True
    return made


_FIRST_CALL: CodeType = compile_source(
    UNWRITTEN,
    [
        "def first_call(*args, **kwargs):", "    try:", "        write(function)", "        return function(*args, **kwargs)",
        "    except Exception as _error:", "        _error = brief(_error)", *("        " + each for each in user_frame.RERAISE),
    ],
    {}, "first_call",
).__code__  # fmt: skip
