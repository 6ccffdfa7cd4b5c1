"""Run array-api-tests, the test suite of the Python array API standard, on ``retrograd.array_api``.

``python scripts/array_api_tests.py CHECKOUT [--operators pytorch] [pytest arguments]``. ``CHECKOUT`` is a clone of
https://github.com/data-apis/array-api-tests with its submodule. The Python that runs this script needs pytest,
hypothesis, pytest-json-report and ndindex. By default the suite runs in ``standard_operators()``, because its tests of
``+`` or ``x[::-1]`` use the operators of tensors, which are PyTorch's. ``--operators pytorch`` runs it without.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "src"
#: How the suite imports the tested module: as the variable ``xp`` of a program.
STANDARD_OPERATORS = """exec('
import atexit
import retrograd.array_api as xp
context = xp.standard_operators()
context.__enter__()
atexit.register(context.__exit__, None, None, None)
')"""


def main(arguments: Sequence[str]) -> int:
    """Run pytest in the checkout ``arguments[0]``; return its exit status."""
    checkout, *given = arguments or sys.exit(__doc__)
    module = STANDARD_OPERATORS
    if given[:1] == ["--operators"]:
        module, given = "retrograd.array_api" if given[1] == "pytorch" else STANDARD_OPERATORS, given[2:]
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ARRAY_API_TESTS_MODULE": module}
    command = [sys.executable, "-m", "pytest", "--disable-deadline", "-q", "array_api_tests", *given]
    return subprocess.run(command, cwd=checkout, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
