"""Threads: ``set_num_threads``, NumPy's BLAS, a fork during a backward pass, and first uses in eight threads at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
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


def in_threads(work: Callable[[int], Any], count: int = 8) -> list[Any]:
    """Return ``[work(0), work(1), …]``, computed by threads that start at once and are switched as often as possible."""
    results, start, interval = [None] * count, threading.Barrier(count), sys.getswitchinterval()

    def one(k: int) -> None:
        start.wait()
        try:
            results[k] = work(k)
        except Exception as error:
            results[k] = error

    threads = [threading.Thread(target=one, args=(k,)) for k in range(count)]
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
    failed = [each for each in results if isinstance(each, Exception)]
    if failed:
        raise failed[0]
    return results


@pytest.mark.parametrize("size", [1, 5, 16, 700, 5000, 40_000])
@pytest.mark.parametrize("name", ["rand", "randn"])
def test_no_two_threads_draw_the_same_numbers(name: str, size: int) -> None:
    calls = max(2, 1000 // size)
    drawn = in_threads(lambda k: [getattr(torch, name)(size, dtype=torch.float64) for _ in range(calls)])
    numbers = torch.cat([each for one in drawn for each in one])
    assert numbers.numel() == 8 * calls * size
    assert len(numbers.unique()) == numbers.numel()


def test_samples_by_rejection_differ_between_threads() -> None:
    gamma = torch.distributions.Gamma(torch.full((50,), 0.7, dtype=torch.float64), torch.ones((), dtype=torch.float64))
    numbers = torch.cat(in_threads(lambda k: gamma.sample((5,)).flatten()))
    assert len(numbers.unique()) == 8 * 250


def test_generator_state_is_consistent_while_threads_draw() -> None:
    def work(k: int) -> None:
        for _ in range(30):
            if k % 2:
                torch.Generator().set_state(torch.get_rng_state())
            else:
                torch.randn(333), torch.randperm(10), torch.rand(3)

    in_threads(work)


def trained(k: int) -> list[Any]:
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten())
    head = torch.nn.Linear(4 * 36, 3)
    with torch.no_grad():
        for place, each in enumerate([*model.parameters(), *head.parameters()]):
            each.copy_(torch.linspace(-1, 1, each.numel()).reshape(each.shape) * (place + k + 1) / 20)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    x, y = torch.linspace(-1, 1, 4 * 64).reshape(4, 1, 8, 8), torch.tensor([0, 1, 2, 1])
    for _ in range(5):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(head(model(x)), y)
        loss.backward()
        optimizer.step()
        schedule.step()
    return [loss.item(), *(each.tolist() for each in model.state_dict().values())]


def test_models_are_trained_in_threads_as_one_after_the_other() -> None:
    in_turn = [trained(k) for k in range(8)]
    assert in_threads(trained) == in_turn


def test_gradients_of_all_threads_are_added() -> None:
    x = torch.zeros(3, requires_grad=True)
    in_threads(lambda k: [((x * (k + 1)).sum()).backward() for _ in range(20)] and None)
    assert x.grad is not None and x.grad.tolist() == [20 * 36.0] * 3


def test_a_compiled_function_is_first_called_in_threads() -> None:
    compiled = torch.compile(lambda x, y: (x * y).exp().sum() + x.tanh().mean())

    def work(k: int) -> list[float]:
        x = torch.linspace(0, 1, 6 + k % 3, requires_grad=True)
        compiled(x, x.detach() * k).backward()
        assert x.grad is not None
        return x.grad.tolist()

    def expected(k: int) -> list[float]:
        x = torch.linspace(0, 1, 6 + k % 3, requires_grad=True)
        ((x * (x.detach() * k)).exp().sum() + x.tanh().mean()).backward()
        assert x.grad is not None
        return x.grad.tolist()

    for found, wanted in zip(in_threads(work), map(expected, range(8)), strict=True):
        assert found == pytest.approx(wanted, rel=1e-6)


def run(*arguments: str, **variables: str) -> str:
    """Return what Python prints in a new process, or fail."""
    done = subprocess.run(
        [sys.executable, *arguments], env={**os.environ, **variables}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_every_operation_is_first_used_in_threads() -> None:
    """A function is specialised at its 32nd call, which is one of eight threads' calls here."""
    printed = run("-m", "tests.unit.first_use_in_threads", RETROGRAD_CODEGEN="", RETROGRAD_TRACEBACK="")
    assert printed.endswith(" 8 threads, 0 differences\n")


def test_modules_are_first_loaded_in_threads() -> None:
    program = """if True:
        import sys, threading
        import retrograd as torch
        names = (
            "nn.functional.relu", "fft.fft", "linalg.svd", "distributions.Normal", "optim.Adam", "func.vmap", "load",
            "utils.data.DataLoader", "special.erf", "compile", "profiler.profile", "testing.assert_close", "amp.autocast",
            "nn.Linear", "autograd.functional.jacobian", "signal.windows.hann", "overrides.TorchFunctionMode",
        )
        start, failed = threading.Barrier(8), []
        def use(k):
            start.wait()
            for name in names[k:] + names[:k]:
                try:
                    found = torch
                    for part in name.split("."):
                        found = getattr(found, part)
                    assert callable(found)
                except Exception as error:
                    failed.append(f"{name}: {error!r}")
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=use, args=(k,)) for k in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        print(failed)
    """
    assert run("-c", program) == "[]\n"


@pytest.mark.parametrize("fast", ["0", "1"])
def test_large_arrays_are_first_used_in_threads(fast: str) -> None:
    program = """if True:
        import sys, threading
        import retrograd as torch
        start, results = threading.Barrier(8), [None] * 8
        def work(k):
            x = torch.linspace(-1, 1, 1_200_000, requires_grad=True)
            y = torch.sigmoid(x) * x + x.exp()
            (y.sum() + torch.softmax(x.reshape(1200, 1000), 1).square().sum()).backward()
            return [y.sum().item(), x.grad.sum().item(), x.grad[::1000].tolist()]
        def use(k):
            start.wait()
            results[k] = work(k)
        sys.setswitchinterval(1e-6)
        threads = [threading.Thread(target=use, args=(k,)) for k in range(8)]
        for each in threads: each.start()
        for each in threads: each.join()
        alone = work(0)
        close = lambda a, b: abs(a - b) <= 1e-4 * abs(b)
        print(all(each and close(each[0], alone[0]) and close(each[1], alone[1]) and each[2] == alone[2] for each in results))
    """
    assert run("-c", program, RETROGRAD_FAST=fast) == "True\n"
