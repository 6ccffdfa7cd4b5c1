"""Run pytest on a few cores, in the checkout's environment, which is set up first.

``python3 scripts/test.py [--selection] [pytest arguments]``. A file of tests may be named without its folder and suffix:
``python3 scripts/test.py test_cli -k info``. ``--selection`` runs the files of :data:`SELECTION`, which ``.ci/run`` runs
on every supported Python; their environment has no linters and no libraries of the examples.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

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


def find_test(stem: str, folder: Path = TESTS) -> str:
    """Return the path of the file ``stem.py`` anywhere below ``folder``; exit if there is none, or more than one."""
    found = sorted(folder.rglob(f"{stem}.py"))
    if len(found) != 1:
        sys.exit(f"{len(found)} files below {folder} are named {stem}.py; there must be one.")
    return str(found[0])


def pytest_arguments(arguments: Sequence[str], folder: Path = TESTS) -> list[str]:
    """Return ``arguments`` with the names of test files replaced by their paths, and ``--selection`` by all of them."""
    expanded: list[str] = []
    for each in arguments:
        expanded += SELECTION if each == "--selection" else [each]
    return [find_test(each, folder) if re.fullmatch(r"test_\w+", each) else each for each in expanded]


def main(arguments: Sequence[str]) -> int:
    """Set up the environment and run pytest in it; return pytest's exit status."""
    given = pytest_arguments(arguments)
    workers = str(min(os.cpu_count() or 1, 8))
    python = environment("test" if "--selection" in arguments else "dev")
    return run(python, ["-m", "pytest", "-n", workers, *given], ROOT)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
