"""Calls of every function that takes ``out=``, with valid and invalid outputs.

The calls come from the samples, and from CALLS where no sample has one; a ``Trial`` returns the outcome for outputs of
all kinds. See golden/record_out_arguments.py and test_out_argument.py.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import Any

from tests.conformance.samples import FAMILIES, Sample, normal, positive, samples, unit

KINDS = ("bool", "uint8", "int64", "float16", "float32", "float64", "complex64", "complex128")

CALLS = [
    *[
        Sample(name, f"torch.{name}(x)", x=unit(3))
        for name in ["arccos", "arcsin", "arcsinh", "arctan", "arctanh", "fix"]
    ],
    Sample("arccosh", "torch.arccosh(x)", x=lambda rng: rng.uniform(1, 2, 3)),
    Sample("bernoulli", "torch.bernoulli(x)", x=lambda rng: rng.uniform(size=3)),
    Sample("multinomial", "torch.multinomial(x, 2)", x=positive(3)),
    Sample("normal", "torch.normal(x, 1.0)", x=normal(3)),
    Sample("rand", "torch.rand(3)"),
    Sample("randn", "torch.randn(3)"),
    Sample("randint", "torch.randint(5, (3,))"),
    Sample("randperm", "torch.randperm(3)"),
    Sample("range", "torch.range(0, 2)"),
    Sample("arange", "torch.arange(3)"),
    Sample("empty", "torch.empty(2, 3)"),
    Sample("linalg.matmul", "torch.linalg.matmul(x, x)", x=normal(2, 2)),
    Sample("mv", "torch.mv(x, v)", x=normal(2, 3), v=normal(3)),
    Sample("bmm", "torch.bmm(x, x)", x=normal(2, 3, 3)),
    Sample("gather", "torch.gather(x, 0, i)", x=normal(2, 3), i=lambda rng: rng.integers(0, 2, (2, 3))),
    Sample("amax", "torch.amax(x, 1)", x=normal(2, 3)),
    Sample("sum", "torch.sum(x, 1)", x=normal(2, 3)),
    Sample("matmul", "torch.matmul(x, x)", x=normal(2, 2)),
]


def _path(node: ast.expr) -> str:
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(names)]) if isinstance(node, ast.Name) else ""


def calls(wanted: set[str]) -> dict[str, list[tuple[Sample, str]]]:
    """Return for each function of ``wanted`` (``torch.exp`` …) the samples that call it, and the call."""
    found: dict[str, list[tuple[Sample, str]]] = {}
    for sample in [*CALLS, *(each for family in FAMILIES for each in samples(family))]:
        for node in ast.walk(ast.parse(sample.expression, mode="eval")):
            if not isinstance(node, ast.Call) or any(each.arg == "out" for each in node.keywords):
                continue
            name = _path(node.func)
            if name.count(".") == 1 and not name.startswith("torch.") and isinstance(node.func, ast.Attribute):
                of, name = node.func.value, f"torch.{node.func.attr}"  # methods
                node = ast.Call(ast.parse(name, mode="eval").body, [of, *node.args], node.keywords)
            if name in wanted:
                found.setdefault(name, []).append((sample, ast.unparse(node)))
    return found


def line(error: Exception) -> str:
    """Return an error in one line."""
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"


class Trial:
    """One call, made with one ``out`` after the other."""

    def __init__(self, torch: Any, sample: Sample, call: str) -> None:
        self.torch, self.sample, self.call = torch, sample, call
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = self.run(call, self.inputs())
        self.many = isinstance(result, (tuple, list))
        self.results = tuple(result) if self.many else (result,)

    def inputs(self, graded: bool = False) -> dict[str, Any]:
        made = {name: self.torch.tensor(each) for name, each in self.sample.arrays().items()}
        for each in made.values():
            if graded and (each.is_floating_point() or each.is_complex()):
                each.requires_grad_()
        return made

    def run(self, call: str, given: dict[str, Any]) -> Any:
        self.torch.manual_seed(0)
        return eval(call, {"torch": self.torch, **given})

    def outcome(self, given: dict[str, Any], out: Any) -> str:
        """Return the outcome of the call with ``out``: an error, ``ok``, or ``warns``."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                self.run(f"{self.call[:-1]}{', ' * (self.call[-2] != '(')}out=OUT)", {**given, "OUT": out})
            except Exception as error:
                return line(error)
        return "warns" if any("resize" in str(each.message) for each in caught) else "ok"

    def zeros(self, shape: Any = None, place: int = -1, kind: str = "") -> Any:
        """Return valid outputs; of another shape, or one of them of another dtype."""
        made = [
            self.torch.zeros(
                each.shape if shape is None else shape, dtype=getattr(self.torch, kind) if k == place else each.dtype
            )
            for k, each in enumerate(self.results)
        ]
        return tuple(made) if self.many else made[0]

    def with_first(self, first: Any) -> Any:
        return (first, *self.zeros()[1:]) if self.many else first

    def outcomes(self) -> Iterator[tuple[str, str]]:
        """Return all outcomes by name."""
        for place in range(len(self.results)):
            for kind in KINDS:
                yield f"{kind} {place}", self.outcome(self.inputs(), self.zeros(None, place, kind))
        yield "another shape", self.outcome(self.inputs(), self.zeros((7, 2)))
        yield "no elements", self.outcome(self.inputs(), self.zeros((0,)))
        yield "graded inputs", self.outcome(self.inputs(True), self.zeros())
        graded = self.zeros()
        for each in graded if self.many else (graded,):
            if each.is_floating_point() or each.is_complex():
                each.requires_grad_()
        yield "graded out", self.outcome(self.inputs(), graded)
        first = self.results[0]
        if first.numel() > 1:
            small = self.torch.zeros((1,) * first.dim(), dtype=first.dtype)
            yield "expanded", self.outcome(self.inputs(), self.with_first(small.expand(first.shape)))
        yield from self.of_inputs(first)
        for name, out in (("a", "a"), ("list", list(self.zeros()) if self.many else [self.zeros()])):
            yield f"kind {name}", self.outcome(self.inputs(), out)
        bare = self.torch.zeros(first.shape, dtype=first.dtype)
        yield "one", self.outcome(self.inputs(), bare)
        yield "one more", self.outcome(self.inputs(), (*self.zeros(), bare) if self.many else (bare, bare))

    def of_inputs(self, first: Any) -> Iterator[tuple[str, str]]:
        """Return the outcomes where the output is an input or shares memory with it."""
        given = self.inputs()
        like = [name for name, each in given.items() if each.dtype == first.dtype]
        if like and given[like[0]].shape == first.shape:
            yield "an input", self.outcome(given, self.with_first(given[like[0]]))
        elif like:
            yield "an input of another shape", self.outcome(given, self.with_first(given[like[0]]))
        given = self.inputs()
        like = [name for name in like if given[name].shape == first.shape and given[name].numel() > 1]
        if like:
            memory = self.torch.zeros(first.numel() + 1, dtype=first.dtype)
            start = memory[:-1].view(first.shape)
            start.copy_(given[like[0]])
            given[like[0]] = start
            yield "shifted by one", self.outcome(given, self.with_first(memory[1:].view(first.shape)))


def plain(text: str) -> str:
    """Return an outcome without addresses."""
    return re.sub(r"0x[0-9a-f]+", "0x…", text)
