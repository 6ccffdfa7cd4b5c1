"""Measure a row on several engines in one interleaved run: compare the results first, then take times.

Independent of the rows and of the engines.
"""

from __future__ import annotations

import math
import os
import pickle
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy

from . import trees
from .row import Group, Row

#: Maximum fraction of the cores that other processes may use in a round; with more, the round is repeated.
DISTURBED = 0.1
#: Maximum number of repetitions for each requested round.
PATIENCE = 3


@dataclass
class Result:
    """Seconds of one run of a row on each engine, by round.

    ``theirs`` is PyTorch, ``other`` the tree named by ``--against``. ``disturbed`` counts the rounds in which other
    processes used the machine.
    """

    row: Row
    ours: list[float] = field(default_factory=list)
    other: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)
    by_hand: list[float] = field(default_factory=list)
    disturbed: int = 0

    def seconds(self, times: list[float]) -> float:
        """Return the median of ``times`` per operation of the row."""
        return statistics.median(times) / self.row.operations

    def extend(self, later: Result) -> None:
        """Append the rounds of another measurement of the row."""
        for name in ("ours", "other", "theirs", "by_hand"):
            getattr(self, name).extend(getattr(later, name))
        self.disturbed += later.disturbed

    def by_round(self, of: list[float]) -> list[float]:
        """Return each round's time in ``of`` divided by that of this checkout."""
        return [other / mine for mine, other in zip(self.ours, of, strict=True)]

    def ratios(self, of: list[float]) -> tuple[float, float, float]:
        """Return the quartiles of :meth:`by_round`."""
        return quartiles(self.by_round(of))


def quartiles(values: list[float]) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    return low, middle, high


def geometric_mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    logarithms = [math.log(each) for each in ratios]
    return math.exp(sum(logarithms) / len(logarithms))


def differs(row: Row, ours: list[Any], theirs: list[Any]) -> str | None:
    """Return a description of the first difference between the arrays of two engines, or None."""
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


class Process:
    """An engine in its own process: a module that ends in :func:`benchmarks.engine.serve`, with its arguments.

    ``first`` is the library to import before any other, because retrograd sets OpenBLAS's spin timeout, which NumPy
    reads only once. ``parent`` is the folder from which the process imports retrograd.
    """

    def __init__(self, first: str, module: str, *arguments: str, parent: Path | None = None) -> None:
        run = f"import {first}, runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        # -P keeps the working directory off the module path: it may hold another retrograd.
        command = [sys.executable, "-P", "-c", run, *arguments]
        self._pipe = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=trees.environment(parent)
        )

    def ask(self, method: str, *given: Any) -> Any:
        """Return the result of a method of :class:`benchmarks.engine.Engine`, or raise the error that it raised."""
        assert self._pipe.stdin is not None
        assert self._pipe.stdout is not None
        pickle.dump((method, given), self._pipe.stdin)
        self._pipe.stdin.flush()
        answer = pickle.load(self._pipe.stdout)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._pipe.stdin is not None
        assert self._pipe.stdout is not None
        self._pipe.stdin.close()
        self._pipe.stdout.close()
        self._pipe.wait()


class Bench:
    """All engines, each in its own process: this checkout, the tree to compare with, and PyTorch.

    ``against`` is the folder that holds the other tree's package, or None; ``theirs`` includes PyTorch.
    """

    def __init__(self, threads: int, theirs: bool, against: Path | None = None) -> None:
        self.threads = threads
        self.parents = {"ours": trees.package_parent(trees.ROOT)} | ({"other": against} if against else {})
        self.engines: dict[str, Process] = {}
        self.restart()
        if theirs:
            self.engines["theirs"] = Process("torch", "benchmarks.engine", "torch", str(threads))

    def restart(self) -> None:
        """Start new processes for the trees of retrograd."""
        for name, parent in self.parents.items():
            if name in self.engines:
                self.engines[name].close()
            engine = Process("retrograd", "benchmarks.engine", "retrograd", str(self.threads), parent=parent)
            imported = engine.ask("location")
            if Path(imported).resolve().parent.parent != parent:
                raise SystemExit(f"{parent} was to be measured, but {imported} was imported.")
            self.engines[name] = engine

    def measure(self, group: Group, place: int, rounds: int) -> Result:
        """Return the times of a group's row; raise AssertionError if the engines' results differ."""
        row = group.rows[place]
        by_hand = row.by_hand is not None and "other" not in self.engines
        given = {
            name: engine.ask("prepare", group.name, place, by_hand and name == "ours")
            for name, engine in self.engines.items()
        }
        for name, found in given.items():
            gap = differs(row, given["ours"], found)
            assert gap is None, f"{gap} (ours against {name})"
        turns = {name: (engine, "program") for name, engine in self.engines.items()}
        if by_hand:
            turns["by_hand"] = (self.engines["ours"], "by_hand")
        times: dict[str, list[float]] = {name: [] for name in turns}
        left, disturbed = rounds * PATIENCE, 0
        for _ in range(rounds):
            turns = dict(reversed(turns.items()))  # because a turn may depend on the one before it
            while True:
                taken, quiet = self._round(turns)
                left -= 1
                if quiet or left <= 0:
                    break
            disturbed += not quiet
            for name, seconds in taken.items():
                times[name].append(seconds)
        return Result(row, **times, disturbed=disturbed)

    def _round(self, turns: dict[str, tuple[Process, str]]) -> tuple[dict[str, float], bool]:
        """Return the seconds of each turn, and whether the machine was idle otherwise."""
        start, before = time.perf_counter(), self._others()
        taken = {name: engine.ask("turn", work) for name, (engine, work) in turns.items()}
        others = self._others() - before
        quiet = others < DISTURBED * (time.perf_counter() - start) * (os.cpu_count() or 1)
        return taken, self.threads == 1 or quiet

    def _others(self) -> float:
        """Return the seconds of all cores that other processes have used, or 0 if the system does not count them."""
        return busy() - sum(engine.ask("used") for engine in self.engines.values())


def busy() -> float:
    """Return the seconds that all cores have been busy, or 0 if the system does not count them."""
    table = Path("/proc/stat")
    if not table.exists():
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, table.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
