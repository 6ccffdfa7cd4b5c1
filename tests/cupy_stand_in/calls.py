"""Counts of what the host does for a GPU: launches of kernels, other calls of CuPy, and calls of Python functions.

``counted_calls()`` is a block that returns what was called in it. A call of the stand-in counts once, whatever it calls
itself, and as a launch unless its result is a view or memory without values. CuPy takes several launches for some
functions (``take_along_axis``, ``cumsum``, products of matrices that must be copied), which count as one here.
"""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from .array import ndarray, owner

_FOLDER = str(Path(__file__).parent)
#: Names of what launches nothing: views, properties, memory without values, and questions about devices.
_FREE = frozenset({
    "empty", "empty_like", "broadcast_to", "as_strided", "transpose", "swapaxes", "moveaxis", "squeeze", "expand_dims",
    "view", "diagonal", "<lambda>", "__len__", "base", "device", "data", "real", "imag", "__new__", "ndim", "__iter__",
    "sliding_window_view", "get_array_module", "__del__", "__init__", "shape", "strides", "__bool__", "result_type", "can_cast", "promote_types", "iinfo", "finfo",
    "_buffer_size", "ptr",
})  # fmt: skip
#: Names of what launches something only if the result is not a view of the first argument.
_PERHAPS = frozenset({
    "reshape", "ravel", "ascontiguousarray", "astype", "asarray", "array", "__getitem__", "asanyarray", "broadcast_arrays",
    "_astype", "__copy__", "conj",
})  # fmt: skip


@dataclass
class Calls:
    """Counts of one block: launches and other calls of CuPy by name, and the number of calls of Python functions.

    Functions of the stand-in are not among the Python functions.
    """

    launches: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    functions: Counter[str] = field(default_factory=Counter)
    python: int = 0

    @property
    def count(self) -> int:
        """The number of launches."""
        return self.launches.total()


def _name_of(frame: FrameType) -> str:
    known = frame.f_locals
    name = frame.f_code.co_name
    if name == "__call__":
        return str(known["self"].name)
    if name in ("call", "method", "operator") or (name == "<lambda>" and "target" in known):
        target = known.get("name") or known.get("target")
        return str(getattr(target, "__name__", target))
    return name


def _memory(value: Any) -> int:
    return id(owner(value._a)) if isinstance(value, ndarray) else 0


@contextlib.contextmanager
def counted_calls() -> Iterator[Calls]:
    """Count the calls within a block, which takes several times as long."""
    found = Calls()
    outer: FrameType | None = None
    sources: list[int] = []

    def note(frame: FrameType, event: str, value: Any) -> None:
        nonlocal outer
        if event == "call":
            if outer is not None:
                return
            name = frame.f_code.co_filename
            if name.startswith(_FOLDER):
                if name != __file__:
                    outer = frame
                    sources[:] = [_memory(each) for each in _given(frame)]
            elif frame.f_code.co_flags & 0x20 == 0 and "/retrograd/" in name:  # not a generator that goes on
                found.python += 1
                found.functions[f"{name.partition('/retrograd/')[2]}:{frame.f_code.co_qualname}"] += 1
        elif event == "return" and frame is outer:
            outer = None
            name = _name_of(frame)
            viewed = name in _FREE or (
                name in _PERHAPS and (not isinstance(value, ndarray) or _memory(value) in sources)
            )
            (found.others if viewed else found.launches)[name] += 1

    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)


def _given(frame: FrameType) -> list[Any]:
    given: list[Any] = []
    for each in frame.f_locals.values():
        given += each if isinstance(each, tuple) else [each]
    return given


__all__ = ["Calls", "counted_calls"]
