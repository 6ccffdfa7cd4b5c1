"""Dtypes: promotion between all of them, defaults, limits, conversion."""

from __future__ import annotations

import copy
import math
import pickle

import numpy
import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.conformance.promotion_cases import EXPRESSIONS, answer

ANSWERS = load("promotion")["answers"]


def test_promotion_matches_pytorch() -> None:
    wrong = {}
    for expression, expected in zip(EXPRESSIONS, ANSWERS, strict=True):
        got = answer(torch, expression).removeprefix("torch.")
        if got != expected:
            wrong[expression] = f"{got}, PyTorch {expected}"
    assert not wrong


def test_dtypes_print_compare_and_pickle() -> None:
    assert repr(torch.float32) == "torch.float32" and torch.float is torch.float32 and torch.long is torch.int64
    assert pickle.loads(pickle.dumps(torch.bfloat16)) is torch.bfloat16 and copy.deepcopy(torch.int8) is torch.int8
    assert torch.float16.itemsize == 2 and torch.float16.is_floating_point and not torch.int8.is_floating_point


def test_limits() -> None:
    assert torch.finfo(torch.float32).eps == 2.0**-23 and torch.finfo().dtype == "float32"
    assert torch.iinfo(torch.int16).max == 32767 and torch.iinfo(torch.uint8).min == 0
    assert torch.finfo(torch.bfloat16).bits == 16 and torch.finfo(torch.float16).max == 65504


def test_the_default_dtype() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.tensor(1.0).dtype is torch.zeros(1).dtype is torch.rand(1).dtype is torch.float64
        assert torch.tensor(1j).dtype is torch.complex128 and (torch.tensor([1]) * 1.0).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_computes_in_float32_and_rounds_once(dtype: torch.dtype) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], dtype=dtype)
    assert (x * 0.1).dtype is dtype and (x + x).sum().dtype is dtype
    assert (x * 0.1).float().tolist() == (x.float() * 0.1).to(dtype).float().tolist()


MANY = 3000
SHORT_SUMS = {
    "a bias": lambda x, many: many + x,
    "a factor": lambda x, many: many * x,
    "expand": lambda x, many: x.expand(MANY, 2),
    "gather": lambda x, many: x.gather(0, torch.zeros(MANY, dtype=torch.int64)),
    "index_select": lambda x, many: x.index_select(0, torch.zeros(MANY, dtype=torch.int64)),
    "scatter_add": lambda x, many: x.scatter_add(0, torch.zeros(MANY, dtype=torch.int64), many[:, 0]) * x,
    "as_strided": lambda x, many: x.as_strided((MANY, 2), (0, 1)),
    "cummax": lambda x, many: (many[:, 0] * 0 - torch.arange(MANY).to(x) + 2 * x[0]).cummax(0)[0],
    "cumsum": lambda x, many: (many * x).cumsum(0) * (1 / MANY),
    "logcumsumexp": lambda x, many: (many * x).logcumsumexp(0),
    "linear": lambda x, many: torch.nn.functional.linear(many, torch.eye(2).to(x), x),
    "matrices": lambda x, many: many[:, :1] @ x[None],
    "lstm": lambda x, many: lstm(many[:, None, :1], x),
    "gelu": lambda x, many: torch.nn.functional.gelu(x * 300, approximate="tanh"),
    "finite": lambda x, many: (x + math.inf).nan_to_num() + x,
    "remainder": lambda x, many: torch.remainder(7, x * 1.5),
}


def lstm(rows: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    layer = torch.nn.LSTM(1, 1).to(bias.dtype)
    weights = [torch.full_like(each, 0.1) for each in layer.parameters()]
    names = [name for name, _ in layer.named_parameters()]
    weights[2] = bias[:1].expand(4)
    return torch.func.functional_call(layer, dict(zip(names, weights, strict=True)), (rows.transpose(0, 1),))[0]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", SHORT_SUMS)
def test_half_precision_gradients_are_summed_in_float32(name: str, dtype: torch.dtype) -> None:
    gradients = []
    for kind in (dtype, torch.float32):
        x = torch.tensor([1.0, 2.0], dtype=kind, requires_grad=True)
        SHORT_SUMS[name](x, torch.ones(MANY, 2, dtype=kind)).sum().backward()
        assert x.grad is not None and x.grad.dtype is kind
        gradients.append(x.grad.float())
    assert torch.allclose(*gradients, rtol=0.03), gradients


def test_memory_is_shared_with_numpy() -> None:
    array = numpy.zeros(3, numpy.float32)
    x = torch.from_numpy(array)
    x[0] = 5
    assert array[0] == 5 and x.numpy() is not None and numpy.shares_memory(x.numpy(), array)


def test_pickle_and_copy() -> None:
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    x.note = "mine"
    (x * 2).sum().backward()
    for y in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x)):
        assert torch.equal(x, y) and y.requires_grad and y.is_leaf and y.note == "mine"
        assert y.data_ptr() != x.data_ptr()
    assert copy.deepcopy(x).grad.tolist() == [[2.0, 2.0]]
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


def test_resolution_is_a_power_of_ten() -> None:
    kinds = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
    assert [torch.finfo(each).resolution for each in kinds] == [0.001, 0.01, 1e-06, 1e-15]
    assert "resolution=0.01," in repr(torch.finfo(torch.bfloat16))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_large_arrays_convert_to_half_precision_and_back(kind: torch.dtype) -> None:
    x = torch.arange(100_000.0) % 128
    assert x.to(kind).dtype is kind and torch.equal(x.to(kind).float(), x)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_half_precision_sum_to_size_accumulates_in_float32(kind: torch.dtype) -> None:
    bias = torch.zeros(4, dtype=kind, requires_grad=True)
    weight = torch.zeros(4, 4, 1, dtype=kind)
    ones = torch.ones(4096, 4, dtype=kind)
    (ones + bias).backward(ones)
    torch.nn.functional.linear(ones, weight[:, :, 0], bias).backward(ones)
    torch.nn.functional.conv1d(ones.T[None], weight, bias).backward(ones.T[None])
    assert bias.grad is not None and bias.grad.tolist() == [3 * 4096.0] * 4
    ones = torch.ones(1024, dtype=kind, requires_grad=True)
    ones.cumsum(0).backward(torch.ones(1024, dtype=kind))
    assert ones.grad is not None and ones.grad[0] == 1024


def test_batch_norm_statistics_of_half_precision_input() -> None:
    x = torch.linspace(0, 3, 2000).reshape(500, 4).bfloat16()
    layer, wide = torch.nn.BatchNorm1d(4), torch.nn.BatchNorm1d(4)
    layer(x), wide(x.float())
    torch.testing.assert_close(layer.running_mean, wide.running_mean)
    torch.testing.assert_close(layer.running_var, wide.running_var)


def test_gradient_of_float16_mean_of_many_elements() -> None:
    x = torch.ones(100_000).half().requires_grad_()
    zeros = torch.zeros_like(x)
    F = torch.nn.functional
    for each in (x.mean(), x.mean(0), torch.std_mean(x, 0)[1], F.l1_loss(x, zeros), F.mse_loss(x, zeros) / 2):
        (grad,) = torch.autograd.grad(each * 1024, x)
        torch.testing.assert_close(grad, torch.full_like(x, 1024 / 100_000))


def test_zeros_of_a_dtype_without_zero_are_its_smallest_number() -> None:
    ones = torch.ones(2).to(torch.float8_e8m0fnu)
    for made in (torch.zeros_like(ones), ones.new_zeros(2), torch.zeros(2, dtype=ones.dtype)):
        assert made.float().tolist() == [2.0**-127] * 2
