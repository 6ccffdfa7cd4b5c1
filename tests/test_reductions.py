"""Reductions and scans: what samples cannot say. Texts and values as PyTorch 2.13 gives them."""

from __future__ import annotations

import math

import numpy
import pytest

import retrograd as torch

REFUSED = [
    (lambda: torch.tensor([3, 1]).std(), RuntimeError, "std and var only support floating point and complex dtypes"),
    (
        lambda: torch.var_mean(torch.tensor([3])),
        RuntimeError,
        "var_mean only support floating point and complex dtypes",
    ),
    (
        lambda: torch.zeros(3, 0).argmax(),
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    (lambda: torch.tensor([True]).argmin(0), RuntimeError, "argmin(): does not support bool input"),
    (lambda: torch.tensor([True]).median(), NotImplementedError, "\"median_cpu\" not implemented for 'Bool'"),
    (lambda: torch.tensor([1j]).max(0), RuntimeError, "max(): does not support complex input"),
    (
        lambda: torch.norm(torch.zeros(3, 0), math.inf),
        RuntimeError,
        "linalg.vector_norm cannot compute the inf norm on an empty tensor because the operation does not have an "
        "identity",
    ),
    (lambda: torch.norm(torch.ones(2), "bad"), RuntimeError, "linalg.matrix_norm: Order bad not supported."),
    (
        lambda: torch.nanmean(torch.tensor([1])),
        RuntimeError,
        "nanmean(): expected input to have floating point or complex dtype but got Long",
    ),
    (
        lambda: torch.logcumsumexp(torch.tensor([1]), 0),
        NotImplementedError,
        "\"logcumsumexp_out_cpu\" not implemented for 'Long'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_refusals(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


@pytest.mark.parametrize("name", ["sum", "mean", "var", "norm"])
@pytest.mark.parametrize("dim", [0, (0, 1)])
def test_float32_sums_over_any_axis_keep_their_digits(name, dim):
    drawn = numpy.random.default_rng(0).random((200_000, 3))
    short, long = (torch.tensor(drawn, dtype=kind) for kind in (torch.float32, torch.float64))
    exact = getattr(long.float().double(), name)(dim=dim)
    got = getattr(short, name)(dim=dim).double()
    assert ((got - exact).abs() / exact).max().item() < 1e-6


def test_running_sums_of_float32_keep_their_digits():
    drawn = torch.tensor(numpy.random.default_rng(0).random(200_000), dtype=torch.float32)
    exact = drawn.double().sum().item()
    assert abs(drawn.cumsum(0)[-1].item() / exact - 1) < 1e-6


def test_gradient_of_logcumsumexp_does_not_overflow():
    x = torch.tensor([800.0, -800.0, 1000.0, -2000.0], requires_grad=True)
    (first,) = torch.autograd.grad(x.logcumsumexp(0), x, torch.tensor([1.0, -2.0, 3.0, 4.0]), create_graph=True)
    assert first.tolist() == pytest.approx([-1.0, 0.0, 7.0, 0.0], rel=1e-3)  # logarithms near 1000 in float32
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.isfinite().all()


def test_results_are_written_into_out():
    x, values, indices = torch.tensor([[1.0, 3.0], [2.0, 1.0]]), torch.empty(2), torch.empty(2, dtype=torch.int64)
    assert torch.prod(x, 1, out=values) is values
    assert values.tolist() == [3.0, 2.0]
    torch.mode(x, 1, out=(values, indices))
    assert (values.tolist(), indices.tolist()) == ([1.0, 1.0], [0, 1])
    assert torch.nansum(x, 0, out=values).tolist() == [3.0, 4.0]
