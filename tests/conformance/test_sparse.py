"""Sparse tensors: results, texts, gradients, errors and training as recorded from PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from tests.conformance import sparse_cases
from tests.conformance.golden import load

RECORDED = load("sparse")


def close(answered: Any, recorded: Any) -> bool:
    """Whether two answers are equal, numbers up to the rounding of float32."""
    if isinstance(recorded, list):
        return len(answered) == len(recorded) and all(map(close, answered, recorded))
    return answered == (pytest.approx(recorded, abs=3e-4, nan_ok=True) if isinstance(recorded, float) else recorded)


@pytest.mark.parametrize("call", sparse_cases.CALLS_LIST)
def test_calls_match_pytorch(call: str) -> None:
    text, gradients = RECORDED["calls"][call]
    answered = sparse_cases.answer(torch, call)
    assert answered[0] == text
    if gradients is not None:
        assert answered[1].keys() == gradients.keys()
        assert all(close(answered[1][name], gradients[name]) for name in gradients)


@pytest.mark.parametrize("call", sparse_cases.CREATION_LIST)
def test_constructors_match_pytorch(call: str) -> None:
    assert sparse_cases.created(torch, call) == RECORDED["creation"][call]


@pytest.mark.parametrize("seed", range(sparse_cases.COUNT))
def test_random_tensors_match_pytorch(seed: int) -> None:
    assert close(sparse_cases.run_program(torch, seed), RECORDED["random"][seed])


@pytest.mark.parametrize("table", sparse_cases.TABLES)
@pytest.mark.parametrize("optimizer", sparse_cases.split(sparse_cases.OPTIMIZERS))
def test_training_with_sparse_gradients_matches_pytorch(optimizer: str, table: str) -> None:
    assert close(sparse_cases.train(torch, optimizer, table), RECORDED["training"][f"{optimizer} {table}"])
