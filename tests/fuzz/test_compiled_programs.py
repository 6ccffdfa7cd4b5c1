"""Random functions, compiled and in eager mode (``compiled_programs.py``)."""

from __future__ import annotations

import warnings

import pytest

from retrograd.kernels import numba_dispatch
from tests.fuzz.compiled_programs import differs


@pytest.mark.parametrize("disturbed", [False, True])
@pytest.mark.parametrize("first", range(0, 200, 20))
def test_random_functions(first: int, disturbed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_dispatch, "available", lambda: False)  # each function would compile its own loops
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [each for seed in range(first, first + 20) if (each := differs(seed, disturbed)) is not None]
    assert not found, found[0]


def test_random_functions_with_loops() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [each for seed in (1, 7, 9017) if (each := differs(seed, False)) is not None] == []
