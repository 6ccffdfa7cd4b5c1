"""The decision when Numba's compiled loops are used: at once, never, or once a program does enough work.

Note [When loops are used]. Importing Numba and loading compiled loops from the disk takes about a second, and compiling
them two minutes. By default a process therefore computes with NumPy until it has processed ``WORK`` elements of large
arrays. Then it uses loops if they are compiled. If not, it starts another process of lowest priority, which compiles all
common loops (``retrograd.warmup``), and uses them when that process has finished. The decision depends on counts of
elements, not on times, so that repeated runs of a program give the same bits; only while loops are being compiled the
moment of the change varies. ``torch.use_deterministic_algorithms(True)`` excludes this change.

The environment variable ``RETROGRAD_FAST`` selects other rules: with ``1`` loops are used, and compiled if necessary,
from the first large array on; with ``0`` they are never used.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from ..runtime import blas_threads, malloc

#: Elements of large arrays that a process computes with NumPy before it imports Numba: about half a second of work.
WORK = 5 * 10**7
#: Seconds between two checks whether the loops are compiled.
INTERVAL = 1.0
FOLDER = Path(__file__).parent / "numba"


class Startup:
    """State of the decision in this process (Note [When loops are used]).

    ``ready`` is true as soon as loops may be used, ``never`` if they will not be. ``work`` is the number of elements
    computed so far. ``deterministic`` is the setting of ``torch.use_deterministic_algorithms``.
    """

    __slots__ = ("begun", "deterministic", "never", "next_look", "ready", "started", "work")

    def __init__(self) -> None:
        self.ready = self.never = self.begun = self.started = self.deterministic = False
        self.work = 0
        self.next_look = 0.0

    def asked(self, size: int) -> bool:
        """Return whether loops may be used, while ``ready`` is false; ``size`` elements are to be computed."""
        if self.never:
            return False
        if not self.begun:
            self._begin()
            return self.ready
        self.work += size
        return self.work >= WORK and self._decide()

    def _begin(self) -> None:
        """Read the environment variable, and configure the memory allocator to keep freed memory for new arrays."""
        self.begun = True
        malloc.keep_freed_memory()
        rule = os.environ.get("RETROGRAD_FAST", "")
        self.never = rule == "0" or find_spec("numba") is None
        self.ready = rule == "1" and not self.never

    def _decide(self) -> bool:
        now = time.monotonic()
        if now < self.next_look:
            return False
        self.next_look = now + INTERVAL
        if is_compiled(blas_threads.max_threads()):
            self.ready = True
        elif self.deterministic:
            self.never = True
        elif not self.started:
            self.started = True
            start_compiler()
        return self.ready


STARTUP = Startup()


def available(size: int) -> bool:
    """Return whether Numba loops may be used to compute ``size`` elements (Note [When loops are used])."""
    return STARTUP.ready or STARTUP.asked(size)


def permitted() -> bool:
    """Return whether Numba may be used where the program asks for compiled code, as by ``torch.compile``."""
    if not STARTUP.begun:
        STARTUP.asked(0)
    return not STARTUP.never


# -- The mark of compiled loops ---------------------------------------------------------------------------------------


@cache
def _key() -> str:
    """Return a checksum of what compiled loops depend on: the sources, Python, Numba, and the processor."""
    import platform
    from importlib.metadata import version
    from zlib import crc32

    parts = [sys.version, version("numba"), version("llvmlite"), platform.machine(), _processor()]
    for file in sorted(FOLDER.glob("*.py")):
        state = file.stat()
        parts.append(f"{file.name} {state.st_mtime_ns} {state.st_size}")  # Numba's cache compares these, too
    return f"{crc32(' '.join(parts).encode()):08x}"


def _processor() -> str:
    """Return the model and the features of the processor, if the system has a file with them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        from platform import processor

        return processor()
    found = {line.partition(":")[0].strip(): line for line in reversed(lines)}
    return "".join(found.get(name, "") for name in ("model name", "flags", "Features"))


def folders() -> list[Path]:
    """Return the folders in which the file is looked for, and of which the first writable one receives it."""
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return [Path(chosen)]
    found = [FOLDER / "__pycache__"]
    with suppress(RuntimeError):  # no home folder
        home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or Path.home() / ".cache"
        found.append(Path(home) / "retrograd")
    return found


def _name(threads: int) -> str:
    return f"compiled-{_key()}-{'one' if threads == 1 else 'all'}"


def is_compiled(threads: int) -> bool:
    """Return whether the common loops are on the disk, compiled for ``threads`` threads: one, or several."""
    try:
        name = _name(threads)
        return any((folder / name).exists() for folder in folders())
    except OSError:
        return False


def note_compiled(threads: int) -> None:
    """Write the file that :func:`is_compiled` looks for; do nothing if no folder is writable."""
    for folder in folders():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / _name(threads)).touch()
        except OSError:
            continue
        return


# -- The process that compiles ---------------------------------------------------------------------------------------

_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from retrograd.warmup import in_background; in_background()"


def start_compiler() -> None:
    """Start a process that compiles the common loops, and do not wait for it.

    It has a process group of its own, so that Ctrl-C does not end it. It stays in the session of the program: Linux
    shares the processors among sessions first, whatever the priority of their processes.
    """
    from subprocess import DEVNULL, Popen

    if not sys.executable:
        return
    if sys.stderr is not None and sys.stderr.isatty():
        print("retrograd: compiling loops in the background, once ...", file=sys.stderr, flush=True)
    with suppress(OSError):  # no further process may be started
        Popen(
            [sys.executable, "-c", _PROGRAM, str(Path(__file__).parents[2])], stdin=DEVNULL, stdout=DEVNULL,
            stderr=DEVNULL, process_group=0 if os.name == "posix" else None, env={**os.environ, "RETROGRAD_FAST": "1"},
        )  # fmt: skip


__all__ = ["STARTUP", "available", "is_compiled", "note_compiled", "permitted", "start_compiler"]
