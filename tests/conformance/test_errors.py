"""PyTorch's errors: type and text; and a call that raises changes nothing.

``golden/errors.json`` holds PyTorch's error for each call of failing_calls.txt and failing_calls_of_classes.txt. A line
that begins with ``~`` is known to differ; ``python -m tests.conformance.golden.record_errors --marks`` updates the
marks.
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
def restore_settings() -> Any:
    """Restore process-wide settings that failing calls may change."""
    yield
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)


def public_state(given: dict[str, Any]) -> dict[str, Any]:
    """Return the public state of some tensors."""
    return {
        name: (each.detach().tolist().__repr__(), each.dtype, each.shape, each.stride(), each.requires_grad)
        for name, each in given.items()
    }


@pytest.mark.parametrize("topic", calls())
def test_errors_match_pytorch(topic: str) -> None:
    wrong = []
    for call in calls()[topic]:
        if not call.startswith("~"):
            error = failure(torch, call, inputs(torch))
            if not agrees(error, *RECORDED[call]):
                wrong.append((call, repr(error), RECORDED[call]))
    assert wrong == []


@pytest.mark.parametrize("topic", calls())
def test_a_call_that_raises_changes_nothing(topic: str) -> None:
    before = public_state(inputs(torch))
    for call in calls()[topic]:
        if call.startswith("~") or ";" in call or "c.requires_grad_" in call:  # the first of several calls may succeed
            continue
        given = inputs(torch)
        failure(torch, call, given)
        assert public_state(given) == before, call


def test_argument_errors_have_no_cause_and_no_kernel_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    """An argument error shows no other error and no frame of a kernel, unless full tracebacks are wanted."""
    monkeypatch.delenv("RETROGRAD_TRACEBACK")
    for _ in range(2):  # the first call generates the code
        with pytest.raises(TypeError, match="argument 'dim' must be int, not str") as caught:
            torch.softmax(torch.ones(2), dim="a")
    assert caught.value.__cause__ is None and caught.value.__suppress_context__
    assert isinstance(caught.value.__context__, TypeError)
    monkeypatch.setenv("RETROGRAD_TRACEBACK", "full")
    with pytest.raises(TypeError, match="argument 'dim' must be int, not str") as caught:
        torch.softmax(torch.ones(2), dim="a")
    assert isinstance(caught.value.__cause__, TypeError)


def test_errors_of_user_code_are_unchanged() -> None:
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
def test_argument_errors_name_the_argument_or_its_position(call: str, text: str) -> None:
    for _ in range(2):  # the first call generates the function's code
        error = failure(torch, call, {"x": torch.ones(2)})
        assert isinstance(error, TypeError) and text in str(error)


def test_missing_names_raise_pytorchs_attribute_error() -> None:
    """Unknown names raise PyTorch's AttributeError; unsupported names point to the page."""
    with pytest.raises(AttributeError, match=r"module 'torch' has no attribute 'no_such' .*docs.differences.md"):
        torch.no_such


def test_failed_allocation_is_a_runtime_error() -> None:
    error = MemoryError()
    error.shape, error.dtype = (10**7, 10**6), numpy.dtype(numpy.float32)  # as NumPy's own has them
    found = strip_frames(error)
    assert type(found) is RuntimeError
    assert str(found).endswith("you tried to allocate 40000000000000 bytes. Error code 12 (Cannot allocate memory)")


@pytest.mark.parametrize("place", ["nn", "optim", "optim.lr_scheduler", "distributions"])
def test_unexpected_keyword_error_names_a_public_class(place: str) -> None:
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
def test_dimensions_of_0d_tensor(name: str, dim: int) -> None:
    with pytest.raises(IndexError, match=rf"expected to be in range of \[-1, 0\], but got {dim}\)"):
        getattr(torch.tensor(1.0), name)(dim)


def test_selecting_too_many_elements_and_repeated_dimensions() -> None:
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
