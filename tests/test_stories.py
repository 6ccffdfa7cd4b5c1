"""The stories of tests/stories: what hooks, checkpoints and checks do and say, against recorded PyTorch."""

from __future__ import annotations

import json
from typing import Any

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.stories import FAMILIES, Story, course, stories

EVERY = [
    pytest.param(family, name, story, id=f"{family}: {name}")
    for family in FAMILIES
    for name, story in stories(family).items()
]


def recorded(family: str) -> Any:
    return load(f"stories_{family}")["stories"]


@pytest.mark.parametrize(("family", "name", "story"), EVERY)
def test_takes_the_course_that_it_takes_in_pytorch(family: str, name: str, story: Story) -> None:
    found, expected = course(torch, story), recorded(family)[name]
    if "error" in found and "error" in expected:  # ours may say more
        (kind, text), (expected_kind, expected_text) = found.pop("error"), expected.pop("error")
        assert kind == expected_kind and expected_text.strip() in text
    assert json.loads(json.dumps(found)) == expected
