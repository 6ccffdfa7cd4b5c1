"""Forks of the process while other threads run.

The child process has only the thread that forked. A lock that another thread held, or a module that it was importing,
remains as it was, and a use of it would wait for ever. Note [Forks with threads]:

* A fork waits until no other thread is importing a module of the package, compiling a loop, or holds one of the locks
  of :func:`hold_while_forking`.
* If another thread may be computing, the fork waits until the products on several threads have finished, and matrix
  products of the child run on one thread (``runtime/blas_threads.py``). OpenBLAS does not support a fork meanwhile.
* Thread pools of the package are created again in the child, or loops run on one thread (``kernels/numba_dispatch.py``).

If another thread has not finished after :data:`PATIENCE` seconds, a warning suggests the start method ``spawn``.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .user_frame import warn

if TYPE_CHECKING:
    from .typing import Lock

PATIENCE = 30.0
#: Number of modules of the package that a thread is importing, by the identifier of the thread.
importing: dict[int, int] = {}
_locks: list[Callable[[], Lock | None]] = []
_held: list[Lock] = []


def hold_while_forking(lock: Callable[[], Lock | None]) -> None:
    """Let the process fork only while no other thread holds the lock that ``lock()`` returns; None means no lock."""
    _locks.append(lock)


def replace_in_child(owner: object, name: str) -> None:
    """Replace the lock ``owner.name`` in a forked child process, which does not have the thread that may hold it.

    ``owner`` is a module or a class. The fork does not wait for the lock, unlike one of :func:`hold_while_forking`.
    """
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(owner, name, threading.RLock()))


def _compiler_lock() -> Lock | None:
    """Return the lock that Numba holds while it compiles a function, or None if Numba is not loaded."""
    module = sys.modules.get("numba.core.compiler_lock")
    return getattr(getattr(module, "global_compiler_lock", None), "_lock", None)


def _before() -> None:
    end, here = time.monotonic() + PATIENCE, threading.get_ident()
    alive = {each.ident for each in threading.enumerate()}
    while any(each in alive for each in [*importing] if each != here) and time.monotonic() < end:
        time.sleep(0.002)
    late = time.monotonic() >= end
    for each in _locks:
        lock = each()
        if lock is not None:
            if lock.acquire(timeout=max(end - time.monotonic(), 0.01)):
                _held.append(lock)
            else:
                late = True
    if late:
        warn(
            "the process forks while another thread imports or compiles, and the child process may wait for ever. Remedy: "
            "start it by the method 'spawn' of multiprocessing."
        )


def _after() -> None:
    while _held:
        _held.pop().release()


def _in_child() -> None:
    importing.clear()
    _after()


hold_while_forking(_compiler_lock)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
