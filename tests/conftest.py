"""Fixtures of all tests: no test may leave global state changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

os.environ.setdefault("RETROGRAD_CODEGEN", "1")  # test specialised functions, not templates
os.environ.setdefault("RETROGRAD_FAST", "1")  # use loops from the first large array on

import retrograd as torch
from retrograd.core import engine, hooks, torch_function

os.environ["RETROGRAD_TRACEBACK"] = "full"  # failures show all frames


@pytest.fixture(autouse=True)
def no_leaked_state() -> Iterator[None]:
    """Fail a test that leaves a mode, a default or an option behind."""
    torch.manual_seed(0)
    options = torch._tensor_str.get_printoptions()
    yield
    assert torch.is_grad_enabled(), "a test left grad mode off"
    assert not torch.is_inference_mode_enabled(), "a test left inference mode on"
    assert torch.get_default_dtype() is torch.float32, "a test left another default dtype"
    assert torch.get_default_device().type == "cpu", "a test left another default device"
    assert torch._tensor_str.get_printoptions() == options, "a test left other print options"
    assert not hooks.retain_last, "a test left retain_grad_last set"
    assert torch_function.state() == (torch_function.ALL, (), (), None, ()), "a test left a mode of torch.overrides"
    assert not engine.observers, "a test left an observer of backward passes"
    torch_function.forget_classes()  # a test's classes: functions are to be as they are without any


@pytest.fixture
def gpu() -> Iterator[Any]:
    """The stand-in for CuPy as the module ``cupy`` during a test, with two devices; see ``tests/cupy_stand_in``."""
    from tests.cupy_stand_in import installed

    with installed(devices=2) as cupy:
        yield cupy
