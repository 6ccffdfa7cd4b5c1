"""Command line with the commands ``retrograd run``, ``launch``, ``stubs``, ``checkpoint``, ``check-gpu``, ``docs``, ``info``.

This module parses the arguments; ``runner.py`` runs programs.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import sys
from collections.abc import Callable, Iterator, Sequence

import retrograd
from retrograd.compat import missing_names
from retrograd.runtime import extension_module
from retrograd.version import OWN

from . import runner

USAGE = """\
usage: retrograd COMMAND ...

  retrograd run PROGRAM.py [arguments]     run a program written for PyTorch: its `import torch` gets retrograd
  retrograd run -m MODULE [arguments]      the same for a module found on the path
  retrograd run -c TEXT [arguments]        the same for a program given as text
  retrograd run - [arguments]              the same for a program that comes in on standard input
  retrograd run --page OUT.html PROGRAM …  the same, and write a page of the graph and values of its last backward pass
  retrograd launch [options] PROGRAM.py    run a program in several processes, one for each rank of torch.distributed
  retrograd launch --help                  print the options, such as --nproc-per-node 2 --max-restarts 3
  retrograd stubs FOLDER                   write type stubs: FOLDER/torch-stubs, for editors and type checkers
  retrograd warmup                         compile the loops of the extra "fast" now (four minutes), not at first use
  retrograd checkpoint FILE                list names, shapes, dtypes and sizes in a .pt, .safetensors or .npz file
  retrograd checkpoint FILE OUTPUT         convert it to another of these formats, by the ending of OUTPUT
  retrograd checkpoint --help              print the options, such as --part model --force
  retrograd docs                           list the pages of the documentation
  retrograd docs PAGE                      show a page, such as `differences`
  retrograd check-gpu [options]            compare a GPU with the CPU and write a report (--help prints the options)
  retrograd info                           print versions, devices, threads and the extras found
  retrograd --version                      print the version
  retrograd --help                         print this text

`python -m retrograd` is the same command."""

CANNOT = 2  # Python's exit status if it cannot start a program


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command ``retrograd`` with ``arguments`` (by default ``sys.argv[1:]``) and return its exit status.

    Exceptions raised by a program under ``retrograd run`` are not caught.

    >>> main(["run", "-c", "import torch; print(torch.__version__)"])
    2.13.0+retrograd.0.1.0
    0
    """
    command, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or ["--help"]
    if command in COMMANDS:
        return COMMANDS[command](rest)
    if rest in (["--help"], ["-h"]) and command in TEXTS:
        return show(USAGE)
    if rest and command in TEXTS:
        return complain(f"{command} takes no arguments")
    if command in TEXTS:
        return show(TEXTS[command]())
    similar = meant(command)
    if similar is None:
        return complain(f"there is no command {command!r}")
    return fail(f"there is no command {command!r}. Did you mean: retrograd {similar}")


def meant(command: str) -> str | None:
    """Return the command that is probably meant by ``command``, which does not exist, or None."""
    if command.endswith((".pt", ".pth", ".ckpt", ".safetensors", ".npz")):
        return f"checkpoint {command}"
    if command.endswith(".py") or os.path.exists(command):
        return f"run {command}"
    return similar_to(command, [*COMMANDS, *TEXTS])


def similar_to(word: str, words: Sequence[str]) -> str | None:
    """Return the one of ``words`` that is most similar to ``word``, None if no one is."""
    import difflib  # only misspelt names need it

    return next(iter(difflib.get_close_matches(word, words, 1)), None)


def show(text: str) -> int:
    """Print ``text`` and return the exit status 0, also if the reader of the output has ended, as ``head`` does."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more when it ends
    return 0


#: Variables by which mpiexec and srun tell a process its rank; the program finds it in ``RANK``, as under ``torchrun``.
RANK_VARIABLES = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_STEP_ID")


def complain(about: str) -> int:
    """Print the error message ``about`` and the usage to standard error, and return the exit status for an error."""
    print(f"retrograd: {about}\n\n{USAGE}", file=sys.stderr)
    return CANNOT


def set_rank() -> None:
    """Set ``RANK`` and the like, which programs and ``env://`` read, in a process of ``mpiexec`` or ``srun``."""
    if "RANK" in os.environ or os.environ.keys().isdisjoint(RANK_VARIABLES):
        return
    from .distributed import launch_environment

    variables = launch_environment.variables()
    if int(variables.get("WORLD_SIZE", 1)) > 1:
        os.environ.update({name: value for name, value in variables.items() if name not in os.environ})


def run(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd run`` with ``arguments``, which follow the word ``run``, and return its exit status.

    Exceptions of the program are not caught, so that the process exits as ``python`` would for the program.
    """
    start = {"-m": runner.run_module, "-c": runner.run_text}
    page, arguments = page_option(arguments)
    if page is not None and (not page or page.startswith("-") or page.endswith(".py")):
        return complain("run --page needs the name of an HTML file" + (f", before the program: {page}" if page else ""))
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if arguments and arguments[0] in start:
        option, *rest = arguments
        if not rest:
            return complain(f"run {option} needs an argument")
        begin, name, *rest = start[option], *rest
    elif arguments and (arguments[0] == "-" or not arguments[0].startswith("-")):
        begin = runner.run_stdin if arguments[0] == "-" else runner.run_file
        name, *rest = arguments
    else:
        if not arguments:
            return complain("run needs a program")
        similar = similar_to(arguments[0].partition("=")[0], ["--page", "--help"])
        return complain(f"run has no option {arguments[0]}" + (f". Did you mean: {similar}" if similar else ""))
    set_rank()
    try:
        if page is None:
            begin(name, rest)
        else:
            from .inspection.page.program import recorded

            with recorded(page):
                begin(name, rest)
    except runner.CannotStart as error:
        print(f"retrograd: {error}", file=sys.stderr)
        return CANNOT
    except BaseException as error:
        runner.show_own_traceback(error)
        raise
    return 0


def page_option(arguments: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the file name of the option ``--page``, "" if it is missing, and the other ``arguments``.

    Without the option, the file name is None.

    >>> page_option(["--page", "out.html", "program.py"]), page_option(["program.py", "--page"])
    (('out.html', ['program.py']), (None, ['program.py', '--page']))
    """
    if arguments and arguments[0].startswith("--page="):
        return arguments[0].partition("=")[2], arguments[1:]
    if arguments and arguments[0] == "--page":
        return (arguments[1], arguments[2:]) if len(arguments) > 1 else ("", [])
    return None, arguments


def launch(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd launch`` with ``arguments``, and return its exit status."""
    if not arguments:
        return complain("launch needs a program")
    from .distributed import run as torchrun  # argparse and the process groups

    return torchrun.command(torchrun.get_args_parser("retrograd launch").parse_args(arguments))


def stubs(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd stubs`` with ``arguments``, the name of a folder, and return its exit status.

    It writes the package ``torch-stubs`` into the folder, so that editors and type checkers know ``import torch`` without
    PyTorch.
    """
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(USAGE) if arguments in (["-h"], ["--help"]) else complain("stubs needs a folder")
        return 0 if arguments in (["-h"], ["--help"]) else CANNOT
    from . import stubs as generator

    try:
        paths = generator.write(pathlib.Path(arguments[0]), "torch-stubs")
    except OSError as error:
        print(f"retrograd: {error}", file=sys.stderr)
        return CANNOT
    print(f"{len(paths)} files in {os.path.join(arguments[0], 'torch-stubs')}")
    return 0


def checkpoint(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd checkpoint`` with ``arguments``, and return its exit status.

    It lists what a file contains, or converts it, without running anything in the file.
    """
    import argparse

    parser = argparse.ArgumentParser(
        "retrograd checkpoint",
        description="List names, shapes, dtypes and sizes of a checkpoint, or convert it; nothing in the file is run.",
    )
    parser.add_argument("file", metavar="FILE", help="a .pt or .pth file of PyTorch, a .safetensors or an .npz file")
    parser.add_argument("output", metavar="OUTPUT", nargs="?", help="the file to write; its ending is the format")
    parser.add_argument("--part", metavar="NAME", help="only the part with this name, such as model or optimizer.state")
    parser.add_argument("--copy-shared", action="store_true", help="write tensors that share memory one by one")
    parser.add_argument("--force", action="store_true", help="replace OUTPUT if it exists")
    chosen = parser.parse_args(arguments)
    from .checkpoints import contents, convert

    file, output = chosen.file, chosen.output
    if not os.path.isfile(file):
        reason = "is a folder" if os.path.isdir(file) else "is no file" if os.path.exists(file) else "does not exist"
        return fail(f"{file} {reason}")
    if output is not None:
        ending = os.path.splitext(output)[1]
        if ending.lower() not in convert.ENDINGS:
            return fail(f"{output} has the ending {ending!r}, but the endings are {', '.join(convert.ENDINGS)}")
        if os.path.lexists(output) and not chosen.force:
            return fail(f"{output} exists; --force replaces it")
    try:
        found = contents.read(file, data=output is not None)
        if output is None:
            return show("\n".join(contents.listing(file, found, chosen.part)))
        left_out = convert.convert(found, output, chosen.part, chosen.copy_shared)
    except contents.ERRORS as error:
        return fail(f"cannot {'list' if output is None else 'convert'} {file}: {first_line(error)}")
    text = f"{output}: {os.path.getsize(output):,} bytes"
    return show(
        "\n".join([text, *(f"not written, because the format has no place for it: {each}" for each in left_out)])
    )


def fail(about: str) -> int:
    """Print the error message ``about`` to standard error as one line, and return the exit status for an error."""
    print("retrograd: " + "".join(each if each.isprintable() else ascii(each)[1:-1] for each in about), file=sys.stderr)
    return CANNOT


def first_line(error: BaseException) -> str:
    """Return the first line of the message of ``error``, of at most 400 characters, or the name of its class."""
    text = str(error.args[0] if isinstance(error, KeyError) and error.args else error).strip().partition("\n")[0]
    return (text if len(text) <= 400 else text[:400] + "...") or type(error).__name__


def docs(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd docs`` with ``arguments``, and return its exit status.

    It lists the pages of the documentation, which are installed with the package, or shows one.
    """
    if len(arguments) > 1 or (arguments and arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        return complain("docs needs the name of one page, or nothing")
    if arguments and arguments[0] in ("-h", "--help"):
        return show(USAGE)
    pages = {path.stem: path for path in sorted(pathlib.Path(missing_names.DOCS_FOLDER).glob("*.md"))}
    if not arguments:
        width = max(map(len, pages), default=0)
        listed = [f"{name:{width}}  {page_title(path)}" for name, path in pages.items()]
        return show(
            "\n".join([*listed, "", f"retrograd docs PAGE shows a page; the files are in {missing_names.DOCS_FOLDER}"])
        )
    name = arguments[0].lower().removesuffix(".md")
    if name not in pages:
        import difflib  # only misspelt names need it

        similar = difflib.get_close_matches(name, pages, 3) or [page for page in pages if name in page]
        hint = f". Did you mean: {', '.join(similar)}" if similar else "; `retrograd docs` lists them"
        return fail(f"there is no page {arguments[0]!r}{hint}")
    text = pages[name].read_text(encoding="utf-8")
    if not sys.stdout.isatty():
        return show(text.rstrip("\n"))
    import pydoc

    pydoc.pager(text)
    return 0


def page_title(path: pathlib.Path) -> str:
    """Return the first heading of the page ``path``."""
    with path.open(encoding="utf-8") as file:
        return next((line.lstrip("# ").strip() for line in file if line.startswith("# ")), "")


def warmup(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd warmup``, which has no ``arguments``, and return its exit status."""
    if arguments in (["--help"], ["-h"]):
        return show(USAGE)
    if arguments:
        return complain("warmup takes no arguments")
    from .warmup import command

    return command()


def check_gpu(arguments: Sequence[str]) -> int:
    """Run the command ``retrograd check-gpu`` with ``arguments``, and return its exit status."""
    from . import check_gpu as check  # argparse and all modules

    return check.command(arguments)


def info() -> str:
    """Return the text that ``retrograd info`` prints: versions, devices, threads and optional packages."""
    lines: list[tuple[str, str]] = [
        ("retrograd", f"{OWN} ({os.path.dirname(retrograd.__file__)})"),
        ("pages", missing_names.DOCS_FOLDER),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})"),
        ("platform", platform.platform()),
        *((name, version_of(name)) for name in ("numpy", "scipy", "ml_dtypes")),
        ("extras", ", ".join(extras())),
        ("extension", extension_module.describe()),
        *([("loops", loops())] if importlib.util.find_spec("numba") else []),
        ("processors", str(processors())),
        ("BLAS", blas()),
        ("threads", threads()),
        *(("device" if place == 0 else "", text) for place, text in enumerate(devices())),
    ]
    return "\n".join(f"{title:<12}{text}" for title, text in lines)


def version_of(*distributions: str) -> str:
    """Return the version of the first package among ``distributions`` that is installed, without importing it.

    If no package is installed, the result is ``"not installed"``.
    """
    for name in distributions:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return "not installed"


def extras() -> Iterator[str]:
    """Yield the name and version of each optional package, as text."""
    yield f"numba {version_of('numba')}"
    yield f"cupy {version_of('cupy-cuda13x', 'cupy-cuda12x', 'cupy-cuda11x', 'cupy')}"
    yield f"mpi4py {version_of('mpi4py')}"


def loops() -> str:
    """Return whether Numba's loops are compiled."""
    from .warmup import state

    return state()


def processors() -> int:
    """Return the number of processors available to this process."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def blas() -> str:
    """Return the name and version of NumPy's BLAS."""
    import numpy

    found = numpy.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def threads() -> str:
    """Return the environment variables that limit the threads of BLAS and Numba, with their values, as one text."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
    limits = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    return ", ".join(limits) or "as many as there are processors (OMP_NUM_THREADS and its like are not set)"


def devices() -> Iterator[str]:
    """Yield a description of the CPU and of each GPU that CuPy finds."""
    yield f"cpu: {platform.processor() or platform.machine()}"
    if importlib.util.find_spec("cupy") is None:
        from .runtime.extras import how_to_install

        yield f"no GPU: CuPy is not installed: {how_to_install('gpu')}"
        return
    try:
        import cupy

        for number in range(cupy.cuda.runtime.getDeviceCount()):
            described = cupy.cuda.runtime.getDeviceProperties(number)
            yield f"cuda:{number}: {described['name'].decode()}, {described['totalGlobalMem'] / 2**30:.1f} GiB"
    except Exception as error:  # from CuPy or the driver: any error means that no GPU can be used
        yield f"no GPU: {error}"


#: Commands with arguments.
COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    "run": run,
    "launch": launch,
    "stubs": stubs,
    "checkpoint": checkpoint,
    "check-gpu": check_gpu,
    "docs": docs,
    "warmup": warmup,
}
#: Commands that print a text.
TEXTS: dict[str, Callable[[], str]] = {
    "info": info, "--version": lambda: f"retrograd {OWN}", "-V": lambda: f"retrograd {OWN}",
    "--help": lambda: USAGE, "-h": lambda: USAGE,
}  # fmt: skip
