"""``torch.futures``: results and errors that arrive later."""

from __future__ import annotations

import threading

import pytest

import retrograd as torch
from retrograd.futures import Future, collect_all, wait_all


def test_value_reaches_every_waiter() -> None:
    later: Future[int] = Future()
    seen: list[int] = []
    more = later.then(lambda done: done.value() + 1)
    later.add_done_callback(lambda done: seen.append(done.value()))
    assert not later.done() and not more.done()
    threading.Timer(0.01, later.set_result, (3,)).start()
    assert (more.wait(), later.wait(), later.value(), seen) == (4, 3, 3, [3])
    assert wait_all([later, more]) == [3, 4] and collect_all([later, more]).wait() == [later, more]
    assert collect_all([]).wait() == [] and torch.futures.Future is Future


def test_error_reaches_every_waiter(capsys: pytest.CaptureFixture[str]) -> None:
    good: Future[int] = Future()
    bad: Future[int] = Future()
    after = good.then(lambda done: 1 // 0)
    good.add_done_callback(lambda done: print(1 // 0))
    good.set_result(1)
    assert "Got the following error when running the callback: ZeroDivisionError" in capsys.readouterr().err
    with pytest.raises(ZeroDivisionError):
        after.wait()
    bad.set_exception(ValueError("bad"))
    for ask in (bad.wait, bad.value, lambda: wait_all([good, bad]), collect_all([good, bad]).wait):
        with pytest.raises(ValueError, match="bad"):
            ask()


def test_invalid_arguments() -> None:
    later: Future[int] = Future()
    with pytest.raises(RuntimeError, match="not complete"):
        later.value()
    with pytest.raises(AssertionError, match="3 is of type <class 'int'>, not an Exception"):
        later.set_exception(3)  # type: ignore[arg-type]
    later.set_result(1)
    with pytest.raises(RuntimeError, match="Attempting to mark a completed Future as complete again"):
        later.set_result(2)
