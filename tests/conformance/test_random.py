"""Random numbers: PyTorch's numbers for a seed, generators and their state, errors."""

from __future__ import annotations

import numpy
import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.conformance.random_cases import DRAWS, SEEDS, draw

ROWS = load("random")["rows"]


def test_numbers_match_pytorch() -> None:
    names = [*DRAWS, "state"] * len(SEEDS)
    for name, got, expected in zip(names, draw(torch), ROWS, strict=True):
        numpy.testing.assert_allclose(got, expected, rtol=2e-6, atol=2e-6, err_msg=name)


def test_state_can_be_restored() -> None:
    torch.manual_seed(1)
    torch.randn(3)
    state = torch.get_rng_state()
    first = torch.randn(5).tolist(), torch.rand(3).tolist()
    torch.set_rng_state(state)
    assert (torch.randn(5).tolist(), torch.rand(3).tolist()) == first
    assert state.dtype is torch.uint8 and state.shape == (5056,)


def test_user_generator() -> None:
    a, b = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
    torch.rand(3)
    assert torch.rand(4, generator=a).tolist() == torch.rand(4, generator=b).tolist()
    assert a.initial_seed() == 7 and torch.equal(a.get_state(), b.get_state())


def test_fork_rng_restores_the_stream() -> None:
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


REFUSED = [
    ("torch.binomial(torch.ones(2), torch.ones(2).double())", RuntimeError, "Found dtype Double but expected Float"),
    (
        "torch.binomial(torch.tensor([1]), torch.tensor([0.5]))",
        ValueError,
        "binomial only supports floating-point dtypes for count, got: Long",
    ),
    ("torch.poisson(torch.tensor([1]))", NotImplementedError, "\"poisson_cpu\" not implemented for 'Long'"),
    (
        "torch.empty(2, dtype=torch.int32).exponential_()",
        RuntimeError,
        "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
        "specified Int",
    ),
    (
        "torch.empty(2, dtype=torch.int64).cauchy_()",
        RuntimeError,
        "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you specified "
        "long int",
    ),
    ("torch.empty(2, dtype=torch.bool).geometric_(0.5)", NotImplementedError,
     "\"geometric_cpu\" not implemented for 'Bool'"),
    ("torch.empty(2, dtype=torch.int8).random_(300)", RuntimeError, "to - 1 is out of bounds for signed char"),
    ("torch.empty(2, dtype=torch.uint8).random_(-1, 5)", RuntimeError, "from is out of bounds for unsigned char"),
    ("torch.empty(2).uniform_(0, float('inf'))", RuntimeError, "to is out of bounds for float"),
    ("torch.randint(3, (2,), dtype=torch.bool)", RuntimeError, "to - 1 is out of bounds for bool"),
    ("torch.randperm(-1)", RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
    (
        "torch.normal(torch.zeros(2), torch.zeros(3))",
        RuntimeError,
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_errors(call: str, kind: type[Exception], text: str) -> None:
    state = torch.get_rng_state()
    with pytest.raises(kind) as caught:
        eval(call, {"torch": torch})
    assert str(caught.value) == text
    assert torch.equal(torch.get_rng_state(), state), "random numbers were generated"


NODES = {
    "uniform_()": "UniformBackward0", "normal_()": "NormalBackward0", "random_()": "RandomBackward2",
    "random_(5)": "RandomBackward1", "random_(1, 5)": "RandomBackward0", "exponential_()": "ExponentialBackward0",
    "cauchy_()": "CauchyBackward0", "log_normal_()": "LogNormalBackward0", "geometric_(0.5)": "GeometricBackward0",
    "bernoulli_()": "BernoulliBackward2", "bernoulli_(torch.tensor(0.5))": "BernoulliBackward1",
}  # fmt: skip


@pytest.mark.parametrize(("call", "node"), NODES.items())
def test_inplace_random_has_node_and_zero_gradient(call: str, node: str) -> None:
    x = torch.ones(3, requires_grad=True)
    y = eval(f"(x * 1).{call}", {"torch": torch, "x": x})
    assert type(y.grad_fn).__name__ == node
    assert torch.autograd.grad(y.sum(), x)[0].tolist() == [0.0, 0.0, 0.0]


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
