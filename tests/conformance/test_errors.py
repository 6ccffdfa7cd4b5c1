"""PyTorch's errors: type and words, and nothing changed by the call that raised.

What PyTorch says to each call of failing_calls.txt and failing_calls_of_classes.txt is recorded in golden/errors.json. A line there that begins with ``~`` is
known to be answered otherwise; ``python -m tests.conformance.golden.record_errors --marks`` sets the marks anew.
"""

from __future__ import annotations

import inspect
import operator
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.runtime.user_frame import strip_frames
from tests.conformance.error_cases import agrees, calls, failure, inputs
from tests.conformance.golden import load

RECORDED = load("errors")


@pytest.fixture(autouse=True)
def as_it_was() -> Any:
    """Bad calls may be those that set something for the whole process."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def looks(given: dict[str, Any]) -> dict[str, Any]:
    """All that shows of some tensors."""
    return {
        name: (each.detach().tolist().__repr__(), each.dtype, each.shape, each.stride(), each.requires_grad)
        for name, each in given.items()
    }


@pytest.mark.parametrize("topic", calls())
def test_errors_are_pytorchs(topic: str) -> None:
    wrong = []
    for call in calls()[topic]:
        if not call.startswith("~"):
            error = failure(torch, call, inputs(torch))
            if not agrees(error, *RECORDED[call]):
                wrong.append((call, repr(error), RECORDED[call]))
    assert wrong == []


@pytest.mark.parametrize("topic", calls())
def test_a_call_that_raises_changes_nothing(topic: str) -> None:
    before = looks(inputs(torch))
    for call in calls()[topic]:
        if call.startswith("~") or ";" in call or "c.requires_grad_" in call:  # the first of several may well succeed
            continue
        given = inputs(torch)
        failure(torch, call, given)
        assert looks(given) == before, call


def test_errors_come_from_the_call_not_from_within() -> None:
    """What a call with wrong arguments raises has no other error behind it, and no frame of a kernel."""
    with pytest.raises(TypeError, match="argument 'dim' must be int, not str") as caught:
        torch.softmax(torch.ones(2), dim="a")
    assert caught.value.__cause__ is None and caught.value.__suppress_context__


def test_a_users_own_error_is_left_alone() -> None:
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        x.sum().backward()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("torch.sum(x, dim='a')", "got (Tensor, dim=str)"),
        ("torch.sum(x, 'a')", "got (Tensor, str)"),
        ("torch.sum(*[x, 'a'])", "got (Tensor, str)"),
        ("torch.sum(x, **{'dim': 'a'})", "got (Tensor, "),
        ("x.sum(dim='a')", "got (dim=str, )"),
        ("torch.exp(input=3)", "exp(): argument 'input' must be Tensor, not int"),
        ("list(map(torch.exp, [3]))", "exp(): argument 'input' (position 1) must be Tensor, not int"),
    ],
)
def test_what_was_given_is_told_by_name_or_position(call: str, text: str) -> None:
    for _ in range(2):  # the first call writes the function's code
        error = failure(torch, call, {"x": torch.ones(2)})
        assert isinstance(error, TypeError) and text in str(error)


def test_a_missing_name_is_no_skip() -> None:
    """Names that PyTorch does not have raise AttributeErrors with its words, and ours point to the page."""
    with pytest.raises(AttributeError, match=r"module 'torch' has no attribute 'no_such' .*docs.differences.md"):
        torch.no_such


def test_memory_that_is_not_there_is_a_runtime_error() -> None:
    error = MemoryError()
    error.shape, error.dtype = (10**7, 10**6), numpy.dtype(numpy.float32)  # as NumPy's own has them
    found = strip_frames(error)
    assert type(found) is RuntimeError
    assert str(found).endswith("you tried to allocate 40000000000000 bytes. Error code 12 (Cannot allocate memory)")


@pytest.mark.parametrize("call", ["torch.add(x, 2, x)", "torch.sub(v, 2, v)"])
def test_overloads_that_pytorch_has_given_up_are_named(call: str) -> None:
    error = failure(torch, call, inputs(torch))
    assert isinstance(error, TypeError) and str(error).startswith("This overload of ")


@pytest.mark.parametrize("place", ["nn", "optim", "optim.lr_scheduler", "distributions"])
def test_a_misspelt_argument_is_said_to_be_of_a_class_that_programs_know(place: str) -> None:
    module = operator.attrgetter(place)(torch)
    for cls in [each for each in map(vars(module).get, dir(module)) if isinstance(each, type)]:
        try:
            cls(kernal_size=3)
        except (TypeError, AttributeError) as error:
            owner, _, said = str(error).partition(".__init__() got an unexpected keyword")
            assert not said or owner == cls.__name__ or issubclass(cls, getattr(module, owner)), cls
    if place == "nn":
        with pytest.raises(TypeError, match=r"^Conv2d\.__init__\(\) got an unexpected keyword argument 'kernal_size'"):
            torch.nn.Conv2d(3, 3, kernal_size=3)
        assert str(inspect.signature(torch.nn.TransformerEncoderLayer)).startswith("(d_model: int, nhead: int, ")


@pytest.mark.parametrize("dim", [1, -2])
@pytest.mark.parametrize(
    "name", ["softmax", "log_softmax", "cumsum", "cumprod", "max", "min", "argmax", "sort", "argsort"]
)
def test_a_tensor_of_no_dimensions_has_only_0_and_minus_1(name: str, dim: int) -> None:
    with pytest.raises(IndexError, match=rf"expected to be in range of \[-1, 0\], but got {dim}\)"):
        getattr(torch.tensor(1.0), name)(dim)


def test_of_one_number_no_two_are_picked_and_no_dimension_is_moved_twice() -> None:
    x = torch.tensor(1.0)
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.movedim(1, 0)
    with pytest.raises(RuntimeError, match="repeated dim in `source`"):
        x.movedim((0, 0), (0, 0))
    with pytest.raises(RuntimeError, match="selected index k out of range"):
        x.topk(2)


def test_errors_show_the_names_that_the_call_itself_gave() -> None:
    x = torch.ones(2, 3)
    with pytest.raises(TypeError, match=r"got \(Tensor, str\)"):
        torch.sum(torch.sum(x, dim=0, keepdim=True), "a")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"got \(Tensor, dim=str\)"):
        torch.sum(
            x.mean(0), dim="a"  # type: ignore[arg-type]
        )  # fmt: skip
    with pytest.raises(TypeError, match=r"got \(Tensor, dim=str\)"):  # without a source to read
        exec("torch.sum(x, dim='a')", {"torch": torch, "x": x})
