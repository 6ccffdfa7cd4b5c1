"""Notice of each synchronisation: each time the host waits until a GPU has computed.

CuPy 14 calls a function of its module ``cupy._core.syncdetect`` before it copies an array to the CPU and before it waits
for all work of a device. :func:`observe` replaces this function.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from ..core import devices
from ..runtime import user_frame

#: The function of CuPy, while another one is in its place.
_original: list[Any] = []


def observe(gpu: Any, function: Callable[[], None] | None) -> None:
    """Call ``function`` at each synchronisation by ``gpu``, the module CuPy; None restores CuPy's own function.

    Raises RuntimeError if CuPy has no such module.
    """
    module = sys.modules.get(f"{gpu.__name__}._core.syncdetect")
    if module is None or not hasattr(module, "_declare_synchronize"):
        raise RuntimeError("this version of CuPy does not report synchronisations; 14.1 and 14.2 do")
    if not _original:
        _original.append(module._declare_synchronize)
    module._declare_synchronize = _original[0] if function is None else function  # type: ignore[attr-defined]


@contextlib.contextmanager
def counted() -> Iterator[Counter[str]]:
    """Context manager that counts the synchronisations of the block by their place: user's line, and line of retrograd.

    The mode of ``torch.cuda.set_sync_debug_mode`` has no effect in the block.
    """
    gpu = devices.cupy()
    found: Counter[str] = Counter()

    def note() -> None:
        found[_place()] += 1

    module = sys.modules.get(f"{gpu.__name__}._core.syncdetect")
    before = getattr(module, "_declare_synchronize", None)
    observe(gpu, note)
    try:
        yield found
    finally:
        observe(gpu, before)


def _place() -> str:
    """Return the innermost line of retrograd outside this module, followed by the user's line, as text."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and not _of_package(frame) and _of_library(frame):
        frame = frame.f_back
    inner = ""
    if frame is not None and _of_package(frame):
        file = frame.f_code.co_filename
        inner = f"{file[file.rfind('retrograd/') :] if 'retrograd/' in file else file}:{frame.f_lineno}, "
    while frame is not None and (_of_package(frame) or _of_library(frame)):
        frame = frame.f_back
    return inner + user_frame.describe(*((None, -1) if frame is None else (frame.f_code, frame.f_lasti)))


def _of_package(frame: FrameType) -> bool:
    """Return whether the frame is one of retrograd; the globals of its specialised functions have no ``__name__``."""
    space = frame.f_globals
    return user_frame.MARK in space and str(space.get("__name__") or "retrograd").startswith("retrograd")


def _of_library(frame: FrameType) -> bool:
    """Return whether the frame is one of CuPy, or of its stand-in, which is marked as no code of the user."""
    space = frame.f_globals
    return user_frame.MARK in space or str(space.get("__name__")).partition(".")[0] in ("cupy", "cupyx")


__all__ = ["counted", "observe"]
