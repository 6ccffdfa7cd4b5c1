"""Random numbers: PyTorch's for a seed, generators and their state, errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest

import retrograd as torch
from tests.drawn import DRAWS, SEEDS, draw

ROWS = json.loads((Path(__file__).with_name("golden") / "random.json").read_text())["rows"]


def test_the_numbers_are_pytorchs() -> None:
    names = [*DRAWS, "state"] * len(SEEDS)
    for name, got, expected in zip(names, draw(torch), ROWS, strict=True):
        numpy.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6, err_msg=name)


def test_a_state_can_be_taken_up_again() -> None:
    torch.manual_seed(1)
    torch.randn(3)
    state = torch.get_rng_state()
    first = torch.randn(5).tolist(), torch.rand(3).tolist()
    torch.set_rng_state(state)
    assert (torch.randn(5).tolist(), torch.rand(3).tolist()) == first
    assert state.dtype is torch.uint8 and state.shape == (5056,)


def test_a_generator_of_ones_own() -> None:
    a, b = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
    torch.rand(3)
    assert torch.rand(4, generator=a).tolist() == torch.rand(4, generator=b).tolist()
    assert a.initial_seed() == 7 and torch.equal(a.get_state(), b.get_state())


def test_forking_leaves_the_stream_where_it_was() -> None:
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(100)
    after = torch.rand(2).tolist()
    torch.manual_seed(3)
    assert torch.rand(2).tolist() == after


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("torch.randint(5, 5, (2,))", "random_ expects 'from' to be less than 'to', but got from=5 >= to=5"),
        ("torch.normal(0.0, -1.0, (2,))", "normal expects std >= 0.0, but found std -1"),
        ("torch.empty(2).bernoulli_(2.0)", "bernoulli_ expects p to be in"),
        ("torch.multinomial(torch.ones(2), 3)", "cannot sample n_sample > prob_dist.size"),
        ("torch.multinomial(torch.tensor([-1.0, 2.0]), 1)", "probability tensor contains either"),
        ("torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))", "5056"),
        ("torch.rand(2, dtype=torch.int64)", "not implemented for 'Long'"),
    ],
)
def test_bad_arguments(call: str, text: str) -> None:
    with pytest.raises(RuntimeError, match=text.replace("(", r"\(").replace(")", r"\)")):
        eval(call, {"torch": torch})


def test_random_numbers_in_a_leaf_that_requires_gradients() -> None:
    x = torch.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x.uniform_()
    with torch.no_grad():
        x.uniform_()
    y = x * 1
    y.normal_()
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]
