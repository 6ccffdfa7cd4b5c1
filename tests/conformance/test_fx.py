"""``torch.fx``: texts of graphs, generated code, results and errors as recorded from PyTorch."""

from __future__ import annotations

import gc
import linecache
import os
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd.fx.names import qualified_name
from tests.conformance import fx_cases
from tests.conformance.golden import load

RECORDED = load("fx")


@pytest.mark.parametrize("name", fx_cases.PROGRAMS)
def test_traced_programs_match_pytorch(name: str) -> None:
    assert fx_cases.traced(torch, name) == RECORDED["programs"][name]


@pytest.mark.parametrize("program", fx_cases.REFUSED)
def test_refused_programs_match_pytorch(program: str) -> None:
    assert fx_cases.refusal(torch, program) == RECORDED["refused"][program]


@pytest.mark.parametrize("name", fx_cases.SESSIONS)
def test_sessions_match_pytorch(name: str) -> None:
    assert fx_cases.session(torch, name) == RECORDED["sessions"][name]


@pytest.mark.parametrize("case", fx_cases.LAYERS)
def test_graphs_of_layers_match_pytorch(case: str) -> None:
    assert fx_cases.layer(torch, case) == RECORDED["layers"][case]


@pytest.mark.parametrize("case", [*fx_cases.LAYERS, *fx_cases.OTHER_LAYERS])
def test_traced_layers_have_the_results_of_the_layers(case: str) -> None:
    if RECORDED["layers"].get(case, "").startswith("TraceError"):
        with pytest.raises(ValueError, match="symbolically traced variables cannot"):
            fx_cases.layer_results_agree(torch, case)
    else:
        assert fx_cases.layer_results_agree(torch, case)


def test_assertions_are_recorded() -> None:
    class Asserting(torch.fx.Tracer):
        trace_asserts = True

    space: dict[str, Any] = {}  # pytest rewrites assertions in its own modules
    exec("def program(x):\n    assert x.sum() > 0, 'text'\n    assert x.all()\n    return x", space)
    names = [node.name for node in Asserting().trace(space["program"]).nodes]  # PyTorch on Python 3.11 refuses them
    assert names == ["x", "sum_1", "gt", "assert_fn", "all_1", "assert_fn_1", "output"]
    with pytest.raises(ValueError, match="control flow"):
        Asserting().trace(lambda x: x if x else 1)


#: What PyTorch prints with the package tabulate 0.10.
TABLE = """\
opcode         name    target                   args         kwargs
-------------  ------  -----------------------  -----------  --------------
placeholder    x       x                        ()           {}
placeholder    y       y                        (2,)         {}
call_function  add     <built-in function add>  (x, y)       {}
call_method    sum_1   sum                      (add, 0)     {'keepdim': 1}
output         output  output                   ((sum_1,),)  {}
"""


def test_table_of_a_graph(capsys: pytest.CaptureFixture[str]) -> None:
    torch.fx.symbolic_trace(lambda x, y=2: ((x + y).sum(0, keepdim=1),)).graph.print_tabular()
    assert capsys.readouterr().out == TABLE


def test_names_of_functions_match_pytorch() -> None:
    assert fx_cases.qualified_names(torch, qualified_name) == RECORDED["names"]


def test_written_package_has_the_results_of_the_module(tmp_path: Path) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    traced = torch.fx.symbolic_trace(net)
    with pytest.warns(UserWarning, match="Was not able to save the following children modules as reprs"):
        traced.to_folder(tmp_path / "written", "Written")
    program = tmp_path / "program.py"
    program.write_text("import torch\nfrom written import Written\nprint(Written()(torch.ones(1, 2)).tolist())\n")
    source = str(Path(torch.__file__).parents[1])
    command = [sys.executable, "-m", "retrograd", "run", str(program)]
    environment = {**os.environ, "PYTHONPATH": source}
    printed = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment).stdout
    assert printed.strip() == str(net(torch.ones(1, 2)).tolist())


def test_files_keep_the_module(tmp_path: Path) -> None:
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Tanh()))
    torch.save(traced, tmp_path / "traced.pt")
    loaded = torch.load(tmp_path / "traced.pt", weights_only=False)
    assert loaded.code == traced.code and torch.equal(loaded(torch.ones(1, 2)), traced(torch.ones(1, 2)))


def test_graph_modules_are_forgotten() -> None:
    traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2)))
    kept, file = weakref.ref(traced), traced.forward.__code__.co_filename
    assert "def forward" in "".join(linecache.getlines(file))
    del traced
    gc.collect()
    assert kept() is None and file not in linecache.cache
