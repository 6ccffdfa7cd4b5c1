"""Documents of the graph page for the tests in a browser, made from arrays without recording a program."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from retrograd.inspection.graph_layout import layout_boxes

Document = dict[str, Any]


def value(given: Any) -> Document:
    """Return the summary of an array."""
    array = np.asarray(given, np.float64)
    finite = array[np.isfinite(array)]
    summary: Document = {
        "shape": list(array.shape),
        "dtype": "float32",
        "text": f"tensor({np.array2string(array, precision=4, separator=', ', threshold=12)})",
        "nan": int(np.isnan(array).sum()),
        "inf": int(np.isinf(array).sum()),
        "zeros": int((array == 0).sum()),
    }
    if finite.size:
        summary |= {"min": float(finite.min()), "max": float(finite.max()), "mean": float(finite.mean())}
    if array.ndim:
        cells = np.atleast_2d(array)
        scale = float(np.abs(finite).max(initial=0)) or 1.0
        levels = np.clip(np.round(127 + 127 * np.nan_to_num(cells, posinf=scale, neginf=-scale) / scale), 0, 254)
        levels[np.isnan(cells)] = 255
        infinite = [[int(at), int(np.sign(cells.flat[at]))] for at in np.flatnonzero(np.isinf(cells))]
        summary["cells"] = {
            "rows": cells.shape[0],
            "columns": cells.shape[1],
            "data": base64.b64encode(levels.astype(np.uint8).tobytes()).decode(),
            "scale": scale,
            "inf": infinite,
        }
    if array.size >= 10_000:
        counts, edges = np.histogram(finite, 32)
        summary["histogram"] = {"low": edges[0], "high": edges[-1], "counts": counts.tolist()}
    return summary


class Builder:
    """A document that grows by nodes and events."""

    def __init__(self, title: str, source: str, name: str = "program.py") -> None:
        self.lines = source.splitlines()
        self.document: Document = {
            "title": title,
            "summary": "A document of the tests.",
            "sources": [{"name": name, "parts": [{"first": 1, "lines": self.lines}]}],
            "values": [],
            "nodes": [],
            "groups": [{"name": "", "members": []}],
            "rules": [],
            "events": [],
        }

    def keep(self, given: Any) -> int:
        self.document["values"].append(value(given))
        return len(self.document["values"]) - 1

    def node(
        self, kind: str, name: str, inputs: Any = (), line: int | None = None, group: int = 0, **fields: Any
    ) -> int:
        nodes = self.document["nodes"]
        for key in ("value", "grad"):
            if key in fields:
                fields.setdefault("shape", list(np.shape(fields[key])))
                fields[key] = self.keep(fields[key])
        node = {"kind": kind, "name": name, "dtype": "float32", **fields}
        if line is not None:
            node["line"] = [0, line]
        if inputs:
            node["inputs"] = [{"from": each, "name": "input" if not at else "other"} for at, each in enumerate(inputs)]
        nodes.append(node)
        self.document["groups"][group]["members"].append(["n", len(nodes) - 1])
        return len(nodes) - 1

    def group(self, name: str, parent: int = 0, **fields: Any) -> int:
        groups = self.document["groups"]
        groups.append({"name": name, "members": [], **fields})
        groups[parent]["members"].append(["g", len(groups) - 1])
        return len(groups) - 1

    def event(self, kind: str, node: int, **fields: Any) -> None:
        for key in ("incoming", "before", "after"):
            if key in fields:
                fields[key] = self.keep(fields[key])
        for each in fields.get("outgoing", []) + fields.get("parts", []):
            if "value" in each:
                each["value"] = self.keep(each["value"])
        self.document["events"].append({"kind": kind, "node": node, **fields})

    def finish(self) -> Document:
        """Lay out each group and return the document."""
        groups, nodes = self.document["groups"], self.document["nodes"]
        inside: dict[int, list[int]] = {}  # the member that contains each node, by group
        for index in reversed(range(len(groups))):
            for slot, (kind, each) in enumerate(groups[index]["members"]):
                for node in [each] if kind == "n" else inside_of(groups, each):
                    inside.setdefault(index, [0] * len(nodes))[node] = slot + 1
        for index, group in enumerate(groups):
            owner = inside.get(index, [0] * len(nodes))
            arrows = {
                (owner[each["from"]] - 1, owner[at] - 1)
                for at, node in enumerate(nodes)
                for each in node.get("inputs", [])
                if owner[at] and owner[each["from"]] and owner[at] != owner[each["from"]]
            }
            lay_out(group, sorted(arrows))
        return self.document


def inside_of(groups: list[Document], index: int) -> list[int]:
    return [
        node for kind, each in groups[index]["members"] for node in ([each] if kind == "n" else inside_of(groups, each))
    ]


def lay_out(group: Document, arrows: list[tuple[int, int]]) -> None:
    """Add layers, positions and routes to a group; a point where an arrow crosses a layer becomes a slot."""
    count = len(group["members"])
    spots, paths, _ = layout_boxes([(168, 60)] * count, arrows)
    slots = [(spot.layer, spot.x) for spot in spots]
    heights = {round(spot.y, 3): spot.layer for spot in spots}
    group["edges"] = []
    for (a, b), path in zip(arrows, paths, strict=True):
        route = []
        for x, y in path[1:-1]:
            slots.append((heights[round(y, 3)], x))
            route.append(len(slots) - 1)
        group["edges"].append([a, b, *route])
    layers: list[list[int]] = [[] for _ in range(max((layer for layer, _ in slots), default=-1) + 1)]
    for slot, (layer, _) in sorted(enumerate(slots), key=lambda each: each[1]):
        layers[layer].append(slot)
    group["layers"], group["x"] = layers, [round(x, 1) for _, x in slots]


POLYNOMIAL = '''"""A line for exp(x), by gradient descent."""

import torch

x = torch.linspace(-1, 1, 12)
y = torch.exp(x)  # the target
a = torch.tensor(0.5, requires_grad=True)
b = torch.tensor(-0.25, requires_grad=True)
unused = torch.tensor(3.0, requires_grad=True)

line = a + b * x
clipped = torch.relu(unused - 5)
loss = ((line - y) ** 2).mean() + clipped
loss.backward()
'''


def line_fit() -> Document:
    """Return a document of a few operations: a sum of gradients, a zero gradient, values saved for the backward pass."""
    b = Builder("loss of program.py", POLYNOMIAL)
    x = np.linspace(-1, 1, 12)
    line, y = 0.5 - 0.25 * x, np.exp(x)
    error = line - y
    loss = (error**2).mean()
    b.document["rules"] = [
        {"operation": "mul", "file": "operations/elementwise/arithmetic.py", "line": 33, "source": '@pointwise(lambda g, self, other: (g * other, g * self))\ndef mul(np, self, other, /):\n    """Return the product."""\n    return np.multiply(self, other)'},
        {"operation": "relu", "file": "operations/nn/activation.py", "line": 12, "source": "@pointwise(lambda F, g, out: F.where(out > 0, g, 0))\ndef relu(np, self, /):\n    return np.maximum(self, 0)"},
    ]  # fmt: skip
    leaf_x = b.node("constant", "x", line=5, label="x", value=x)
    leaf_y = b.node("constant", "y", line=6, label="y", value=y)
    g = 2 * error / 12
    leaf_a = b.node("leaf", "a", line=7, label="a", value=0.5, grad=g.sum(), requires_grad=True)
    leaf_b = b.node("leaf", "b", line=8, label="b", value=-0.25, grad=(g * x).sum(), requires_grad=True)
    unused = b.node("leaf", "unused", line=9, label="unused", value=3.0, grad=0.0, requires_grad=True,
                    explain=["relu of line 12 passes no gradient on where its result is 0."])  # fmt: skip
    mul = b.node("operation", "mul", [leaf_b, leaf_x], 11, node="MulBackward0", value=-0.25 * x, grad=g, bytes=48, rule=0, saved=[{"name": "other", "shape": [12], "dtype": "float32", "bytes": 48, "from": leaf_x}])  # fmt: skip
    add = b.node("operation", "add", [leaf_a, mul], 11, label="line", node="AddBackward0", value=line, grad=g)
    five = b.node(
        "operation", "sub", [unused], 12, node="SubBackward0", value=-2.0, grad=0.0, parameters={"other": "5"}
    )
    relu = b.node(
        "operation", "relu", [five], 12, label="clipped", node="ReluBackward0", value=0.0, grad=1.0, bytes=4, rule=1
    )
    sub = b.node("operation", "sub", [add, leaf_y], 13, node="SubBackward0", value=error, grad=g)
    square = b.node("operation", "pow", [sub], 13, node="PowBackward0", value=error**2, grad=np.full(12, 1 / 12), bytes=48, saved=[{"name": "self", "shape": [12], "dtype": "float32", "bytes": 48, "from": sub, "state": "freed"}])  # fmt: skip
    mean = b.node("operation", "mean", [square], 13, node="MeanBackward0", value=loss, grad=1.0)
    total = b.node("operation", "add", [mean, relu], 13, label="loss", node="AddBackward0", value=loss, grad=1.0)
    result = b.node("result", "loss", [total], 13, label="loss", value=loss, grad=1.0)
    b.event("start", result, incoming=1.0)
    b.event("node", total, incoming=1.0, outgoing=[{"to": mean, "name": "input", "value": 1.0, "formula": "grad", "numbers": "1"}, {"to": relu, "name": "other", "value": 1.0, "formula": "grad", "numbers": "1"}])  # fmt: skip
    b.event("node", mean, incoming=1.0, outgoing=[{"to": square, "name": "input", "value": np.full(12, 1 / 12), "formula": "grad / 12", "numbers": "1 / 12 = 0.08333"}])  # fmt: skip
    b.event("node", square, incoming=np.full(12, 1 / 12), freed=48, outgoing=[{"to": sub, "name": "input", "value": g, "formula": "grad * 2 * input", "element": "[0]", "numbers": f"0.08333 * 2 * {error[0]:.4g} = {g[0]:.4g}"}])  # fmt: skip
    b.event("node", sub, incoming=g, outgoing=[{"to": add, "name": "input", "value": g, "formula": "grad"}])
    b.event("node", add, incoming=g, outgoing=[{"to": leaf_a, "name": "input", "value": g.sum(), "formula": "grad", "note": "summed over the broadcast dimensions: [12] -> []"}, {"to": mul, "name": "other", "value": g, "formula": "grad"}])  # fmt: skip
    b.event("leaf", leaf_a, incoming=g.sum(), after=g.sum())
    b.event("node", mul, incoming=g, freed=48, outgoing=[{"to": leaf_b, "name": "input", "value": (g * x).sum(), "formula": "grad * other", "element": "[0]", "numbers": f"{g[0]:.4g} * -1 = {-g[0]:.4g}", "note": "summed over the broadcast dimensions: [12] -> []"}])  # fmt: skip
    b.event("leaf", leaf_b, incoming=(g * x).sum(), after=(g * x).sum())
    b.event("node", relu, incoming=1.0, outgoing=[{"to": five, "name": "input", "value": 0.0, "formula": "where(result > 0, grad, 0)", "numbers": "where(0 > 0, 1, 0) = 0"}])  # fmt: skip
    b.event(
        "node",
        five,
        incoming=0.0,
        outgoing=[{"to": unused, "name": "input", "value": 0.0, "formula": "grad", "numbers": "0"}],
    )
    b.event("leaf", unused, incoming=0.0, after=0.0)
    return b.finish()


#: Texts that would end an element, run a script or request a file, if a page took them as HTML or JavaScript.
HOSTILE = (
    "</script><script>window.broken = 1</script>",
    '"><img src="http://192.0.2.1/x.png" onerror="window.broken = 2">',
    "line\u2028separator\u2029end \ud800",
    "{{document}} ${window.broken = 3} `\\u003c!--",
)


def hostile() -> Document:
    """Return a document with texts of :data:`HOSTILE` in every field that has text."""
    b = Builder(HOSTILE[0], "\n".join(HOSTILE[:2]), name=HOSTILE[1])
    b.document["sources"][0]["parts"][0]["lines"] = list(HOSTILE)
    b.document["summary"], b.document["notes"] = HOSTILE[1], list(HOSTILE)
    text = HOSTILE[1]
    b.document["rules"] = [{"operation": text, "file": text, "line": 1, "source": HOSTILE[0]}]
    block = b.group(HOSTILE[0], open=True)
    leaf = b.node("leaf", HOSTILE[0], line=1, label=HOSTILE[0], value=1.0, requires_grad=True, explain=list(HOSTILE))
    last = b.node("operation", HOSTILE[1], [leaf], 2, block, label=HOSTILE[2], node=text, value=2.0, grad=0.0, dtype=text, bytes=8, rule=0, function=text, module=text, hooks=list(HOSTILE), parameters={text: text}, missing=text, saved=[{"name": text, "shape": [1], "dtype": text, "bytes": 8, "state": text}])  # fmt: skip
    b.event("node", last, incoming=1.0, text=text, outgoing=[{"to": leaf, "name": text, "value": 1.0, "formula": text, "numbers": text, "note": text, "element": text}])  # fmt: skip
    b.document["values"][0]["text"] = text
    return b.finish()


def special_values() -> Document:
    """Return a document with NaN, infinite, None and large values."""
    b = Builder("special values", "x = load()\ny = x.log()\nz = y * w\n")
    matrix = np.outer(np.linspace(-1, 1, 8), np.linspace(0.1, 1, 10))
    broken = np.log(np.maximum(matrix, 0), out=np.full_like(matrix, np.nan), where=matrix >= 0)
    broken[4, :3] = [np.inf, -np.inf, 0]
    x = b.node("leaf", "x", line=1, label="x", value=matrix, grad=broken, requires_grad=True)
    w = b.node("leaf", "w", line=1, label="w", value=np.zeros((8, 10)), requires_grad=True)
    log = b.node("operation", "log", [x], 2, label="y", value=broken, grad=np.ones((8, 10)), bytes=320)
    mul = b.node("operation", "mul", [log, w], 3, label="z", value=np.random.default_rng(0).normal(size=(120, 100)), grad=np.ones((120, 100)), bytes=48000)  # fmt: skip
    b.event("start", mul, incoming=np.ones((120, 100)))
    b.event("node", mul, incoming=np.ones((120, 100)), outgoing=[{"to": log, "name": "input", "value": np.ones((8, 10))}, {"to": w, "name": "other"}])  # fmt: skip
    return b.finish()


def loop(times: int, length: int = 10, flat: bool = False) -> Document:
    """Return a document with ``times`` repeats of ``length`` operations, each repeat a folded group unless ``flat``."""
    source = "\n".join(["for step in range(n):", *(f"    x = torch.sin(x) * w  # {at}" for at in range(length))])
    b = Builder(f"{times * length} operations", source)
    w = b.node("leaf", "w", line=1, label="w", value=2.0, grad=1.0, requires_grad=True)
    outer = 0 if flat else b.group(f"for step × {times}", times=times)
    last = w
    summary = b.keep(0.5)
    order = []
    for step in range(times):
        inner = 0 if flat else b.group(f"step {step}", outer)
        for at in range(length):
            inputs = [last, w] if not at % 5 else [last]
            last = b.node(
                "operation", ("mul", "sin", "cos", "tanh", "add")[at % 5], inputs, 2 + at, inner, shape=[3, 4], bytes=48
            )
            b.document["nodes"][last] |= {"value": summary, "grad": summary}
            order.append(last)
    b.event("start", last, incoming=1.0)
    for each in reversed(order):
        b.document["events"].append({"kind": "node", "node": each, "incoming": summary, "outgoing": [{"to": each - 1, "name": "input", "value": summary, "formula": "grad * cos(input)"}]})  # fmt: skip
    b.event("leaf", w, incoming=1.0, after=1.0)
    return b.finish()
