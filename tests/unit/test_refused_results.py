"""Calls for which PyTorch raises an error or has another result; each differed before."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.kernels.fft import real_to_complex

F = torch.nn.functional
REFUSED = [
    ("torch.cross(f, torch.tensor([1, 0, 0]), dim=0)", "expected scalar type Float but found Long"),
    ("torch.linalg.cross(f, f.double())", "expected scalar type Float but found Double"),
    ("x.scatter(0, torch.tensor([[0]]), torch.ones(1, 1, 1))", "Index tensor must have the same number of dimensions as src"),
    ("f.scatter_add(0, torch.tensor([0, 1]), x)", "Index tensor must have the same number of dimensions as src"),
    ("f.clone().addcdiv_(torch.tensor(1), torch.tensor(2))", "Integer division with addcdiv is no longer supported"),
    ("torch.addcdiv(f, torch.tensor(1), torch.tensor(True))", "Integer division with addcdiv is no longer supported"),
    ("F.hardtanh(f.to(torch.uint8))", "cannot do hardtanh on an unsigned type with negative limits"),
    ("assign(x, torch.tensor([1, 0], dtype=torch.uint8), 5.0)", "masked_fill_ only supports boolean masks"),
    ("torch.trace(x.bool())", '"trace" not implemented for \'Bool\''),
    ("F.rrelu(x, -inf)", "rrelu: lower bound must be finite, got -inf"),
    ("x.bernoulli_(x)", "Expected p_in >= 0 && p_in <= 1 to be true"),
    ("torch.bernoulli(torch.tensor(nan))", "Expected p_in >= 0 && p_in <= 1 to be true"),
    ("f.new(3, device='meta')", "legacy constructor expects device type: cpu but device type: meta was passed"),
    ("f.untyped_storage()[::2]", "Trying to slice with a step of 2, but only a step of 1 is supported"),
]  # fmt: skip


def assign(x: torch.Tensor, index: Any, value: Any) -> None:
    x[index] = value


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_call_is_refused(call: str, text: str) -> None:
    names = {"f": torch.tensor([1.0, 2.0, 3.0]), "x": torch.arange(6.0).reshape(2, 3), "nan": math.nan, "inf": math.inf}
    with pytest.raises((RuntimeError, NotImplementedError)) as raised:
        eval(call, {"torch": torch, "F": F, "assign": assign, **names})
    assert text in str(raised.value)


def test_trace_of_uint8_is_int64() -> None:
    assert torch.trace(torch.ones(2, 2, dtype=torch.uint8)).dtype is torch.int64


def test_deprecated_arguments_of_losses_are_truth_values() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    with pytest.warns(UserWarning, match="size_average"):
        assert F.mse_loss(x, x + 1, 0).item() == 6.0 and F.l1_loss(x, x + 1, None, 0).shape == (2, 3)
    assert torch.kl_div(x, x, 3).shape == (2, 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_determinant_of_matrix_that_is_not_finite_has_gradient_nan(bad: float) -> None:
    x = torch.tensor([[[1.0, 2.0], [2.0, bad]], [[1.0, 2.0], [3.0, 4.0]]], requires_grad=True)
    torch.linalg.det(x).sum().backward()
    assert x.grad[0].isnan().all() and torch.allclose(x.grad[1], torch.tensor([[4.0, -3.0], [-2.0, 1.0]]))


def test_split_functions_take_indices_one_by_one() -> None:
    x = torch.ones(4, 6)
    assert [each.shape[1] for each in x.hsplit(1, -3)] == [1, 2, 3]
    assert [each.shape[0] for each in x.vsplit(indices=(1, 3))] == [1, 2, 1]
    assert len(torch.vsplit(x, sections=2)) == len(x.vsplit(2)) == 2
    with pytest.raises(TypeError):
        x.hsplit()


def test_defaults_and_empty_matrices() -> None:
    assert torch.histogram(torch.arange(6.0)).hist.shape == (100,)
    assert torch.cholesky(torch.ones(2, 0, 3)).shape == (2, 0, 3)


def test_slice_of_storage_shares_its_bytes() -> None:
    x = torch.ones(4)
    part = x.untyped_storage()[4:8]
    assert part.nbytes() == 4 and part.data_ptr() == x.data_ptr() + 4 and bytes(part[2:]) == b"\x80\x3f"
    part.fill_(0)
    assert x.tolist() == [1.0, 0.0, 1.0, 1.0]


def test_set_takes_part_of_memory() -> None:
    source = torch.arange(6.0)
    x = torch.zeros(0).set_(source.untyped_storage(), 1, (2, 2), (2, 1))
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    x[0, 0] = 9.0
    assert source[1].item() == 9.0
    assert torch.zeros(0).set_(source[1:], storage_offset=0, size=(2,)).tolist() == [9.0, 2.0]
    with pytest.raises(RuntimeError, match="out of bounds for storage of size 24"):
        torch.zeros(0).set_(source.untyped_storage(), 5, (2,))
    with pytest.raises(TypeError):
        torch.zeros(0).set_(foo=1)


@pytest.mark.parametrize("name", ["mul_", "div_", "pow_", "atan2_", "addcmul_", "addcdiv_", "lerp_"])
def test_inplace_operation_that_would_save_inference_tensor_changes_nothing(name: str) -> None:
    with torch.inference_mode():
        frozen = torch.full((2,), 2.0)
    x = torch.full((2,), 3.0, requires_grad=True) * 1
    node, other = x.grad_fn, x.detach().clone().requires_grad_() * 1
    given = {"addcmul_": (other, frozen), "addcdiv_": (frozen, other), "lerp_": (frozen, other)}.get(name, (frozen,))
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        getattr(x, name)(*given)
    assert x._version == 0 and x.tolist() == [3.0, 3.0] and x.grad_fn is node


def test_more_segments_than_functions_are_refused() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ValueError, match="1 functions cannot be divided into 3 segments"):
        torch.utils.checkpoint.checkpoint_sequential([torch.nn.ReLU()], 3, x, use_reentrant=False)


@pytest.mark.parametrize("dims", [(0, 1), (1, 0), (0, 2), (2, 0, 1)])
def test_full_spectrum_over_several_axes(dims: tuple[int, ...]) -> None:
    x = numpy.random.default_rng(0).standard_normal((4, 3, 5))
    assert numpy.allclose(real_to_complex(numpy, x, dims, 0, False), numpy.fft.fftn(x, axes=dims))
