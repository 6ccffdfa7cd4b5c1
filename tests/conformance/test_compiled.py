"""Compiled functions observe what the same functions observe in eager mode, in repeated calls."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler import compiled_function, segments
from tests.conformance.compiled_cases import CASES


@pytest.mark.parametrize("small", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_compiled_functions_observe_what_eager_ones_observe(
    name: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if segments of few steps are deferred, which otherwise run in eager mode."""
    if small:
        monkeypatch.setattr(compiled_function, "FEWEST_STEPS", [0, 0, 0])
    monkeypatch.setattr(segments, "strict", True)
    expected = CASES[name](torch, lambda function: function)
    assert same(CASES[name](torch, torch.compile), expected)


def same(one: Any, two: Any) -> bool:
    """Whether two observations are equal, numbers within rounding."""
    if isinstance(one, dict):
        return one.keys() == two.keys() and all(same(one[key], two[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(one, float):
        return one == pytest.approx(two, rel=1e-5, abs=1e-6, nan_ok=True)
    return bool(one == two)
