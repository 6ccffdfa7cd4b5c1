"""How many threads the linear algebra under NumPy uses, asked of and told to the loaded library itself.

NumPy has no function for that, but its extension modules are linked with a BLAS whose functions ``ctypes`` can find.
Knows nothing of tensors.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy

from . import blas_spin
from .user_frame import warn

# The functions that tell and set the number of threads: OpenBLAS as NumPy's and SciPy's wheels bring it (with 64-bit
# integers or without) and as systems install it, MKL, and BLIS.
PAIRS = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
# What is linked with a BLAS: NumPy's own, and SciPy's, which brings another copy along once it is imported.
LINKED = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")


def get_num_threads() -> int:
    """How many threads a large calculation may use: what NumPy's BLAS says.

    Where the library can not be asked (Apple's Accelerate), what ``VECLIB_MAXIMUM_THREADS`` or ``OMP_NUM_THREADS`` say,
    else the number of processors.
    """
    for ask, _ in _controls():
        return int(ask())
    limits = (os.environ.get(name, "") for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"))
    return next((int(each) for each in limits if each.isdigit()), os.cpu_count() or 1)


def set_num_threads(num: int) -> None:
    """Let large calculations use so many threads, from now on and in the whole process.

    The package's own loops follow it, the BLAS under NumPy is told, and SciPy's own copy of it: at once if it is loaded,
    else through the environment variable ``OPENBLAS_NUM_THREADS``, which it (and any process started from here) reads
    when it is. Where the library can not be told, a warning says so. Raises RuntimeError for anything but a positive int.

    >>> import retrograd as torch
    >>> before = torch.get_num_threads()
    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    >>> torch.set_num_threads(before)
    """
    count = _chosen["count"] = _positive("set_num_threads", num)
    for follower in followers:
        follower()
    controls = list(_controls())
    if not controls:
        warn("the library under NumPy can not be told how many threads to use")
        return
    for _, tell in controls:
        tell(count)
    if "scipy.linalg" not in sys.modules:
        os.environ["OPENBLAS_NUM_THREADS"] = str(count)


_chosen: dict[str, int] = {}
#: Called after another number has been chosen.
followers: list[Callable[[], None]] = []


def limit() -> int:
    """How many threads the package's own loops use: as many as products of matrices."""
    if not _chosen:
        _chosen["count"] = get_num_threads()
    return _chosen["count"]


@cache
def gemm(kind: str) -> int:
    """Where NumPy's BLAS has its product of matrices of float32 (``f``) or float64 (``d``); 0 if it can not be found.

    Only of a library that can be told how many threads to use, as the function is for those who use it in their own.
    """
    if sys.byteorder != "little" or sys.maxsize < 2**32 or _control(LINKED[0]) is None:
        return 0
    letter = {"f": "s", "d": "d"}[kind]
    for path in _places(LINKED[0]):
        with suppress(OSError):
            library = ctypes.CDLL(path)
            for name in (f"scipy_{letter}gemm_64_", f"scipy_{letter}gemm_", f"{letter}gemm_64_", f"{letter}gemm_"):
                if hasattr(library, name):
                    return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    return 0


#: What other threads may be in without calculating anything: those of a notebook are.
IDLE = frozenset({"IPython", "asyncio", "concurrent", "ipykernel", "queue", "selectors", "threading", "tornado", "zmq"})


def _alone() -> bool:
    """Whether all other threads of Python's just wait."""
    me = threading.get_ident()
    frames = [frame for thread, frame in sys._current_frames().items() if thread != me]
    return all(str(each.f_globals.get("__name__")).partition(".")[0] in IDLE for each in frames)


@cache
def sleep_soon() -> bool:
    """Let NumPy's OpenBLAS, which runs already, wait for work as shortly as ``waiting`` would have it; whether it does.

    Its threads are ended, and start anew with the next product. Not while another thread of the program's may be amidst
    one, and not where somebody has said how long they are to wait.
    """
    if blas_spin.VARIABLE in os.environ or not hasattr(os, "fork") or not _alone():
        return False
    library = restartable()
    if library is None:
        return False
    os.environ[blas_spin.VARIABLE] = str(blas_spin.PATIENCE)
    library.openblas_read_env()
    library.blas_thread_shutdown_()
    return True


def restartable() -> Any:
    """Return NumPy's OpenBLAS if it exports what starts its threads anew, else None, as for the library of NumPy 2.5."""
    for path in _places(LINKED[0]):
        with suppress(OSError):
            library = ctypes.CDLL(path)
            if hasattr(library, "openblas_read_env") and hasattr(library, "blas_thread_shutdown_"):
                return library
    return None


class _Alone:
    """While this lasts NumPy's BLAS works on the thread that asks it; the last one to leave puts back what the first found."""

    def __init__(self) -> None:
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Nobody is inside: a child process has no other threads."""
        self.lock, self.inside, self.before = threading.Lock(), 0, 1

    def __enter__(self) -> None:
        control = _control(LINKED[0])
        if control is None:
            return
        with self.lock:
            if not self.inside:
                self.before = int(control[0]())
                control[1](1)
            self.inside += 1

    def __exit__(self, *_: object) -> None:
        control = _control(LINKED[0])
        if control is None:
            return
        with self.lock:
            self.inside -= 1
            if not self.inside:
                control[1](self.before)


ALONE = _Alone()


def get_num_interop_threads() -> int:
    """How many operations may run at the same time by themselves: one, as each runs when it is called."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accepted as PyTorch accepts it, to no effect: operations run one after the other.

    Raises RuntimeError for anything but a positive int.
    """
    _positive("set_num_interop_threads", num)


def _positive(caller: str, count: Any) -> int:
    if type(count) is not int:
        raise RuntimeError(f"{caller} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{caller} expects a positive integer")
    return count


def _controls() -> Iterator[tuple[Callable[[], Any], Callable[[int], Any]]]:
    """The functions to ask and to tell, of every BLAS that is loaded; NumPy's comes first."""
    for name in LINKED:
        if name in sys.modules or name.startswith("numpy."):
            found = _control(name)
            if found is not None:
                yield found


def of_scipy() -> Callable[[int], Any] | None:
    """What tells SciPy's own copy of a BLAS the number of its threads; None if there is none, or if it is not loaded."""
    if LINKED[1] not in sys.modules:
        return None
    return _of_scipy()


@cache
def _of_scipy() -> Callable[[int], Any] | None:
    numpys, scipys = map(_control, LINKED)
    if scipys is None:
        return None
    shared = numpys is not None and _address(numpys[1]) == _address(scipys[1])
    return None if shared else scipys[1]


def _address(function: Any) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value


@cache
def _control(name: str) -> tuple[Callable[[], Any], Callable[[int], Any]] | None:
    for path in _places(name):
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        for ask, tell in PAIRS:
            if hasattr(library, ask) and hasattr(library, tell):
                return getattr(library, ask), getattr(library, tell)
    return None


def _places(name: str) -> Iterator[str]:
    """Files in which the functions may be found: the extension module, in whose dependencies the system looks too (but
    for Windows), and the library that a wheel brings along.
    """
    module = sys.modules.get(name)
    if module is not None and module.__file__ is not None:
        yield module.__file__
    package = name.partition(".")[0]
    folder = Path(numpy.__file__).parent.parent / f"{package}.libs"
    yield from (str(path) for path in sorted(folder.glob("*openblas*")))


__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]
