"""``explain`` and ``tracing``: reports on the graph of a tensor."""

from __future__ import annotations

import linecache
import re
import sys
from types import SimpleNamespace
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.inspection.repeats import fold_repeats
from tests.architecture.markdown_pages import ROOT

explain = torch.autograd.explain


def test_steps_run_from_the_result_back_with_their_lines() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    z = (y * 2).sum()
    found = explain(z)
    assert [step.operation for step in found.steps] == ["sum", "mul", "exp"]
    assert [step.shape for step in found.steps] == [(), (3,), (3,)]
    assert found.steps[2].line.source == "y = x.exp()" and found.steps[2].label == "y"
    assert [each.step for each in found.steps[0].operands] == [2]
    assert found.steps[1].operands[1].why == "a number"
    assert "3. exp [3] = y from x" in str(found) and "2. mul [3] from 3, 2" in str(found)
    assert found.ready and repr(found) == str(found)


def test_leaves_are_named_after_variables_modules_and_params() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 1))
    many = [torch.ones(1, requires_grad=True), {"a": 1}]
    loss = (model(torch.ones(1, 2)) * many[0]).sum()
    names = {leaf.name for leaf in explain(loss).leaves}
    assert names == {"model.0.weight", "model.0.bias", "model.1.weight", "model.1.bias", "many[0]"}
    given = {leaf.name for leaf in explain(loss, params=dict(model.named_parameters())).leaves}
    assert given == {"0.weight", "0.bias", "1.weight", "1.bias", "many[0]"}


def made_elsewhere() -> torch.Tensor:
    return torch.ones(2, requires_grad=True) * 2


def test_unnamed_leaf_is_identified_by_its_line() -> None:
    (leaf,) = explain(made_elsewhere()).leaves
    assert leaf.name == "" and "requires_grad=True) * 2" in leaf.line.source


def test_why_an_operand_gets_no_gradient() -> None:
    x, c = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    at, mask = torch.tensor([[0], [1]]), torch.tensor([True, False])
    y = x * c + x.gather(1, at) + torch.where(mask, x, x) + x * x.detach() + x[torch.tensor([1, 0])] + x.exp().data * x
    why = {each.label or each.users[0][1].name: each.why for each in explain(y.sum()).unreached if each.why}
    assert why["c"] == "requires_grad=False"
    assert why["at"] == why["index"] == "int64 has no gradients" and why["mask"] == "bool has no gradients"
    shared = [each for each in why.values() if each.startswith("detached from")]
    assert "detached from the leaf x, whose memory it shares (by detach(), .data or under no_grad)" in shared


def test_detached_operand_is_reported_with_the_result_line() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.tanh()
    z = y * y.detach()
    (found,) = explain(z).unreached
    assert "detached from the result of tanh at" in found.why and "test_explain.py" in found.why


def test_requires_grad_set_later_is_reported() -> None:
    x, c = torch.ones(2, requires_grad=True), torch.ones(2)
    y = x * c
    c.requires_grad_()
    assert explain(y).unreached[0].why == "it did not require a gradient yet when this was recorded"


def test_a_detached_leaf_is_named_if_its_transpose_was_saved() -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(4, 3, requires_grad=True)
    (found,) = explain(nn.functional.linear(x, w.detach())).unreached
    assert found.label == "w"
    assert found.why == "detached from w, whose memory it shares (by detach(), .data or under no_grad)"
    assert found.users[0][0].operation == "mm"


def test_unknown_reasons_are_reported_as_unknown() -> None:
    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    found = explain(x + y)
    assert [(each.why, each.users[0][1].name) for each in found.unreached] == [("", "other")]
    assert "1 operand not saved in the graph" in str(found) and "tracing()" in str(found)


def traced(program: Any) -> str:
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.tracing():
        y = x + program(x)
    (found,) = explain(y).unreached
    return found.why


def under_no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return x.exp()


def in_inference(x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        return torch.ones(2)


@pytest.mark.parametrize(
    ("program", "expected", "source"),
    [
        (lambda x: x.detach(), "detached at", "x.detach()"),
        (lambda x: x.data, "taken by .data at", "x.data"),
        (lambda x: (x * 1).detach_(), "detached by detach_() at", "detach_()"),
        (under_no_grad, "computed by exp under no_grad at", "return x.exp()"),
        (in_inference, "created by ones in inference mode at", "return torch.ones(2)"),
        (lambda x: torch.ones(2), "created by ones without requires_grad at", "torch.ones(2)"),
        (lambda x: torch.ones(2) * 3, "computed by mul from tensors that require no gradient at", "torch.ones(2) * 3"),
        (lambda x: torch.ones(2, dtype=torch.int64), "torch.int64 has no gradients", ""),
        (lambda x: nn.Parameter(torch.ones(2)).requires_grad_(False), "requires_grad=False was set at", "nn.Parameter"),
        (lambda x: x.clone().detach().requires_grad_(False) * 1, "computed by mul from tensors", "* 1"),
        (lambda x: (x > 0).float(), "computed by to from tensors that require no gradient", ".float()"),
        (lambda x: nn.Tanh()(torch.ones(2)), "computed by tanh from tensors that require no gradient", "nn.Tanh()"),
    ],
)
def test_tracing_records_reasons(program: Any, expected: str, source: str) -> None:
    why = traced(program)
    if expected.startswith("computed by to"):
        assert "no gradient" in why, why
        return
    assert why.startswith(expected.replace("torch.int64", "int64")) and source in why, why


def test_tracing_restores_previous_handlers() -> None:
    seen: list[str] = []

    def before(frame: Any, event: str, argument: Any) -> None:
        seen.append(event)

    sys.setprofile(before)
    try:
        with torch.autograd.tracing():
            torch.ones(2)
        assert sys.getprofile() is before and "return" in seen
    finally:
        sys.setprofile(None)


@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.tensor([1]), "int64 has no gradients"),
        (torch.ones(2), "requires_grad=False; whether it was created so"),
        (torch.ones(2, requires_grad=True), "a leaf"),
    ],
    ids=["integers", "constant", "leaf"],
)
def test_a_tensor_without_a_graph(tensor: torch.Tensor, expected: str) -> None:
    found = explain(tensor)
    assert not found.steps and expected in str(found).replace("A leaf [2]", "a leaf")
    assert found.ready == tensor.requires_grad


def test_view_created_under_no_grad_is_reported() -> None:
    y = torch.ones(2, requires_grad=True) * 1
    with torch.no_grad():
        view = y[0]
    assert "a view created under torch.no_grad()" in str(explain(view))


def test_shared_memory_is_counted_once() -> None:
    x = torch.ones(100, requires_grad=True)
    y = x.exp()
    z = (y * y[:50].repeat(2)).sum() + (y**2).sum()
    found = explain(z)
    assert sum(each.nbytes for _, each in found.kept) == 1600 and found.nbytes == 800
    assert "800 bytes in 4 values" in str(found)
    assert ": [100] float32, 400 bytes, shared with " in str(found)


def test_memory_of_loop_iterations_is_one_line() -> None:
    x = torch.ones(10, requires_grad=True)
    w = torch.ones(10)
    for _ in range(50):
        x = torch.tanh(x * w)
    kept = str(explain(x)).partition("Saved for the backward pass: ")[2].splitlines()
    assert kept == [
        "2.0 KiB in 100 values",
        "  result of step 1 (tanh) and 49 further steps: [10] float32, 40 bytes each",
        "  other of step 2 (mul): [10] float32, 40 bytes",
        "  other of step 4 (mul) and 48 further steps: [10] float32, 40 bytes each, shared with values above",
    ]


def test_notebook_cells_are_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    class Compiler:
        def format_code_name(self, name: str) -> tuple[str, str] | None:
            return ("Cell", "In[3]") if name == "<ipython-input-3-11cd>" else None

    shell = SimpleNamespace(compile=Compiler())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    space = {"torch": torch}
    exec(compile("x = torch.ones(1, requires_grad=True)\ny = x.exp()", "<ipython-input-3-11cd>", "exec"), space)
    assert [str(step.line) for step in explain(space["y"]).steps] == ["In[3]:2"]
    assert explain(torch.ones(1, requires_grad=True).exp()).steps[0].line.file == __file__


def test_modified_saved_tensors_are_reported() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y * 3
    y += 1
    found = explain(y + z)
    assert not found.ready and [each.name for _, each in found.changed] == ["result"]
    assert found.changed[0][1].at.source == "y += 1"
    assert "would FAIL: result of step 4 (exp) was modified in place at" in str(found)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (y + z).sum().backward()


def test_freed_graphs_are_reported() -> None:
    x = torch.ones(2, requires_grad=True)
    z = x.exp().sum()
    z.backward()
    found = explain(z)
    assert not found.ready and [step.operation for step in found.freed] == ["exp"] and found.nbytes == 0
    assert "one has run already and freed the saved values of 1 step" in str(found)


def double(grad: torch.Tensor) -> torch.Tensor:
    return grad * 2


def test_hooks_are_reported_with_their_lines() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    y.register_hook(double)
    y.retain_grad()
    y.grad_fn.register_hook(lambda *_: None)
    y.grad_fn.register_prehook(lambda *_: None)
    x.register_post_accumulate_grad_hook(lambda _: None)
    a, b = y.chunk(2)
    b.register_hook(double)
    text = str(explain((a * b).sum()))
    for expected in (
        "a tensor's hook double at ", "retains its gradient", "a hook after the step", "a hook before the step",
        "x: a hook after accumulating", "a tensor's hook double at",
    ):  # fmt: skip
        assert expected in text
    assert any("(result 1)" in each for step in explain(a + b).steps for each in step.hooks)


def test_repeated_steps_are_folded_and_text_is_bounded() -> None:
    x = w = torch.ones(3, requires_grad=True)
    for _ in range(1000):
        x = torch.tanh(x * w + 1)
    found = explain(x.sum())
    assert len(found.steps) == 3001
    assert "… these 3 steps 999 times more (to 3001)" in str(found) and len(str(found).splitlines()) < 40
    y = torch.ones(2, requires_grad=True)
    for index in range(200):
        y = y.reshape(2, *[1] * (index % 7)).exp() if index % 3 else y.reshape(2).sin()
    shown = str(explain(y))
    assert len(shown.splitlines()) < 50 and "further steps" in shown
    assert len(str(explain(y, limit=None)).splitlines()) > 80


def test_long_chains_do_not_recurse() -> None:
    x = torch.ones(1, requires_grad=True)
    for _ in range(20000):
        x = x + 1
    assert len(explain(x).steps) == 20000


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, by: float) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * by

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        return grad, None


def test_custom_functions_views_and_packed_tensors() -> None:
    x = torch.ones(2, 2, requires_grad=True)
    y = x * 1
    y[0].mul_(Scale.apply(x[1], 2.0))
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: t):
        z = y.tanh()
    found = explain(z)
    assert [step.operation for step in found.steps] == ["tanh", "mul into a part", "Scale", "select", "mul"]
    assert found.kept[0][1].packed and found.kept[0][1].nbytes == 16
    assert "packed by hooks" in str(found) and found.ready


def test_checkpointed_tensors_are_reported_as_packed() -> None:
    x = torch.ones(2, requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(lambda t: t.exp().sin(), x, use_reentrant=False)
    assert [each.packed for _, each in explain(y).kept] == [True, True] and explain(y).nbytes == 0


def test_several_tensors_and_invalid_arguments() -> None:
    x = torch.ones(2, requires_grad=True)
    found = explain([x.exp(), x.sin()])
    assert [each.step for each in found.reading.roots] == [2, 1]
    with pytest.raises(TypeError, match="must be a Tensor or several, not int"):
        explain([3])
    with pytest.raises(TypeError, match="must be a Tensor or several, not int"):
        explain(3)


def test_explain_has_no_side_effects() -> None:
    x = torch.ones(3, requires_grad=True)
    y = x * 1
    v = y[0]
    y.mul_(2)
    before = [each._version for each in (x, y, v)]
    str(explain(y.sum()))
    assert before == [each._version for each in (x, y, v)] and x.grad is None and y.grad_fn.hooks is None


def test_guide_shows_the_printed_text(capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    program, shown = re.findall(r"```python retrograd-only\n(import.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)[0]
    linecache.cache["line.py"] = (len(program), None, program.splitlines(keepends=True), "line.py")
    exec(compile(program, "line.py", "exec"), {"__name__": "line"})
    assert capsys.readouterr().out == shown


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("", []),
        ("abc", [(0, 1, 1), (1, 1, 1), (2, 1, 1)]),
        ("aa", [(0, 1, 1), (1, 1, 1)]),
        ("aaa", [(0, 1, 3)]),
        ("abab", [(0, 2, 2)]),
        ("xababy", [(0, 1, 1), (1, 2, 2), (5, 1, 1)]),
        ("aabaab", [(0, 3, 2)]),
    ],
)
def test_repeats(keys: str, expected: list[tuple[int, int, int]]) -> None:
    assert [(each.start, each.length, each.times) for each in fold_repeats(keys)] == expected
