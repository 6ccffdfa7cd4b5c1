"""``has_returned``: whether a call of a C function had returned when a KeyboardInterrupt was raised.

The interpreter handles signals at the start of a Python function, after the call of a C function and at the end of a
loop, but at no other instruction. So a function that catches the exception of a call of a C function, whose arguments
contain no other call, has been interrupted after this call.
"""

from __future__ import annotations

from .user_frame import MARK


def has_returned(error: BaseException) -> bool | None:
    """Whether the call that ``error`` has interrupted had returned, or None if this is not known.

    ``error`` is caught around a call by the function that calls. The called function is a C function, or a function of the
    package which does nothing after a Numba loop has written its result. In this case the loop has stored the answer by
    :func:`note_return`. Nothing is known if the function is being traced, because a trace function may raise the
    exception at any instruction, or if the C function has called a function of another package.
    """
    if hasattr(error, "returned"):
        return error.returned
    trace = error.__traceback__
    if trace is None or trace.tb_frame.f_trace is not None:
        return None
    deeper = trace.tb_next
    if deeper is None:
        return True
    while deeper is not None:
        if deeper.tb_frame.f_trace is not None or MARK not in deeper.tb_frame.f_globals:
            return None
        deeper = deeper.tb_next
    return False


def note_return(error: BaseException) -> None:
    """Store for :func:`has_returned` whether the call of a compiled loop that ``error`` has interrupted had returned."""
    trace = error.__traceback__
    if not hasattr(error, "returned") and trace is not None:
        deeper = None if trace.tb_next is None else trace.tb_next.tb_frame.f_globals.get("__name__", "")
        # A frame of another package is that of a signal handler of the program: it says nothing about the call.
        compiling = deeper is not None and trace.tb_frame.f_trace is None and deeper.partition(".")[0] == "numba"
        error.returned = False if compiling else has_returned(error)  # type: ignore[attr-defined]
