"""``recorded``: the recording of a whole program, for ``retrograd run --page``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ...runtime import user_frame
from . import recording


@contextmanager
def recorded(path: str) -> Iterator[None]:
    """Return a context manager that records a program, and writes the page of its last backward pass to ``path``.

    The page is written at the end, also if the program raises an exception or is interrupted, and a line on standard
    error tells where. Child processes of the program write none.
    """
    process, target = os.getpid(), os.path.abspath(path)  # the program may change its folder
    session = recording()
    try:
        with session:
            yield
    finally:
        if os.getpid() == process:
            print(f"retrograd: {_written(session, path, target)}", file=sys.stderr)


def _written(session: recording, path: str, target: str) -> str:
    """Write the page of ``session`` to the file ``target``, and return a sentence about it, which calls it ``path``."""
    if session.trace is None and session.failure:
        return f"no page was written to {path}: the backward pass could not be recorded: {session.failure}"
    if session.trace is None:
        return (
            f"no page was written to {path}: the program ran no backward pass in its main thread (backward() or "
            "torch.autograd.grad())"
        )
    where = user_frame.describe(*session.trace.line)
    line = where.partition(": ")[0]
    try:
        session.page(target)
    except OSError as error:
        return f"the page was not written: {error}"
    number = f"backward pass {session.passes}" if session.passes > 1 else "the backward pass"
    return f"{path} shows {number}{f', at {line}' if line else ''}; open it in a browser"


__all__ = ["recorded"]
