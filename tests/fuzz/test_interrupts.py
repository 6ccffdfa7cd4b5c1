"""KeyboardInterrupt at random bytecodes of representative programs (see ``interrupts.py``), and by signals."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd.core import torch_function
from retrograd.utils.data import dataloader
from tests.fuzz.allocations import FailingAllocation
from tests.fuzz.interrupts import MARKED, PROGRAMS, Interrupter, expected, failure, leaf, length, main, modes, seen
from tests.worker_memory import shared_memory

#: Bytecodes drawn for each program, which take about a minute together. The command tries every bytecode.
DRAWN = 500
#: Those of programs that take longer: files are flushed to disk, or many functions are called.
FEWER = {
    "saving_to_a_path": 30,
    "saving": 150,
    "muon": 100,
    "adam_in_half_precision": 150,
    "checkpoint_not_reentrant": 250,
}


#: Programs in which each allocation of an array fails in turn.
ALLOCATING = (
    "forward", "recorded_in_place", "view_in_place", "index_assignment", "into_out", "backward", "backward_twice", "create_graph", "sgd", "sgd_with_momentum", "adam", "nadam",
    "muon", "adam_in_blocks", "checkpoint_reentrant", "checkpoint_not_reentrant", "autocast",
    "saving",
)  # fmt: skip


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a file is not closed
@pytest.mark.parametrize("name", PROGRAMS)
def test_interrupted_at_random_bytecodes(name: str) -> None:
    count, states = length(name), expected(name)
    rng = random.Random(name)
    for n in rng.sample(range(1, count + 1), min(count, FEWER.get(name, DRAWN))):
        text, _ = failure(name, n, states)
        assert not text, text


def test_view_modified_in_place_interrupted_at_every_bytecode() -> None:
    count, states = length("view_in_place"), expected("view_in_place")
    results = [failure("view_in_place", n, states) for n in range(1, count + 1, 3)]
    assert not [text for text, _ in results if text]
    assert sum(marks for _, marks in results) < 12  # only where it is not known whether the values are written


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="replaces NumPy's memory handler by ctypes")
@pytest.mark.parametrize("name", ALLOCATING)
def test_failing_allocation(name: str) -> None:
    (act, _), states, counter = PROGRAMS[name](), expected(name), FailingAllocation(0)
    counter.run(act)
    assert counter.count
    for n in range(1, min(counter.count, 60) + 1):
        (act, observe), usual = PROGRAMS[name](), modes()
        FailingAllocation(n).run(act)
        assert modes() == usual, n
        for key, each in observe().items():
            assert each in (MARKED, *[state.get(key) for state in states]), n


INPLACE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "view": lambda x, a, v: v.mul_(2), "base": lambda x, a, v: a.mul_(1.5),
    "scaled": lambda x, a, v: a.add_(x.detach(), alpha=0.5),
}  # fmt: skip


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="needs the main thread")
@pytest.mark.parametrize("kind", INPLACE)
def test_signal_during_operations_in_place(kind: str) -> None:
    def prepared() -> tuple[Any, Any, Any]:
        x = leaf()
        a = x * 1
        return x, a, a[1:3]

    def state(x: Any, a: Any, v: Any) -> Any:
        return seen(a, v, leaves=[x])

    tensors, states, began = prepared(), [], time.perf_counter()
    for _ in range(20):
        INPLACE[kind](*tensors)
    duration, tensors = time.perf_counter() - began, prepared()
    for _ in range(21):
        states.append(state(*tensors))
        INPLACE[kind](*tensors)
    rng, marked = random.Random(0), 0
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(60):
            tensors = prepared()
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, duration))
                for _ in range(20):
                    INPLACE[kind](*tensors)
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            found = state(*tensors)
            marked += found == MARKED
            assert found == MARKED or found in states
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not marked


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="needs the main thread")
def test_signal_handler_written_in_python() -> None:
    """The frame of the handler is in the traceback, so that less is known about the interrupted call."""

    def handler(*_: Any) -> None:
        raise KeyboardInterrupt

    rng, ones = random.Random(0), torch.ones(300_000)
    for _ in range(20):
        ones.clone().add_(ones)
    before = signal.signal(signal.SIGALRM, handler)
    try:
        for _ in range(60):
            x = torch.zeros(300_000)
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-5, 2e-4))
                x.add_(ones)
                signal.setitimer(signal.ITIMER_REAL, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
            try:
                written = x.sum().item() != 0
            except RuntimeError as error:
                assert "was interrupted" in str(error)
            else:
                assert written == (x._version > 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_use_of_a_marked_tensor_is_an_error() -> None:
    from retrograd.core.views import mark_interrupted

    x = leaf()
    a = x * 1
    v, saved = a[1:3], a * a
    mark_interrupted(v)
    for use in (
        lambda: a + 1, lambda: torch.ones(4) * a, lambda: v.sum(), lambda: v.add_(1), lambda: print(a), lambda: a.tolist(),
        lambda: saved.sum().backward(), lambda: a.detach().numpy(), lambda: torch.cat([a, a]), lambda: a[0], lambda: a.clone(),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match="was interrupted"):
            use()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="needs the main thread")
@pytest.mark.parametrize("kind", ["Adam", "NAdam", "SGD"])
def test_signal_during_steps(kind: str) -> None:
    def prepared() -> tuple[Any, list[Any]]:
        params = [leaf(), leaf(3.0, 4.0)]
        for each in params:
            each.grad = torch.ones_like(each) * 0.5
        options = {"momentum": 0.9} if kind == "SGD" else {}
        return getattr(torch.optim, kind)(params, lr=0.1, weight_decay=0.1, **options), params

    def state(optimizer: Any, params: list[Any]) -> list[Any]:
        return [seen(each, *optimizer.state.get(each, {}).values()) for each in params]

    optimizer, params = prepared()
    states = [state(optimizer, params)]
    began = time.perf_counter()
    for _ in range(20):
        optimizer.step()
    duration, (optimizer, params) = time.perf_counter() - began, prepared()
    for _ in range(21):
        optimizer.step()
        states.append(state(optimizer, params))
    rng, before = random.Random(0), signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(60):
            optimizer, params = prepared()
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, duration))
                for _ in range(20):
                    optimizer.step()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
            for i, found in enumerate(state(optimizer, params)):
                assert found in [each[i] for each in states]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_overrides_are_enabled_after_an_interrupt() -> None:
    class Subclass(torch.Tensor):
        pass

    x = torch.ones(2).as_subclass(Subclass)
    for _ in range(2):  # the first call generates functions
        counter = Interrupter(0)
        counter.run(lambda: x + x)
    for n in range(1, counter.count):
        Interrupter(n).run(lambda: x + x)
        assert torch_function.state()[0] == torch_function.ALL, n


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_workers_end_after_an_interrupt() -> None:
    data = torch.utils.data.TensorDataset(torch.ones(6, 20_000))  # batches in shared memory

    def act() -> None:
        loader = torch.utils.data.DataLoader(
            data, 2, num_workers=1, multiprocessing_context="fork", persistent_workers=True
        )
        for _ in range(2):
            list(loader)

    counter = Interrupter(0)
    counter.run(act)
    rng = random.Random(0)
    for n in rng.sample(range(1, counter.count), 12):
        with contextlib.suppress(RuntimeError):  # the worker was interrupted instead: "exited unexpectedly"
            Interrupter(n).run(act)
        gc.collect()
        for process in multiprocessing.active_children():
            process.join(10)
        assert not multiprocessing.active_children(), n
        assert not hasattr(os, "memfd_create") or not shared_memory(), n
        assert sys.exc_info() == (None, None, None)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
def test_iterator_ends_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(6.0))
    loader = torch.utils.data.DataLoader(
        data, 2, num_workers=1, multiprocessing_context="fork", persistent_workers=True
    )
    batches = iter(loader)
    next(batches)

    def interrupted(receiver: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(dataloader.Receiver, "receive", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(batches)
    assert list(batches) == []
    assert len(list(loader)) == 3  # by new workers


def test_the_command_lists_its_programs(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in ((["--help"], 0), (["no_such_program"], 2)):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == status
        assert "untracked_in_place" in "".join(capsys.readouterr())
