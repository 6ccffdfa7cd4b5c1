"""``Timer``: measures the execution time of a statement."""

from __future__ import annotations

import enum
import sys
import textwrap
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy

from ...core import devices
from ...runtime import blas_threads
from .measurement import Measurement, TaskSpec


class Language(enum.Enum):
    """Language of the statement that a :class:`Timer` measures."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """Return the time of ``timeit.default_timer`` in seconds, after waiting for the GPU if there is a GPU."""
    if "cupy" in sys.modules and devices.gpu_count():
        devices.cupy().cuda.Device().synchronize()
    return timeit.default_timer()


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Return a context manager in which BLAS uses ``n`` threads."""
    before = blas_threads.get_num_threads()
    try:
        blas_threads.set_num_threads(n)
        yield
    finally:
        blas_threads.set_num_threads(before)


class Timer:
    """Timer of the statement ``stmt``, which is executed with ``num_threads`` BLAS threads.

    The statement ``setup`` is executed before ``stmt`` and is not timed. The statements can use ``torch`` and the names
    in ``globals``. ``label``, ``sub_label``, ``description`` and ``env`` label the measurements in tables.

    >>> import retrograd as torch
    >>> timer = torch.utils.benchmark.Timer("x + 1", globals={"x": torch.ones(2)})
    >>> timer.timeit(10).number_per_run
    10

    See https://docs.pytorch.org/docs/stable/benchmark_utils.html.
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"retrograd times Python only, not language={language!r}")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`")
        space = {"torch": sys.modules[__package__.partition(".")[0]], **(globals or {})}
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._globals = space
        self._timer = timeit.Timer(stmt=stmt, setup=setup or "pass", timer=timer, globals=space)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        return max(self._timer.timeit(number), 1e-9)

    def timeit(self, number: int = 1000000) -> Measurement:
        """Return a measurement of ``number`` runs of the statement.

        Before the measurement, the statement runs ``number // 100`` times (at least 2) to warm up.
        """
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(number // 100, 2))
            return Measurement(number, [self._timeit(number)], self._task_spec)

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Raise NotImplementedError, as PyTorch does; use :meth:`blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Any = None) -> NoReturn:
        """Raise NotImplementedError, as PyTorch does; use :meth:`blocked_autorange`."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def _block_size(self, min_run_time: float) -> int:
        """Return the number of executions of the statement for which the clock is read once, a power of 10.

        The number is so large that reading the clock takes at most 1e-4 of the time, and that the executions take at
        least ``min_run_time / 1000`` seconds. It is not increased further once the executions take more than
        ``min_run_time`` seconds.
        """
        with set_torch_threads(self._task_spec.num_threads):
            overhead = float(numpy.median([self._timeit(0) for _ in range(5)]))
            number = 1
            while True:
                taken = self._timeit(number)
                if overhead / taken <= 1e-4 and taken >= min_run_time / 1000:
                    return number
                if taken > min_run_time:
                    return number
                number *= 10

    def _until(self, number: int, times: list[float], enough: Callable[[], bool], callback: Any) -> Measurement:
        with set_torch_threads(self._task_spec.num_threads):
            while not enough() or not times:
                taken = self._timeit(number)
                times.append(taken)
                if callback is not None:
                    callback(number, taken)
        return Measurement(number, times, self._task_spec)

    def blocked_autorange(self, callback: Any = None, min_run_time: float = 0.2) -> Measurement:
        """Return a measurement of at least ``min_run_time`` seconds.

        The statement is executed many times between two readings of the clock, so that the readings take at most 1e-4
        of the time. After each reading, ``callback(number, seconds)`` is called with the number of executions and their
        time.
        """
        number, times = self._block_size(min_run_time), list[float]()
        return self._until(number, times, lambda: sum(times) >= min_run_time, callback)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback: Any = None
    ) -> Measurement:
        """Return a measurement that ends when the interquartile range is less than ``threshold`` times the median.

        The measurement takes at least ``min_run_time`` and at most about ``max_run_time`` seconds. After each reading
        of the clock, ``callback(number, seconds)`` is called with the number of executions since the last reading and
        their time.
        """
        number, times = self._block_size(0.05), list[float]()

        def enough() -> bool:
            spent = sum(times)
            if len(times) < 4 or spent < min_run_time:
                return spent > max_run_time
            found = Measurement(number, times, self._task_spec)
            return spent > max_run_time or found.meets_confidence(threshold)

        return self._until(number, times, enough, callback)


def _dedented(text: str) -> str:
    """Return the statement ``text`` without the indentation common to all its lines."""
    return textwrap.dedent(text[1:] if text.startswith("\n") else text).rstrip()
