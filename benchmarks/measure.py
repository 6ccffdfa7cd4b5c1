"""Runs a row on both engines in turn: first compares what it gives, then takes times. Knows no row and no engine."""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from .row import Group, Row

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


def differs(row: Row, ours: list[Any], theirs: list[Any]) -> str | None:
    """What is not the same in the arrays that two engines gave."""
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
    """An engine at work in its process: a module that ends in :func:`benchmarks.engine.serve`, with its arguments.

    ``first``: the library that is imported before anything else is, so that it finds NumPy's threads as it has them in a
    program that begins with it (``retrograd/runtime/blas_spin.py``).
    """

    def __init__(self, first: str, module: str, *arguments: str) -> None:
        run = f"import {first}, runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)"
        command = [sys.executable, "-c", run, *arguments]
        self._pipe = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, method: str, *given: Any) -> Any:
        """What a method of :class:`benchmarks.engine.Engine` answers, or the error that it raised."""
        assert self._pipe.stdin is not None
        assert self._pipe.stdout is not None
        pickle.dump((method, given), self._pipe.stdin)
        self._pipe.stdin.flush()
        answer = pickle.load(self._pipe.stdout)
        if isinstance(answer, Exception):
            raise answer
        return answer


class Bench:
    """Both engines, each in its process; PyTorch only where it is installed."""

    def __init__(self, threads: int, theirs: bool) -> None:
        self.engines = {"ours": Process("retrograd", "benchmarks.engine", "retrograd", str(threads))}
        if theirs:
            self.engines["theirs"] = Process("torch", "benchmarks.engine", "torch", str(threads))
        self.threads = threads

    def measure(self, group: Group, place: int, rounds: int) -> Result:
        """Times of a group's row; an AssertionError if the engines do not agree."""
        row = group.rows[place]
        given = {
            name: engine.ask("prepare", group.name, place, name == "ours") for name, engine in self.engines.items()
        }
        gap = differs(row, given["ours"], given.get("theirs", given["ours"]))
        assert gap is None, gap
        turns = {name: (engine, "program") for name, engine in self.engines.items()}
        if row.by_hand is not None:
            turns["by_hand"] = (self.engines["ours"], "by_hand")
        times: dict[str, list[float]] = {"ours": [], "theirs": [], "by_hand": []}
        left, disturbed = rounds * PATIENCE, 0
        for _ in range(rounds):
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
        """What everyone's turn took; whether other programs left the machine alone."""
        start, before = time.perf_counter(), self._others()
        taken = {name: engine.ask("turn", work) for name, (engine, work) in turns.items()}
        others = self._others() - before
        quiet = others < DISTURBED * (time.perf_counter() - start) * (os.cpu_count() or 1)
        return taken, self.threads == 1 or quiet

    def _others(self) -> float:
        """Seconds that the machine has worked for other programs, all cores together; what is 0 where nobody tells."""
        return busy() - sum(engine.ask("used") for engine in self.engines.values())


def busy() -> float:
    """Seconds that the machine's cores have worked, added up; 0 where nobody tells."""
    table = Path("/proc/stat")
    if not table.exists():
        return 0.0
    user, nice, system, _, _, *interrupts = map(int, table.read_text().split("\n", 1)[0].split()[1:9])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK")
