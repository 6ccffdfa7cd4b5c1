"""Settings, backends, memory statistics and other environment queries: the same outputs as PyTorch's."""

from __future__ import annotations

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.transcripts import TOPICS, answers

RECORDED = load("transcripts")["answers"]


@pytest.mark.parametrize("topic", TOPICS)
def test_outputs_match_pytorch(topic: str) -> None:
    found = answers(torch, topic)
    assert [line for line, *_ in RECORDED[topic]] == [line for line, *_ in found], "record again"
    wrong = [
        f"{line}\n  PyTorch: {shown} {said or ''}\n  here:    {ours} {warned or ''}"
        for (line, shown, said), (_, ours, warned) in zip(RECORDED[topic], found, strict=True)
        if not (same(shown, ours) and said == warned)
    ]
    print(f"{len(found) - len(wrong)} of {len(found)} answers agree")
    assert not wrong, "\n".join(wrong)


def same(theirs: str, ours: str) -> bool:
    """Whether two outputs agree; an error may be longer than PyTorch's."""
    return theirs == ours or (theirs.startswith("!") and ours.startswith(theirs.rstrip(".")))
