"""The notebooks of docs/lessons run, and the solutions of their exercises pass the checks.

A cell with the tag ``exercise`` is replaced by the code of the folded solution below it. The cell with the tag ``check``
prints "correct" then.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests import ROOT

LESSONS = sorted((ROOT / "docs" / "lessons").glob("*.ipynb"))
SOLUTION = re.compile(r"<details>\n<summary>Solution</summary>\n\n```python\n(.*)\n```\n\n</details>", re.DOTALL)


def tags(cell: dict[str, Any]) -> list[str]:
    return cell["metadata"].get("tags", [])


def solved(notebook: dict[str, Any]) -> dict[str, Any]:
    """Replace each exercise by its solution."""
    open_exercise = None
    for cell in notebook["cells"]:
        if "exercise" in tags(cell):
            open_exercise = cell
        elif "solution" in tags(cell):
            found = SOLUTION.fullmatch("".join(cell["source"]))
            assert found and open_exercise, "a solution is a folded code block below its exercise"
            open_exercise["source"], open_exercise = found[1], None
    return notebook


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code), "stored without outputs"
    counts = [sum(tag in tags(cell) for cell in notebook["cells"]) for tag in ("exercise", "solution", "check")]
    assert counts == [3, 3, 3]
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    found = nbformat.reads(json.dumps(solved(notebook)), as_version=4)
    nbclient.NotebookClient(found, timeout=120, kernel_name="python3").execute()
    printed = [
        "".join(output.get("text", "") for output in cell["outputs"])
        for cell in found["cells"]
        if "check" in tags(cell)
    ]
    assert printed == [f"Exercise {number}: correct.\n" for number in (1, 2, 3)]
