"""The document of a page: values, formulas with numbers, reasons, sources, groups and sizes."""

from __future__ import annotations

import base64
import inspect
import json
import linecache
import math
import time
from itertools import pairwise
from types import CodeType
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd import nn
from retrograd.dispatch.op import ARRAYS, OPS
from retrograd.inspection.page import formulas
from retrograd.inspection.page.layout import LARGEST, SHOWN
from retrograd.inspection.page.summary import BINS, COLUMNS, HISTOGRAM, LENGTH, ROWS, Value, take

page, recording = torch.autograd.graph.page, torch.autograd.graph.recording
Document = dict[str, Any]


def recorded(loss: Any) -> Document:
    """Return the document of a recording of ``loss()`` and its backward pass."""
    with recording() as r:
        y = loss()
        y.backward(torch.ones_like(y))
    assert not r.failure
    document = r.page().document
    assert not [each for each in document["notes"] if "could not be recorded" in each]
    return dict(document)


def node_of(document: Document, name: str) -> Document:
    (found,) = [each for each in document["nodes"] if each["name"] == name]
    return dict(found)


def outgoing_of(document: Document, name: str, index: int = 0) -> Document:
    (event,) = [
        each
        for each in document["events"]
        if each["kind"] == "node" and document["nodes"][each["node"]]["name"] == name
    ]
    return dict(event["outgoing"][index])


# --- Values ----------------------------------------------------------------------------------------------------------


def cells_of(array: Any) -> tuple[Any, Document]:
    value = take(array)
    assert value is not None
    cells = value.summary["cells"]
    codes = numpy.frombuffer(base64.b64decode(cells["data"]), numpy.uint8)
    return codes.reshape(cells["rows"], cells["columns"]), cells


def test_cells_are_symmetric_around_zero() -> None:
    codes, cells = cells_of(numpy.array([[-2.0, 0.0], [1.0, 2.0]]))
    assert codes.tolist() == [[0, 127], [190, 254]] and cells["scale"] == 2 and "sampled" not in cells


def test_nan_and_infinity_are_marked() -> None:
    codes, cells = cells_of(numpy.array([numpy.nan, numpy.inf, -numpy.inf, 3.0, -3.0]))
    assert codes.tolist() == [[255, 127, 127, 254, 0]] and cells["inf"] == [[1, 1], [2, -1]]
    value = take(numpy.array([numpy.nan, numpy.inf, 0.0, 3.0]))
    assert value is not None
    found = value.summary
    assert (found["nan"], found["inf"], found["zeros"], found["min"], found["max"], found["mean"]) == (
        1,
        1,
        1,
        0,
        3,
        1.5,
    )


def test_large_arrays_are_averaged_in_blocks() -> None:
    array = numpy.arange(64 * 96, dtype=numpy.float64).reshape(64, 96) - 3000
    codes, cells = cells_of(array)
    assert codes.shape == (ROWS, COLUMNS) and cells["sampled"]
    means = array.reshape(32, 2, 32, 3).mean((1, 3))
    assert cells["scale"] == pytest.approx(float(numpy.abs(means).max()), rel=1e-5)
    assert numpy.abs((codes.astype(float) - 127) / 127 * cells["scale"] - means).max() <= cells["scale"] / 253
    codes, _ = cells_of(numpy.ones(5000))
    assert codes.shape == (1, LENGTH) and (codes == 254).all()
    codes, _ = cells_of(numpy.where(numpy.arange(5000) == 4999, numpy.nan, 1.0))
    assert codes[0, -1] == 255 and (codes[0, :-1] == 254).all()


def test_histograms_begin_at_ten_thousand_elements() -> None:
    array = numpy.linspace(-1, 1, HISTOGRAM)
    value, smaller = take(array), take(array[1:])
    assert value is not None and smaller is not None
    histogram = value.summary["histogram"]
    assert sum(histogram["counts"]) == HISTOGRAM and len(histogram["counts"]) == BINS
    assert (histogram["low"], histogram["high"]) == (-1, 1) and "histogram" not in smaller.summary


@pytest.mark.parametrize("shape", [(), (1,), (0,), (7,), (3, 4), (2, 3, 4), (300, 300), (2, 3, 50, 50), (5000,)])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "float64", "complex64", "int64", "bool", "uint8"])
def test_summaries_are_bounded_and_finite_in_json(shape: tuple[int, ...], dtype: str) -> None:
    array = torch.ones(shape, dtype=getattr(torch, dtype))._array
    value = take(array)
    assert value is not None
    summary = value.summary
    assert len(json.dumps(summary, allow_nan=False)) < 3500
    assert summary["shape"] == list(shape) and summary["dtype"] == dtype
    assert summary["text"].count("\n") <= 6 and "tensor(" in summary["text"]
    assert ("mean" in summary) == bool(array.size)


def test_texts_say_what_they_show() -> None:
    def text(*shape: int) -> str:
        value = take(numpy.arange(math.prod(shape)).reshape(shape))
        assert value is not None
        return str(value.summary["text"])

    assert text(2, 2) == "tensor([[0, 1],\n        [2, 3]])"
    assert text(20) == "tensor([ 0,  1, ..., 18, 19])"
    assert text(5, 1, 2).startswith("tensor([[[0, 1]]")
    assert text(3, 2, 2, 2) == "[0, 0]: tensor([[0, 1],\n        [2, 3]])"
    assert text(10, 10).count("\n") == 4 and text(1000, 1, 1) == "[0]: tensor([[0]])"


def test_large_copies_are_freed_once_they_are_summarised() -> None:
    before = Value.held
    values = [take(numpy.ones(50_000)) for _ in range(3)]
    assert Value.held == before + 3 * 400_000
    assert all(each is not None and each.summary["max"] == 1 for each in values)
    assert Value.held == before
    copied = take(numpy.ones(500))
    assert Value.held == before + 4000 and copied is not None
    del copied
    assert Value.held == before


def test_values_are_copied_when_they_are_taken() -> None:
    for size in (3, 5000, 500_000):
        array = numpy.ones(size)
        value = take(array)
        array[:] = 7
        assert value is not None and value.summary["max"] == 1


def test_extreme_values_overflow_nothing() -> None:
    for array in (numpy.full(3, 3e38, numpy.float32), numpy.full(3, 1e308), numpy.full(3, 5e-324)):
        value = take(array)
        assert value is not None
        assert value.summary["cells"]["data"] == base64.b64encode(b"\xfe" * 3).decode()
        json.dumps(value.summary, allow_nan=False)


# --- Formulas --------------------------------------------------------------------------------------------------------


def test_every_rule_has_a_formula() -> None:
    missing = [
        (op.name, index) for op in OPS.values() for index, rule in enumerate(op.rules)
        if rule is not None and of_package(op) and not formulas.formula(op, index, {})
    ]  # fmt: skip
    assert not missing


def of_package(op: Any) -> bool:
    """Whether ``op`` is an operation of the package, and not of an example in one of its docstrings."""
    code = getattr(inspect.unwrap(op.kernel), "__code__", None)
    return op.kernel.__module__.startswith("retrograd.") and "<doctest" not in getattr(code, "co_filename", "")


def test_functions_of_rules_are_what_their_docstrings_say() -> None:
    """A formula shows the expression in the docstring of a function in place of its call, so it must be correct."""
    random = numpy.random.default_rng(0)
    names = {"sigmoid": lambda x: 1 / (1 + numpy.exp(-x)), "exp": numpy.exp, "where": numpy.where,
             "sum": lambda x, axis: x.sum(axis, keepdims=True)}  # fmt: skip
    checked = []
    for name, function in ARRAYS.__dict__.items():
        kernel = OPS[name].kernel if name in OPS else function
        found = formulas._DOCUMENTED.match(getattr(kernel, "__doc__", None) or "")
        if found is None or not name.endswith(formulas._GRADIENTS) or not hasattr(kernel, "__code__"):
            continue
        code: CodeType = kernel.__code__
        parameters = code.co_varnames[name in OPS : code.co_argcount]
        if not all(each in found[1] for each in parameters):
            continue
        given = {each: random.standard_normal((3, 4)) for each in parameters}
        numbers = {"dim": 1, "exponent": 3, "threshold": 0.1, "negative_slope": 0.2, "min_val": -0.5, "max_val": 0.5}
        given.update({each: value for each, value in numbers.items() if each in given})  # type: ignore[misc]
        if name.endswith("backward_data"):
            softmax = numpy.exp(given["output"]) / numpy.exp(given["output"]).sum(1, keepdims=True)
            given["output"] = numpy.log(softmax) if name.startswith("log") else softmax
        source = found[1].replace("min_val < self < max_val", "(min_val < self) & (self < max_val)")
        expected = eval(source, {**names, **given})
        assert numpy.allclose(function(*given.values()), expected), name
        checked.append(name)
    assert {"tanh_backward", "sigmoid_backward", "threshold_backward", "pow_slope", "softmax_backward_data"} <= set(
        checked
    )


@pytest.mark.parametrize(
    ("function", "formula", "numbers"),
    [
        (lambda x: x.tanh(), "grad * (1 - result * result)", "1 * (1 - 0.4621 * 0.4621) = 0.7864"),
        (lambda x: x**3, "grad * (exponent * input ** (exponent - 1))", "1 * (3 * 0.5 ** (3 - 1)) = 0.75"),
        (lambda x: x * -2, "grad * other", "1 * (-2) = -2"),
        (lambda x: x.log1p(), "grad / (input + 1)", "1 / (0.5 + 1) = 0.6667"),
        (lambda x: x - 2, "grad", "1"),
        (lambda x: 2 - x, "-grad", "-1"),
        (lambda x: x.relu(), "grad * (result > 0)", "1 * (0.5 > 0) = 1"),
        (lambda x: x.sqrt(), "grad / (2 * result)", "1 / (2 * 0.7071) = 0.7071"),
        (lambda x: torch.sub(x, x.detach(), alpha=3), "grad", "1"),
        (lambda x: torch.sub(x.detach(), x, alpha=3), "grad * -alpha", "1 * -3 = -3"),
    ],
)
def test_formulas_with_numbers(function: Any, formula: str, numbers: str) -> None:
    x = torch.tensor(0.5, requires_grad=True)
    document = recorded(lambda: function(x))
    name = next(each["name"] for each in document["nodes"] if each["kind"] == "operation")
    found = outgoing_of(document, name)
    assert (found["formula"], found["numbers"]) == (formula, numbers)


@pytest.mark.parametrize(
    ("function", "formulas"),
    [
        (lambda x: torch.addmm(x, x, x), ["grad", "mm(grad, mat2.mT)", "mm(mat1.mT, grad)"]),
        (lambda x: torch.addmm(x, x, x, alpha=2), ["grad", "mm(grad, mat2.mT) * alpha", "mm(mat1.mT, grad) * alpha"]),
        (lambda x: torch.where(x > 0, x, x.detach()), ["where(condition, grad, 0)"]),
        (lambda x: x.sum(0), ["expand(unsqueeze(grad, dim), input_shape)"]),
        (lambda x: x.sum(0, keepdim=True), ["expand(grad, input_shape)"]),
        (lambda x: x.mean(), ["expand(grad / math.prod(input_shape), input_shape)"]),
        (lambda x: x.masked_fill(x > 0, 1.0), ["masked_fill(grad, mask, 0)"]),
    ],
)
def test_formulas_use_names_of_public_functions(function: Any, formulas: list[str]) -> None:
    x = torch.tensor([[0.5, 2.0], [1.0, 4.0]], requires_grad=True)
    y = function(x)
    document = page(y).document
    (event,) = [each for each in document["events"] if each["kind"] == "node"]
    assert [each["formula"] for each in event["outgoing"]] == formulas


def test_numbers_of_arrays_are_those_of_one_element() -> None:
    x = torch.tensor([[0.5, 2.0], [1.0, 4.0]], requires_grad=True)
    w = torch.tensor([2.0, 3.0])
    found = outgoing_of(recorded(lambda: (x * w).sum()), "mul")
    assert (found["numbers"], found["element"]) == ("1 * 2 = 2", "[0, 0]")
    assert "numbers" not in outgoing_of(recorded(lambda: (x @ x).sum()), "mm")
    w = torch.tensor([[0.375101, 0.0], [0.0, 0.0]], requires_grad=True)
    found = outgoing_of(recorded(lambda: torch.fmin(w, torch.tensor(0.375102)).sum()), "fmin")
    assert "0.375101" in found["numbers"] and "0.375102" in found["numbers"]


def test_the_source_block_of_an_operation_is_shown() -> None:
    document = recorded(lambda: torch.tensor(0.5, requires_grad=True).log1p())
    rule = document["rules"][node_of(document, "log1p")["rule"]]
    assert rule["file"] == "operations/elementwise/elementary.py" and "g / (self + 1)" in rule["source"]
    lines = inspect.getsource(inspect.getmodule(OPS["log1p"].kernel) or pytest).split("\n")
    assert rule["source"].startswith(lines[rule["line"] - 1]) and lines[rule["line"] - 1].startswith("@")


# --- Reasons ---------------------------------------------------------------------------------------------------------


def explained(document: Document, name: str) -> str:
    return " ".join(node_of(document, name).get("explain", ()))


def cause_of(document: Document, name: str) -> str:
    return str(document["nodes"][node_of(document, name)["cause"]]["name"])


def test_zero_because_of_relu() -> None:
    x = torch.tensor([-1.0, -2.0], requires_grad=True)
    document = recorded(lambda: x.exp().neg().relu().sum())
    assert cause_of(document, "x") == "relu"
    assert "no element of its input is positive" in explained(document, "x")
    assert "becomes 0 here: no element of its input is positive; at [0], 1 * (0 > 0) = 0" in explained(document, "relu")
    assert "cause" not in node_of(document, "relu")


def test_zero_in_part() -> None:
    x = torch.tensor([-1.0, 2.0, -3.0], requires_grad=True)
    document = recorded(lambda: x.relu().sum())
    assert "2 of 3 elements of the gradient for `input` become 0 here; at [0]" in explained(document, "relu")
    assert not explained(document, "x")


def test_zero_because_of_saturation() -> None:
    x = torch.tensor([50.0, -50.0], requires_grad=True)
    document = recorded(lambda: x.tanh().sum())
    assert "it is saturated, every result is rounded to -1 or 1" in explained(document, "tanh")
    document = recorded(lambda: (x.abs() * 10).sigmoid().sum())
    assert "rounded to 0 or 1" in explained(document, "sigmoid") and cause_of(document, "x") == "sigmoid"


def test_zero_because_of_a_factor() -> None:
    x, mask = torch.tensor([1.0, 2.0], requires_grad=True), torch.zeros(2)
    document = recorded(lambda: (x.exp() * mask).sum())
    assert "it is multiplied by `other`, whose elements are all 0" in explained(document, "mul")
    assert cause_of(document, "x") == cause_of(document, "exp") == "mul"
    document = recorded(lambda: (torch.zeros(2, 2) @ x).sum())
    assert "whose elements are all 0" in explained(document, "mv")


def test_zero_because_gradients_cancel() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    document = recorded(lambda: (x - x).sum())
    assert "the 2 gradients that meet here cancel each other" in explained(document, "x")
    assert cause_of(document, "x") == "x"
    scale = torch.tensor(3.0, requires_grad=True)
    document = recorded(lambda: (scale * torch.tensor([1.0, -1.0])).sum())
    assert "its elements cancel in the sum over the broadcast dimensions" in explained(document, "mul")


def test_nothing_is_said_about_ordinary_gradients() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    document = recorded(lambda: (x.exp() * x.sin()).sum())
    assert not [each for each in document["nodes"] if each.get("explain") or "cause" in each]


def test_nan_of_the_backward_pass() -> None:
    x, w = torch.tensor([4.0, 0.0], requires_grad=True), torch.tensor([1.0, 0.0])
    document = recorded(lambda: (x.sqrt() * w).sum() + x.sum())
    assert cause_of(document, "x") == "sqrt"
    assert "NaN arises here: the gradient that arrives is finite" in explained(document, "sqrt")
    assert "at [1], 0 / (2 * 0) = nan" in explained(document, "sqrt")
    assert "NaN or infinity arises in sqrt" in explained(document, "x")


def test_infinity_of_the_backward_pass() -> None:
    x = torch.tensor([4.0, 0.0], requires_grad=True)
    document = recorded(lambda: x.log().clamp(min=-5).sum() + x.sqrt().sum())
    assert "Infinity arises here" in explained(document, "sqrt") and cause_of(document, "x") == "sqrt"


def test_nan_of_the_forward_pass() -> None:
    x = torch.tensor([-1.0, 1.0], requires_grad=True)
    document = recorded(lambda: (x.log() * x).sum())
    assert "NaN arises here in the forward pass" in explained(document, "log")
    assert "The result is not finite: that arose in log" in explained(document, "mul")
    assert "was not finite in the forward pass already: that arose in log" in explained(document, "mul")
    assert "its operands were not finite in the forward pass already; that arose in log" in explained(document, "x")
    assert cause_of(document, "x") == "log"


def test_nan_of_a_sum() -> None:
    x = torch.tensor([1e30], requires_grad=True)
    big = torch.tensor([3e38])
    document = recorded(lambda: (x * big + x * big).sum())
    assert "the sum of the gradients that meet here overflows" in explained(document, "x")


# --- Sources and names -----------------------------------------------------------------------------------------------

HOSTILE = "</script><!--\u2028'\"&lt;<img src=x onerror=alert(1)>"


def test_hostile_names_and_sources_stay_text() -> None:
    lines = [f"y = (w * 2).sum()  # {HOSTILE.replace(chr(0x2028), '')}\n"]
    linecache.cache["<hostile>"] = (len(lines[0]), None, lines, "<hostile>")
    space: dict[str, Any] = {"w": torch.ones(2, requires_grad=True)}
    exec(compile(lines[0], "<hostile>", "exec"), space)
    document = page(space["y"], params={HOSTILE: space["w"]}).document
    assert document["nodes"][0]["name"] == HOSTILE
    assert json.loads(json.dumps(document)) == document
    assert document["sources"][-1] == {"name": "<hostile>", "parts": [{"first": 1, "lines": [lines[0].rstrip("\n")]}]}


def test_a_file_that_is_gone_has_no_lines() -> None:
    space: dict[str, Any] = {"w": torch.ones(2, requires_grad=True)}
    exec(compile("\n\ny = (w * 2).sum()", "<gone>", "exec"), space)
    document = page(space["y"]).document
    assert document["sources"][-1] == {"name": "<gone>", "parts": []} and node_of(document, "mul")["line"] == [1, 3]


# --- Groups ----------------------------------------------------------------------------------------------------------


def tree_of(document: Document, number: int = 0) -> list[Any]:
    """Return the names of the operations in a group, and of its groups with their contents."""
    found: list[Any] = []
    for kind, index in document["groups"][number]["members"]:
        if kind == "g":
            found.append((document["groups"][index]["name"], tree_of(document, index)))
        elif document["nodes"][index]["kind"] == "operation":
            found.append(document["nodes"][index]["name"])
    return found


def assert_groups(document: Document) -> None:
    """Assert that each entry is in one group, and that arrows lead down through the layers, without overlap."""
    seen = []
    for number, group in enumerate(document["groups"]):
        members = group["members"]
        seen += [tuple(each) for each in members]
        assert sorted(each for layer in group["layers"] for each in layer) == list(range(len(group["x"])))
        assert number == 0 or len(members) > 1
        layer_of = {each: depth for depth, layer in enumerate(group["layers"]) for each in layer}
        for layer in group["layers"]:
            boxes = [each for each in layer if each < len(members)]
            for a, b in pairwise(boxes):
                assert group["x"][b] - group["x"][a] >= 168
        for a, b, *points in group["edges"]:
            depths = [layer_of[each] for each in (a, *points, b)]
            assert depths == list(range(depths[0], depths[-1] + 1)) and len(depths) > 1
            assert a < len(members) > b and all(each >= len(members) for each in points)
    assert sorted(seen) == sorted(
        [("n", index) for index in range(len(document["nodes"]))]
        + [("g", index) for index in range(1, len(document["groups"]))]
    )


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.second(self.first(x).tanh())


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.Sequential(Block(), Block())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.blocks(x).sum()


def test_modules_are_groups() -> None:
    net, x = Net(), torch.ones(2, 3)
    document = recorded(lambda: net(x))
    block = [("first", ["t", "addmm"]), "tanh", ("second", ["t", "addmm"]), "add"]
    assert tree_of(document) == [("net", [("blocks", [("0", block), ("1", block)]), "sum"])]
    modules = [each["module"] for each in document["nodes"] if each["name"] == "addmm"]
    assert modules == ["net.blocks.0.first", "net.blocks.0.second", "net.blocks.1.first", "net.blocks.1.second"]
    assert node_of(document, "sum")["function"].endswith("Net.forward")
    assert_groups(document)
    after = page(net(x)).document
    assert [each["module"] for each in after["nodes"] if each["name"] == "addmm"] == modules
    assert_groups(after)


def loop(steps: int) -> torch.Tensor:
    w, x = torch.ones(3, requires_grad=True), torch.ones(3)
    for _ in range(steps):
        x = torch.tanh(x * w) + 0.1 * w
    return x.sum()


def test_repeated_steps_are_groups() -> None:
    document = page(loop(5)).document
    step = ["mul", "tanh", "mul", "add"]
    assert tree_of(document) == [("mul, tanh, add", [(f"{index} of 5", step) for index in range(1, 6)]), "sum"]
    assert [(each["kind"], each.get("times")) for each in document["groups"][1:3]] == [("loop", 5), ("iteration", None)]
    assert_groups(document)


def test_no_group_is_large_and_few_boxes_are_shown_at_first() -> None:
    for document in (page(loop(500)).document, page(irregular(500)).document):
        assert_groups(document)
        for group in document["groups"]:
            operations = [
                index
                for kind, index in group["members"]
                if kind == "g" or document["nodes"][index]["kind"] == "operation"
            ]
            assert len(operations) <= LARGEST
        shown, queue = 0, [0]
        while queue:
            for kind, index in document["groups"][queue.pop()]["members"]:
                shown += 1
                if kind == "g" and document["groups"][index].get("open"):
                    queue.append(index)
        assert shown <= SHOWN + 20


def irregular(steps: int) -> torch.Tensor:
    """Return the result of operations without repeats."""
    random = numpy.random.default_rng(0)
    x = torch.ones(3, requires_grad=True)
    for each in random.integers(3, size=steps):
        if each == 0:
            x = x.sin()
        elif each == 1:
            x = x.cos()
        else:
            x = x * 0.5
    return x.sum()


# --- Sizes and times -------------------------------------------------------------------------------------------------


def test_the_page_of_a_polynomial_is_small() -> None:
    x = torch.linspace(-math.pi, math.pi, 2000)
    y = torch.sin(x)
    a, b, c, d = (torch.full((), each, requires_grad=True) for each in (0.1, -0.2, 0.3, 0.05))
    document = recorded(lambda: (a + b * x + c * x**2 + d * x**3 - y).pow(2).sum())
    assert len(document["nodes"]) == 18
    assert len(json.dumps(document, separators=(",", ":"))) < 25_000


def test_the_page_of_a_network_is_bounded() -> None:
    net = nn.Sequential(*[each for _ in range(6) for each in (nn.Linear(128, 128), nn.GELU())])
    document = recorded(lambda: net(torch.randn(100, 128)).square().mean())
    assert len(json.dumps(document, separators=(",", ":"))) < 600_000


def test_ten_thousand_nodes() -> None:
    y = loop(2500)
    begin = time.process_time()
    document = page(y).document
    assert time.process_time() - begin < 15  # 3 s on an idle machine
    assert len(document["nodes"]) == 10_004 and len(document["events"]) >= 10_000
    assert_groups(document)
    assert sum(map(len, map(json.dumps, document["values"]))) < 500_000
