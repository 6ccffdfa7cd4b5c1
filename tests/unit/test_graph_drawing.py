"""``graph.draw``, ``graph.memory`` and ``graph.watch_leaks``: pictures, bytes and warnings."""

from __future__ import annotations

import gc
import tracemalloc
import warnings
import weakref
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.inspection.graph_layout import GAP, layout_boxes

draw, memory, watch_leaks = (getattr(torch.autograd.graph, name) for name in ("draw", "memory", "watch_leaks"))
SVG = "{http://www.w3.org/2000/svg}"


def a_loss() -> torch.Tensor:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    return ((model(torch.ones(5, 4)) - torch.zeros(5, 1)) ** 2).mean()


# --- Pictures -------------------------------------------------------------------------------------------------------


def test_drawing_has_a_box_for_each_operation_leaf_and_result() -> None:
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    loss = torch.tanh(w * x).sum()
    found = draw(loss)
    assert [(box.kind, box.lines[0]) for box in found.boxes] == [
        ("leaf", "w"), ("constant", "x"), ("step", "mul"), ("step", "tanh"), ("step", "sum"), ("result", "loss"),
    ]  # fmt: skip
    assert found.arrows == [(0, 2), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert found.boxes[2].lines[1:] == ["[3]", f"test_graph_drawing.py:{a_loss.__code__.co_firstlineno + 10}"]


def test_the_svg_is_well_formed_and_everything_lies_inside() -> None:
    root = ElementTree.fromstring(draw(a_loss()).svg())
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    assert root.tag == SVG + "svg" and root.attrib["width"] == f"{width:.0f}"
    rects = [{k: float(each.attrib[k]) for k in ("x", "y", "width", "height")} for each in root.iter(SVG + "rect")][1:]
    assert len(rects) == len(draw(a_loss()).boxes)
    for each in rects:
        assert left <= each["x"] and each["x"] + each["width"] <= left + width
        assert top <= each["y"] and each["y"] + each["height"] <= top + height
    for a, b in combinations(rects, 2):
        apart = a["x"] + a["width"] <= b["x"] or b["x"] + b["width"] <= a["x"]
        assert apart or a["y"] + a["height"] <= b["y"] or b["y"] + b["height"] <= a["y"]


def test_names_of_parameters_can_be_given() -> None:
    model = nn.Linear(2, 1)
    lines = [box.lines[0] for box in draw(model(torch.ones(1, 2)), params=dict(model.named_parameters())).boxes]
    assert "weight" in lines and "bias" in lines


def test_repeated_parts_are_drawn_once() -> None:
    x = w = torch.ones(3, requires_grad=True)
    for _ in range(50):
        x = torch.tanh(x * w)
    found = draw(x)
    assert len(found.boxes) == 4 and [box.lines[0] for box in found.boxes[1:3]] == ["mul  × 50", "tanh  × 50"]
    assert len(draw(x, fold=False).boxes) == 102
    assert len(draw(x, fold=False, limit=10).boxes) == 13
    assert any(box.lines == ["… 90 further steps"] for box in draw(x, fold=False, limit=10).boxes)
    assert [box.lines[0] for box in draw(x, limit=2).boxes] == [box.lines[0] for box in found.boxes]
    assert [box.lines[0] for box in draw(x, limit=1).boxes] == ["… 99 further steps", "tanh", "x"]


def test_saved_tensors_are_shown_on_request() -> None:
    y = torch.ones(3, requires_grad=True).exp()
    assert "saves result [3], 12 bytes" in draw(y, saved=True).boxes[1].lines
    assert not any("saves" in text for box in draw(y).boxes for text in box.lines)


def test_pictures_are_written_to_files(tmp_path: Path) -> None:
    y = torch.ones(3, requires_grad=True).exp()
    found = draw(y, tmp_path / "graph.svg")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == found.svg() == found._repr_svg_()
    draw(y, str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text(encoding="utf-8").startswith("digraph {")
    with pytest.raises(ValueError, match=r"must end in \.svg, \.dot or \.gv, not in '\.png'"):
        draw(y, tmp_path / "graph.png")
    assert repr(found) == "<a drawing of 3 boxes and 2 arrows>"


def test_text_is_escaped() -> None:
    y = torch.ones(3, requires_grad=True).exp()
    params = {'<a> & "b"': y}
    found = draw(y, params=params)
    ElementTree.fromstring(found.svg())
    assert '\\"b\\"' in found.dot()
    w = torch.ones(3, requires_grad=True)
    ended = draw(w * 2, params={"a\\": w}).dot()  # as a line continued on the next one
    assert r'[label="a\\\n[3] float32"' in ended


def test_empty_graph_and_single_leaf() -> None:
    leaf, constant = torch.ones(2, requires_grad=True), torch.ones(2)
    for each, expected in (
        (leaf, [("leaf", ["leaf", "[2] float32"])]),
        (constant, [("constant", ["constant", "[2] float32"])]),
        ([torch.ones(2)][0], [("constant", ["each", "[2] float32"])]),
    ):
        assert [(box.kind, box.lines) for box in draw(each).boxes] == expected
        assert len(list(ElementTree.fromstring(draw(each).svg()).iter(SVG + "title"))) == 1
    assert [box.kind for box in draw([leaf, leaf * 2, leaf]).boxes] == ["leaf", "step", "result"]


def test_boxes_do_not_overlap_and_arrows_point_down() -> None:
    arrows = [(a, b) for a in range(12) for b in range(a + 1, 12) if (a * 7 + b * 3) % 5 == 0]
    spots, paths, (width, height) = layout_boxes([(20.0 + 3 * k, 20.0) for k in range(12)], arrows)
    for a, b in combinations(spots, 2):
        if a.layer == b.layer:
            assert abs(a.x - b.x) >= (a.width + b.width) / 2 + GAP - 1e-6
    assert all(spots[a].layer < spots[b].layer for a, b in arrows)
    for path in paths:
        assert [y for _, y in path] == sorted(y for _, y in path)
    assert all(each.width / 2 - 1e-6 <= each.x <= width - each.width / 2 + 1e-6 and each.y <= height for each in spots)


# --- Memory ---------------------------------------------------------------------------------------------------------


def test_memory_by_operation_and_line() -> None:
    w, x = torch.ones(10, 10, requires_grad=True), torch.ones(5, 10)
    y = torch.tanh(x @ w)
    z = (y * y).sum() + y[:1].exp().sum()
    found = memory(z)
    assert {row.operation: (row.nbytes, row.shared) for row in found.rows} == {
        "mm": (200, 0), "tanh": (200, 0), "mul": (0, 400), "exp": (40, 0),
    }  # fmt: skip
    assert found.nbytes == 440 and found.leaf_nbytes == 400 and found.leaves == 1
    text = str(found).splitlines()
    assert text[0] == "The graph keeps 440 bytes alive, and 400 bytes of 1 leaf"
    assert any("mul [5, 10], shares 400 bytes" in each and "z = (y * y).sum()" in each for each in text)


def test_memory_of_a_loop_is_one_row_per_line() -> None:
    x = torch.ones(100, requires_grad=True)
    for _ in range(30):
        x = torch.sin(x)
    found = memory(x)
    assert [(row.operation, row.steps, row.nbytes, row.shared) for row in found.rows] == [("sin", 30, 29 * 400, 400)]
    assert "sin × 30 [100], shares 400 bytes" in str(found)


def test_memory_counts_packed_and_freed_tensors() -> None:
    x = torch.ones(100, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.half(), lambda t: t.float()):
        y = x.exp()
    assert memory(y).nbytes == 200 and memory(y).packed == 1 and "1 value packed by hooks" in str(memory(y))
    z = x.exp().sum()
    z.backward()
    assert memory(z).nbytes == 0
    assert str(memory(torch.ones(2))) == "No graph: nothing is kept alive"


def test_memory_is_what_the_graph_keeps() -> None:
    """The reported bytes are freed when the graph is deleted."""
    x = torch.ones(1000, requires_grad=True)
    tracemalloc.start()
    y = (x.exp() * x.sin()).cos().sum()
    told = memory(y).nbytes
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    del y
    gc.collect()
    freed = before - tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert told == 12000 and abs(freed - told) < 4000


# --- Leaks ----------------------------------------------------------------------------------------------------------


def train(steps: int, keep: Any, watch: Any = None) -> None:
    w = torch.ones(10, requires_grad=True)
    for _ in range(steps):
        loss = (w.exp() * 2).sum()
        keep(loss)
        if watch is not None:
            watch.step()


def test_leak_through_a_list_of_losses_is_reported() -> None:
    losses: list[Any] = []
    with watch_leaks() as watch, pytest.warns(UserWarning, match="graphs that end in sum recorded at") as told:
        train(8, losses.append, watch)
    assert len(told) == 1 and "loss = (w.exp() * 2).sum()" in str(told[0].message)
    assert "more in each of the last 4 steps; 160 bytes of saved values are kept" in str(told[0].message)
    assert [(leak.operation, leak.graphs) for leak in watch.found] == [("sum", 4)]


def test_leak_without_steps_is_reported_at_the_end() -> None:
    losses: list[Any] = []
    with (
        pytest.warns(UserWarning, match="6 graphs that end in sum .* still there at the end of the block"),
        watch_leaks(),
    ):
        train(6, losses.append)


def test_leak_through_recurrent_state_is_reported() -> None:
    gc.collect()  # graphs of other tests do not count
    w, state = torch.ones(3, requires_grad=True), torch.zeros(3)
    with watch_leaks(patience=3) as watch, pytest.warns(UserWarning, match="Remedy: detach") as told:
        for _ in range(6):
            state = torch.tanh(state * w)
            watch.step()
    assert any("A graph that ends in tanh recorded at" in str(each.message) for each in told)


@pytest.mark.parametrize("keep", [lambda loss: loss.item(), lambda loss: loss.detach(), lambda loss: loss.backward()])
def test_no_warning_without_leak(keep: Any) -> None:
    kept: list[Any] = []
    with warnings.catch_warnings(), watch_leaks() as watch:
        warnings.simplefilter("error")
        train(10, lambda loss: kept.append(keep(loss)), watch)
    assert watch.found == []


def test_exceptions_propagate_without_warning() -> None:
    losses: list[Any] = []
    with warnings.catch_warnings(), pytest.raises(ValueError, match="stop"), watch_leaks():
        warnings.simplefilter("error")
        train(9, losses.append)
        raise ValueError("stop")


class Referent:
    """Target of a weak reference."""


def test_dead_weakref_proxies_are_not_mistaken_for_nodes() -> None:
    referent = Referent()
    proxy = weakref.proxy(referent)
    del referent
    with warnings.catch_warnings(), watch_leaks() as watch:
        warnings.simplefilter("error")
        watch.step()
    assert watch.found == []
    with pytest.raises(ReferenceError):
        str(proxy)
