"""Places in the user's program: what a node or a modification remembers of its line, and how an error shows it.

Remembering must cost next to nothing, so a place is a code object and the index of an instruction in it; file and line
are looked up when an error is written. Frames of the package itself are passed over: their globals hold ``MARK``.
"""

from __future__ import annotations

import linecache
import sys
from types import CodeType, FrameType

MARK = "__retrograd__"


def mark_package() -> None:
    """Tell the package's own modules from the user's (called when a part of the package has been imported)."""
    for name, module in list(sys.modules.items()):
        if name.startswith("retrograd.") and module is not None:
            module.__dict__[MARK] = True


def caller() -> tuple[CodeType | None, int]:
    """The place in the user's program that is being run: code object and instruction."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and MARK in frame.f_globals:
        frame = frame.f_back
    return (None, -1) if frame is None else (frame.f_code, frame.f_lasti)


def user_level() -> int:
    """The ``stacklevel`` with which a warning of our caller's points to the user's program."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and MARK in frame.f_globals:
        frame, level = frame.f_back, level + 1
    return level


def describe(code: CodeType | None, instruction: int) -> str:
    """``file.py:12: y = x * x`` for a remembered place, or an empty string if none was."""
    if code is None:
        return ""
    line = _line_of(code, instruction)
    source = linecache.getline(code.co_filename, line).strip()
    return f"{code.co_filename}:{line}" + (f": {source}" if source else "")


def _line_of(code: CodeType, instruction: int) -> int:
    for start, end, line in code.co_lines():
        if start <= instruction < end and line is not None:
            return line
    return code.co_firstlineno
