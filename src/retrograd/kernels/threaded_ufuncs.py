"""NumPy's ufuncs and elementwise formulas on large arrays, computed in slices by several Python threads.

The functions are used if no Numba loop supports the arrays. NumPy alone works on one thread, and a formula of five
ufuncs reads and writes the whole memory five times. A slice stays in the cache from one ufunc to the next, and NumPy
releases the GIL while it computes. Waking a thread takes as long as half a million additions, so only larger arrays are
divided.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable
from itertools import count
from queue import SimpleQueue
from typing import Any

import numpy

from ..runtime import blas_threads
from .thresholds import THREADED_FORMULA, THREADED_UFUNC

MANY = THREADED_FORMULA  # the name that the generated code uses
#: How many elements make a stretch of a formula; a ufunc's are as many as there are threads.
STRETCH = 1 << 17


class Crew:
    """Pool of daemon threads that compute slices of large arrays. After a fork the child process starts new threads.

    Where no thread can be started (Pyodide, a limit of the system), the calling thread computes all slices.
    """

    def __init__(self) -> None:
        self.work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self.size, self.growing = 0, threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self.work, self.size, self.growing = SimpleQueue(), 0, threading.Lock()

    def ask(self, helpers: int, job: Callable[[], None]) -> None:
        """Let up to ``helpers`` threads of the pool call ``job``, and return without waiting for them.

        ``job`` is put into the queue of the pool ``helpers`` times. If the pool has fewer threads, more are started
        first.
        """
        with self.growing:
            while self.size < helpers:
                try:
                    threading.Thread(target=_wait_for_work, args=(self.work,), daemon=True).start()
                except RuntimeError:
                    helpers = self.size
                else:
                    self.size += 1
        for _ in range(helpers):
            self.work.put(job)


def _wait_for_work(work: SimpleQueue[Callable[[], None]]) -> None:
    with numpy.errstate(all="ignore"):
        while True:
            work.get()()


CREW = Crew()


def together(part: Callable[[int], None], parts: int) -> None:
    """Call ``part(k)`` for k from 0 to ``parts - 1``, distributed over the thread pool and the calling thread.

    Returns when all calls have finished. If a call raises an exception, the exception is raised here.
    """
    places, done, finished, errors = iter(range(parts)), count(1), threading.Event(), list[BaseException]()

    def job() -> None:
        for place in places:  # one at a time gets the next
            try:
                if not errors:
                    part(place)
            except BaseException as error:
                errors.append(error)
            if next(done) == parts:
                finished.set()

    helpers = min(blas_threads.max_threads(), parts) - 1
    try:
        if helpers > 0:
            CREW.ask(helpers, job)
        job()
        finished.wait()
        if errors:
            raise errors[0]
    except KeyboardInterrupt as error:
        error.returned = None  # type: ignore[attr-defined]  # for runtime/interrupts.py: some parts may be written
        raise


def _in_lines(arrays: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]] | None:
    """Return ``arrays`` as a list of 1-d arrays, and their common shape.

    Python numbers and 0-d arrays are not changed. The result is None if an array is not contiguous or the shapes
    differ.
    """
    shape = next((each.shape for each in arrays if each.__class__ is numpy.ndarray and each.shape), ())
    lines = []
    for each in arrays:
        if not isinstance(each, numpy.ndarray) or not each.shape:
            lines.append(each)
        elif each.__class__ is numpy.ndarray and each.shape == shape and each.flags.carray:
            lines.append(each.reshape(-1))
        else:
            return None
    return lines, shape


def _part(lines: list[Any], place: int, length: int) -> list[Any]:
    step = slice(place * length, (place + 1) * length)
    return [each[step] if isinstance(each, numpy.ndarray) and each.shape else each for each in lines]


def by_stretches(kernel: Callable[..., Any], arrays: tuple[Any, ...]) -> Any:
    """Return ``kernel(*arrays)``, computed in slices by several threads, for an elementwise function ``kernel``.

    The result is None if the arrays are small, not contiguous or differ in shape.
    """
    seen = _in_lines(arrays)
    if seen is None:
        return None
    lines, shape = seen
    size = math.prod(shape)
    if size < THREADED_FORMULA:
        return None
    first = kernel(*_part(lines, 0, STRETCH))
    if first.__class__ is not numpy.ndarray or first.shape != (STRETCH,):
        return None
    out = numpy.empty(shape, first.dtype)
    line = out.reshape(-1)
    line[:STRETCH] = first

    def part(place: int) -> None:
        place += 1
        line[place * STRETCH : (place + 1) * STRETCH] = kernel(*_part(lines, place, STRETCH))

    together(part, -(-size // STRETCH) - 1)
    return out


def _overlaps(out: Any, arrays: tuple[Any, ...]) -> bool:
    """Whether one of ``arrays``, other than ``out`` itself, shares memory with ``out``."""
    return any(
        each is not out and isinstance(each, numpy.ndarray) and numpy.may_share_memory(out, each) for each in arrays
    )


def by_threads(ufunc: Any, arrays: tuple[Any, ...], out: Any = None) -> Any:
    """Return ``ufunc(*arrays, out=out)``, computed in slices by several threads if the arrays are large."""
    seen = (
        _in_lines(arrays if out is None else (*arrays, out))
        if blas_threads.max_threads() > 1 and ufunc.nout == 1
        else None
    )
    if seen is None or math.prod(seen[1]) < THREADED_UFUNC or (out is not None and _overlaps(out, arrays)):
        return ufunc(*arrays, out=out)
    lines, shape = seen
    if out is None:
        kinds = [each.dtype if isinstance(each, (numpy.ndarray, numpy.generic)) else each.__class__ for each in arrays]
        out = numpy.empty(shape, ufunc.resolve_dtypes((*kinds, None))[-1])
        lines.append(out.reshape(-1))
    length = -(-lines[-1].size // blas_threads.max_threads())

    def part(place: int) -> None:
        *given, into = _part(lines, place, length)
        ufunc(*given, out=into)

    together(part, blas_threads.max_threads())
    return out
