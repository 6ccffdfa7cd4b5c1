"""Command line with the commands ``retrograd run``, ``launch``, ``stubs`` and ``info``.

This module parses the arguments; ``runner.py`` runs programs.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import pathlib
import platform
import sys
from collections.abc import Iterator, Sequence

import retrograd
from retrograd.compat import missing_names
from retrograd.version import OWN

from . import runner

USAGE = """\
usage: retrograd COMMAND ...

  retrograd run PROGRAM.py [arguments]     run a program written for PyTorch: its `import torch` gets retrograd
  retrograd run -m MODULE [arguments]      the same for a module found on the path
  retrograd run -c TEXT [arguments]        the same for a program given as text
  retrograd run - [arguments]              the same for a program that comes in on standard input
  retrograd launch [options] PROGRAM.py    run a program in several processes, one for each rank of torch.distributed
  retrograd launch --help                  print the options, such as --nproc-per-node 2 --max-restarts 3
  retrograd stubs FOLDER                   write type stubs: FOLDER/torch-stubs, for editors and type checkers
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
    if command == "run":
        return run(rest)
    if command == "launch":
        return launch(rest)
    if command == "stubs":
        return stubs(rest)
    if rest and command in ("info", "--version", "-V", "--help", "-h"):
        return complain(f"{command} takes no arguments")
    if command == "info":
        print(info())
    elif command in ("--version", "-V"):
        print(f"retrograd {OWN}")
    elif command in ("--help", "-h"):
        print(USAGE)
    else:
        return complain(f"there is no command {command!r}")
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
        return complain(f"run has no option {arguments[0]}" if arguments else "run needs a program")
    set_rank()
    try:
        begin(name, rest)
    except runner.CannotStart as error:
        print(f"retrograd: {error}", file=sys.stderr)
        return CANNOT
    except BaseException as error:
        runner.show_own_traceback(error)
        raise
    return 0


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


def info() -> str:
    """Return the text that ``retrograd info`` prints: versions, devices, threads and optional packages."""
    lines: list[tuple[str, str]] = [
        ("retrograd", f"{OWN} ({os.path.dirname(retrograd.__file__)})"),
        ("pages", missing_names.DOCS_FOLDER),
        ("Python", f"{platform.python_version()} ({platform.python_implementation()}, {sys.executable})"),
        ("platform", platform.platform()),
        *((name, version_of(name)) for name in ("numpy", "scipy", "ml_dtypes")),
        ("extras", ", ".join(extras())),
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
        yield "no GPU: CuPy is not installed (pip install 'retrograd[gpu]')"
        return
    try:
        import cupy

        for number in range(cupy.cuda.runtime.getDeviceCount()):
            described = cupy.cuda.runtime.getDeviceProperties(number)
            yield f"cuda:{number}: {described['name'].decode()}, {described['totalGlobalMem'] / 2**30:.1f} GiB"
    except Exception as error:  # from CuPy or the driver: any error means that no GPU can be used
        yield f"no GPU: {error}"
