"""The scenarios of this folder, compared with PyTorch's recorded behaviour."""

from __future__ import annotations

import json
from typing import Any

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.scenarios import FAMILIES, Scenario, run_scenario, scenarios

EVERY = [
    pytest.param(family, name, scenario, id=f"{family}: {name}")
    for family in FAMILIES
    for name, scenario in scenarios(family).items()
]


def recorded(family: str) -> Any:
    return load(f"scenarios_{family}")["scenarios"]


@pytest.mark.parametrize(("family", "name", "scenario"), EVERY)
def test_scenario_matches_pytorch(family: str, name: str, scenario: Scenario) -> None:
    found, expected = run_scenario(torch, scenario), recorded(family)[name]
    if "error" in found and "error" in expected:  # retrograd's error may be longer
        (kind, text), (expected_kind, expected_text) = found.pop("error"), expected.pop("error")
        assert kind == expected_kind and expected_text.strip() in text
    assert json.loads(json.dumps(found)) == expected
