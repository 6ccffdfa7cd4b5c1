"""Run the jobs in ``jobs/``, each a small program with one package, and compare what they print.

Expected lines are recorded from PyTorch by ``scripts/packages.py --record`` in ``expected.json``, with the version of the
package and the CPU time of both.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import ROOT

JOBS = Path(__file__).parent / "jobs"
EXPECTED = Path(__file__).parent / "expected.json"
#: Distributions whose names are not those of their modules.
DISTRIBUTIONS = {"pyro": "pyro-ppl", "deepxde": "DeepXDE", "torchvision_operators": "torchvision"}
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)")


def names() -> list[str]:
    """Return the names of the jobs."""
    return sorted(path.stem.removeprefix("job_") for path in JOBS.glob("job_*.py"))


def expected() -> dict[str, dict[str, Any]]:
    """Return what was recorded for each job: ``version``, ``lines``, ``result`` and the CPU times of both."""
    found: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text(encoding="utf-8")) if EXPECTED.exists() else {}
    return found


def version(name: str) -> str | None:
    """Return the version of the job's package, or None if it is not installed."""
    try:
        return importlib.metadata.version(DISTRIBUTIONS.get(name, name))
    except importlib.metadata.PackageNotFoundError:
        return None


@dataclass
class Run:
    """Printed lines of a job, its last line of errors if it failed, and its CPU time in seconds."""

    lines: list[str]
    error: str
    seconds: float


def run(name: str, python: str = "", limit: float = 600) -> Run:
    """Run a job under ``retrograd run``, or under PyTorch by the interpreter ``python``."""
    job = str(JOBS / f"job_{name}.py")
    own = [] if python else [str(ROOT / "src")]
    paths = [*own, str(JOBS), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}
    command = [python, job] if python else [sys.executable, "-m", "retrograd", "run", job]
    before = _children()
    try:
        done = subprocess.run(
            command, env=variables, cwd=JOBS, capture_output=True, text=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return Run([], f"longer than {limit:g} s", limit)
    error = (done.stderr.strip().splitlines() or ["?"])[-1] if done.returncode else ""
    return Run(done.stdout.splitlines(), error, round(_children() - before, 2))


def _children() -> float:
    times = os.times()
    return times.children_user + times.children_system


def difference(lines: list[str], reference: list[str]) -> str:
    """Return the first line that differs, or an empty string.

    Numbers agree to 3e-4, relative to the number plus 0.001.
    """
    for mine, theirs in zip(lines, reference, strict=False):
        if mine == theirs:
            continue
        pairs = zip(_NUMBER.findall(mine), _NUMBER.findall(theirs), strict=False)
        same_text = _NUMBER.sub("#", mine) == _NUMBER.sub("#", theirs)
        if not same_text or not all(_agree(float(a), float(b)) for a, b in pairs):
            return f"{mine} instead of {theirs}"
    return "" if len(lines) == len(reference) else f"{len(lines)} lines instead of {len(reference)}"


def _agree(a: float, b: float) -> bool:
    return a == b or (a != a and b != b) or abs(a - b) <= 3e-4 * (abs(b) + 1e-3)
