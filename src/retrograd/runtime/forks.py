"""Forks of the process while other threads run.

The child process has only the thread that forked. A lock that another thread held stays locked in the child, and a
module that it was importing stays half imported; using either would deadlock. Note [Forks with threads]:

* A fork waits until no other thread is importing a module of the package or of a library that it uses, compiling a
  loop, or holds one of the locks of :func:`hold_while_forking`. From the check to the fork, the thread holds these locks
  and Python's import lock, so that no other thread can start an import or a compilation.
* If another thread may be computing, the fork waits until the products on several threads have finished, and matrix
  products of the child run on one thread (``runtime/blas_threads.py``). OpenBLAS does not support a fork meanwhile.
* Thread pools of the package are created again in the child, or loops run on one thread (``kernels/numba_dispatch.py``).

If another thread has not finished after :data:`LOCK_TIMEOUT` seconds, a warning suggests the start method ``spawn``.
"""

from __future__ import annotations

import _imp
import importlib
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .user_frame import warn

if TYPE_CHECKING:
    from types import FrameType

    from .typing import Lock

LOCK_TIMEOUT = 30.0
#: Packages whose imports are waited for: this one, and libraries that it imports when they are needed.
IMPORTED = frozenset({__name__.partition(".")[0], "llvmlite", "ml_dtypes", "numba", "numpy", "scipy"})
_FIND_AND_LOAD = importlib._bootstrap._find_and_load.__code__  # type: ignore[attr-defined]
_locks: list[Callable[[], Lock | None]] = []
#: Held by the thread that forks, because the list of held locks is one.
_forking = threading.RLock()
#: Functions that release the locks held by the forking thread, in the order in which it has acquired them.
_held: list[Callable[[], object]] = []


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


def _llvm_lock() -> Lock | None:
    """Return the lock that llvmlite holds during each call of LLVM, or None if llvmlite is not loaded."""
    module = sys.modules.get("llvmlite.binding.ffi")
    lock = getattr(getattr(module, "lib", None), "_lock", None)
    return getattr(lock, "_lock", None)


def _others_import() -> bool:
    """Return whether another thread is importing a module of one of the packages :data:`IMPORTED`.

    The thread then holds the lock of the module, or is about to release it.
    """
    here = threading.get_ident()
    for thread, frame in sys._current_frames().items():
        each: FrameType | None = None if thread == here else frame
        while each is not None:
            if each.f_code is _FIND_AND_LOAD and each.f_locals["name"].partition(".")[0] in IMPORTED:
                return True
            each = each.f_back
    return False


def _hold(timeout: float) -> bool:
    """Acquire the import lock and those of :func:`hold_while_forking`; return whether all could be acquired in time.

    Python holds the import lock only while it finds the lock of a module, not while it imports the module.
    """
    _imp.acquire_lock()
    _held.append(_imp.release_lock)
    held = True
    for each in _locks:
        lock = each()
        if lock is not None:
            if lock.acquire(timeout=timeout):
                _held.append(lock.release)
            else:
                held = False
    return held


def _before() -> None:
    _forking.acquire()
    end = time.monotonic() + LOCK_TIMEOUT
    while not _hold(0.01) or _others_import():
        _release()  # printing a warning may import a module
        if time.monotonic() >= end:
            warn(
                "forking while another thread imports a module, compiles a loop or holds a lock; the child process may "
                "deadlock. Remedy: use the multiprocessing start method 'spawn'."
            )
            _hold(0.01)
            return
        time.sleep(0.002)


def _release() -> None:
    while _held:
        _held.pop()()


def _after() -> None:
    _release()
    _forking.release()


hold_while_forking(_compiler_lock)
hold_while_forking(_llvm_lock)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
