"""Anomaly detection, and the lines and remedies in autograd's errors."""

from __future__ import annotations

import os
import re
import threading
from typing import Any

import pytest

import retrograd as torch
from retrograd.autograd import Function

pytestmark = pytest.mark.filterwarnings("ignore:Error detected in")


def leaf(*values: float) -> Any:
    return torch.tensor(list(values) or 2.0, requires_grad=True)


def raised(call: Any, kind: type[Exception] = RuntimeError) -> tuple[str, str]:
    """Return the text of an error and its notes."""
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value), "\n".join(getattr(caught.value, "__notes__", ()))


def test_first_nan_is_shown_with_its_neighbours() -> None:
    x = torch.tensor([[1.0, 4.0, 9.0], [16.0, 0.0, 25.0]], requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        y = x.sqrt()
        text, _ = raised((y * torch.tensor([1.0, 0.0, 2.0])).sum().backward)
    assert text.startswith("Function 'SqrtBackward0' returned nan values in its 0th output.\n")
    assert re.search(r"It was recorded at .*test_anomaly.py:\d+: y = x.sqrt\(\)\n", text)
    assert "The first of 1 nan (of 6 elements) is at index [1, 1]; around it:" in text
    assert "gradient returned: 0.125, nan, 0.2 (from index [1, 0])" in text
    assert "gradient that arrived: 1.0, 0.0, 2.0 (from index [1, 0])" in text
    assert "saved result: 4.0, 0.0, 5.0 (from index [1, 0])" in text
    assert "Remedy: keep the operands away from where there is no derivative" in text


def test_long_rows_are_cut() -> None:
    x = torch.ones(100, requires_grad=True)
    with torch.autograd.set_detect_anomaly(True):
        weight = torch.zeros(100)
        weight[50] = float("nan")
        text, _ = raised((x * weight).sum().backward)
    assert "gradient returned: … 0.0, 0.0, nan, 0.0, 0.0 … (from index [48])" in text
    assert "Remedy: there was nan before this operation" in text


def test_the_first_infinity_is_named() -> None:
    x = leaf(0.0, 1.0)
    with torch.autograd.set_detect_anomaly(True):
        y = (x * 0.0).sqrt()
        text, _ = raised(y.sum().backward)
    assert text.startswith("Function 'MulBackward0' returned nan values in its 0th output.")
    assert re.search(r"The first infinite gradient of this pass came from SqrtBackward0 at .*: y = \(x \* 0.0\)", text)


def test_the_first_infinity_is_an_error_if_asked_for() -> None:
    x = leaf(0.0, 1.0)
    y = x.sqrt()
    for check_nan in (True, False):
        with torch.autograd.set_detect_anomaly(True, check_nan, check_inf=True):
            text, _ = raised(lambda: y.sum().backward(retain_graph=True))
        assert text.startswith("Function 'SqrtBackward0' returned inf values in its 0th output.\nIt was recorded at ")
        assert "The first of 1 inf (of 2 elements) is at index [0]; around it:" in text
        assert "gradient returned: inf, 0.5 (from index [0])" in text and "Remedy: keep the values there" in text
    with torch.autograd.set_detect_anomaly(True):
        y.sum().backward(retain_graph=True)
    with pytest.warns(UserWarning, match="Anomaly"), torch.autograd.detect_anomaly(check_inf=True):
        raised(y.sum().backward)


def test_forward_line_is_known_without_detection_in_forward() -> None:
    x = leaf(0.0)
    y = x.sqrt() * 0
    with torch.autograd.set_detect_anomaly(True), pytest.warns(UserWarning, match=r"y = x.sqrt\(\) \* 0"):
        raised(y.sum().backward)


def test_detection_applies_to_all_threads() -> None:
    texts = []
    with torch.autograd.set_detect_anomaly(True):
        thread = threading.Thread(target=lambda: texts.append(raised((leaf(0.0).sqrt() * 0).sum().backward)[0]))
        thread.start()
        thread.join()
    assert "SqrtBackward0" in texts[0]


def test_stacks_contain_no_frames_of_the_package() -> None:
    with torch.autograd.set_detect_anomaly(True):
        y = leaf(1.0).softmax(0)
    stack = y.grad_fn.metadata["traceback_"]
    package = os.path.join(os.path.dirname(torch.__file__), "")
    assert "y = leaf(1.0).softmax(0)" in stack[-1] and not any(package in each for each in stack)


def test_no_stack_is_stored_without_detection() -> None:
    assert leaf(1.0).exp().grad_fn.metadata == {}


# -- Additions to PyTorch's error messages

HERE = r"test_anomaly\.py:\d+: "


def test_a_leaf_modified() -> None:
    x = leaf(1.0)
    text, _ = raised(lambda: x.mul_(2))
    assert re.search(rf"in-place operation. \(at .*{HERE}.*x.mul_\(2\).*; it is a leaf made at .*{HERE}return", text)
    assert text.endswith("Remedy: update it under torch.no_grad(), or work on a clone.")
    assert "a leaf made at" in raised(lambda: x[0].mul_(2))[0]


def test_no_scalar() -> None:
    y = leaf(1.0, 2.0) * 2
    text, _ = raised(y.backward)
    assert re.search(rf"scalar outputs \(output 0 of shape \(2,\), computed by MulBackward0 at .*{HERE}y = leaf", text)
    assert "Remedy: reduce it to one number" in text


def test_no_graph() -> None:
    with torch.no_grad():
        y = leaf(1.0) * 2
    assert "Remedy: requires_grad_() the inputs before computing it" in raised(y.backward)[0]
    assert "It is of torch.int64, which has no gradients" in raised(torch.ones(1, dtype=torch.int64).backward)[0]


def test_unused_inputs() -> None:
    x, other = leaf(1.0), leaf(1.0)
    computed = other * 3
    text, _ = raised(lambda: torch.autograd.grad((x * 2).sum(), [x, other]))
    assert re.search(rf"\(input 1, a leaf made at .*{HERE}.*\). Remedy: ", text)
    text, _ = raised(lambda: torch.autograd.grad((x * 2).sum(), [computed]))
    assert re.search(rf"\(input 0, computed by MulBackward0 at .*{HERE}computed = other", text)
    text, _ = raised(lambda: torch.autograd.grad((x * 2).sum(), [x, torch.ones(1)]))
    assert "(input 1). It is a leaf, or" in text and "Remedy: requires_grad_() the inputs" in text


def test_a_gradient_of_another_shape() -> None:
    y = leaf(1.0, 2.0) * 2
    with pytest.raises(RuntimeError, match="Mismatch in shape") as error:
        y.backward(torch.ones(3))
    (text,) = error.value.__notes__
    assert re.search(rf"\(output 0 of shape \(2,\), computed by MulBackward0 at .*{HERE}y = ", text)


class Wrong(Function):
    @staticmethod
    def forward(ctx: Any, x: Any, result: Any) -> Any:
        ctx.result = result
        return x * 1

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return ctx.result(grad)


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (lambda grad: (torch.ones(5), None), "invalid gradient at index 0 - got [5]"),
        (lambda grad: grad, "incorrect number of gradients (expected 2, got 1)"),
        (lambda grad: (grad, grad), "gradient different than None at position 2"),
        (lambda grad: (3, None), "expected Variable or None (got int)"),
    ],
)
def test_custom_functions(result: Any, text: str) -> None:
    y = Wrong.apply(leaf(1.0, 2.0), result)
    said, _ = raised(y.sum().backward)
    assert text in said and re.search(rf"It was recorded at .*{HERE}y = Wrong.apply", said)


def test_errors_in_custom_functions_carry_a_note() -> None:
    y = Wrong.apply(leaf(1.0, 2.0), lambda grad: grad.reshape(7))
    _, notes = raised(y.sum().backward)
    assert re.search(rf"In the backward pass of WrongBackward, recorded at .*{HERE}y = Wrong.apply", notes)


def test_errors_of_hooks() -> None:
    def shorter(grad: Any) -> Any:
        return grad[:1]

    x = leaf(1.0, 2.0)
    y = x * 2
    y.register_hook(shorter)
    text, notes = raised(y.sum().backward)
    assert re.search(rf"changed the size of value \(the hook is defined at .*{HERE}def shorter", text)
    assert re.search(rf"In the backward pass of MulBackward0, recorded at .*{HERE}y = x \* 2", notes)


def test_errors_raised_by_hooks_carry_a_note() -> None:
    def refuse(grad: Any) -> Any:
        raise KeyError("no")

    x = leaf(1.0, 2.0)
    x.register_hook(refuse)
    text, notes = raised((x * 2).sum().backward, KeyError)
    assert text == "'no'" and re.search(rf"At the leaf made at .*{HERE}return", notes)


def test_checkpoints_name_the_lines_that_differ() -> None:
    runs: list[int] = []

    def function(x: Any) -> Any:
        runs.append(1)
        if len(runs) == 1:
            return x.exp().sum()
        return x[:1].exp().sum()

    y = torch.utils.checkpoint.checkpoint(function, leaf(1.0, 2.0), use_reentrant=False)
    text, _ = raised(y.backward)
    assert re.search(rf"saved at .*{HERE}return x.exp\(\).sum\(\)\nrecomputed at .*{HERE}return x\[:1\].exp", text)
    assert re.search(rf"The function is checkpointed at .*{HERE}y = torch.utils", text)
