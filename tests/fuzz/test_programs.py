"""Random programs: the cases that were recorded from PyTorch (``programs/cases.txt``)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as torch
from tests.fuzz.programs import cases
from tests.fuzz.programs.comparison import difference, tolerance_of
from tests.fuzz.programs.execution import run
from tests.fuzz.programs.worker import prepared

CASES = cases.recorded()


@pytest.fixture
def as_pytorch() -> Iterator[None]:
    """Let the engine retain and accumulate gradients when PyTorch does."""
    hooked = prepared(torch)
    yield
    del hooked
    torch.autograd.graph.set_retain_grad_last(False)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_case(number: int, as_pytorch: Any) -> None:
    text, expected = CASES[number]
    found = difference(json.loads(json.dumps(run(torch, text))), expected, tolerance_of(text))
    assert found is None, f"{text}\n{found}"
