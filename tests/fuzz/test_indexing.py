"""Indexing and assignment: random expressions compared with PyTorch, basic indices with NumPy."""

from __future__ import annotations

import json
from typing import Any

import numpy
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as arrays

import retrograd as torch
from tests.conformance.golden import load
from tests.fuzz.index_expressions import answer, programs

ANSWERS = load("indexing")["answers"]
PROGRAMS = programs(len(ANSWERS))


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_random_index(number: int) -> None:
    got, expected = json.loads(json.dumps(answer(torch, PROGRAMS[number]))), ANSWERS[number]
    if expected == "RuntimeError":
        assert got in ("RuntimeError", "IndexError"), PROGRAMS[number]  # two errors apply, and either may be raised
    else:
        assert got == expected, PROGRAMS[number]


@settings(max_examples=200, deadline=None)
@given(arrays.basic_indices((3, 4, 2), allow_newaxis=True, allow_ellipsis=True))
def test_basic_indices_match_numpy_and_are_views(index: object) -> None:
    parts = index if isinstance(index, tuple) else (index,)
    if any(isinstance(each, slice) and each.step is not None and each.step < 1 for each in parts):
        return
    array = numpy.arange(24.0).reshape(3, 4, 2)
    x = torch.tensor(array)
    found, expected = x[index], array[index]
    assert tuple(found.shape) == expected.shape and found.tolist() == expected.tolist()
    assert found._base is x
    if found.numel():
        x[index] = -1
        assert (found == -1).all()


def test_advanced_indexing_copies() -> None:
    x = torch.zeros(3)
    y = x[[0, 1]]
    y[0] = 5
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_gradients_of_repeated_indices_accumulate() -> None:
    x = torch.ones(3, requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 1.0]


def test_assignment_has_gradients_for_both_sides() -> None:
    x, w = torch.ones(3, requires_grad=True), torch.tensor([5.0, 6.0], requires_grad=True)
    y = x * 2
    y[1:] = w * 3
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0] and w.grad.tolist() == [3.0, 3.0]


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (0, "invalid index of a 0-dim tensor"),
        (-1, "index -1 is out of bounds for dimension 0 with size 0"),
        (slice(None), r"slice\(\) cannot be applied to a 0-dim tensor"),
        ((slice(None), slice(1, None)), "too many indices for tensor of dimension 0"),
        ((0, 0), "too many indices for tensor of dimension 0"),
        ((..., 0), "too many indices for tensor of dimension 0"),
        ([0], "too many indices for tensor of dimension 0"),
    ],
)
def test_invalid_indices_of_0d_tensor(index: Any, text: str) -> None:
    with pytest.raises(IndexError, match=text):
        torch.tensor(0.5)[index]


def test_0d_tensor_is_indexed_by_0d_mask() -> None:
    x = torch.tensor(0.5)
    assert x[x > 0].tolist() == [0.5] and x[x < 0].tolist() == []
    x[x > 0] = 2.0
    assert x.item() == 2.0


def test_as_strided_outside_storage_raises() -> None:
    x = torch.ones(2)
    with pytest.raises(RuntimeError, match="Negative strides are not supported"):
        x.as_strided((2,), (-1,))
    with pytest.raises(RuntimeError, match="Storage size calculation overflowed"):
        x.as_strided((-1,), (1,))
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        x.resize_(-1)


def test_unfold_larger_than_dimension_raises() -> None:
    with pytest.raises(RuntimeError, match="maximum size for tensor at dimension 0 is 1 but size is 2"):
        torch.ones(1, 2).unfold(0, 2, 1)
    assert torch.arange(4).unfold(dimension=0, size=2, step=1).tolist() == [[0, 1], [1, 2], [2, 3]]


@pytest.mark.parametrize("recorded", [False, True])
def test_full_slice_is_a_view_not_the_tensor_itself(recorded: bool) -> None:
    x = torch.ones(2, 3).requires_grad_(recorded) * 1
    for index in ((), ..., slice(None), (slice(None),) * 2, (..., slice(None)), (slice(0, 2), slice(0, None))):
        found = x[index]
        assert found is not x and found._is_view() and found.data_ptr() == x.data_ptr()
    x[:, :].unsqueeze_(0)
    assert x.shape == (2, 3)


@pytest.mark.parametrize("recorded", [False, True])
def test_second_ellipsis_expands_to_nothing(recorded: bool) -> None:
    x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_(recorded) * 1
    assert x[..., ...].shape == (2, 3, 4) and x[0, ..., ...].shape == (3, 4)
    assert x[..., 0, ...].tolist() == x[:, :, 0].tolist()
    assert x[..., torch.tensor([0]), ...].shape == (2, 3, 1)
    x[..., 0, ...] = 7.0
    assert x[:, :, 0].tolist() == [[7.0] * 3] * 2 and x[0, 0].tolist() == [7.0, 1.0, 2.0, 3.0]
    with pytest.raises(IndexError):
        x[..., ..., 0]


def test_scalar_assignment_converts_dtype() -> None:
    y = torch.tensor(1.5, requires_grad=True)
    for kind in (torch.float64, torch.float32, torch.bfloat16):
        for index in (..., (slice(None), slice(None))):
            x = torch.ones(2, 3, dtype=kind)
            x[index] = y
            assert type(x.grad_fn).__name__ == "FillBackward3"
            (grad,) = torch.autograd.grad(x.sum(), y)
            assert grad.dtype is torch.float32 and grad.item() == 6.0


def test_0d_mask_selects_all_or_nothing() -> None:
    def put(*indices: torch.Tensor) -> list[list[float]]:
        return torch.zeros(2, 2).index_put_(indices, torch.tensor(2.0)).tolist()

    yes, no, one = torch.tensor(True), torch.tensor(False), torch.tensor([1])
    assert put(yes) == [[2.0, 2.0], [2.0, 2.0]] and put(no) == [[0.0, 0.0], [0.0, 0.0]]
    assert put(yes, one) == put(no, one) == [[0.0, 0.0], [2.0, 2.0]]  # beside others it says nothing, as in PyTorch


# -- Lists that hold themselves --------------------------------------------------------------------------------------


def nested(depth: int) -> Any:
    found: Any = 1.0
    for _ in range(depth):
        found = [found]
    return found


def cyclic() -> Any:
    found: Any = []
    found.append(found)
    return found


def crossed() -> Any:
    found: Any = [1.0]
    found.append([found, found])
    return found


CONVERSIONS = {
    "tensor": torch.tensor, "as_tensor": torch.as_tensor, "asarray": torch.asarray, "Tensor": torch.Tensor,
    "LongTensor": torch.LongTensor, "new": torch.ones(2).new, "new_tensor": torch.ones(2).new_tensor,
    "tensor of float64": lambda data: torch.tensor(data, dtype=torch.float64),
}  # fmt: skip


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("data", [cyclic(), [cyclic(), cyclic()], (cyclic(),), nested(10_000), nested(129)])
def test_lists_of_too_many_levels_are_refused(name: str, data: Any) -> None:
    with pytest.raises(ValueError, match=r"^too many dimensions 'list'$"):
        CONVERSIONS[name](data)


@pytest.mark.parametrize("name", ["tensor", "as_tensor", "asarray"])
def test_lists_that_hold_themselves_after_a_number_are_refused(name: str) -> None:
    data: Any = [1]
    data.append(data)
    with pytest.raises(TypeError, match=r"^new\(\): self-referential lists are incompatible$"):
        CONVERSIONS[name](data)
    with pytest.raises(ValueError, match=r"^too many dimensions 'list'$"):  # PyTorch's process ends here
        CONVERSIONS[name](crossed())


@pytest.mark.parametrize("index", [cyclic(), (cyclic(),), [cyclic()], (None, cyclic())])
def test_an_index_that_holds_itself_is_refused(index: Any) -> None:
    x = torch.arange(4.0)
    with pytest.raises(TypeError, match=r"^new\(\): self-referential lists are incompatible$"):
        x[index]
    with pytest.raises(TypeError, match=r"^new\(\): self-referential lists are incompatible$"):
        x[index] = 1


def test_an_index_of_too_many_levels_is_refused() -> None:
    x = torch.arange(4.0)
    with pytest.raises(ValueError, match=r"^too many dimensions 'list'$"):
        x[nested(10_000)]
    with pytest.raises(ValueError, match=r"^too many dimensions 'list'$"):
        x[nested(10_000)] = 1
    with pytest.raises(TypeError, match=r"^can't assign a list to a torch.FloatTensor$"):
        x[0] = cyclic()
