"""One engine in a process of its own, which does what ``measure.py`` asks: prepares a row, computes it, takes times.

Two engines in one process would share NumPy's threads, OpenMP's and each other's settings: PyTorch's threads wait awake,
and loops beside them took ten times as long. Here each has the machine as it has it in a program, while the other sleeps.
Questions come as pickles on the standard input, answers go to the standard output.
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

#: Seconds that one engine works before the other takes its turn.
TURN = 0.03
#: Seconds that an engine's threads may look for more work when its turn is over; OpenBLAS's and OpenMP's do for a while.
AWAKE = 0.5


def arrays(results: Any) -> Iterator[Any]:
    """The arrays in what a work returned, in order."""
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
    """A module (or none), and the works that it was last asked to prepare, by name: a row's own, and the one by hand."""

    def __init__(self, module: str, threads: int) -> None:
        self.module: Any = import_module(module) if module else None
        if module:
            self.module.set_num_threads(threads)
        #: The wall's clock, or (one thread) the processor's time of this thread, which other programs do not disturb.
        self.now = time.thread_time if threads == 1 else time.perf_counter
        self.works: dict[str, Callable[[], Any]] = {}
        self.counts: dict[str, int] = {}

    def prepare(self, group: str, place: int, by_hand: bool) -> list[Any]:
        """Make a row's work; what it computes."""
        row = GROUPS[group].rows[place]
        self.module.manual_seed(0)
        works = {"program": row.program(self.module)}
        if by_hand and row.by_hand is not None:
            works["by_hand"] = row.by_hand()
        return self.settle(works)

    def settle(self, works: dict[str, Callable[[], Any]]) -> list[Any]:
        """Find out how often to run each in a turn; what the first computes."""
        self.works = works
        # What it gives is not kept: a graph that stays alive would spare PyTorch making its leaves' AccumulateGrad anew.
        found = [each.copy() for each in arrays(works["program"]())]
        for name, work in works.items():
            seconds = min(
                self._once(work, 2) for _ in range(4)
            )  # at first threads may have to be woken, or loops compiled
            self.counts[name] = max(1, min(20000, int(TURN / max(seconds, 1e-7))))
        gc.collect()
        return found

    def turn(self, name: str) -> float:
        """Seconds a run, after some that are not counted. It answers when its threads have gone to sleep."""
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
    """Answer until the questions end."""
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr  # what a program prints is no answer
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
