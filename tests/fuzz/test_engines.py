"""Random programs, run in several ways that must agree, without PyTorch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler import compiled_function, segments
from tests.fuzz.programs.comparison import Difference, differences, tolerance_of
from tests.fuzz.programs.differences import perturb
from tests.fuzz.programs.engine import Engine
from tests.fuzz.programs.execution import Observed, run
from tests.fuzz.programs.grammars import GRAMMARS, tensors
from tests.loops import use_loops

ELEMENTWISE = [(tensors.POINTWISE, 3.0), (tensors.REDUCTIONS, 2.0), (tensors.CHANGES, 2.0)]
DIFFERENTIABLE = [*ELEMENTWISE, (tensors.VIEWS, 4.0), (tensors.PAIRS, 3.0), (tensors.CUSTOM, 0.5)]
#: Statements of matrices whose size is the square of the number of rows, and of random numbers.
QUADRATIC = r"linalg|logdet|diag|outer|trace|one_hot|interpolate|addmm|repeat|tile|pad|cum|std|var|norm|rand|dropout|bernoulli|normal_|uniform_"
#: Statements whose results are not differentiable, or whose gradient is not their derivative.
BROKEN = r"""(?x) detach|data|as_strided|^t\d+\.requires_grad_|=\st\d+\.requires_grad_|round|floor|ceil|trunc|frac|//|%|sign|sgn|rand|dropout|bernoulli|normal_|uniform_|
    new_|zeros|ones|full|Straight|Half|Same|View|Stingy|drawn|item|tolist|empty|out=|fmod|remainder|apply_|set_|resize|copysign|
    nextafter|quantile|unique|hard|shrink|threshold|relu|abs|max|min|clamp|sort|median|topk|kthvalue|norm|sinc|\*\*|pow|prod|
    sqrt|angle|hypot|atan2|xlogy|polar|div|dist|l1|logit|lgamma|digamma|entr|heaviside|where|masked|scatter|gather|copy\(|\bbool|nan|cov|std|var"""


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Defer the operations of short functions, without compiled loops, because each function would compile its own."""
    use_loops(monkeypatch, False)
    before = compiled_function.FEWEST_STEPS[:], segments.strict
    compiled_function.FEWEST_STEPS[:], segments.strict = [0, 0, 0], True
    yield
    compiled_function.FEWEST_STEPS[:], segments.strict = before


def first_difference(found: Observed, expected: Observed, text: str, *ignored: str) -> Difference | None:
    found_all = differences(found, expected, tolerance_of(text))
    return next((each for each in found_all if each.kind not in ignored), None)


def programs(count: int, **options: Any) -> list[str]:
    return [tensors.Writer(seed, **options).program() for seed in range(count)]


def large(text: str) -> str:
    """Return the program with tensors of about 40,000 elements, for which there are compiled loops."""
    return re.sub(r"^(t\d+) = (torch\.tensor\(.*)$", r"\1 = large(\2)", text, flags=re.MULTILINE)


def test_templates_and_specialised_functions_agree() -> None:
    one, two = Engine("specialized"), Engine("generic")
    for text in [
        *programs(30),
        *(GRAMMARS[name](seed) for name in ("views", "hooks", "transforms") for seed in range(8)),
    ]:
        for engine in (one, two):
            engine.send(text)
        found = first_difference(one.receive(), two.receive(), text)
        assert found is None, f"{text}\n{found}"
    one.close()
    two.close()


def test_loops_and_numpy_agree() -> None:
    pytest.importorskip("numba")
    one, two = Engine("eager"), Engine("without numba")
    for text in map(large, programs(24, dtypes=["float32", "float64"], families=ELEMENTWISE, banned=QUADRATIC)):
        for engine in (one, two):
            engine.send(text)
        found = first_difference(one.receive(), two.receive(), text)
        assert found is None, f"{text}\n{found}"
    one.close()
    two.close()


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_compiled_functions(first: int, compiling: None) -> None:
    for seed in range(first, first + 20):
        text = GRAMMARS["compiled"](seed)
        found = first_difference(run(torch, text, torch.compile), run(torch, text), text, "node", "view")
        assert found is None, f"{text}\n{found}"


def test_compiled_programs(compiling: None) -> None:
    compared = 0
    for text in [*programs(60), *map(GRAMMARS["views"], range(60))]:
        expected = run(torch, text)
        if expected["errors"]:
            continue
        compared += 1
        found = first_difference(run(torch, text, torch.compile, whole=True), expected, text, "node", "view", "version")
        assert found is None, f"{text}\n{found}"
    assert compared > 50


def test_precisions_agree() -> None:
    for text in programs(
        120, dtypes=["float64"], families=DIFFERENTIABLE, banned=r"rand|dropout|bernoulli|normal_|uniform_"
    ):
        short = text.replace("float64", "float32")
        exact, found = run(torch, text), run(torch, short)
        known = [run(torch, perturb(text, 1e-6, seed)) for seed in range(2)]
        if any(next(differences(each, exact, 1e-4), None) is not None for each in known):
            continue  # the program amplifies rounding
        kinds = [
            each
            for each in differences(found, exact, 1e-3)
            if each.kind not in ("dtype", "value") and each.where != "grads"
        ]
        assert not kinds, f"{text}\n{kinds[0]}"


def test_gradients_match_finite_differences() -> None:
    compared = 0
    for text in programs(150, dtypes=["float64"], families=DIFFERENTIABLE, banned=BROKEN):
        seen = run(torch, text)
        if "first" not in seen or seen["errors"]:
            continue
        leaves = [
            name
            for name, state in seen["tensors"].items()
            if name in seen["first"] and f"{name} = torch.tensor" in text
        ]
        if len(leaves) != len(seen["first"]):
            continue
        slope = sum(x * math.cos(i) for name in leaves for i, x in enumerate(seen["first"][name]))
        estimates = [_slope(text, leaves, step) for step in (1e-4, 5e-5)]
        if abs(estimates[0] - estimates[1]) > 1e-6 * (1 + abs(slope)):
            continue  # not smooth
        compared += 1
        assert abs(slope - estimates[1]) < 1e-5 * (1 + abs(slope)), f"{text}\n{slope} {estimates}"
    assert compared > 30


def _slope(text: str, leaves: list[str], step: float) -> float:
    """Return the difference quotient of the sum that ``execution.total_of`` computes, along a direction of the leaves."""
    ends = []
    for sign in (1, -1):
        lines = text.splitlines()
        start = next(i for i, line in enumerate(lines) if not re.match(r"t\d+ = torch\.tensor\(", line))
        moved = [
            f"with torch.no_grad(): {x}.add_(torch.arange({x}.numel(), dtype={x}.dtype).reshape({x}.shape).cos(), alpha={sign * step})"
            for x in leaves
        ]
        states = run(torch, "\n".join([*lines[:start], *moved, *lines[start:]]))["tensors"].values()
        tracked = [each for each in states if isinstance(each, dict) and each["requires_grad"]]
        ends.append(sum((0.5 + 0.1 * i) * math.sin(x) for i, each in enumerate(tracked) for x in each["values"]))
    return (ends[0] - ends[1]) / (2 * step)
