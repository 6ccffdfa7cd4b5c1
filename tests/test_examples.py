"""The examples print under ``retrograd run`` what they printed under PyTorch (``golden/examples.json``).

Words and layout are compared exactly, numbers to within what a different order of summing may change.
"""

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import retrograd

HERE = Path(__file__).parent
EXAMPLES = HERE.parent / "examples"
RECORDED: dict[str, str] = json.loads((HERE / "golden" / "examples.json").read_text(encoding="utf-8"))["printed"]
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?")


def run(program: Path) -> str:
    source = str(Path(retrograd.__file__).parent.parent)
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "retrograd", "run", str(program)],
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_example_is_recorded() -> None:
    assert sorted(RECORDED) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_prints_as_under_pytorch(name: str) -> None:
    printed, expected = run(EXAMPLES / name), RECORDED[name]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    for ours, theirs in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
        # One unit of the last place that is printed.
        digits = len(theirs.partition("e")[0].partition(".")[2])
        unit = 10.0 ** (int(theirs.partition("e")[2] or 0) - digits)
        assert math.isclose(float(ours), float(theirs), rel_tol=1e-6, abs_tol=1.001 * unit), (ours, theirs)
