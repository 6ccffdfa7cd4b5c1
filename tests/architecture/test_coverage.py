"""``scripts/coverage.py``: the operation a sample belongs to, and the totals."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from types import ModuleType

import pytest

from tests.architecture.markdown_pages import ROOT
from tests.conformance.samples import Sample, normal


@pytest.fixture(scope="module")
def script() -> ModuleType:
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        spec = importlib.util.spec_from_file_location("count_of_coverage", ROOT / "scripts" / "coverage.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(ROOT / "scripts"))
    return module


@pytest.mark.parametrize(
    ("said", "expression", "family", "operation"),
    [
        ("add", "x + y", "pointwise", "add"),
        ("add", "x.clone().add_(y)", "pointwise", "add"),
        ("add", "torch.sum(x.clone() + y)", "pointwise", "add"),
        ("erf", "torch.special.erf(x)", "special", "erf"),
        ("linalg.solve", "torch.linalg.solve(x, y).mT", "linalg", "solve"),
        ("linalg", "torch.linalg.inv(x)", "linalg", "inv"),
        (
            "complex scatter_reduce",
            "x.scatter_reduce(0, i, y, 'sum')",
            "indexing, sorting, searching",
            "scatter_reduce",
        ),
        ("nn", "torch.nn.functional.elu(x)", "nn.functional", "elu"),
        ("relu", "torch.nn.functional.relu(x)", "nn.functional", "relu"),
        ("windows.hann", "torch.signal.windows.hann(5)", "fft, signal", "hann"),
        ("getitem", "x[0].sum()", "indexing, sorting, searching", "getitem"),
        ("something", "3", "tensors, dtypes, settings", "something"),
    ],
)
def test_operation_of_a_sample(script: ModuleType, said: str, expression: str, family: str, operation: str) -> None:
    assert script.operation_of(Sample(said, expression, x=normal(2))) == (family, operation)


def test_an_operation_agrees_if_all_its_samples_do(script: ModuleType) -> None:
    family = script.Family(names=2, missing=["sin"], operations={"sin", "cos", "tan"})
    sample = Sample("cos", "torch.cos(x)", x=normal(2))
    script.add(family, "cos", sample, {"value": "", "first": ""})
    script.add(family, "cos", sample, {"value": "", "first": "wrong\n by  much"})
    script.add(family, "tan", sample, {"value": ""})
    assert family.of_operations("value") == (2, 2) and family.of_samples("value") == (3, 3)
    assert family.of_operations("first") == (0, 1) and family.of_samples("first") == (1, 2)
    assert family.of_operations("forward") == (0, 0)
    assert family.differences == ["torch.cos(x): first: wrong by much"]
    rows, parts = script.table({"pointwise": family}), script.lists({"pointwise": family}, Counter(tan=1))
    assert rows[1] == ["pointwise", "1 of 2", "3", "2", "2 of 2", "0 of 0", "0 of 1", "0 of 0", "0 of 0", "3 of 3"]
    sentence = script.verdict_in_words({"pointwise": family})
    assert sentence.startswith("1 of 2 operations")
    training = [["classes of", "public"], ["nn", "7"]]
    for text in (script.text(rows, sentence, training, parts), script.page(rows, sentence, training, parts)):
        assert "pointwise: sin" in text and "wrong by much" in text and "tan: 1" in text and "classes of" in text


def test_every_class_of_modules_optimisers_and_schedules_is_recorded(script: ModuleType) -> None:
    tried = {(kind, name) for kind, name, _, _ in script.runs()}
    for kind in ("nn", "optim", "optim.lr_scheduler"):
        assert {(kind, name) for name in script.classes(kind)} <= tried
