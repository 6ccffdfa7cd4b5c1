"""Decorators that compile loops by Numba at their first call, for several threads or for one, with an on-disk cache.

A loop is a function that reads arrays and writes its results to arrays. The iterations of a ``prange`` (Numba's
parallel ``range``) are divided among the threads, so that the result must not depend on their order.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

from numba import njit
from numba.core import event

from ...runtime import codegen
from ...runtime.cached_property import cached_property
from ...runtime.interrupts import note_return
from ..numba_dispatch import RUNNING

#: Fast-math flags: a product and a sum may be rounded once. Nan and infinity are treated exactly.
EXACT = frozenset({"contract"})
#: Fast-math flags for sums: they may be added in any order, which allows vector instructions and reduces the error.
SUMS = EXACT | {"reassoc", "nsz"}


class Loop:
    """Function of arrays that Numba compiles when it is first called with arguments of new dtypes.

    A call runs on all threads, or on the calling thread if the other threads may not be used or are busy.
    """

    def __init__(self, function: Any, flags: frozenset[str]) -> None:
        self.function: Any = function
        self.flags = flags
        self.__doc__ = function.__doc__
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]  # the local variables follow
        #: Positions of the arguments that may be a number instead of an array of equal elements: those named g or h.
        self.flexible: frozenset[int] = frozenset(names.index(name) for name in ("g", "h") if name in names)

    def __call__(self, first: Any, *rest: Any) -> Any:
        run = self.for_all
        if not RUNNING.simple:
            together, result = RUNNING.together(run, first.size, (first, *rest))
            if together:
                return result
            run = self.for_one
        try:
            return run(first, *rest)
        except KeyboardInterrupt as error:
            note_return(error)
            raise

    @cached_property
    def for_all(self) -> Any:
        """The function compiled for several threads."""
        return _compiled(self.function, self.flags, True)

    @cached_property
    def for_one(self) -> Any:
        """The function compiled for one thread."""
        return _compiled(self.function, self.flags, False)


@cache
def _version() -> str:
    """Return a checksum of all files in this folder, to be used in the key of Numba's on-disk cache.

    Numba's key covers only the file of the compiled function, not the functions that it calls in other files.
    """
    files = sorted(Path(__file__).parent.glob("*.py"))
    return f"{crc32(b''.join(file.read_bytes() for file in files)):08x}"


def _compiled(function: Any, flags: frozenset[str], parallel: bool) -> Any:
    """Return ``function`` compiled by Numba, with an on-disk cache if a folder for it is writable.

    ``flags`` are LLVM's fast-math flags. If ``parallel`` is true, ``prange`` runs on several threads.
    """
    # Numba's cache uses the qualified name.
    name = function.__name__
    copy = codegen.renamed(function, name, f"{name}_{'all' if parallel else 'one'}_{_version()}")
    options = {"nogil": True, "error_model": "numpy", "fastmath": set(flags), "parallel": parallel}
    try:
        return njit(copy, cache=True, **options)
    except RuntimeError:  # no folder for the cache is writable
        return njit(copy, **options)


class InOrder(Loop):
    """Loop that Numba compiles for one thread, because its iterations depend on each other."""

    def __call__(self, first: Any, *rest: Any) -> Any:
        return self.for_one(first, *rest)


def loop_in_order(function: Callable[..., None]) -> InOrder:
    """Return ``function`` as a Numba loop that runs on one thread."""
    return InOrder(function, EXACT)


def loop(function: Callable[..., None]) -> Loop:
    """Return ``function`` as a parallel Numba loop in which the compiler may fuse a multiplication and an addition.

    A fused operation is rounded once instead of twice.
    """
    return Loop(function, EXACT)


def loop_as_written(function: Callable[..., None]) -> Loop:
    """Return ``function`` as a parallel Numba loop that rounds after every operation, as NumPy does."""
    return Loop(function, frozenset())


def loop_of_sums(function: Callable[..., None]) -> Loop:
    """Return ``function`` as a parallel Numba loop in which the compiler may change the order of additions."""
    return Loop(function, SUMS)


class Waiting(event.Listener):  # type: ignore[misc]
    """Listener of Numba's compiler events that prints a message if compiling takes longer than ``patience`` seconds.

    The message is printed only if stderr is a terminal.
    """

    patience: float = 1.0

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None
        self.compiled: Any = None
        self.told: bool = False

    def on_start(self, event: Any) -> None:
        """Start the timer of the message if ``event`` is the compilation of one of retrograd's functions."""
        compiled = event.data["dispatcher"]
        ours = compiled.py_func.__module__.startswith("retrograd.")
        if ours and self.compiled is None and not self.told and sys.stderr is not None and sys.stderr.isatty():
            self.compiled, self.timer = compiled, threading.Timer(self.patience, self.tell)
            self.timer.daemon = True
            with suppress(RuntimeError):  # no thread can be started
                self.timer.start()

    def on_end(self, event: Any) -> None:
        if self.timer is not None and event.data["dispatcher"] is self.compiled:
            self.timer.cancel()
            self.timer = self.compiled = None

    def tell(self) -> None:
        self.told = True
        print("retrograd: compiling loops, once (about 10 s for convolutions) ...", file=sys.stderr, flush=True)


event.register("numba:compile", Waiting())


def step(function: Callable[..., Any]) -> Any:
    """Return ``function`` compiled by Numba as a separate function, which Numba loops can call.

    This saves compile time, because Numba compiles everything in the body of a parallel loop twice.
    """
    return njit(function, error_model="numpy", fastmath=set(EXACT))


def step_of_sums(function: Callable[..., Any]) -> Any:
    """Return ``function`` compiled as by :func:`step`, except that the compiler may change the order of additions."""
    return njit(function, error_model="numpy", fastmath=set(SUMS))


def inlined_step_of_sums(function: Callable[..., Any]) -> Any:
    """Return ``function`` compiled as by :func:`step_of_sums`, but inserted by LLVM into the loops that call it.

    A function that is called instead is compiled twice, on its own and with the loop. The process that compiles the
    loop calls the first copy, later processes, which read the loop from the on-disk cache, call the second, and the two
    may add in different orders: the attention of the first process differed from that of all others in the last bits.
    """
    return njit(function, error_model="numpy", fastmath=set(SUMS), forceinline=True)
