"""``get_num_threads`` and ``set_num_threads``: control of the threads of NumPy's BLAS, its matrix library.

NumPy has no such functions, but its extension modules are linked with a BLAS whose functions ``ctypes`` can call. The
module also sets how long idle threads spin (wait without sleeping). The module must be imported before NumPy, because
OpenBLAS reads its spin timeout when it is loaded.

Note [Two thread pools]. The OpenBLAS of NumPy has a thread pool, and after a matrix product each of its threads spins
for 26 ms before it sleeps. Compiled loops have another pool (OpenMP), which needs the same cores: a training step of a
small convolutional network took three times as long with all threads as with one. OpenBLAS reads its timeout when it
starts its threads. If NumPy was imported before retrograd, the threads already run. They are then shut down when the
first compiled loop is loaded, as OpenBLAS does before a fork, and the next product starts new ones
(:func:`shorten_spin`). Where this is not possible, threads of loops spin less (Note [Threads of loops] in
``kernels/numba_dispatch.py``).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from . import forks  # noqa: F401  (registered first, so that its handler is called last before a fork)
from .user_frame import MARK, warn

if TYPE_CHECKING:
    from types import FrameType

    from .typing import CFunction, ThreadControl

#: Environment variable with OpenBLAS's spin timeout, as the binary logarithm of a number of processor cycles.
SPIN_VARIABLE = "OPENBLAS_THREAD_TIMEOUT"
#: The timeout that the package sets: a few microseconds.
SHORT_TIMEOUT = 14


def _set_spin_timeout() -> bool:
    """Set OpenBLAS's spin timeout by an environment variable, and return whether the timeout is short.

    The spin timeout is the time that an idle thread waits for work before it sleeps. The variable is set only if it has
    no value yet, NumPy has not been imported, and Numba is available.
    """
    setting = os.environ.get(SPIN_VARIABLE, "")
    if setting:
        return setting.isdigit() and int(setting) <= SHORT_TIMEOUT + 4
    if "numpy" in sys.modules or os.environ.get("RETROGRAD_FAST", "1") == "0" or find_spec("numba") is None:
        return False
    os.environ[SPIN_VARIABLE] = str(SHORT_TIMEOUT)
    return True


#: Whether OpenBLAS's threads spin only for a short time.
SHORT_SPIN = _set_spin_timeout()

# Pairs of functions that get and set the number of threads: of OpenBLAS in the wheels of NumPy and SciPy (with 64-bit
# integers or not) and as systems install it, of MKL, and of BLIS.
PAIRS = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("scipy_openblas_get_num_threads", "scipy_openblas_set_num_threads"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
    ("bli_thread_get_num_threads", "bli_thread_set_num_threads"),
)
# Extension modules linked with a BLAS: NumPy's, and SciPy's, whose wheel has a second copy.
LINKED = ("numpy.linalg._umath_linalg", "scipy.linalg._fblas")


def get_num_threads() -> int:
    """Return the number of threads of NumPy's BLAS; retrograd's compiled loops use the same number.

    If the BLAS has no function that returns this number (Apple's Accelerate), the result is the value of
    ``VECLIB_MAXIMUM_THREADS`` or ``OMP_NUM_THREADS``, or else the number of processors.

    >>> import retrograd as torch
    >>> torch.get_num_threads() >= 1
    True
    """
    for get, _ in _controls():
        return int(get())
    limits = (os.environ.get(name, "") for name in ("VECLIB_MAXIMUM_THREADS", "OMP_NUM_THREADS"))
    return next((int(each) for each in limits if each.isdigit()), os.cpu_count() or 1)


def set_num_threads(num: int) -> None:
    """Set the number of threads of large computations in this process.

    The number applies to retrograd's compiled loops, to NumPy's BLAS, and to SciPy's copy of the BLAS. If SciPy is not yet
    loaded, the environment variable ``OPENBLAS_NUM_THREADS`` is set, which SciPy's copy (and any child process) reads
    on loading. Warns if NumPy's BLAS has no function to set the number. Raises RuntimeError unless ``num`` is a
    positive int.

    >>> import retrograd as torch
    >>> before = torch.get_num_threads()
    >>> torch.set_num_threads(1)
    >>> torch.get_num_threads()
    1
    >>> torch.set_num_threads(before)
    """
    count = _chosen["count"] = _positive("set_num_threads", num)
    for callback in on_change:
        callback()
    controls = list(_controls())
    if not controls:
        warn("the number of threads of NumPy's BLAS library can not be set")
        return
    for _, set_count in controls:
        set_count(count)
    if "scipy.linalg" not in sys.modules:
        os.environ["OPENBLAS_NUM_THREADS"] = str(count)


_chosen: dict[str, int] = {}
#: Functions called after the number of threads has changed.
on_change: list[Callable[[], None]] = []


def max_threads() -> int:
    """Return the number of threads of retrograd's compiled loops, which is the number of threads of NumPy's BLAS."""
    if not _chosen:
        _chosen["count"] = get_num_threads()
    return _chosen["count"]


@cache
def gemm_address(kind: str) -> int:
    """Return the address of ``sgemm`` (``kind="f"``) or ``dgemm`` (``kind="d"``) in NumPy's BLAS.

    The result is 0 if the function is not found. It is also 0 if the number of threads of the BLAS cannot be set,
    because callers call the function from several threads, and each call must use one thread.
    """
    if sys.byteorder != "little" or sys.maxsize < 2**32 or _control(LINKED[0]) is None:
        return 0
    letter = {"f": "s", "d": "d"}[kind]
    for library in _libraries(LINKED[0]):
        for name in (f"scipy_{letter}gemm_64_", f"scipy_{letter}gemm_", f"{letter}gemm_64_", f"{letter}gemm_"):
            if hasattr(library, name):
                return _address(getattr(library, name)) or 0
    return 0


#: Packages in which other threads only wait, such as those of a notebook.
IDLE = frozenset({"IPython", "asyncio", "concurrent", "ipykernel", "queue", "selectors", "threading", "tornado", "zmq"})
#: Function in which the threads of the package's pool wait (``kernels/threaded_ufuncs.py``).
POOL = "_wait_for_work"


def _other_threads_wait() -> bool:
    """Whether all other Python threads are idle.

    A thread counts as idle if its current frame is in a module of one of the packages :data:`IDLE`, such as
    ``threading``.
    """
    me = threading.get_ident()
    frames = [frame for thread, frame in sys._current_frames().items() if thread != me]
    return all(
        str(each.f_globals.get("__name__")).partition(".")[0] in IDLE or each.f_code.co_name == POOL for each in frames
    )


@cache
def shorten_spin() -> bool:
    """Shorten the spin timeout of an OpenBLAS that is already running, and return whether that was possible.

    The spin timeout is the time that an idle thread waits for work before it sleeps. The threads of OpenBLAS are shut
    down, and the next matrix product starts new threads. Nothing is changed if another Python thread may be computing a
    product, or if the environment sets a timeout.
    """
    if SPIN_VARIABLE in os.environ or not hasattr(os, "fork") or not _other_threads_wait():
        return False
    library = restartable_openblas()
    if library is None:
        return False
    os.environ[SPIN_VARIABLE] = str(SHORT_TIMEOUT)
    library.openblas_read_env()
    library.blas_thread_shutdown_()
    return True


def restartable_openblas() -> CFunction:
    """Return NumPy's OpenBLAS if it exports functions that restart its threads, else None.

    The OpenBLAS of NumPy 2.5 does not export these functions.
    """
    for library in _libraries(LINKED[0]):
        if hasattr(library, "openblas_read_env") and hasattr(library, "blas_thread_shutdown_"):
            return library
    return None


class _SingleThreaded:
    """Context manager in which the BLAS of the extension module ``name`` uses only the calling thread.

    Several threads may be in a ``with`` block of this object at the same time. The last thread that leaves its block
    restores the BLAS's number of threads.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.forget()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self.forget)

    def forget(self) -> None:
        """Reset the state: no thread is in a ``with`` block of this context manager.

        This method is also called in the child process after a fork, because only the thread that forked exists there.
        """
        self.lock, self.inside, self.before = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        control = _loaded_control(self.name)
        with self.lock:
            self.inside += 1
            if not self.before and control is not None:
                self.before = int(control[0]())
                control[1](1)

    def __exit__(self, *_: object) -> None:
        control = _loaded_control(self.name)
        with self.lock:
            self.inside -= 1
            if self.before and not self.inside and control is not None:
                control[1](self.before)
                self.before = 0


#: Context managers that limit the BLAS of NumPy, and SciPy's copy of it, to the calling thread.
SINGLE_THREADED, SCIPY_SINGLE_THREADED = map(_SingleThreaded, LINKED)


class _Fork:
    """Limit of the BLAS to one thread while the process forks, and in the child, if other threads may be computing.

    See Note [Forks with threads] in ``runtime/forks.py``.
    """

    #: Number of seconds after which the process forks although a computation has not finished.
    COMPUTE_TIMEOUT = 10.0

    def __init__(self) -> None:
        self.entered = False
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(before=self._before, after_in_parent=self._in_parent, after_in_child=self._in_child)

    def _before(self) -> None:
        if _other_threads_wait():
            return
        SINGLE_THREADED.__enter__()
        SCIPY_SINGLE_THREADED.__enter__()
        self.entered = True
        end, running = time.monotonic() + self.COMPUTE_TIMEOUT, _computing()
        while running and time.monotonic() < end:  # a product that began before may use several threads
            time.sleep(0.001)
            running &= _computing()

    def _in_parent(self) -> None:
        if self.entered:
            self.entered = False
            SCIPY_SINGLE_THREADED.__exit__()
            SINGLE_THREADED.__exit__()

    def _in_child(self) -> None:
        if self.entered:
            self.entered, _chosen["count"] = False, 1


def _computing() -> set[tuple[int, FrameType, int]]:
    """Return the places of the other threads that run a function of the package: thread, frame and instruction.

    A frame in the result is not freed, so that a later call of the same function is a different place.
    """
    me = threading.get_ident()
    return {
        (thread, frame, frame.f_lasti)
        for thread, frame in sys._current_frames().items()
        if thread != me and MARK in frame.f_globals and frame.f_code.co_name != POOL
    }


_fork = _Fork()


def get_num_interop_threads() -> int:
    """Return 1, because operations never run concurrently: each operation runs when it is called.

    >>> import retrograd as torch
    >>> torch.get_num_interop_threads()
    1
    """
    return 1


def set_num_interop_threads(num: int) -> None:
    """Accept the setting without effect, because operations run one after the other.

    Raises RuntimeError unless ``num`` is a positive int.

    >>> import retrograd as torch
    >>> torch.set_num_interop_threads(1)
    >>> torch.get_num_interop_threads()
    1
    """
    _positive("set_num_interop_threads", num)


def _positive(caller: str, count: object) -> int:
    """Return ``count`` if it is a positive int, otherwise raise RuntimeError.

    ``caller`` is the name of the called function in the error message.
    """
    if type(count) is not int:
        raise RuntimeError(f"{caller} expects an int, but got {type(count).__name__}")
    if count <= 0:
        raise RuntimeError(f"{caller} expects a positive integer")
    return count


def _controls() -> Iterator[ThreadControl]:
    """Yield, for each loaded BLAS, a pair of functions that get and set its number of threads.

    The pair of NumPy's BLAS is the first.
    """
    for name in LINKED:
        control = _loaded_control(name)
        if control is not None:
            yield control


def _loaded_control(name: str) -> ThreadControl | None:
    """Return the functions of :func:`_control` for NumPy's BLAS, and for SciPy's copy if it is loaded, else None."""
    return None if name not in sys.modules and not name.startswith("numpy.") else _control(name)


def scipy_has_own_blas() -> bool:
    """Return whether SciPy's linear algebra is loaded and has a copy of the BLAS apart from NumPy's."""
    return LINKED[1] in sys.modules and _scipy_has_own_blas()


@cache
def _scipy_has_own_blas() -> bool:
    numpys, scipys = map(_control, LINKED)
    return scipys is not None and (numpys is None or _address(numpys[1]) != _address(scipys[1]))


def _address(function: CFunction) -> int | None:
    import ctypes

    return ctypes.cast(function, ctypes.c_void_p).value


@cache
def _control(name: str) -> ThreadControl | None:
    """Return a pair of functions that get and set the number of threads of a BLAS.

    ``name`` is the name of an extension module that is linked with the BLAS. The result is None if the BLAS has no such
    functions.
    """
    for library in _libraries(name):
        for get, set_count in PAIRS:
            if hasattr(library, get) and hasattr(library, set_count):
                return getattr(library, get), getattr(library, set_count)
    return None


def _libraries(name: str) -> Iterator[CFunction]:
    """Yield the libraries that may contain the BLAS functions of the extension module ``name``.

    There are none if Python has no ``ctypes``.
    """
    try:
        import ctypes
    except ImportError:
        return
    for path in _library_paths(name):
        with suppress(OSError):
            yield ctypes.CDLL(path)


def _library_paths(name: str) -> Iterator[str]:
    """Yield the paths of the files that may contain the BLAS functions of the extension module ``name``.

    The first file is the extension module itself: except on Windows, the system also finds the functions of the
    libraries with which it is linked. The other files are OpenBLAS libraries that a wheel includes.
    """
    import numpy  # this module is imported before NumPy

    module = sys.modules.get(name)
    if module is not None and module.__file__ is not None:
        yield module.__file__
    package = name.partition(".")[0]
    folder = Path(numpy.__file__).parent.parent / f"{package}.libs"
    yield from (str(path) for path in sorted(folder.glob("*openblas*")))


__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]
