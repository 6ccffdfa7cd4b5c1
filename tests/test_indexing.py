"""Indexing and assignment: random index tuples against PyTorch's answers and against NumPy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy
import pytest
from hypothesis import given, settings
from hypothesis.extra import numpy as arrays

import retrograd as torch
from tests.indexed import answer, programs

ANSWERS = json.loads((Path(__file__).with_name("golden") / "indexing.json").read_text())["answers"]
PROGRAMS = programs(len(ANSWERS))


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_random_index(number: int) -> None:
    got, expected = json.loads(json.dumps(answer(torch, PROGRAMS[number]))), ANSWERS[number]
    if expected == "RuntimeError":
        assert got in ("RuntimeError", "IndexError"), PROGRAMS[number]  # two things are wrong: either may be told
    else:
        assert got == expected, PROGRAMS[number]


@settings(max_examples=200, deadline=None)
@given(arrays.basic_indices((3, 4, 2), allow_newaxis=True, allow_ellipsis=True))
def test_basic_indices_are_numpys_and_give_views(index: object) -> None:
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


def test_picked_elements_are_copies() -> None:
    x = torch.zeros(3)
    y = x[[0, 1]]
    y[0] = 5
    assert x.tolist() == [0.0, 0.0, 0.0]


def test_the_gradient_of_an_element_picked_twice_is_added() -> None:
    x = torch.ones(3, requires_grad=True)
    x[[0, 0, 2]].sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 1.0]


def test_both_sides_of_an_assignment_get_gradients() -> None:
    x, w = torch.ones(3, requires_grad=True), torch.tensor([5.0, 6.0], requires_grad=True)
    y = x * 2
    y[1:] = w * 3
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 0.0, 0.0] and w.grad.tolist() == [3.0, 3.0]
