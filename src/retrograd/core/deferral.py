"""The cursor of this thread: the object that defers operations while a compiled function runs (``compiler/cursor.py``).

Modules below the compiler call :func:`end_segment` before they change a mode or a setting on which results depend.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from .typing import Cursor

_cursor: ContextVar[Cursor | None] = ContextVar("cursor", default=None)
#: Return the cursor, or None while no operation may be deferred. Called on hot paths.
active_cursor: Final[Callable[[], Cursor | None]] = _cursor.get
#: Set the cursor. This is a C function, so that an interrupt cannot prevent the restoration in a ``finally`` clause.
set_cursor: Final[Callable[[Cursor | None], object]] = _cursor.set


def end_segment(cause: str) -> None:
    """Compute the deferred operations of this thread, because ``cause`` changes a setting on which results depend."""
    cursor = active_cursor()
    if cursor is not None:
        cursor.end(cause)


def block(cause: str, change: int) -> None:
    """Compute the deferred operations, and defer none while the sum of all ``change`` is not 0.

    A mode or handler that intercepts calls passes 1 when it is entered, and -1 when it is left.
    """
    cursor = active_cursor()
    if cursor is not None:
        cursor.block(cause, change)
