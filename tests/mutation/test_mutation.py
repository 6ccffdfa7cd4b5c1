"""A small run of the mutation tests, so that they keep working; the whole run is a command (``tests/README.md``)."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.changes import changes

ROOT = Path(__file__).resolve().parents[2]


def test_no_mutant_of_a_sample_survives() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "tests.mutation", "rules", "--count", "200", "--seed", "1", "--files", "scan", "losses",
         "--families", "scan", "losses", "edges", "reductions"],
        cwd=ROOT, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr
    found = re.search(r"(\d+) killed, (\d+) equivalent, 0 surviving", run.stdout)
    assert found and int(found[1]) + int(found[2]) == 200 and int(found[2]) <= 10, run.stdout


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("lambda g, x: -g", {"sign: -g -> g"}),
        ("lambda g, x: g * x", {"sign: g * x -> -(g * x)", "factor: g * x -> g", "factor: g * x -> x", "factor: g * x -> g / x"}),
        ("lambda F, g: F.zeros_as(g)", {"missing call: F.zeros_as(g) -> g"}),
        ("lambda F, g: F.sum_dim(g, 0, True)", {
            "sign: F.sum_dim(g, 0, True) -> -F.sum_dim(g, 0, True)", "missing call: F.sum_dim(g, 0, True) -> g",
            "axis: 0 -> 1", "axis: True -> False",
        }),
        ("lambda g, x: None if x < 1 else g", {
            "sign: None if x < 1 else g -> None if x < 1 else -g", "comparison: x < 1 -> x <= 1", "factor: 1 -> 2",
        }),
        ("lambda F, g, dim: F.flip(g, dim)", {
            "sign: F.flip(g, dim) -> -F.flip(g, dim)", "operand swap: F.flip(g, dim) -> F.flip(dim, g)",
            "missing call: F.flip(g, dim) -> g", "axis: dim -> dim - 1",
        }),
    ],
)  # fmt: skip
def test_the_list_of_changes(source: str, expected: set[str]) -> None:
    tree = ast.parse(source, mode="eval").body
    assert isinstance(tree, ast.Lambda)
    before = ast.dump(tree)
    found = changes(tree)
    assert {each.key for each in found} == expected
    for each in found:
        each.make()
        assert ast.dump(tree) != before
        each.undo()
        assert ast.dump(tree) == before


def test_changes_of_statements() -> None:
    tree = ast.parse("def f(x):\n    x += 1\n    return x").body[0]
    assert isinstance(tree, ast.FunctionDef)
    assert {each.key for each in changes(tree, statements=True)} == {
        "statement: x += 1 -> pass", "statement: return x -> return None", "factor: 1 -> 2",
    }  # fmt: skip
