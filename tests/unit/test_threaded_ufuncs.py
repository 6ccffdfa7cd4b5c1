"""NumPy ufuncs in chunks on several threads: same results and errors as one call, and cases that are not split."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy
import pytest

import retrograd as torch
from retrograd.kernels import threaded_ufuncs
from tests.loops import use_loops

SIZE = (1 << 20) + 12_345


@pytest.fixture(autouse=True)
def without_numba(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    use_loops(monkeypatch, False)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


def drawn(seed: int) -> Any:
    return torch.tensor(numpy.random.default_rng(seed).standard_normal(SIZE).astype(numpy.float32))


@pytest.mark.parametrize(
    "expression",
    ["x + y", "x * 2", "1 / x", "x.sin()", "torch.atan2(x, y)", "n.gelu(x, approximate='tanh')", "n.softplus(x)",
     "n.hardswish(x)", "torch.lerp(x, y, 0.25)", "x.clamp(-1, 1)", "torch.maximum(x, y)", "x.double() * 2", "x > y",
     "x.isnan()", "x + y[:1]", "x[::2] * 2", "x.reshape(3, -1)[:, :-1].sin()"],
)  # fmt: skip
def test_chunks_match_one_call(expression: str, monkeypatch: pytest.MonkeyPatch) -> None:
    space = {"torch": torch, "n": torch.nn.functional, "x": drawn(0)[: SIZE // 3 * 3], "y": drawn(1)[: SIZE // 3 * 3]}
    several = eval(expression, space)
    monkeypatch.setattr(threaded_ufuncs, "THREADED_FORMULA", SIZE + 1)
    monkeypatch.setattr(threaded_ufuncs, "THREADED_UFUNC", SIZE + 1)
    alone = eval(expression, space)
    assert several.dtype is alone.dtype
    assert several.stride() == alone.stride()
    assert numpy.array_equal(several.numpy(), alone.numpy())


def test_in_place_and_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = drawn(0).requires_grad_(), drawn(1)
    ((x * y).sin() / (1 + y * y)).sum().backward()
    z = y.clone()
    z += y
    z.mul_(0.5).exp_()
    true = numpy.cos(x.detach().numpy() * y.numpy()) * y.numpy() / (1 + y.numpy() ** 2)
    assert numpy.allclose(x.grad.numpy(), true, atol=1e-6)
    assert numpy.array_equal(z.numpy(), numpy.exp(y.numpy()))


def test_overlapping_memory_is_not_split() -> None:
    line = numpy.arange(SIZE + 1, dtype=numpy.float64)
    threaded_ufuncs.by_threads(numpy.add, (line[1:], line[:-1]), line[1:])
    assert numpy.array_equal(line[1:], 2 * numpy.arange(1, SIZE + 1) - 1)


def test_errors_of_worker_threads_propagate() -> None:
    def part(place: int) -> None:
        if place == 3:
            raise ValueError("this one")

    with pytest.raises(ValueError, match="this one"):
        threaded_ufuncs.together(part, 8)
    seen: list[int] = []
    threaded_ufuncs.together(seen.append, 8)
    assert sorted(seen) == list(range(8))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_starts_its_own_threads() -> None:
    x = drawn(0)
    found = x.sin()
    child = os.fork()
    if not child:
        os._exit(0 if numpy.array_equal(x.sin().numpy(), found.numpy()) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
