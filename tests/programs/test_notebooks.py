"""Programs that say ``import torch`` print the same as under PyTorch in cells of a notebook, after ``%load_ext retrograd``."""

import ast
import os
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import retrograd
from tests.conformance.golden import load
from tests.programs.example_output import assert_printed_alike

HERE = Path(__file__).parent
RECORDED: dict[str, str] = load("typical_programs")


def execute(cells: list[str], allow_errors: bool = False) -> list[list[dict[str, Any]]]:
    """Return the outputs of each cell, run in one kernel."""
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3", allow_errors=allow_errors)
    path = os.pathsep.join([str(Path(retrograd.__file__).parent.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    client.execute(env={**os.environ, "PYTHONPATH": path})
    return [cell["outputs"] for cell in notebook["cells"]]


def printed(outputs: list[dict[str, Any]]) -> str:
    return "".join(each["text"] for each in outputs if each["output_type"] == "stream" and each["name"] == "stdout")


def cells_of(program: str) -> list[str]:
    """Split a program into cells of four statements."""
    statements = [ast.get_source_segment(program, each) or "" for each in ast.parse(program).body]
    return ["\n".join(statements[place : place + 4]) for place in range(0, len(statements), 4)]


@cache
def outputs_of_programs() -> dict[str, str]:
    """Return what each of the programs prints; all run in one kernel, each with new global names."""
    cells, ends = ["%load_ext retrograd"], {}
    for name in sorted(RECORDED):
        source = (HERE / "typical" / f"{name}.py").read_text(encoding="utf-8")
        cells += ["%reset -f", *cells_of(source)]
        ends[name] = len(cells)
    found, start, outputs = {}, 1, execute(cells)
    for name, end in ends.items():
        found[name] = "".join(map(printed, outputs[start:end]))
        start = end
    return found


@pytest.mark.parametrize("name", sorted(RECORDED))
def test_output_of_cells_matches_pytorch(name: str) -> None:
    assert_printed_alike(outputs_of_programs()[name], RECORDED[name], units=3)


def test_the_extension() -> None:
    version = "import torch; print(torch.__version__)"
    cells = [
        "import sys; sys.modules['torch'] = None",
        "import torch",
        "%load_ext retrograd",
        "import torch, retrograd\nfrom torch.nn import functional as F\ntorch is retrograd, torch.__name__",
        "x = torch.arange(6.0).reshape(2, 3); x",
        "torch.nn.Linear(2, 1)",
        "torch.tensor(1.5)",
        f"!{sys.executable} -c '{version}'",
        "%reload_ext retrograd",
        "import torch\nx + torch.ones(3), isinstance(x, torch.Tensor)",
        "x.T @ x.T",
        "%unload_ext retrograd",
        "import torch",
        f"!{sys.executable} -c 'import os; print(os.environ.get(\"RETROGRAD_PYTHON\"))'",
        "import retrograd\nretrograd.set_notebook_display(False); x",
    ]
    outputs = execute(cells, allow_errors=True)
    errors = {place: each[0]["ename"] for place, each in enumerate(outputs) if each and "ename" in each[0]}
    assert errors == {1: "ModuleNotFoundError", 10: "RuntimeError", 12: "ModuleNotFoundError"}
    shown = [[each["data"] for each in output if "data" in each] for output in outputs]
    assert shown[3][0]["text/plain"] == "(True, 'torch')"
    text = "tensor([[0., 1., 2.],\n        [3., 4., 5.]])"
    assert shown[4][0]["text/plain"] == text and f">{text}</pre>" in shown[4][0]["text/html"]
    assert "3 parameters" in shown[5][0]["text/html"]
    assert shown[6] == [{"text/plain": "tensor(1.5000)"}]
    assert printed(outputs[7]).strip() == retrograd.__version__
    assert shown[9][0]["text/plain"].endswith(" True)")
    assert printed(outputs[13]).strip() == "None"
    assert shown[14] == [{"text/plain": text}]
    assert "\x1b[" in "".join(outputs[10][0]["traceback"]) and "x.T @ x.T" in "".join(outputs[10][0]["traceback"])
