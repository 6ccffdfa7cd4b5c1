"""Places in the user's program: what a node or a modification remembers of its line, how an error shows it, and the
lines to which warnings and tracebacks point.

Remembering must cost next to nothing, so a place is a code object and the index of an instruction in it; file and line
are looked up when an error is written. Frames of the package itself are passed over: their globals hold ``MARK``.
"""

from __future__ import annotations

import ast
import functools
import linecache
import math
import os
import sys
import warnings
from collections.abc import Callable
from itertools import islice
from types import CodeType, FrameType
from typing import Any, TypeVar, cast

Callee = TypeVar("Callee", bound=Callable[..., Any])

MARK = "__retrograd__"


def mark_package() -> None:
    """Mark the modules of the package that were loaded before its finder, which marks the others."""
    for name, module in list(sys.modules.items()):
        if name.startswith("retrograd.") and module is not None:
            module.__dict__[MARK] = True


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn in the name of the user's line, however many frames of ours stand between."""
    frame, level = sys._getframe(1), 2
    while MARK in frame.f_globals and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


#: What is meant for the user; an error of another kind is a mistake of ours, of which the traceback is the best part.
FOR_USERS = (RuntimeError, TypeError, ValueError, IndexError, ArithmeticError, AssertionError, Warning)
#: In whose frames nobody looks for a mistake in a program.
OTHERS = frozenset({"numpy", "scipy", "cupy", "ml_dtypes"}) | sys.stdlib_module_names


def strip_frames(error: Exception) -> Exception | None:
    """``error`` without the frames of the package through which it came, or None if it shall stay as it is.

    For the function that the user called, which catches and raises it: what is left is the user's line and that
    function's own. Where code of the user's was running below (a hook, a custom function), everything stays, and so it
    does if the environment says RETROGRAD_TRACEBACK=full.
    """
    if isinstance(error, MemoryError):
        return _no_memory(error)
    if not isinstance(error, FOR_USERS) or os.environ.get("RETROGRAD_TRACEBACK") == "full":
        return None
    entry = error.__traceback__
    while entry is not None:
        space = entry.tb_frame.f_globals
        if MARK not in space and str(space.get("__name__")).partition(".")[0] not in OTHERS:
            return None
        entry = entry.tb_next
    return error.with_traceback(None)


def _no_memory(error: MemoryError) -> RuntimeError:
    """PyTorch's error for memory that is not there; NumPy's tells how much was asked for."""
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    tried = (
        "" if shape is None or dtype is None else f" you tried to allocate {math.prod(shape) * dtype.itemsize} bytes."
    )
    words = f"[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory:{tried}"
    return RuntimeError(f"{words} Error code 12 (Cannot allocate memory)")


def strips_frames(function: Callee) -> Callee:
    """``function``, which raises without the frames below its own (see :func:`brief`); for what is not called often."""

    @functools.wraps(function)
    def outer(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            error = strip_frames(error)  # type: ignore[assignment]
            if error is None:
                raise
            raise error from error.__cause__

    made: Any = outer
    made.__code__ = made.__code__.replace(co_name=function.__name__, co_qualname=function.__qualname__)
    return cast(Callee, made)


#: How written code raises what it caught as ``_error``. (Of that name: Python forgets it, and with it the frame.)
RERAISE = (
    "if _error is None: raise",
    "raise _error from _error.__cause__  # RETROGRAD_TRACEBACK=full shows how it came to this",
)


def user_location(depth: int = 1) -> tuple[CodeType | None, int]:
    """The place in the user's program that is being run: code object and instruction.

    ``depth``: how many frames of the package are there for certain; each that is looked at costs 0.1 µs.
    """
    try:
        frame: FrameType | None = sys._getframe(depth)
    except ValueError:  # nothing is above the package: a thread that just runs one of its functions
        return None, -1
    while frame is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return (None, -1) if frame is None else (frame.f_code, frame.f_lasti)


def expression(frame: FrameType) -> ast.expr | None:
    """Return the syntax tree of the expression that a frame is evaluating, or None where there is no source to read."""
    place = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, stop = place
    if first is None or last is None or start is None or stop is None:
        return None
    lines = [each.encode() for each in linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return None
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    try:
        return ast.parse(b"(" + b"".join(lines) + b"\n)", mode="eval").body
    except (SyntaxError, ValueError):  # a file that has changed since it was loaded
        return None


def describe(code: CodeType | None, instruction: int) -> str:
    """``file.py:12: y = x * x`` for a remembered place, or an empty string if none was."""
    if code is None:
        return ""
    line = line_of(code, instruction)
    source = linecache.getline(code.co_filename, line).strip()
    return f"{file_of(code)}:{line}" + (f": {source}" if source else "")


def file_of(code: CodeType) -> str:
    """The file of a piece of code; of a notebook's cell, which is compiled under a name that nobody sees, ``In[3]``."""
    asked = getattr(sys.modules.get("IPython"), "get_ipython", None)
    names = getattr(getattr(asked and asked(), "compile", None), "format_code_name", None)
    found = names and names(code.co_filename)
    return found[1] if found else code.co_filename


def line_of(code: CodeType, instruction: int) -> int:
    """The line of an instruction."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno
