"""Arguments that make the examples short enough for tests, and the comparison of their output."""

from __future__ import annotations

import math
import re

from tests import ROOT

#: Arguments beside ``--folder``; examples that are not listed take none.
SHORT = {
    "adding.py": ("--steps", "100"),
    "character_gpt.py": ("--steps", "3", "--text", str(ROOT / "LICENSE")),
    "data_parallel.py": ("--epochs", "2"),
    "digits.py": ("--epochs", "2"),
    "gaussian_process.py": ("--steps", "20"),
    "learning_to_learn.py": ("--steps", "100"),
    "oscillator.py": ("--steps", "250"),
    "ratings.py": ("--epochs", "5"),
    "variational.py": ("--epochs", "5"),
}


def arguments(name: str, folder: str) -> list[str]:
    """Return the arguments of the example ``name``; its picture is written to ``folder``."""
    return [*SHORT[name], "--folder", folder] if name in SHORT else []


def without_times(printed: str) -> str:
    """Return the output without durations."""
    return re.sub(r"\d+\.\d seconds", "… seconds", printed)


NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?")


def assert_printed_alike(printed: str, expected: str, units: int = 1) -> None:
    """Compare words and layout exactly, and numbers to within ``units`` units of the last printed digit."""
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", expected)
    for ours, theirs in zip(NUMBER.findall(printed), NUMBER.findall(expected), strict=True):
        digits = len(theirs.partition("e")[0].partition(".")[2])
        unit = 10.0 ** (int(theirs.partition("e")[2] or 0) - digits)
        assert math.isclose(float(ours), float(theirs), rel_tol=1e-6, abs_tol=1.001 * units * unit), (ours, theirs)
