"""Errors of operations, compared with PyTorch's record."""

from __future__ import annotations

import pytest

import retrograd as torch
from tests.conformance.golden import load
from tests.conformance.operation_error_cases import FAMILIES, calls, error_of

RECORDED = load("operation_errors")["errors"]


@pytest.mark.parametrize(("family", "call"), [(family, call) for family in FAMILIES for call in calls(family)])
def test_error_matches_pytorch(family: str, call: str) -> None:
    assert error_of(torch, call) == RECORDED[family][call]
