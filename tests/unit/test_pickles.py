"""Pickles are read after the functions that they name have moved: those of earlier versions, and those written today."""

from __future__ import annotations

import base64
import copy
import pickle
import pickletools
import sys
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import retrograd as torch
from retrograd import _rebuild
from retrograd.compat.pickle_names import FORMER_NAMES

#: Lines of a name and a pickle in base 85, written before the source was moved to its present folders.
FORMER = dict(line.split() for line in Path(__file__).with_name("former_pickles.txt").read_text().splitlines())
SHOWN = {
    "tensor": "tensor([0., 1., 2.])",
    "parameter": "Parameter containing:\ntensor([0., 1.], requires_grad=True)",
    "flatten": "Flatten(start_dim=1, end_dim=-1)",
    "max": "torch.return_types.max(\nvalues=tensor([2., 3.]),\nindices=tensor([1, 1]))",
    "packed": "PackedSequence(data=tensor([1., 1.]), batch_sizes=tensor([1, 1]), sorted_indices=None, unsorted_indices=None)",
    "dtype": "torch.float32",
    "device": "device(type='cpu')",
    "size": "torch.Size([1, 2])",
    "tree": "TreeSpec(tuple, None, [*,\n  TreeSpec(list, None, [*])])",
    "layout": "(torch.strided, torch.channels_last)",
    "uninitialized": "<UninitializedBuffer>",
}


def named(data: bytes) -> set[str]:
    """The modules that a pickle names."""
    strings = [arg for opcode, arg, _ in pickletools.genops(data) if opcode.name == "SHORT_BINUNICODE"]
    return {each for each in strings if isinstance(each, str) and each.startswith("retrograd")}


@pytest.mark.parametrize("name", SHOWN)
def test_a_pickle_of_an_earlier_version_is_read(name: str) -> None:
    value = pickle.loads(base64.b85decode(FORMER[name]))
    assert repr(value) == SHOWN[name] and repr(pickle.loads(pickle.dumps(value))) == SHOWN[name]


def test_a_pickled_optimizer_of_an_earlier_version_goes_on() -> None:
    sgd = pickle.loads(base64.b85decode(FORMER["sgd"]))
    (group,) = sgd.param_groups
    group["params"][0].grad = torch.ones_like(group["params"][0])
    sgd.step()
    assert group["lr"] == 0.5


def test_every_former_name_is_an_object_of_today() -> None:
    for module, names in FORMER_NAMES.items():
        for name in names:
            assert callable(getattr(sys.modules[f"retrograd.{module}"], name))
        with pytest.raises(AttributeError, match="pickled as 'nothing'"):
            sys.modules[f"retrograd.{module}"].nothing
    assert not hasattr(torch.autograd, "sequences")


@pytest.mark.parametrize("name", _rebuild.FUNCTIONS)
def test_a_function_that_rebuilds_objects_is_pickled_by_its_stable_name(name: str) -> None:
    function = getattr(_rebuild, name)
    assert (function.__module__, function.__qualname__) == ("retrograd._rebuild", name)
    assert pickle.loads(pickle.dumps(function)) is function


@pytest.mark.parametrize(
    "value",
    [
        torch.ones(2), torch.nn.Parameter(torch.ones(2)), torch.ones(2).max(0), torch.float32, torch.device("cpu"),
        torch.Size([1]), torch.strided, torch.Generator(), torch.nn.UninitializedParameter(),
    ],
)  # fmt: skip
def test_pickles_name_no_internal_module(value: Any) -> None:
    assert named(pickle.dumps(value)) == {"retrograd._rebuild"}


@pytest.mark.parametrize(
    "name",
    [
        "Tensor.sum", "Tensor.add_", "Tensor.__add__", "Tensor.__getitem__", "Tensor.backward", "Tensor.split",
        "Tensor.requires_grad_", "nn.functional.relu", "nn.functional.linear", "nn.functional.conv2d",
        "nn.functional.max_pool2d", "nn.functional.cross_entropy", "sum", "zeros", "linalg.inv", "fft.fft", "special.erf",
        "func.grad", "vmap", "is_grad_enabled", "nn.Linear.forward",
    ],
)  # fmt: skip
def test_a_function_is_pickled_by_its_public_name(name: str) -> None:
    function: Any = torch
    for part in name.split("."):
        function = getattr(function, part)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is copy.copy(function) is function


def test_every_method_and_function_is_pickled() -> None:
    spaces = [torch.Tensor, torch, torch.nn.functional, torch.linalg, torch.fft, torch.special]
    functions = [each for space in spaces for each in vars(space).values() if isinstance(each, FunctionType)]
    assert len(functions) > 1400
    assert [
        each for each in functions if each.__name__[0] != "_" and pickle.loads(pickle.dumps(each)) is not each
    ] == []


def test_a_bound_method_is_pickled_with_its_tensor() -> None:
    bound = pickle.loads(pickle.dumps(torch.ones(3).sum))
    assert bound().item() == 3
