"""What PyTorch refuses is refused, with its error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import retrograd as torch
from tests.refused import FAMILIES, calls, error_of

RECORDED = json.loads((Path(__file__).parent / "golden" / "refused.json").read_text())["errors"]


@pytest.mark.parametrize(("family", "call"), [(family, call) for family in FAMILIES for call in calls(family)])
def test_the_error_is_pytorchs(family: str, call: str) -> None:
    assert error_of(torch, call) == RECORDED[family][call]
