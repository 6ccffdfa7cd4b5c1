"""``torch._foreach_*``: results for each form of the arguments, gradients and errors, recorded from PyTorch 2.13."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd.operations import foreach


def pair() -> list[Any]:
    return [torch.tensor([1.0, -2.0]), torch.tensor([[0.5, 3.0]])]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("add", (2,), [[3.0, 0.0], [[2.5, 5.0]]]),
        ("add", ([2, 3.0],), [[3.0, 0.0], [[3.5, 6.0]]]),
        ("sub", (pair(),), [[0.0, 0.0], [[0.0, 0.0]]]),
        ("mul", (torch.tensor(2.0),), [[2.0, -4.0], [[1.0, 6.0]]]),
        ("div", ([2, 4],), [[0.5, -1.0], [[0.125, 0.75]]]),
        ("clamp_max", (torch.tensor(2.0),), [[1.0, -2.0], [[0.5, 2.0]]]),
        ("maximum", (0.75,), [[1.0, 0.75], [[0.75, 3.0]]]),
        ("minimum", (pair()[::-1],), None),
        ("pow", ([2, 1],), [[1.0, 4.0], [[0.5, 3.0]]]),
        ("addcdiv", (pair(), pair(), torch.tensor([2.0, 3.0])), [[3.0, 0.0], [[3.5, 6.0]]]),
        ("addcmul", (pair(), pair(), [2, 3]), [[3.0, 6.0], [[1.25, 30.0]]]),
        ("lerp", (pair(), 0.5), [[1.0, -2.0], [[0.5, 3.0]]]),
        ("neg", (), [[-1.0, 2.0], [[-0.5, -3.0]]]),
        ("sign", (), [[1.0, -1.0], [[1.0, 1.0]]]),
        ("round", (), [[1.0, -2.0], [[0.0, 3.0]]]),
    ],
)
def test_functions_for_each_form_of_the_operands(name: str, arguments: tuple[Any, ...], expected: Any) -> None:
    if expected is None:  # the minimum of tensors of two shapes
        a, b = pair()
        expected = [torch.minimum(a, b).tolist(), torch.minimum(b, a).tolist()]
    tensors = pair()
    found = getattr(torch, f"_foreach_{name}")(tensors, *arguments)
    assert isinstance(found, tuple) and [each.tolist() for each in found] == expected
    assert [each.tolist() for each in tensors] == [each.tolist() for each in pair()]
    if name == "minimum":
        return
    before = tuple(tensors)
    assert getattr(torch, f"_foreach_{name}_")(tensors, *arguments) is tensors
    assert [each.tolist() for each in tensors] == expected
    assert all(x is y for x, y in zip(before, tensors, strict=True))


def test_functions_with_one_form() -> None:
    assert [each.item() for each in torch._foreach_norm(pair(), 1)] == [3.0, 3.5]
    assert [each.item() for each in torch._foreach_powsum(pair())] == [5.0, 9.25]
    assert torch._foreach_norm(pair(), dtype=torch.float64)[0].dtype == torch.float64
    assert [each.item() for each in torch._foreach_max(pair())] == [1.0, 3.0]
    assert torch._foreach_pow(2.0, pair())[0].tolist() == [2.0, 0.25]
    assert torch._foreach_mm([torch.eye(2)], [2 * torch.eye(2)])[0].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    tensors = [torch.zeros(2), torch.zeros(1, 2)]
    torch._foreach_copy_(tensors, pair())
    assert [each.tolist() for each in tensors] == [each.tolist() for each in pair()]
    assert torch._foreach_clone(tensors)[0] is not tensors[0]
    assert [each.abs().sum().item() for each in torch._foreach_zero_(tensors)] == [0.0, 0.0]


def test_gradients() -> None:
    leaves = [each.requires_grad_() for each in pair()]
    sum(each.sum() for each in torch._foreach_mul(leaves, [2, 3])).backward()
    assert [each.grad.tolist() for each in leaves] == [[2.0, 2.0], [[3.0, 3.0]]]


@pytest.mark.parametrize(
    ("kind", "words", "name", "arguments"),
    [
        (RuntimeError, "Tensor list must have at least one tensor.", "abs", ([],)),
        (RuntimeError, "Tensor lists must have the same number of tensors, got 2 and 1", "add_", (pair(), pair()[:1])),
        (RuntimeError, "Tensor list must have same number of elements as scalar list.", "mul_", (pair(), [1.0])),
        (RuntimeError, "scalar tensor expected to be 0 dim but it has 1 dimensions and 2 elements.", "add", (pair(), torch.ones(2))),
        (RuntimeError, "Expected length of scalars to match input of length 2 but got 3 instead.", "addcmul",
         (pair(), pair(), pair(), torch.ones(3))),
        (TypeError, "_foreach_mul() received an invalid combination of arguments - got (list, str)", "mul", (pair(), "x")),
        (TypeError, "_foreach_add() received an invalid combination of arguments - got (Tensor, int)", "add", (torch.ones(2), 1)),
        (TypeError, "_foreach_abs(): argument 'self' (position 1) must be tuple of Tensors, not Tensor", "abs", (torch.ones(2),)),
        (TypeError, "_foreach_abs() takes 1 positional argument but 2 were given", "abs", (pair(), 1)),
    ],
)  # fmt: skip
def test_errors(kind: type[Exception], words: str, name: str, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(kind) as raised:
        getattr(torch, f"_foreach_{name}")(*arguments)
    assert str(raised.value).startswith(words)
    assert [each.tolist() for each in arguments[0] if isinstance(arguments[0], list)] in (
        [],
        [x.tolist() for x in pair()],
    )


def test_all_functions_of_pytorch_are_loaded_on_demand() -> None:
    from retrograd import _LATER

    assert sorted(name for name, part in _LATER.items() if part == "operations.foreach") == list(foreach.NAMES)
    assert len(foreach.NAMES) == 91
    assert torch._foreach_add.__name__ == "_foreach_add" and torch.ops.aten._foreach_add_(pair(), 1)
