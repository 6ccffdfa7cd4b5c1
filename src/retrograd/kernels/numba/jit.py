"""How a loop is compiled: when it is first called, for all threads or for one, and kept on disk.

A loop is a function of arrays that writes its results into arrays. It is written for ``prange``, whose rounds the threads
share, and must not depend on their order.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from types import FunctionType
from typing import Any
from zlib import crc32

from numba import njit
from numba.core import event

from ..numba_dispatch import RUNNING

#: What may be done to arithmetic: a product and a sum rounded once. Nothing is assumed of nan and infinity.
EXACT = frozenset({"contract"})
#: The same for sums: their order is free, so that several are added up side by side. Smaller errors, not larger ones.
SUMS = EXACT | {"reassoc", "nsz"}


class Loop:
    """A loop for large arrays: called with arrays of the dtypes for which it is then compiled."""

    def __init__(self, function: Any, flags: frozenset[str]) -> None:
        self.function, self.flags = function, flags
        self.__doc__ = function.__doc__
        names = function.__code__.co_varnames
        #: The places of arguments in which a number may stand for an array of equal elements: those called g or h.
        self.flexible = frozenset(names.index(name) for name in ("g", "h") if name in names)

    def __call__(self, first: Any, *rest: Any) -> Any:
        if RUNNING.simple:
            return self.for_all(first, *rest)
        together, found = RUNNING.together(self.for_all, first.size, (first, *rest))
        return found if together else self._for_one(first, *rest)

    @cached_property
    def for_all(self) -> Any:
        return _compiled(self.function, self.flags, True)

    @cached_property
    def _for_one(self) -> Any:
        return _compiled(self.function, self.flags, False)


@cache
def _version() -> str:
    """A digest of all loops: what one of them calls may stand in another file, at which Numba does not look."""
    files = sorted(Path(__file__).parent.glob("*.py"))
    return f"{crc32(b''.join(file.read_bytes() for file in files)):08x}"


def _compiled(function: Any, flags: frozenset[str], parallel: bool) -> Any:
    made = FunctionType(function.__code__, function.__globals__, function.__name__)
    made.__module__ = function.__module__
    # Numba keeps what it has compiled under this name.
    made.__qualname__ = f"{function.__name__}_{'all' if parallel else 'one'}_{_version()}"
    options = {"nogil": True, "error_model": "numpy", "fastmath": set(flags), "parallel": parallel}
    try:
        return njit(made, cache=True, **options)
    except RuntimeError:  # no folder in which anything could be kept
        return njit(made, **options)


class InOrder(Loop):
    """A loop whose rounds depend on each other: it runs on one thread."""

    def __call__(self, first: Any, *rest: Any) -> Any:
        return self._for_one(first, *rest)


def loop_in_order(function: Callable[..., None]) -> InOrder:
    """Compile a loop for one thread."""
    return InOrder(function, EXACT)


def loop(function: Callable[..., None]) -> Loop:
    """Compile a loop whose arithmetic is done as it is written."""
    return Loop(function, EXACT)


def loop_as_written(function: Callable[..., None]) -> Loop:
    """Compile a loop that rounds wherever NumPy would: its results are those of the same steps on arrays."""
    return Loop(function, frozenset())


def loop_of_sums(function: Callable[..., None]) -> Loop:
    """Compile a loop in which sums may be added up in any order."""
    return Loop(function, SUMS)


class Waiting(event.Listener):  # type: ignore[misc]
    """Says once, to who waits at a terminal, why it takes long, if it does: Numba tells when it compiles."""

    patience = 1.0

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None
        self.compiled: Any = None
        self.told = False

    def on_start(self, event: Any) -> None:
        """A loop, or what one calls, begins to be compiled (it is not on disk)."""
        compiled = event.data["dispatcher"]
        ours = compiled.py_func.__module__.startswith("retrograd.")
        if ours and self.compiled is None and not self.told and sys.stderr is not None and sys.stderr.isatty():
            self.compiled, self.timer = compiled, threading.Timer(self.patience, self.tell)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        """It is done."""
        if self.timer is not None and event.data["dispatcher"] is self.compiled:
            self.timer.cancel()
            self.timer = self.compiled = None

    def tell(self) -> None:
        """Print the line."""
        self.told = True
        print("retrograd: compiling loops, once (about 10 s for convolutions) ...", file=sys.stderr, flush=True)


event.register("numba:compile", Waiting())


def step(function: Callable[..., Any]) -> Any:
    """Compile what a loop does again and again apart from it: Numba compiles the bodies of loops twice."""
    return njit(function, error_model="numpy", fastmath=set(EXACT))


def step_of_sums(function: Callable[..., Any]) -> Any:
    """The same for sums in any order."""
    return njit(function, error_model="numpy", fastmath=set(SUMS))
