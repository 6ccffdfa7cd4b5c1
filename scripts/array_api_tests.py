"""Run array-api-tests, the test suite of the Python array API standard, on ``retrograd.array_api``.

The Python that runs this script needs pytest, hypothesis, pytest-json-report and ndindex. Arguments that the script does
not know are passed to pytest.
"""

from __future__ import annotations

import argparse
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


def parse(arguments: Sequence[str]) -> tuple[argparse.Namespace, list[str]]:
    """Return the arguments of the script, and those of pytest."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument(
        "checkout",
        type=Path,
        metavar="CHECKOUT",
        help="clone of https://github.com/data-apis/array-api-tests with its submodule",
    )
    parser.add_argument(
        "--operators",
        choices=("standard", "pytorch"),
        default="standard",
        help="run the suite in standard_operators() (default), because its tests of + or x[::-1] use the operators of "
        "tensors; or with those operators as they are, which are PyTorch's",
    )
    chosen, given = parser.parse_known_args(arguments)
    if not (chosen.checkout / "array_api_tests").is_dir():
        parser.error(f"{chosen.checkout} is not a checkout of array-api-tests: it has no folder array_api_tests")
    return chosen, given


def main(arguments: Sequence[str]) -> int:
    """Run pytest in the checkout; return its exit status."""
    chosen, given = parse(arguments)
    module = STANDARD_OPERATORS if chosen.operators == "standard" else "retrograd.array_api"
    paths = [str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "ARRAY_API_TESTS_MODULE": module}
    command = [sys.executable, "-m", "pytest", "--disable-deadline", "-q", "array_api_tests", *given]
    return subprocess.run(command, cwd=chosen.checkout, env=variables, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
