"""Sorting, searching and counting beyond the samples. Values and messages are PyTorch 2.13's."""

from __future__ import annotations

import math

import pytest

import retrograd as torch

LINE, ROWS = torch.tensor([0.0, 1.0]), torch.tensor([[0.0, 1.0], [2.0, 3.0]])
REFUSED = [
    (lambda: torch.tensor([1j]).sort(), RuntimeError, " Sort does not support complex dtypes on CPU"),
    (lambda: torch.tensor([True]).topk(1), RuntimeError, "topk does not support bool dtypes on CPU"),
    (lambda: torch.tensor([True]).kthvalue(1), NotImplementedError, "\"kthvalue_cpu\" not implemented for 'Bool'"),
    (lambda: torch.bincount(LINE), NotImplementedError, "\"bincount_cpu\" not implemented for 'Float'"),
    (
        lambda: torch.histc(torch.tensor([1.0, math.inf]), 2),
        RuntimeError,
        "torch.histc: range of [1, inf] is not finite",
    ),
    (lambda: torch.bucketize(LINE, ROWS), RuntimeError, "boundaries tensor must be 1 dimension, but got dim(2)"),
    (
        lambda: torch.searchsorted(LINE, LINE, side="bad"),
        RuntimeError,
        "torch.searchsorted(): side can only be 'left' or 'right' but got bad",
    ),
    (
        lambda: torch.searchsorted(ROWS, ROWS[:1]),
        RuntimeError,
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
        "and input value tensor must match, but we got boundaries tensor [2, 2] and input value tensor [1, 2]",
    ),
]


@pytest.mark.parametrize(("call", "kind", "text"), REFUSED)
def test_errors(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text


def test_stable_argument_is_another_overload():
    x = torch.tensor([2.0, 1.0], requires_grad=True)
    assert type(x.sort()[0].grad_fn).__name__ == "SortBackward0"
    assert type(x.sort(stable=False)[0].grad_fn).__name__ == "SortBackward1"
    x.sort(stable=True)[0].backward(torch.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [10.0, 1.0]


def test_unique_keeps_every_nan():
    values, places, counts = torch.unique(
        torch.tensor([math.nan, 1.0, math.nan]), return_inverse=True, return_counts=True
    )
    assert str(values) == "tensor([1., nan, nan])"
    assert (places.tolist(), counts.tolist()) == ([1, 0, 2], [1, 1, 1])


def test_results_are_written_into_out():
    x, out = torch.tensor([[1.0, 3.0], [2.0, 1.0]]), torch.empty(2, 2)
    assert torch.msort(x, out=out) is out
    assert out.tolist() == [[1.0, 1.0], [2.0, 3.0]]
    places = torch.empty(2, 2, dtype=torch.int64)
    assert torch.bucketize(x, torch.tensor([1.0, 2.0]), out=places).tolist() == [[0, 2], [1, 0]]
