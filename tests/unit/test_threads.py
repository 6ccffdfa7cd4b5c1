"""Threads: ``set_num_threads``, NumPy's BLAS, and a fork during a backward pass."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd as torch
from retrograd.core import accumulate
from retrograd.runtime import blas_threads


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before, variable = torch.get_num_threads(), os.environ.get("OPENBLAS_NUM_THREADS")
    yield
    if list(blas_threads._controls()):
        torch.set_num_threads(before)
    os.environ.pop("OPENBLAS_NUM_THREADS", None)
    if variable is not None:
        os.environ["OPENBLAS_NUM_THREADS"] = variable


def test_set_num_threads_sets_every_blas() -> None:
    if not list(blas_threads._controls()):
        pytest.skip("the BLAS has no thread control")
    import scipy.linalg  # loads another copy of the library

    assert scipy.linalg is not None
    for count in (1, 2):
        torch.set_num_threads(count)
        assert torch.get_num_threads() == count
        assert [ask() for ask, _ in blas_threads._controls()] == [count] * len(list(blas_threads._controls()))
    assert (torch.ones(64, 64) @ torch.ones(64, 64))[0, 0].item() == 64.0


def test_interop_threads_is_always_one() -> None:
    torch.set_num_interop_threads(4)
    assert torch.get_num_interop_threads() == 1


@pytest.mark.parametrize("name", ["set_num_threads", "set_num_interop_threads"])
@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "expects a positive integer"), (-1, "expects a positive integer"), (1.5, "expects an int, but got float"),
     (True, "expects an int, but got bool"), ("2", "expects an int, but got str")],
)  # fmt: skip
def test_invalid_number_of_threads(name: str, count: Any, text: str) -> None:
    with pytest.raises(RuntimeError, match=f"{name} {text}"):
        getattr(torch, name)(count)


def test_blas_without_thread_control(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_threads, "_controls", lambda: iter(()))
    monkeypatch.delenv("VECLIB_MAXIMUM_THREADS", raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert torch.get_num_threads() == 3
    with pytest.warns(UserWarning, match="can not be set"):
        torch.set_num_threads(2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_fork_during_accumulation() -> None:
    holding, done = threading.Event(), threading.Event()

    def hold() -> None:
        with accumulate.accumulation_lock:
            holding.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends it
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        os._exit(0 if x.grad is not None else 1)
    done.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
