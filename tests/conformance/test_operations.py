"""Every operation on every sample: values and derivatives compared with PyTorch and with finite differences."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import operations
from retrograd.dispatch.declare import OPS
from retrograd.dispatch.node_classes import uses_arithmetic
from tests.conformance.finite_differences import Directional
from tests.conformance.rule_samples import RULE_SAMPLES
from tests.conformance.sample_comparison import compare_sample, golden
from tests.conformance.samples import FAMILIES, Sample, samples


def every() -> list[Any]:
    found = []
    for family in FAMILIES:
        seen: dict[str, int] = {}
        for sample in samples(family):
            seen[sample.op] = seen.get(sample.op, 0) + 1
            found.append(pytest.param(family, sample, id=f"{sample.op}-{seen[sample.op]}"))
    return found


SAMPLES = every()
SMOOTH = [each for each in SAMPLES if each.values[1].smooth]


@pytest.mark.parametrize(("family", "sample"), SAMPLES)
def test_sample_matches_pytorch(family: str, sample: Sample) -> None:
    found = compare_sample(family, sample)
    assert found, "no golden values"
    assert not {aspect: difference for aspect, difference in found.items() if difference}


@pytest.mark.parametrize(("family", "sample"), SMOOTH)
def test_derivatives_match_finite_differences(family: str, sample: Sample) -> None:
    if {"error", "refused"} & golden(family)[sample.expression].keys() and not sample.beyond:
        pytest.skip("PyTorch raises; that is tested above")
    if sample.named:
        pytest.skip("the gradient is by definition not the derivative; it is compared with PyTorch's above")
    found = Directional(sample)
    for order in (1, 2) if sample.second else (1,):
        assert not found.mismatch(order)


@pytest.mark.parametrize("sample", RULE_SAMPLES, ids=lambda sample: sample.expression)
def test_derivatives_without_a_record_match_finite_differences(sample: Sample) -> None:
    found = Directional(sample)
    assert found.differentiable
    for order in (1, 2) if sample.second else (1,):
        assert not found.mismatch(order)


def test_differentiable_operations_have_samples() -> None:
    sampled = {each.values[1].op for each in SAMPLES}
    text = "\n".join(each.values[1].expression for each in SAMPLES)
    missing = [
        name for name, op in OPS.items()
        if op.has_rules and name in torch.__dict__ and name not in sampled and f"{name}(" not in text
    ]  # fmt: skip
    assert not missing


def test_rules_name_the_level_where_they_use_it_and_only_there() -> None:
    """A backward pass loads ``F`` for every rule that names it."""
    unused = []
    for path in sorted(Path(operations.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = isinstance(node, ast.Lambda) and [each.arg for each in node.args.args[:2]]
            used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            if named in (["F"], ["F", "g"]) and "F" not in used:
                unused.append(f"{path.name}:{node.lineno}")
    assert unused == []


def test_names_that_stand_for_rules_are_saved_values() -> None:
    named = {name: [each for each in op.rules if isinstance(each, str)] for name, op in OPS.items()}
    assert named["mul"] == ["other", "self"] and named["exp"] == ["out"]
    for name, rules in named.items():
        assert {*rules} <= {each.name for each in OPS[name].saved()}


def test_only_rules_that_calculate_are_given_large_arrays_as_another_class() -> None:
    """A kernel alone is not: the gradient of max_pool2d took three times as long."""
    found = {name: any(map(uses_arithmetic, OPS[name].rules)) for name in ("mul", "sqrt", "add", "tan", "var_block")}
    assert all(found.values()), found
    found = {
        name: any(map(uses_arithmetic, OPS[name].rules))
        for name in ("relu", "tanh", "clamp_min_scalar", "frac", "sign")
    }
    assert not any(found.values()), found
    assert not any(map(uses_arithmetic, OPS["max_pool2d_block"].rules))
