"""Repr of tensors: recorded texts, print options and formats."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy
import pytest

import retrograd as torch
from retrograd.core.formatting import tensor_text
from tests.conformance.golden import load
from tests.conformance.printing_cases import CASES, array_of

TEXTS = load("printing")["texts"]


@pytest.fixture(autouse=True)
def default_options() -> Any:
    yield
    torch.set_printoptions(profile="default")


@pytest.mark.parametrize("number", range(len(CASES)))
def test_text(number: int) -> None:
    expression, dtype, options, extra = CASES[number]
    torch.set_printoptions(**options)
    with numpy.errstate(all="ignore"):
        tensor = torch.tensor(array_of(expression)).to(getattr(torch, dtype))
    if extra == "requires_grad":
        tensor.requires_grad_()
    elif extra == "grad_fn":
        tensor = tensor.requires_grad_() * 1
    assert repr(tensor) == TEXTS[number]


def test_str_equals_repr_and_0d_tensor_formats_as_number() -> None:
    x = torch.tensor(1.5)
    assert str(x) == repr(x) == "tensor(1.5000)"
    assert f"{x}" == "1.5" and f"{x:.2f}" == "1.50" and f"{torch.tensor(7):03d}" == "007"
    assert f"{torch.ones(2)}" == "tensor([1., 1.])"
    with pytest.raises(TypeError, match="unsupported format string passed to Tensor"):
        f"{torch.ones(2):.2f}"


def test_options_for_a_block() -> None:
    with torch._tensor_str.printoptions(precision=1):
        assert repr(torch.tensor([0.25])) == "tensor([0.2])"
    assert repr(torch.tensor([0.25])) == "tensor([0.2500])"


def test_printoptions_block_with_profile() -> None:
    torch.set_printoptions(precision=6, sci_mode=True)
    before = torch._tensor_str.get_printoptions()
    with torch._tensor_str.printoptions(profile="short"):
        inside = {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80, "sci_mode": None}
        assert torch._tensor_str.get_printoptions() == inside
    assert torch._tensor_str.get_printoptions() == before
    with torch._tensor_str.printoptions(linewidth=40):
        assert torch._tensor_str.get_printoptions() == {**before, "linewidth": 40, "sci_mode": None}
    assert torch._tensor_str.get_printoptions() == before


def test_printoptions_block_restores_options_after_error() -> None:
    before = torch._tensor_str.get_printoptions()
    with pytest.raises(KeyError), torch._tensor_str.printoptions(precision=1):
        raise KeyError
    with (
        pytest.raises(TypeError, match="unexpected keyword argument 'digits'"),
        torch._tensor_str.printoptions(digits=1),
    ):
        pass
    assert torch._tensor_str.get_printoptions() == before


NAMES = {"dtype": "torch.float32", "default_dtype": "torch.float32", "default_complex": "torch.complex64"}


@pytest.mark.parametrize("dtype", [numpy.float16, ml_dtypes.bfloat16, numpy.float32, numpy.float64, numpy.complex64])
@pytest.mark.parametrize("view", ["array.T", "array[::2]", "array[:, ::-1]", "numpy.broadcast_to(array[0], (3, 40))"])
def test_memory_layout_does_not_change_repr(dtype: Any, view: str) -> None:
    array = (numpy.arange(1600) * 7919 % 1009 - 500).reshape(40, 40).astype(dtype) / dtype(8)
    strided = eval(view, {"array": array, "numpy": numpy})
    assert tensor_text(strided, **NAMES) == tensor_text(numpy.ascontiguousarray(strided), **NAMES)


@pytest.mark.parametrize(
    "dtype", [numpy.float16, ml_dtypes.bfloat16, numpy.float64, numpy.complex128, numpy.int64, bool]
)
def test_summary_reads_only_the_shown_elements(dtype: Any) -> None:
    """An expanded tensor of more elements than memory holds: reading or copying all of them would not end."""
    endless = numpy.broadcast_to(numpy.ones((), dtype), (10**6, 10**6))
    assert tensor_text(endless, **NAMES).count("...") == 7


def test_view_with_invalid_grad_fn_prints_invalid() -> None:
    base = torch.ones(3, requires_grad=True) * 1
    with torch.no_grad():
        view = base[:2]
        view.mul_(2)
    assert repr(view) == "tensor([2., 2.], grad_fn=<Invalid>)"
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        view.grad_fn


def test_print_options_are_accessible() -> None:
    torch.set_printoptions(precision=2)
    assert torch._tensor_str.PRINT_OPTS.precision == 2
    assert torch.ones(2).__repr__(tensor_contents="HI") == "tensor(HI)"


def test_tensor_contents_argument() -> None:
    assert (
        tensor_text(numpy.ones((2, 3)), **NAMES, contents="HI", requires_grad=True) == "tensor(HI, requires_grad=True)"
    )
    assert tensor_text(numpy.ones((0, 3)), **NAMES, contents="HI") == "tensor(HI, size=(0, 3))"


def test_the_default_dtype_is_not_printed() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.tensor([1.0])) == "tensor([1.])"
        assert repr(torch.tensor([1.0], dtype=torch.float32)) == "tensor([1.], dtype=torch.float32)"
    finally:
        torch.set_default_dtype(torch.float32)
