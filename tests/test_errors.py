"""PyTorch's errors: type and words, and nothing changed by the call that raised."""

from __future__ import annotations

import re
from typing import Any

import pytest

import retrograd as torch

CASES: list[tuple[str, type[Exception], str]] = [
    ("torch.ones(2) + torch.ones(3)", RuntimeError, "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0"),
    ("torch.ones(2, 3) @ torch.ones(2, 3)", RuntimeError, "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)"),
    ("torch.mul(torch.ones(2), 'a')", TypeError, "mul(): argument 'other' (position 2) must be Tensor, not str"),
    ("torch.ones(2).item()", RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
    ("bool(torch.ones(2))", RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
    ("int(torch.ones(2))", ValueError, "only one element tensors can be converted to Python scalars"),
    ("[1, 2][torch.tensor(1.0)]", TypeError, "only integer tensors of a single element can be converted to an index"),
    ("len(torch.tensor(1))", TypeError, "len() of a 0-d tensor"),
    ("iter(torch.tensor(1))", TypeError, "iteration over a 0-d tensor"),
    ("torch.ones(2, requires_grad=True).numpy()", RuntimeError, "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."),
    ("torch.ones(2).sum(3)", IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 3)"),
    ("torch.ones(6).view(4)", RuntimeError, "shape '[4]' is invalid for input of size 6"),
    ("torch.ones(2, 3).t().view(6)", RuntimeError, "view size is not compatible with input tensor's size and stride"),
    ("torch.ones(2, 3)[5]", IndexError, "index 5 is out of bounds for dimension 0 with size 2"),
    ("torch.ones(2)[0, 0]", IndexError, "too many indices for tensor of dimension 1"),
    ("torch.ones(3)[::-1]", ValueError, "step must be greater than zero"),
    ("torch.ones(3)[1.5]", IndexError, "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)"),
    ("torch.ones(3)[torch.tensor([7])]", IndexError, "index 7 is out of bounds for dimension 0 with size 3"),
    ("torch.tensor([1, 2]).mean()", RuntimeError, "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long"),
    ("torch.cat([])", ValueError, "expected a non-empty list of Tensors"),
    ("torch.cat([torch.ones(2), torch.ones(1, 2)])", RuntimeError, "Tensors must have same number of dimensions: got 1 and 2"),
    ("torch.stack([torch.ones(2), torch.ones(3)])", RuntimeError, "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1"),
    ("torch.tensor([[1], [1, 2]])", ValueError, "expected sequence of length 1 at dim 1 (got 2)"),
    ("torch.zeros(2, dtype=3)", TypeError, "zeros(): argument 'dtype' must be torch.dtype, not int"),
    ("torch.zeros(-1)", RuntimeError, "zeros: Dimension size must be non-negative."),
    ("torch.arange(1, 0)", RuntimeError, "upper bound and lower bound inconsistent with step sign"),
    ("torch.tensor(True) - torch.tensor(True)", RuntimeError, "Subtraction, the `-` operator, with two bool tensors is not supported."),
    ("-torch.tensor(True)", RuntimeError, "Negation, the `-` operator, on a bool tensor is not supported."),
    ("torch.tensor([1, 2]) ** -1", RuntimeError, "Integers to negative integer powers are not allowed."),
    ("torch.tensor([1]) // torch.tensor([0])", RuntimeError, "ZeroDivisionError"),
    ("torch.device('nowhere')", RuntimeError, "Expected one of cpu, cuda"),
    ("torch.linalg.inv(torch.zeros(2, 2))", torch.linalg.LinAlgError, "The diagonal element 1 is zero"),
    ("torch.einsum('ij,jk', torch.ones(2, 2))", RuntimeError, "fewer operands were provided than specified in the equation"),
    ("torch.finfo(torch.int32)", TypeError, "torch.finfo() requires a floating point input type."),
    ("torch.set_default_dtype(torch.int32)", TypeError, "only floating-point types are supported as the default type"),
    ("torch.promote_types(torch.uint16, torch.int8)", RuntimeError, "Promotion for uint16, uint32, uint64 types is not supported"),
    ("torch.from_numpy(3)", TypeError, "expected np.ndarray (got int)"),
    ("torch.clamp(torch.ones(2))", RuntimeError, "At least one of 'min' or 'max' must not be None"),
    ("torch.ones(2).gather(0, torch.tensor([5]))", RuntimeError, "index 5 is out of bounds for dimension 0 with size 2"),
    ("torch.mul(torch.ones(2))", TypeError, 'missing 1 required positional argument'),
    ("torch.no_such_function", AttributeError, "no_such_function"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "text"), CASES, ids=[each[0] for each in CASES])
def test_error(call: str, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=re.escape(text)):
        eval(call, {"torch": torch})


@pytest.mark.parametrize(
    "call", ["x.copy_(torch.ones(5))", "x.add_(torch.ones(2, 3))", "x.masked_fill_(m, 1)", "x.mul_(1j)"]
)
def test_a_call_that_raises_changes_nothing(call: str) -> None:
    x, m = torch.zeros(3), torch.tensor([1, 0, 1])
    with pytest.raises(RuntimeError):
        eval(call, {"torch": torch, "x": x, "m": m})
    assert x.tolist() == [0.0, 0.0, 0.0] and x._version == 0
