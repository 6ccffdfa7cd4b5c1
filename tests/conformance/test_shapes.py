"""Reshaping, joining, scattering, searching: views, strides, versions and errors compared with PyTorch."""

from __future__ import annotations

import json

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.conformance.shape_cases import EXPRESSIONS, answer

ANSWERS = load("shapes")["answers"]


@pytest.mark.parametrize(("expression", "expected"), list(zip(EXPRESSIONS, ANSWERS, strict=True)), ids=EXPRESSIONS)
def test_answers_match_pytorch(expression: str, expected: object) -> None:
    found = json.loads(json.dumps(answer(torch, expression)))
    if expected and isinstance(expected, list) and str(expected[0]).endswith("Error"):
        assert found[0] == expected[0] and found[1].startswith(expected[1])  # retrograd's error may be longer
    else:
        assert found == expected


def test_failing_calls_change_nothing() -> None:
    x = torch.zeros(3)
    for call in (
        lambda: x.index_add_(0, torch.tensor([0, 9]), torch.ones(2)),
        lambda: x.scatter_(0, torch.tensor([0, 9]), torch.ones(2)),
        lambda: x.put_(torch.tensor([0, 9]), torch.ones(2)),
        lambda: x.masked_fill_(torch.tensor([True, False]), 1),
        lambda: x.index_fill_(0, torch.tensor([0, 9]), 1),
        lambda: x.fill_(1j),
        lambda: x.__setitem__([0, 9], 1.0),
        lambda: x.unsqueeze_(4),
        lambda: x.as_strided_((9,), (1,)),
    ):
        with pytest.raises((RuntimeError, IndexError)):
            call()
    assert x.tolist() == [0.0, 0.0, 0.0] and x._version == 0 and x.shape == (3,)


def test_prod_with_zeros_has_exact_derivatives() -> None:
    """PyTorch's second derivative fails with two zeros; it is the product of the other factors."""
    x = torch.tensor([3.0, 2.0], requires_grad=True)
    y = torch.tensor([0.0, 0.0, 5.0], requires_grad=True)
    out = x.scatter_reduce(0, torch.tensor([0, 0, 1]), y, "prod")
    first = torch.autograd.grad(out.sum(), (x, y), create_graph=True)
    assert first[0].tolist() == [0.0, 5.0] and first[1].tolist() == [0.0, 0.0, 2.0]
    single = torch.tensor([0.0, 4.0], requires_grad=True)
    grad = torch.autograd.grad(x.index_reduce(0, torch.tensor([0, 0]), single, "prod").sum(), single)[0]
    assert grad.tolist() == [12.0, 0.0]


def test_a_view_in_another_dtype_shares_memory_and_versions() -> None:
    x = torch.tensor([1.0, 2.0])
    bits = x.view(torch.int32)
    bits[0] = 0
    assert x.tolist() == [0.0, 2.0] and x._version == 1 and bits._base is None


def test_a_complex_view_of_real_numbers_modified_in_place() -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    y = x * 1
    z = torch.view_as_complex(y)
    z.mul_(2j)
    assert y.tolist() == [[-4.0, 2.0], [-8.0, 6.0]]
    (y * torch.tensor([[1.0, 10.0], [100.0, 1000.0]])).sum().backward()
    assert x.grad.tolist() == [[20.0, -2.0], [2000.0, -200.0]]


def test_apply_and_map_call_python_for_each_element() -> None:
    x = torch.tensor([[1, 2], [3, 4]])
    assert x.apply_(lambda each: each * 10) is x
    assert x.map_(torch.tensor([1, 2]), lambda a, b: a + b).tolist() == [[11, 22], [31, 42]]


def test_beta_and_deprecation_warnings() -> None:
    x, index = torch.ones(2), torch.tensor([0, 1])
    with pytest.warns(UserWarning, match="index_reduce\\(\\) is in beta"):
        x.index_reduce(0, index, x, "prod")
    with pytest.warns(UserWarning, match="The reduce argument of torch.scatter with Tensor src is deprecated"):
        x.scatter(0, index, x, reduce="add")
    with pytest.warns(UserWarning, match="Tensor.T is deprecated on 0-D tensors"):
        torch.tensor(1.0).T
    with pytest.warns(UserWarning, match="The use of `x.T` on tensors of dimension other than 2"):
        x.T


def test_sizes_as_separate_arguments() -> None:
    x = torch.zeros(1, 2, 1)
    assert x.broadcast_to(3, 2, 1).shape == x.broadcast_to(size=(3, 2, 1)).shape == (3, 2, 1)
