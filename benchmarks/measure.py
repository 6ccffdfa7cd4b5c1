"""Runs a row on both engines in turn: first compares what it gives, then takes times. Knows no row."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy

import retrograd
from retrograd.core import heap

from .row import Row

#: PyTorch, where it is installed.
oracle: Any = None
with suppress(ImportError):
    oracle = import_module("torch")

#: Seconds that one engine works before the other takes its turn.
TURN = 0.03


#: What part of the cores other processes may have used in a round; where they used more, it is taken again.
DISTURBED = 0.1
#: How often rounds are taken again, at most, for each that is asked for.
PATIENCE = 3


@dataclass
class Result:
    """Seconds a run, round by round; ``disturbed``: how many of the rounds others had a part in."""

    row: Row
    ours: list[float]
    theirs: list[float]
    by_hand: list[float]
    disturbed: int

    def seconds(self, times: list[float]) -> float:
        """The median of some times, for each of the row's operations."""
        return statistics.median(times) / self.row.operations

    def ratios(self, of: list[float]) -> tuple[float, float, float]:
        """The quartiles of the other's time divided by ours."""
        each = [other / mine for mine, other in zip(self.ours, of, strict=True)]
        low, middle, high = statistics.quantiles(each, n=4) if len(each) > 1 else each * 3
        return low, middle, high


def arrays(results: Any) -> Iterator[Any]:
    """The arrays in what a work returned, in order."""
    if isinstance(results, (tuple, list)):
        for each in results:
            yield from arrays(each)
    elif isinstance(results, dict):
        yield from arrays(list(results.values()))
    elif hasattr(results, "detach"):
        yield results.detach().cpu().resolve_conj().numpy()
    elif isinstance(results, (int, float, complex, numpy.ndarray, numpy.generic)):
        yield numpy.asarray(results)


def differs(row: Row, mine: Any, other: Any) -> str | None:
    """What is not the same in two engines' results."""
    ours, theirs = list(arrays(mine)), list(arrays(other))
    if len(ours) != len(theirs):
        return f"{len(ours)} results against {len(theirs)}"
    for place, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.shape != b.shape:
            return f"result {place} has shape {a.shape} against {b.shape}"
        if not a.size:
            continue
        scale = max(1e-6, float(numpy.nanmax(numpy.abs(b))))
        gap = float(numpy.nanmax(numpy.abs(numpy.subtract(a, b, dtype=numpy.result_type(a, b, numpy.float64)))))
        if not gap <= row.tolerance * scale or not numpy.array_equal(numpy.isnan(a), numpy.isnan(b)):
            return f"result {place} differs by {gap:.2g} of {scale:.2g}"
    return None


class Clock:
    """What times are taken by: the wall's clock, or (one thread each) the processor's time of this thread."""

    now = staticmethod(time.perf_counter)

    @classmethod
    def of_threads(cls, count: int) -> None:
        """Choose for so many threads: what one alone does can be told from what other programs do at the same time."""
        cls.now = staticmethod(time.thread_time if count == 1 else time.perf_counter)


def once(work: Callable[[], Any], count: int) -> float:
    """Seconds a run, over some runs."""
    start = Clock.now()
    for _ in range(count):
        work()
    return (Clock.now() - start) / count


#: What glibc's ``malloc`` comes to by itself when large arrays have been freed: MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD,
#: MMAP_MAX (``core/heap.py``).
BY_ITSELF = {-3: 32 << 20, heap.TRIM_THRESHOLD: 64 << 20, heap.TOP_PAD: 1 << 17, heap.MMAP_MAX: 1 << 16}


def settle(name: str) -> None:
    """Let an engine find the C library's memory as it would alone: our pool is for the whole process, and not PyTorch's."""
    heap.keep.cache_clear()
    if name == "ours":
        heap.keep()
    elif (library := heap.glibc()) is not None:
        for parameter, value in BY_ITSELF.items():
            library.mallopt(parameter, value)
    heap.empty_cache()


def turn(name: str, work: Callable[[], Any], count: int) -> float:
    """The same after a run that is not counted: the other engine's threads may still be spinning."""
    settle(name)
    once(work, max(1, min(count // 10, 10)))
    return once(work, count)


def measure(row: Row, rounds: int) -> Result:
    """Times of a row; an AssertionError if the engines do not agree."""
    engines = {"ours": retrograd}
    if oracle is not None:
        engines["theirs"] = oracle
    works, given = {}, []
    for name, engine in engines.items():
        engine.manual_seed(0)
        works[name] = row.program(engine)
        given.append(works[name]())
    gap = differs(row, given[0], given[-1])
    assert gap is None, gap
    given.clear()  # a graph that stays alive would spare PyTorch making its leaves' AccumulateGrad anew
    if row.by_hand is not None:
        works["by_hand"] = row.by_hand()
    counts = {}
    for name, work in works.items():
        once(work, 2)
        counts[name] = max(1, min(20000, int(TURN / max(once(work, 2), 1e-7))))
    times: dict[str, list[float]] = {"ours": [], "theirs": [], "by_hand": []}
    gc.collect()
    left, disturbed = rounds * PATIENCE, 0
    for _ in range(rounds):
        while True:
            before = busy()
            taken = {name: turn(name, work, counts[name]) for name, work in works.items()}
            quiet = Clock.now is time.thread_time or busy() - before < DISTURBED * sum(
                taken[name] * counts[name] for name in works
            )
            left -= 1
            if quiet or left <= 0:
                break
        disturbed += not quiet
        for name, seconds in taken.items():
            times[name].append(seconds)
    return Result(row, **times, disturbed=disturbed)


def busy() -> float:
    """Seconds that the machine's cores have worked for other processes, for each core; 0 where nobody tells."""
    table = Path("/proc/stat")
    if not table.exists():
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, table.read_text().split("\n", 1)[0].split()[1:9])
    own = os.times()
    everyone = (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
    return (everyone - own.user - own.system) / (os.cpu_count() or 1)
