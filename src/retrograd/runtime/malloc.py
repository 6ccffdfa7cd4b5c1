"""Settings of the C library's ``malloc`` that keep freed memory in the process for new arrays.

Note [Fresh pages]. By default, glibc returns the memory of a freed array of some megabytes to the system at once. The
next array of that size gets fresh pages, which the system must find, clear and map one by one: a chain of ten
operations on 10⁶ elements spends three quarters of its time on this. Two settings of glibc's ``malloc`` prevent it:
large arrays are allocated in the heap like small ones, and the free end of the heap is not returned.

The settings need no code in the operations, and work for NumPy's temporaries and for arrays freed by other libraries.
They hold for the whole process, so they are made when the first large array is processed, not on import. C libraries
other than glibc are left unchanged.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .typing import CFunction

#: Parameters of ``mallopt`` (from malloc.h).
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
#: The largest value that ``mallopt`` accepts, in bytes.
MAX_SETTING = 2**31 - 1
#: Bytes by which the heap grows beyond a request, for fewer system calls. Pages that are never used take no memory.
STEP = 1 << 26
#: Functions that a C library must have for these settings.
NEEDED = ("gnu_get_libc_version", "mallopt", "malloc_trim")


@cache
def glibc() -> CFunction:
    """Return the C library if it is glibc and no environment variable configures its ``malloc``, otherwise None."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if os.name != "posix" or "glibc.malloc" in tunables or any(name.startswith("MALLOC_") for name in os.environ):
        return None
    try:
        import ctypes
    except ImportError:
        return None
    library = ctypes.CDLL(None)
    return library if all(hasattr(library, name) for name in NEEDED) else None


def max_kept_bytes() -> int:
    """Return the maximum number of bytes of freed memory that the process keeps for new arrays.

    The environment variable ``RETROGRAD_POOL`` sets this number in megabytes. The default is a quarter of the machine's
    memory, but at most 2 GiB.
    """
    setting = os.environ.get("RETROGRAD_POOL", "")
    if setting.isdigit():
        return min(int(setting) * 10**6, MAX_SETTING)
    return min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4, MAX_SETTING)


@cache
def keep_freed_memory() -> bool:
    """Configure ``malloc`` to keep up to :func:`max_kept_bytes` bytes of freed memory in the process for new arrays.

    Returns whether ``malloc`` was configured: False if the C library is not glibc, or if the maximum is 0.
    """
    library = glibc()
    if library is None or not (most := max_kept_bytes()):
        return False
    settings = {MMAP_MAX: 0, TRIM_THRESHOLD: most, TOP_PAD: min(STEP, most)}
    return all(library.mallopt(parameter, value) for parameter, value in settings.items())


def empty_cache() -> None:
    """Return the memory of freed arrays to the system.

    Freed memory is kept in the process for new arrays, because fresh memory costs more than most operations. The
    environment variable ``RETROGRAD_POOL`` sets the maximum in megabytes (0 disables it; the default is a quarter of
    the machine's memory, up to 2 GiB). Without glibc nothing is kept, and the function does nothing. Memory of GPUs is
    returned by ``torch.cuda.empty_cache``.

    >>> import retrograd
    >>> retrograd.empty_cache()
    """
    if (library := glibc()) is not None:
        library.malloc_trim(0)
