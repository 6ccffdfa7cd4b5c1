"""``torch.masked``: results, texts, gradients and errors as recorded from PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import retrograd as torch
from tests.conformance import masked_cases
from tests.conformance.golden import load
from tests.conformance.training_comparison import close

RECORDED = load("masked")["calls"]


@pytest.fixture(autouse=True)
def _no_warnings() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("call", (*masked_cases.FUNCTIONS, *masked_cases.CALLS_LIST))
def test_calls_match_pytorch(call: str) -> None:
    text, gradients = RECORDED[call]
    answered = masked_cases.answer(torch, call)
    assert answered[0] == text
    if gradients is not None:
        assert answered[1].keys() == gradients.keys()
        for name, expected in gradients.items():
            for value, each in zip(answered[1][name] or [], expected or [], strict=expected is not None):
                assert each is None or close(value, each)


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "amax", "logsumexp", "norm", "var", "std", "median"])
def test_gradients_of_reductions_are_those_of_finite_differences(name: str) -> None:
    x = torch.randn(3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3)).requires_grad_()
    mask = torch.tensor([[True, False, True, True], [True, True, False, True], [True, True, True, True]])
    function = getattr(torch.masked, name)
    assert torch.autograd.gradcheck(lambda x: function(x, dim=1, mask=mask), x)
    assert torch.autograd.gradcheck(lambda x: torch.masked.as_masked_tensor(x * x, mask).to_tensor(0), x)


def test_masked_out_elements_do_not_spoil_the_gradients_of_others() -> None:
    x = torch.tensor([1.0, 1.0], requires_grad=True)
    divisor = torch.tensor([0.0, 1.0])
    torch.masked.as_masked_tensor(x / divisor, divisor != 0).sum().backward()
    assert str(x.grad) == "MaskedTensor(\n  [      --,   1.0000]\n)"


def test_the_gradient_of_an_element_that_where_does_not_take_is_masked_out() -> None:
    a = torch.masked.masked_tensor(torch.tensor(2.0), torch.tensor(True), requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.where(torch.tensor(False), a / 0, torch.ones(())), a)
    assert str(gradient) == "MaskedTensor(--, False)"


def test_gradients_accumulate_and_train() -> None:
    data = torch.tensor([4.0, 2.0, -3.0])
    x = torch.masked.masked_tensor(data, torch.tensor([True, True, False]), requires_grad=True)
    for _ in range(2):
        (x * x).sum().backward()
    assert str(x.grad) == "MaskedTensor(\n  [ 16.0000,   8.0000,       --]\n)"
    x.grad = None
    assert x.grad is None


def test_unsupported_functions_name_what_exists() -> None:
    x = torch.masked.masked_tensor(torch.ones(2, 2), torch.ones(2, 2, dtype=torch.bool))
    with pytest.raises(TypeError, match=r"Multiple dispatch failed.*matmul.*get_data\(\)"):
        x.matmul(x)


def test_construction_warns_of_the_prototype_and_of_history() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.masked.as_masked_tensor(torch.ones(2, requires_grad=True), torch.tensor([True, False]))
    assert [str(each.message)[:40] for each in caught] == [
        "The PyTorch API of MaskedTensors is in p", "It is not recommended to create a Masked",
    ]  # fmt: skip
