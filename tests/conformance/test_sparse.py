"""Sparse tensors: results, texts, gradients, errors and training as recorded from PyTorch."""

from __future__ import annotations

import pytest

import retrograd as torch
from tests.conformance import sparse_cases
from tests.conformance.golden import load
from tests.conformance.training_comparison import check_sparse_training, close
from tests.programs.example_output import assert_printed_alike

RECORDED = load("sparse")


@pytest.mark.parametrize("call", sparse_cases.CALLS_LIST)
def test_calls_match_pytorch(call: str) -> None:
    text, gradients = RECORDED["calls"][call]
    answered = sparse_cases.answer(torch, call)
    assert_printed_alike(answered[0], text)
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
    check_sparse_training(optimizer, table)
