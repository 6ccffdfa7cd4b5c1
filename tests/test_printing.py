"""The printed text of tensors: hundreds of recorded ones, and how options and formats act."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

import retrograd as torch
from tests.printed import CASES, array_of

TEXTS = json.loads((Path(__file__).with_name("golden") / "printing.json").read_text())["texts"]


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


def test_str_is_repr_and_a_0d_tensor_formats_as_its_number() -> None:
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


def test_the_default_dtype_is_not_printed() -> None:
    torch.set_default_dtype(torch.float64)
    try:
        assert repr(torch.tensor([1.0])) == "tensor([1.])"
        assert repr(torch.tensor([1.0], dtype=torch.float32)) == "tensor([1.], dtype=torch.float32)"
    finally:
        torch.set_default_dtype(torch.float32)
