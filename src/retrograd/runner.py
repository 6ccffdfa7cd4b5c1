"""Functions that run a Python program as ``python`` does, except that ``import torch`` imports retrograd.

The program runs as ``__main__``, so that pickling, multiprocessing, ``sys.argv``, ``sys.path`` and tracebacks are as
under ``python``. This module uses the import hook and does not use tensors.
"""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import sys
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec

from retrograd.compat import missing_names

from . import import_hook


class CannotStart(Exception):
    """Error for a program that cannot be found or read; the message is the reason."""


def run_file(path: str, arguments: Sequence[str] = ()) -> None:
    """Run the program at ``path``, a file or a folder with ``__main__.py``, as ``python path arguments`` does."""
    file = os.path.abspath(os.path.join(path, "__main__.py") if os.path.isdir(path) else path)
    if os.path.isdir(path) and not os.path.exists(file):
        raise CannotStart(f"{path!r} is a folder without __main__.py{programs_in(path)}")
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        raise CannotStart(f"can't open file {file!r}: {reason}{similar_file(path)}") from error
    main = main_module(file=file)
    with as_main(main, [path, *arguments], first_on_path=os.path.dirname(os.path.realpath(file))):
        exec(compile(source, file, "exec", dont_inherit=True), main.__dict__)


def programs_in(folder: str) -> str:
    """Return a hint at the Python files in ``folder``, at most eight of them."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(".py") and name != "__init__.py")
    if not names:
        return ", and no Python file is in it"
    listed = ", ".join(os.path.join(folder, name) for name in names[:8]) + ", ..." * (len(names) > 8)
    return f". Did you mean: {listed}"


def similar_file(path: str) -> str:
    """Return a hint at the Python file whose name is most similar to ``path``, which cannot be opened."""
    folder, name = os.path.split(path)
    try:
        names = [each for each in os.listdir(folder or ".") if each.endswith(".py") and each != name]
    except OSError:
        return ""
    import difflib  # only misspelt names need it

    similar = difflib.get_close_matches(name, names, 1)
    return f". Did you mean: {os.path.join(folder, similar[0])}" if similar else ""


def run_module(name: str, arguments: Sequence[str] = ()) -> None:
    """Run the module ``name``, as ``python -m name arguments`` does."""
    main = main_module()
    with as_main(main, ["-m", *arguments], first_on_path=os.getcwd()):
        spec = find_runnable(name)
        code = getattr(spec.loader, "get_code", lambda name: None)(spec.name)
        if code is None:
            raise CannotStart(f"No code object available for {name}")
        main.__spec__, main.__loader__ = spec, spec.loader
        main.__package__ = spec.parent
        if spec.origin is not None:
            main.__file__ = sys.argv[0] = spec.origin
        exec(code, main.__dict__)


def run_text(source: str, arguments: Sequence[str] = ()) -> None:
    """Run the program with the text ``source``, as ``python -c source arguments`` does."""
    main = main_module()
    with as_main(main, ["-c", *arguments], first_on_path=""):
        exec(compile(source, "<string>", "exec", dont_inherit=True), main.__dict__)


def run_stdin(name: str, arguments: Sequence[str] = ()) -> None:
    """Run the program that is read from standard input, as ``python - arguments`` does.

    ``name`` becomes ``sys.argv[0]`` of the program: ``"-"`` for this command.
    """
    source = sys.stdin.buffer.read()  # bytes, so that the compiler reads an encoding declaration
    main = main_module(file="<stdin>")
    with as_main(main, [name, *arguments], first_on_path=""):
        exec(compile(source, "<stdin>", "exec", dont_inherit=True), main.__dict__)


def find_runnable(name: str) -> ModuleSpec:
    """Return the import spec of the module ``name``, or of ``name.__main__`` if ``name`` is a package.

    CannotStart is raised if there is no such module.
    """
    try:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.submodule_search_locations is not None:
            spec = importlib.util.find_spec(f"{name}.__main__")
            if spec is None:
                raise CannotStart(f"No module named {name}.__main__; {name!r} is a package without a program")
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise CannotStart(f"Error while finding module specification for {name!r} ({error})") from error
    if spec is None:
        raise CannotStart(f"No module named {name}")
    return spec


def main_module(file: str | None = None) -> types.ModuleType:
    """Return a new module ``__main__`` for a program; ``file`` is the path of the program, or None."""
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    if file is not None:
        module.__file__ = file
        module.__dict__["__cached__"] = None
    return module


@contextmanager
def as_main(main: types.ModuleType, argv: list[str], first_on_path: str) -> Iterator[None]:
    """Return a context manager in which ``main`` is the module ``__main__`` and the import hook is installed.

    Inside the context, ``argv`` is ``sys.argv``, and ``first_on_path`` is the first entry of ``sys.path``. The
    environment lets commands that the program starts (``python``, ``torchrun``) find retrograd as ``torch``. All of it is
    restored afterwards.
    """
    before = sys.argv, list(sys.path), sys.modules["__main__"]
    sys.argv = argv
    if not sys.flags.safe_path:
        sys.path[:1] = [first_on_path]
    sys.modules["__main__"] = main
    try:
        with import_hook.commands_find_retrograd(), import_hook.installed():
            yield
    finally:
        sys.argv, sys.path[:], sys.modules["__main__"] = before


def own_traceback(traceback: types.TracebackType | None) -> types.TracebackType | None:
    """Return the part of ``traceback`` that ``python`` would show for the program, or None if this part is empty.

    The part starts at the first frame of the program, after the frames of this module. Frames of the import hook at the
    end are removed, so that the traceback ends at the line of a failed import.
    """
    entries: list[types.TracebackType] = []
    while traceback is not None:
        entries.append(traceback)
        traceback = traceback.tb_next
    files = [entry.tb_frame.f_code.co_filename for entry in entries]
    if __file__ in files:
        started = len(files) - files[::-1].index(__file__)
        entries, files = entries[started:], files[started:]
    while files and files[-1] in (import_hook.__file__, missing_names.__file__):
        entries.pop()
        files.pop()
    if not entries:
        return None
    entries[-1].tb_next = None
    return entries[0]


def show_own_traceback(error: BaseException) -> None:
    """Set ``sys.excepthook`` so that only the program's part of the traceback of ``error`` is shown.

    The hook is used if ``error`` is not caught. Other exceptions are shown unchanged.
    """
    shown_before = sys.excepthook

    def show(kind: type[BaseException], uncaught: BaseException, traceback: types.TracebackType | None) -> None:
        sys.excepthook = shown_before
        if uncaught is error:
            traceback = own_traceback(traceback)
            uncaught.__traceback__ = traceback
        shown_before(kind, uncaught, traceback)

    sys.excepthook = show
