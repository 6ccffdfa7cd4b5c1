"""Typical training programs print the same under ``retrograd run`` and under PyTorch."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import retrograd
from tests.conformance.golden import load
from tests.programs.example_output import assert_printed_alike

HERE = Path(__file__).parent
RECORDED: dict[str, str] = load("typical_programs")


@cache
def printed() -> dict[str, str]:
    """Return the output of every program, run in one process."""
    source = str(Path(retrograd.__file__).parent.parent)
    path = os.pathsep.join([source, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", "retrograd", "run", str(HERE / "typical" / "__main__.py")],
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}, capture_output=True, encoding="utf-8",
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_program_is_recorded() -> None:
    assert sorted(RECORDED) == sorted(path.stem for path in (HERE / "typical").glob("[!_]*.py"))


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_output_matches_pytorch(name: str) -> None:
    assert_printed_alike(printed()[name], RECORDED[name], units=3)
