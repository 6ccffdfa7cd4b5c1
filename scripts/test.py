"""Run pytest on a few cores, in the checkout's environment, which is set up first.

``python3 scripts/test.py [--selection] [pytest arguments]``. A file of tests may be named without its folder and suffix:
``python3 scripts/test.py test_cli -k info``. ``--selection`` runs the files of :data:`SELECTION`, which ``.ci/run`` runs
on every supported Python; their environment has no linters and no libraries of the examples. ``--lowest`` runs them with
the lowest versions of the dependencies (``lowest.py``). ``--threads`` runs the files of :data:`THREADS`, each test in
eight threads at once, by pytest-run-parallel.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import lowest
from environment import ROOT, environment, run

TESTS = ROOT / "tests"
#: The files whose outcome depends most on the Python version, wherever they are below ``tests``.
SELECTION = (
    "test_operations", "test_arithmetic",  # operations
    "test_backward", "test_graph", "test_forward", "test_autograd_function", "test_transforms",  # autograd
    "test_fast_path", "test_saved_tensors", "test_tracebacks",  # generated code
    "test_inplace", "test_shapes", "test_indexing",  # views
    "test_printing", "test_compile",
)  # fmt: skip
#: The files whose tests may run in several threads at once: they neither seed generators nor set options.
THREADS = (
    "test_arithmetic", "test_backward", "test_graph", "test_inplace", "test_shapes", "test_indexing",
    "test_autograd_function", "test_grad_mode", "test_fast_path",
)  # fmt: skip
OPTIONS = {
    "--selection": SELECTION,
    "--lowest": SELECTION,
    "--threads": ("--parallel-threads=8", "-p", "no:xdist", *THREADS),
}


def find_test(stem: str, folder: Path = TESTS) -> str:
    """Return the path of the file ``stem.py`` anywhere below ``folder``; exit if there is none, or more than one."""
    found = sorted(folder.rglob(f"{stem}.py"))
    if len(found) != 1:
        sys.exit(f"{len(found)} files below {folder} are named {stem}.py; there must be one.")
    return str(found[0])


def pytest_arguments(arguments: Sequence[str], folder: Path = TESTS) -> list[str]:
    """Return ``arguments`` with names of test files replaced by their paths, and those of :data:`OPTIONS` spelled out."""
    expanded: list[str] = []
    for each in arguments:
        expanded += OPTIONS.get(each, [each])
    return [find_test(each, folder) if re.fullmatch(r"test_\w+", each) else each for each in expanded]


def main(arguments: Sequence[str]) -> int:
    """Set up the environment and run pytest in it; return pytest's exit status."""
    given = pytest_arguments(arguments)
    workers = [] if "--threads" in arguments else ["-n", str(min(os.cpu_count() or 1, 8))]
    if "--lowest" in arguments:
        pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        python = lowest.environment(lowest.lowest(pyproject))
    else:
        python = environment("test" if "--selection" in arguments else "dev")
    return run(python, ["-m", "pytest", *workers, *given], ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
