"""The decision when Numba's compiled loops are used: at once, never, or once a program does enough work.

Note [When loops are used]. Importing Numba and loading compiled loops from the disk takes about a second, and compiling
them about four minutes of processor time. By default a process therefore computes with NumPy until it has processed
``WORK`` elements of large arrays. Then it uses loops if they are compiled. If not, it starts another process of lowest
priority, which compiles all common loops (``retrograd.warmup``), and uses them when that process has finished. If no
folder is writable, it compiles those that it needs itself. The decision depends on counts of elements, not on times, so
that repeated runs of a program give the same bits; only while loops are being compiled the moment of the change varies.
``torch.use_deterministic_algorithms(True)`` excludes this change. Processes of ``torch.distributed`` use loops from the
first large array on, because the ranks must compute the same bits.

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
from typing import Any

from ..runtime import blas_threads, malloc

#: Elements of large arrays that a process computes with NumPy before it imports Numba: about half a second of work.
WORK = 5 * 10**7
#: Seconds between two checks whether the loops are compiled.
INTERVAL = 1.0
FOLDER = Path(__file__).parent / "numba"


class Startup:
    """State of the decision in this process (Note [When loops are used]).

    ``ready`` is true as soon as loops may be used, ``never`` if they will not be. ``work`` is the number of elements
    computed so far. ``deterministic`` is the setting of ``torch.use_deterministic_algorithms``. ``process`` is the
    process that compiles, where it is a child of this one.
    """

    __slots__ = ("begun", "deterministic", "never", "next_look", "process", "ready", "started", "work")

    def __init__(self) -> None:
        self.ready = self.never = self.begun = self.started = self.deterministic = False
        self.work = 0
        self.next_look = 0.0
        self.process: Any = None

    def asked(self, size: int) -> bool:
        """Return whether loops may be used, while ``ready`` is false; ``size`` elements are to be computed."""
        if self.never:
            return False
        if not self.begun:
            self._begin()
            return self.ready
        self.work += size
        return self.work >= WORK and self._decide()

    def settle(self) -> None:
        """Use loops from now on, unless they are disabled: several processes must compute the same bits."""
        if not self.begun:
            self._begin()
        self.ready = not self.never

    def _begin(self) -> None:
        """Read the environment variable, and configure the memory allocator to keep freed memory for new arrays.

        ``begun`` is set last: another thread must not take the initial values for the decision.
        """
        malloc.keep_freed_memory()
        rule = os.environ.get("RETROGRAD_FAST", "")
        self.never = rule == "0" or find_spec("numba") is None
        self.ready = rule == "1" and not self.never
        self.begun = True

    def _decide(self) -> bool:
        now = time.monotonic()
        if now < self.next_look:
            return False
        self.next_look = now + INTERVAL
        try:
            compiled = is_compiled(blas_threads.max_threads())
            if self.started:
                self.ready = compiled and not self.deterministic
            else:  # at a moment that depends on counts only
                self.started = True
                if compiled or folder() is None:  # otherwise loops cannot be kept: each process compiles its own
                    self.ready = True
                elif not self.deterministic:
                    self.process = start_compiler()
        except Exception:  # whatever the system refuses: an operation of the program must not fail
            self.next_look = float("inf")
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
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        from platform import processor

        return processor()
    found = {line.partition(":")[0].strip(): line for line in reversed(lines)}
    return "".join(found.get(name, "") for name in ("model name", "flags", "Features"))


def folder() -> Path | None:
    """Return the folder of the file that marks compiled loops, or None if no folder is writable.

    It is writable exactly if the folder is in which Numba keeps compiled loops: the user's choice, else beside the
    sources, else in the user's cache.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    found = [Path(chosen)] if chosen else [FOLDER / "__pycache__"]
    with suppress(RuntimeError):  # no home folder
        home = os.environ.get("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME") or Path.home() / ".cache"
        if not chosen:
            found.append(Path(home) / "retrograd")
    for each in found:
        with suppress(OSError):
            each.mkdir(parents=True, exist_ok=True)
            if os.access(each, os.W_OK):
                return each
    return None


def _name(threads: int) -> str:
    return f"compiled-{_key()}-{'one' if threads == 1 else 'all'}"


def is_compiled(threads: int) -> bool:
    """Return whether the common loops are on the disk, compiled for ``threads`` threads: one, or several."""
    place = folder()
    return place is not None and (place / _name(threads)).exists()


def note_compiled(threads: int) -> None:
    """Write the file that :func:`is_compiled` looks for; do nothing if no folder is writable."""
    place = folder()
    if place is not None:
        with suppress(OSError):
            (place / _name(threads)).touch()


# -- The process that compiles ---------------------------------------------------------------------------------------

#: On POSIX systems the process that does the work is no child of the program: the program cannot wait for it by mistake,
#: and it is no zombie after its end.
_PROGRAM = """\
import os, sys
if os.name == "posix" and os.fork():
    os._exit(0)
sys.path.insert(0, sys.argv[1])
from retrograd.warmup import in_background
in_background()
"""


def start_compiler() -> Any:
    """Start a process that compiles the common loops, and do not wait for it.

    It has a process group of its own, so that Ctrl-C does not end it. It stays in the session of the program: Linux
    shares the processors among sessions first, whatever the priority of their processes. Modules of the current folder
    are not imported. Nothing is started if ``sys.executable`` is another program than Python, as in a frozen program.
    Return the process on systems where it is a child of this one, else None.
    """
    import subprocess

    name = Path(sys.executable or "").name.lower()
    if not name.startswith(("python", "pypy")) or getattr(sys, "frozen", False):
        return None
    with suppress(Exception):  # stderr is any object with the method write
        if sys.stderr.isatty():
            print("retrograd: compiling loops in the background, once ...", file=sys.stderr, flush=True)
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    options: dict[str, Any] = {**quiet, "env": {**os.environ, "RETROGRAD_FAST": "1"}}
    if os.name == "nt":
        names = ("IDLE_PRIORITY_CLASS", "CREATE_NEW_PROCESS_GROUP", "CREATE_NO_WINDOW")
        options["creationflags"] = sum([getattr(subprocess, each) for each in names])
    else:
        options["process_group"] = 0
    flags = [*subprocess._args_from_interpreter_flags(), "-P"]  # type: ignore[attr-defined]
    started = subprocess.Popen([sys.executable, *flags, "-c", _PROGRAM, str(Path(__file__).parents[2])], **options)
    if os.name != "posix":
        return started
    with suppress(subprocess.TimeoutExpired):  # a loaded machine
        started.wait(30)
    return None


__all__ = ["STARTUP", "available", "folder", "is_compiled", "note_compiled", "permitted", "start_compiler"]
