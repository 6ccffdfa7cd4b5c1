"""Random programs of hooks, custom functions, checkpoints and saved-tensor hooks, compared with PyTorch."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.fuzz.hook_programs import COUNT, program, run

RECORDED = load("hook_programs")["programs"]


@pytest.fixture(autouse=True)
def retaining_last() -> Iterator[None]:
    """Retain gradients after all hooks, as PyTorch 2 does, and accumulate into leaves during the backward pass.

    Without hooks on leaves the engine accumulates at the end; a failing backward pass shows the difference.
    """
    hooked = torch.ones(1, requires_grad=True)
    hooked.register_hook(lambda grad: None)
    torch.autograd.graph.set_retain_grad_last(True)
    yield
    torch.autograd.graph.set_retain_grad_last(False)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_program(seed: int) -> None:
    lines = program(seed)
    assert json.loads(json.dumps(run(torch, lines))) == RECORDED[seed], "\n".join(lines)


def test_programs_use_every_statement() -> None:
    whole = "\n".join(line for seed in range(COUNT) for line in program(seed))
    for each in (
        "Cube.apply", "Product.apply", "Two.apply", "Half.apply", "Straight.apply", "Stingy.apply", "Same.apply",
        "checkpoint(hooked", "checkpoint(packed", "checkpoint(nested", "checkpoint(drawn", "use_reentrant=True", "saving(",
        "register_prehook", "register_post_accumulate_grad_hook", "mode='any'", "retain_grad", "torch.no_grad()",
    ):  # fmt: skip
        assert whole.count(each) >= 5, each
    assert sum(not any(isinstance(value, str) for value in each.values()) for each in RECORDED) > 250
