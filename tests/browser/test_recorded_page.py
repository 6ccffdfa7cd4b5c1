"""Pages of recorded programs in Chromium: what the program computed is what the page shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from tests import ROOT

Show = Callable[..., Any]
recording = torch.autograd.graph.recording

POLYNOMIAL = """
import torch

x = torch.linspace(-1, 1, 2000)
torch.manual_seed(0)
a, b, c = (torch.randn((), requires_grad=True) for _ in range(3))
y_pred = a + b * x + c * x ** 2
loss = (y_pred - x.exp()).pow(2).sum()
loss.backward()
print(f"{a.grad.item():.4g}")
"""


def find(page: Any, name: str) -> int:
    """Return the index of the first node with a label or name."""
    return page.js(
        "return window.graphDocument.nodes.findIndex(node => node.label === arguments[0] || node.name === arguments[0])",
        name,
    )


def walk(page: Any) -> None:
    """Show every node and every step, with all groups open."""
    page.js(
        """document.querySelector("#open-all").click();
        for (const id of window.graphDocument.nodes.keys()) graphPage.select(id);
        for (const step of graphPage.steps.keys()) { graphPage.go(step); graphPage.paintNow(); }
        graphPage.select(null);"""
    )


def test_page_of_a_program_shows_its_lines_and_gradients(show: Show, tmp_path: Path) -> None:
    program, file = tmp_path / "program.py", tmp_path / "out.html"
    program.write_text(POLYNOMIAL, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "retrograd", "run", "--page", str(file), str(program)]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert file.stat().st_size < 60_000
    page = show(file.read_text(encoding="utf-8"))
    page.wait("Boolean(window.graphPage)")
    walk(page)
    page.js("graphPage.select(arguments[0])", find(page, "a"))
    shown = page.js(
        "const value = window.graphDocument.nodes[graphPage.state.selected].grad; return window.graphDocument.values[value].mean"
    )
    assert f"{shown:.4g}" == printed.strip()
    assert page.js("return document.querySelector('.code .chosen').innerText").split("\n")[-1].startswith("a, b, c = ")
    page.click("#most")
    assert "y_pred = a + b * x" in page.js("return document.querySelector('.code .chosen').innerText")


def dead_network() -> Any:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        model[0].bias -= 10
    with recording() as r:
        output = model(torch.randn(16, 4))
        output.register_hook(lambda grad: grad * 2)
        (output**2).mean().backward()
    return r.page().document


def test_cause_of_a_dead_layer_is_found(show: Show) -> None:
    page = show(dead_network())
    walk(page)
    page.click("#wrong")
    assert page.text("#node-title") == "model.0.weight"
    page.click("#node .cause")
    assert page.text("#node-title") == "relu"
    assert "no element of its input is positive" in page.text("#node")


def broken_network() -> Any:
    x = torch.tensor([[4.0, -1.0], [1.0, 2.0]], requires_grad=True)
    with recording() as r:
        (x.sqrt().exp().sin().sum() + (x - x).sum()).backward()
    return r.page().document


def test_overview_leads_to_where_nan_arises(show: Show) -> None:
    page = show(broken_network())
    assert page.text("#node .origins").startswith("Where they arise: sqrt, ")
    page.click("#node .origins button")
    assert page.text("#node-title") == "sqrt"
    assert "NaN arises here in the forward pass" in page.text("#node .note")
    assert not page.js("return document.querySelectorAll('#node .cause').length")


def test_hook_of_the_program_is_a_step(show: Show) -> None:
    page = show(dead_network())
    hook = page.js("return graphPage.steps.findIndex(step => step.kind === 'hook')")
    assert hook > 0
    page.js("graphPage.go(arguments[0])", hook)
    assert "hook" in page.text("#step")
    assert page.text("#node .now").count("tensor(") == 2  # before and after


def shared() -> Any:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with recording() as r:
        y = x * 3
        (y * y + y.sin()).sum().backward()
    return r.page().document


def test_sum_of_gradients_shows_its_parts(show: Show) -> None:
    page = show(shared())
    (at, *_) = page.js("return graphPage.steps.flatMap((step, index) => step.kind === 'sum' ? [index] : [])")
    page.js("graphPage.go(arguments[0])", at)
    assert "gradients meet at" in page.text("#step")
    assert page.text("#node .now").count("+ from") >= 2
    walk(page)


def loop() -> Any:
    w = torch.eye(3).requires_grad_()
    with recording() as r:
        h = torch.ones(3)
        for _ in range(30):
            h = torch.tanh(w @ h)
        h.sum().backward()
    return r.page().document


def several_results() -> Any:
    x = torch.randn(4, 4, requires_grad=True)
    with recording() as r:
        values, vectors = torch.linalg.eigh(x + x.T)
        (values.sum() + vectors[0].sum()).backward()
    return r.page().document


def without_backward() -> Any:
    return torch.autograd.graph.page(torch.ones(3)).document


@pytest.mark.parametrize("made", [loop, several_results, without_backward])
def test_every_node_and_step_of_a_recording_can_be_shown(show: Show, made: Callable[[], Any]) -> None:
    page = show(made())
    walk(page)
    assert page.step == page.js("return graphPage.steps.length") - 1


def test_repeated_steps_are_folded_and_open(show: Show) -> None:
    page = show(loop())
    assert page.js("return window.graphDocument.groups.some(group => group.times === 30)")
    tanh = find(page, "tanh")
    assert page.js("return graphPage.boxOf(arguments[0]) === undefined", tanh)
    page.js("graphPage.select(arguments[0])", tanh)
    page.js(
        "[...document.querySelectorAll('#node .link')].find(each => each.textContent === 'open in the graph').click()"
    )
    assert page.js("return graphPage.boxOf(arguments[0]) !== undefined", tanh)
