"""Locations in the user's program, for error messages, warnings and tracebacks.

A graph node and a version counter record the user's line. Recording must be fast, so a location is a code object and
the index of an instruction; file and line are looked up only when an error is shown. Frames of retrograd are skipped;
they are recognised by the global variable named ``MARK``, which its modules and generated functions have.
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
from contextlib import suppress
from itertools import islice
from types import CodeType, FrameType, ModuleType
from typing import Any, TypeVar, cast
from weakref import ReferenceType

from .call_instructions import decode_call
from .codegen import MARK as MARK
from .codegen import parse_expression, renamed

Callee = TypeVar("Callee", bound=Callable[..., Any])
Raised = TypeVar("Raised", bound=BaseException)

#: Name in the globals of public functions, and of the modules that run between them and a kernel.
CALL_MARK = "__retrograd_call__"


def mark_package() -> None:
    """Mark the modules of retrograd that are already loaded, so that searches for the user's frame skip their frames.

    Modules loaded later are marked by the import finder of ``compat/lazy_imports.py``.
    """
    for name, module in list(sys.modules.items()):
        if name.startswith("retrograd.") and module is not None:
            module.__dict__[MARK] = True


#: Whether warnings that are issued once are issued each time (``torch.set_warn_always``).
warn_always = False


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Issue a warning with the message ``text`` that points to the user's line; retrograd's frames are skipped."""
    _warned[0] += 1
    frame, level = sys._getframe(1), 2
    while MARK in frame.f_globals and frame.f_back is not None:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)


#: The number of warnings that were issued.
_warned = [0]


def warned() -> int:
    """Return the number of calls of :func:`warn` in this process."""
    return _warned[0]


#: Errors addressed to the user. Any other error is a defect of the package, and keeps its whole traceback.
FOR_USERS = (
    RuntimeError, TypeError, ValueError, IndexError, ArithmeticError, AssertionError, Warning, KeyboardInterrupt
)  # fmt: skip
#: Packages whose frames are not code of the user.
LIBRARIES = frozenset({"numpy", "scipy", "cupy", "ml_dtypes"}) | sys.stdlib_module_names


#: Attribute of exceptions that are final: an outer function must not translate them again.
FINAL = "__retrograd_final__"


def mark_final(error: Raised) -> Raised:
    """Mark ``error`` as final, and return it."""
    with suppress(AttributeError):  # an exception class with __slots__
        setattr(error, FINAL, True)
    return error


def strip_frames(error: Raised) -> Raised | RuntimeError | None:
    """Return the error to raise in place of ``error``, without a traceback, or None if ``error`` must be kept.

    The function that the user called catches an error, calls ``strip_frames``, and raises the result. Then the
    traceback has only the user's line and the called function. The result is ``error`` itself, or PyTorch's error if
    ``error`` is a MemoryError. It is None in three cases: the class of ``error`` is not in ``FOR_USERS``, the traceback
    has frames of the user's code inside the call (a hook, a custom function), or the environment sets
    RETROGRAD_TRACEBACK=full.
    """
    if isinstance(error, MemoryError):
        return _no_memory(error)
    if not isinstance(error, FOR_USERS) or os.environ.get("RETROGRAD_TRACEBACK") == "full":
        return None
    if passed_user_code(error):
        return None
    error.__traceback__ = None
    return error


def passed_user_code(error: BaseException, ignored: CodeType | None = None) -> bool:
    """Whether the traceback of ``error`` has a frame of the user's code, for example of a hook.

    Frames of the package and of the ``LIBRARIES`` do not count, nor do those of the code object ``ignored``.
    """
    entry = error.__traceback__
    while entry is not None:
        space = entry.tb_frame.f_globals
        if (
            MARK not in space
            and str(space.get("__name__")).partition(".")[0] not in LIBRARIES
            and entry.tb_frame.f_code is not ignored
        ):
            return True
        entry = entry.tb_next
    return False


def _no_memory(error: MemoryError) -> RuntimeError:
    """Return PyTorch's error for a failed allocation of memory.

    The message contains the number of bytes if ``error``, an error of NumPy, has the shape and dtype of the array.
    """
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    requested = (
        "" if shape is None or dtype is None else f" you tried to allocate {math.prod(shape) * dtype.itemsize} bytes."
    )
    words = f"[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory:{requested}"
    return RuntimeError(f"{words} Error code 12 (Cannot allocate memory)")


def strips_frames(function: Callee) -> Callee:
    """Return a wrapper of ``function`` that removes retrograd's frames from the tracebacks of errors.

    See :func:`strip_frames`. The wrapper costs time and is not used for functions that are called very often.
    """

    @functools.wraps(function)
    def outer(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except KeyboardInterrupt as error:
            strip_frames(error)
            raise
        except Exception as error:
            error = strip_frames(error)  # type: ignore[assignment]
            if error is None:
                raise
            raise error from error.__cause__

    return cast(Callee, renamed(outer, function.__name__, function.__qualname__))


#: Lines of generated code that raise the error caught as ``_error``: Python deletes that name afterwards, and so frees
#: the frame.
RERAISE = (
    "if _error is None: raise",
    "raise _error from _error.__cause__  # RETROGRAD_TRACEBACK=full shows how it came to this",
)


def called_function() -> str:
    """Return the name of the function of the package that the user's code has called and that is running."""
    frame = sys._getframe(1)
    while frame.f_back is not None and MARK in frame.f_back.f_globals:
        frame = frame.f_back
    return frame.f_code.co_name


def user_location(depth: int = 1) -> tuple[CodeType | None, int]:
    """Return the code object of the user's frame, and the index of the instruction that this frame is executing.

    The user's frame is the innermost frame outside retrograd. The result is ``(None, -1)`` if there is no such frame.
    ``depth`` is the number of inner frames to skip without inspection, because they certainly belong to retrograd.
    Inspecting a frame takes 0.1 µs.
    """
    try:
        frame: FrameType | None = sys._getframe(depth)
    except ValueError:  # no frame is above the package, as in a thread that runs one of its functions
        return None, -1
    while frame is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return (None, -1) if frame is None else (frame.f_code, frame.f_lasti)


def calls_method(frame: FrameType) -> bool:
    """Whether ``frame`` is executing a call ``x.method(…)`` of an object ``x`` that is neither a class nor a module."""
    call = expression(frame)
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return False
    owner = call.func.value
    if isinstance(owner, ast.Name):
        return not isinstance(
            frame.f_locals.get(owner.id, frame.f_globals.get(owner.id)), (type, ModuleType, type(None))
        )
    return not isinstance(owner, ast.Attribute) or owner.attr != "Tensor"


#: For each code object, by identity: a weak reference to it, and the results of :func:`expression` by instruction.
expressions: dict[int, tuple[ReferenceType[CodeType], dict[int, ast.expr]]] = {}


def expression(frame: FrameType) -> ast.expr:
    """Return the syntax tree of the expression that ``frame`` is evaluating.

    Without source text, the tree is made from the code (:func:`decode_call`).
    """
    try:
        return expressions[id(frame.f_code)][1][frame.f_lasti]
    except KeyError:
        pass
    key = id(frame.f_code)
    if key not in expressions:  # not a WeakKeyDictionary, because hashing a code object takes 2 µs
        forget = expressions.pop  # bound here, because globals are None while the interpreter exits
        expressions[key] = ReferenceType(frame.f_code, lambda _: forget(key, None)), {}
    found = expressions[key][1][frame.f_lasti] = _parsed_expression(frame) or decode_call(frame)
    return found


def _parsed_expression(frame: FrameType) -> ast.expr | None:
    position = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,) * 4)
    first, last, start, stop = position
    if first is None or last is None or start is None or stop is None:
        return None
    lines = [each.encode() for each in linecache.getlines(frame.f_code.co_filename, frame.f_globals)[first - 1 : last]]
    if len(lines) != last - first + 1:
        return None
    lines[-1] = lines[-1][:stop]
    lines[0] = lines[0][start:]
    try:
        return parse_expression(b"(" + b"".join(lines) + b"\n)")
    except (SyntaxError, ValueError):  # a file that has changed since it was loaded
        return None


def describe(code: CodeType | None, instruction: int) -> str:
    """Return the location of an instruction of ``code`` as ``file.py:12: y = x * x``; "" if ``code`` is None."""
    if code is None:
        return ""
    line = line_of(code, instruction)
    source = linecache.getline(code.co_filename, line).strip()
    return f"{file_of(code)}:{line}" + (f": {source}" if source else "")


def file_of(code: CodeType) -> str:
    """Return the file name of a code object, or a name such as ``In[3]`` for a cell of a notebook.

    The name of a cell replaces its file name, which is internal to IPython.
    """
    get_shell = getattr(sys.modules.get("IPython"), "get_ipython", None)
    format_name = getattr(getattr(get_shell and get_shell(), "compile", None), "format_code_name", None)
    names = format_name and format_name(code.co_filename)
    return names[1] if names else code.co_filename


def line_of(code: CodeType, instruction: int) -> int:
    """Return the line number of the instruction of ``code`` at index ``instruction``."""
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno
