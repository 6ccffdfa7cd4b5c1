"""Server process for one engine: it prepares a row, computes it and measures times, on request of ``measure.py``.

Two engines in one process would share the threads of NumPy and OpenMP, and settings: PyTorch's threads spin while they
wait, which made loops beside them ten times slower. Here each engine has the machine alone, while the other sleeps.
Requests arrive as pickles on standard input, answers are written to standard output.
"""

from __future__ import annotations

import gc
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy

from .groups import GROUPS

#: Seconds of an engine's turn.
TURN = 0.03
#: Seconds to wait at the end of a turn, because threads of OpenBLAS and OpenMP spin for a while before they sleep.
AWAKE = 0.5


def arrays(results: Any) -> Iterator[Any]:
    """Return the arrays in the result of a work, in order."""
    if isinstance(results, (tuple, list)):
        for each in results:
            yield from arrays(each)
    elif isinstance(results, dict):
        yield from arrays(list(results.values()))
    elif hasattr(results, "resolve_conj"):
        yield results.detach().cpu().resolve_conj().numpy()
    elif hasattr(results, "__array__") or isinstance(results, (int, float, complex)):
        yield numpy.asarray(results)
    elif hasattr(results, "numpy"):
        yield results.numpy()


class Engine:
    """Module (or None), and the works that were last prepared, by name: the row's program, and the version by hand."""

    def __init__(self, module: str, threads: int) -> None:
        self.module: Any = import_module(module) if module else None
        if module:
            self.module.set_num_threads(threads)
        #: Wall clock, or (with one thread) the processor time of this thread, which other programs do not disturb.
        self.now = time.thread_time if threads == 1 else time.perf_counter
        self.works: dict[str, Callable[[], Any]] = {}
        self.counts: dict[str, int] = {}

    def prepare(self, group: str, place: int, by_hand: bool) -> list[Any]:
        """Prepare a row's work; return its result."""
        row = GROUPS[group].rows[place]
        self.module.manual_seed(0)
        works = {"program": row.program(self.module)}
        if by_hand and row.by_hand is not None:
            works["by_hand"] = row.by_hand()
        return self.settle(works)

    def settle(self, works: dict[str, Callable[[], Any]]) -> list[Any]:
        """Determine how often to run each work in a turn; return the result of the program."""
        self.works = works
        # The result is copied and dropped: with a live graph PyTorch would not create its leaves' AccumulateGrad in
        # each run.
        found = [each.copy() for each in arrays(works["program"]())]
        for name, work in works.items():
            seconds = min(self._once(work, 2) for _ in range(4))  # the first runs may start threads or compile loops
            self.counts[name] = max(1, min(20000, int(TURN / max(seconds, 1e-7))))
        gc.collect()
        return found

    def turn(self, name: str) -> float:
        """Return the seconds for a run, after warm-up runs. The method returns when the engine's threads sleep."""
        work, count = self.works[name], self.counts[name]
        self._once(work, max(1, min(count // 10, 10)))
        seconds = self._once(work, count)
        end = time.perf_counter() + AWAKE
        while time.perf_counter() < end:
            before = time.process_time()
            time.sleep(0.005)
            if time.process_time() - before < 0.001:
                break
        return seconds

    def location(self) -> str:
        """Return the file of the engine's package."""
        return str(self.module.__file__)

    def used(self) -> float:
        """Return the processor time of this process, all threads."""
        return time.process_time()

    def _once(self, work: Callable[[], Any], count: int) -> float:
        now = self.now
        start = now()
        for _ in range(count):
            work()
        return (now() - start) / count


def serve(engine: Engine) -> None:
    """Answer requests until standard input ends."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # output of programs must not mix with answers
    while True:
        try:
            method, given = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = getattr(engine, method)(*given)
        except Exception as error:
            answer = error.__class__(str(error)) if type(error).__module__ == "builtins" else RuntimeError(str(error))
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    serve(Engine(sys.argv[1], int(sys.argv[2])))
