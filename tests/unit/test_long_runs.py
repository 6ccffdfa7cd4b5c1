"""Trainings that are resumed from a checkpoint in another process end in the same state, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest

import retrograd as torch
from benchmarks.long_runs import TRAININGS, digest, in_new_process


@pytest.mark.parametrize("name", TRAININGS)
def test_resumed_training_is_the_same_bit_for_bit(name: str, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint.pt"
    run = in_new_process(name, 100, checkpoint, None)
    assert in_new_process(name, 100, None, checkpoint).digest == run.digest


def test_a_digest_depends_on_every_part_of_a_state() -> None:
    states = [
        {"a": [torch.ones(2), 1]}, {"b": [torch.ones(2), 1]}, {"a": [torch.ones(2), 2]}, {"a": [torch.zeros(2), 1]},
    ]  # fmt: skip
    assert len({digest(each) for each in states}) == 4 and digest(states[0]) == digest({"a": [torch.ones(2), 1]})
