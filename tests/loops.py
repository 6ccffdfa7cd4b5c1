"""Selection of Numba's compiled loops or of NumPy for a test."""

from __future__ import annotations

import pytest

from retrograd.kernels.numba_startup import STARTUP


def use_loops(monkeypatch: pytest.MonkeyPatch, use: bool) -> None:
    """Use loops for large arrays, or never, until ``monkeypatch`` restores the state."""
    for name, value in (("begun", True), ("ready", use), ("never", not use)):
        monkeypatch.setattr(STARTUP, name, value)
