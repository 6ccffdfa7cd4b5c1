"""Memory: what is freed stays for the next arrays, within bounds; what a sweep holds at its peak; no copies for nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from retrograd.core import heap

PRELUDE = """
import retrograd as torch
def held(what="VmRSS"):
    return int(open("/proc/self/status").read().split(what + ":")[1].split()[0]) / 1024  # megabytes
"""


def printed(program: str, **environment: str) -> list[float]:
    """The numbers that a program prints, run in a process of its own."""
    source = str(Path(heap.__file__).parents[2])
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "RETROGRAD_"))}
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + program],
        check=True, capture_output=True, text=True, env={**kept, "PYTHONPATH": source, **environment},
    )  # fmt: skip
    return [float(each) for each in found.stdout.split()]


on_glibc = pytest.mark.skipif(heap.glibc() is None, reason="nothing is kept with this C library")

LARGE_AND_FREED = """
x = torch.ones(10**6)
x + x
before = held()
y = [x + 1 for _ in range(50)]
most = held()
del y
print(before, most, held())
torch.empty_cache()
print(held())
"""


@on_glibc
def test_freed_memory_stays_until_it_is_given_back() -> None:
    before, most, freed, given_back = printed(LARGE_AND_FREED, RETROGRAD_FAST="0")
    assert most > before + 180
    assert freed > most - 10
    assert given_back < before + 10


@on_glibc
def test_how_much_is_kept_is_bounded() -> None:
    before, _, freed, _ = printed(LARGE_AND_FREED, RETROGRAD_FAST="0", RETROGRAD_POOL="40")
    assert freed < before + 110  # the bound, and by how much the heap grows at once
    before, _, freed, _ = printed(LARGE_AND_FREED, RETROGRAD_FAST="0", RETROGRAD_POOL="0")
    assert freed < before + 20


@on_glibc
def test_what_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RETROGRAD_POOL", raising=False)
    assert 0 < heap.bound() <= heap.MOST
    for said, bytes_kept in (("0", 0), ("100", 10**8), ("99999", heap.MOST), ("much", heap.bound())):
        monkeypatch.setenv("RETROGRAD_POOL", said)
        assert heap.bound() == bytes_kept


def test_only_a_large_array_sets_anything() -> None:
    settings = "from retrograd.core.heap import keep; print(keep.cache_info().currsize)\n"
    assert printed(f"torch.ones(3) + 1\n{settings}torch.ones(10**6) + 1\n{settings}") == [0, 1]


@on_glibc
def test_steps_of_training_hold_no_more_and_no_more() -> None:
    steps = """
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(300, 1000), torch.nn.ReLU(), torch.nn.LayerNorm(1000), torch.nn.Linear(1000, 10))
optimizer = torch.optim.Adam(model.parameters())
for step in range(60):
    count = 200 + 37 * (step % 7)  # batches of several sizes
    x, y = torch.randn(count, 300), torch.randint(0, 10, (count,))
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    if step in (19, 59): print(held("VmHWM"))
"""
    early, late = printed(steps)
    assert late < early * 1.05
