"""Random programs, compared with what was observed with PyTorch: recorded cases, and grammars by seed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

import retrograd as torch
from tests import ROOT
from tests.conformance.golden import load
from tests.fuzz.programs import cases
from tests.fuzz.programs.comparison import tolerance_of
from tests.fuzz.programs.differences import ACCEPTED, classify
from tests.fuzz.programs.execution import run
from tests.fuzz.programs.grammars import GRAMMARS, RECORDED
from tests.fuzz.programs.worker import configure_engine

CASES = cases.read_cases()
PROGRAMS = load("random_programs")


@pytest.fixture(autouse=True)
def accumulating_as_pytorch() -> Iterator[None]:
    """Let the engine retain and accumulate gradients when PyTorch does."""
    hooked = configure_engine(torch)
    yield
    del hooked
    torch.autograd.graph.set_retain_grad_last(False)


@pytest.mark.parametrize("number", range(len(CASES)))
def test_case(number: int) -> None:
    text, expected = CASES[number]
    found, accepted = classify(json.loads(json.dumps(run(torch, text))), expected, text)
    assert found is None or (accepted is not None and accepted.heading == "torch.func"), f"{text}\n{found}"


@pytest.mark.parametrize(("grammar", "seed"), [(name, seed) for name in RECORDED for seed in range(RECORDED[name])])
def test_random_program(grammar: str, seed: int) -> None:
    text = GRAMMARS[grammar](seed)
    seen, tolerance = json.loads(json.dumps(run(torch, text))), max(tolerance_of(text), 1e-6)
    found, accepted = classify(seen, PROGRAMS[grammar][seed], text, tolerance)
    assert found is None or accepted is not None, f"{text}\n{found}"


def test_programs_use_every_statement() -> None:
    parts = {
        "hooks": """Cube.apply|Product.apply|Two.apply|Half.apply|Straight.apply|Stingy.apply|Same.apply|checkpoint(hooked|
            checkpoint(packed|checkpoint(nested|checkpoint(drawn|use_reentrant=True|saving(|register_prehook|
            register_post_accumulate_grad_hook|mode='any'|retain_grad|torch.no_grad()""",
        "transforms": """func.grad(|grad_and_value(|func.vjp(|func.jvp(|torch.vmap(|jacrev(|jacfwd(|hessian(|linearize(|
            functional_call(|has_aux=True|argnums=(0, 1)|['k']|chunk_size=|randomness='different'|del |no_grad()|
            inference_mode()|autograd.grad(|[0] =|.copy_(|dropout(|bfloat16|complex64""",
    }
    for grammar, names in parts.items():
        whole = "\n".join(GRAMMARS[grammar](seed) for seed in range(RECORDED[grammar]))
        for each in names.split("|"):
            assert whole.count(each.strip("\n ") if each.startswith("\n") else each) >= 2, each


def test_most_recorded_programs_have_gradients() -> None:
    for grammar in RECORDED:
        answers = PROGRAMS[grammar]
        assert sum("first" in each for each in answers) > 0.4 * len(answers), grammar
        assert sum(not each["errors"] for each in answers) > 0.3 * len(answers), grammar


def test_accepted_differences_are_documented() -> None:
    page = (ROOT / "docs" / "differences.md").read_text(encoding="utf-8")
    parts = {part.partition("\n")[0]: part for part in re.split(r"^###? ", page, flags=re.MULTILINE)}
    for each in ACCEPTED:
        words = " ".join(parts[each.heading].replace("**", "").replace("`", "").split())
        assert each.entry in words, f"{each.heading}: {each.entry}"
