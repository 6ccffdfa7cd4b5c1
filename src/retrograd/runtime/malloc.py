"""The pool of large arrays: the C library's own heap, told to keep what is freed. Knows no array.

Note [Fresh pages]. An array that nobody holds any more goes to ``free``. By itself the C library gives memory of some
megabytes back to the system at once, and the next array of that size gets fresh pages, which the system has to find, clear
and map one by one: a chain of ten operations on 10⁶ elements spends three quarters of its time on that. Two settings of
glibc's ``malloc`` end it: large arrays lie in the heap like small ones, and the free end of the heap stays. So the pool
knows by construction when memory is free, whoever held it last (NumPy, views, other libraries), serves NumPy's own
temporaries too, and costs nothing in each operation. It is a setting of the process, so it is made when the first large
array is worked on, not by the import. Other C libraries than glibc are left as they are.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

#: The parameters of ``mallopt`` (from malloc.h).
TRIM_THRESHOLD, TOP_PAD, MMAP_MAX = -1, -2, -4
#: What ``mallopt`` takes at most, in bytes.
MOST = 2**31 - 1
#: By how much more than asked for the heap grows at once: fewer questions to the system. Untouched, it takes no memory.
STEP = 1 << 26


NEEDED = ("gnu_get_libc_version", "mallopt", "malloc_trim")


@cache
def glibc() -> Any:
    """The C library, if it is glibc and nobody has told it anything about memory; else None."""
    tunables = os.environ.get("GLIBC_TUNABLES", "")
    if os.name != "posix" or "glibc.malloc" in tunables or any(name.startswith("MALLOC_") for name in os.environ):
        return None
    import ctypes

    library = ctypes.CDLL(None)
    return library if all(hasattr(library, name) for name in NEEDED) else None


def bound() -> int:
    """How many free bytes are kept at most: ``RETROGRAD_POOL`` in megabytes, else a quarter of the memory up to 2 GiB."""
    asked = os.environ.get("RETROGRAD_POOL", "")
    if asked.isdigit():
        return min(int(asked) * 10**6, MOST)
    return min(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4, MOST)


@cache
def keep() -> bool:
    """Let freed memory stay with the process, up to :func:`bound`; False where that can not be said, or is switched off."""
    library = glibc()
    if library is None or not (most := bound()):
        return False
    settings = {MMAP_MAX: 0, TRIM_THRESHOLD: most, TOP_PAD: min(STEP, most)}
    return all(library.mallopt(parameter, value) for parameter, value in settings.items())


def empty_cache() -> None:
    """Give the memory that freed arrays have left behind back to the system.

    Freed memory stays with the process for the arrays to come, because fresh memory costs more than most operations; how
    much at most, says the environment variable ``RETROGRAD_POOL`` in megabytes (0: none; by default a quarter of the
    machine's memory, up to 2 GiB). On other systems than Linux, and of GPUs (``torch.cuda.empty_cache``), nothing is kept
    here, and nothing happens.

    >>> import retrograd
    >>> retrograd.empty_cache()
    """
    if (library := glibc()) is not None:
        library.malloc_trim(0)
