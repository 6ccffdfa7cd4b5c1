"""``Measurement``: times of a task, and ``TaskSpec``: description of a task."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy

#: Maximum number of digits shown, and minimum confidence interval in seconds.
MOST_DIGITS = 4
SMALLEST_INTERVAL = 25e-9
#: Interquartile ranges, relative to the median, above which a measurement counts as varying (much).
VARIES, VARIES_MUCH = 0.1, 0.25

_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1)}


def select_unit(t: float) -> tuple[str, float]:
    """Return the unit in which to show a time of ``t`` seconds, such as ``"us"``, and its length in seconds.

    >>> select_unit(2e-5)
    ('us', 1e-06)
    """
    found = [unit for unit, (_, scale) in _UNITS.items() if scale <= t]
    unit = found[-1] if found else ("ns" if t >= 1e-9 else "s")
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """Return the English name of the unit ``u``, for example "microsecond" for ``"us"``."""
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """Return ``x`` rounded to ``n`` significant digits.

    >>> trim_sigfig(1234.5, 3)
    1230.0
    """
    if x == 0:
        return 0.0
    place = 10.0 ** (math.ceil(math.log10(x)) - n)
    return float(round(x / place) * place)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """Return a list of the distinct ``elements`` in order of first occurrence."""
    return list(dict.fromkeys(elements))


def _with_heading(name: str, text: str) -> str:
    """Return ``"name: text"``; if ``text`` has several lines, they are indented below the line ``name:``."""
    return f"{name}:\n{textwrap.indent(text, '  ')}\n" if "\n" in text else f"{name}: {text}"


@dataclass(frozen=True)
class TaskSpec:
    """Description of what a ``Timer`` measures: the statement, its setup (not timed), and its labels in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """Title of the task: its label (or its statement, if it has no label), followed by its sub-label, if any."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None:
            return self.label + more
        return _with_heading(f"stmt{more}", self.stmt) if "\n" in self.stmt else self.stmt + more

    def setup_str(self) -> str:
        """Return the setup statement under a heading, or an empty string if there is no setup."""
        return "" if self.setup == "pass" or not self.setup else _with_heading("setup", self.setup)

    def summarize(self) -> str:
        """Return a text with the title, the description and the setup of the task, on separate lines."""
        return "\n".join(part for part in (self.title, self.description or "", self.setup_str()) if part)


class Measurement:
    """Times of a task in seconds; each element of ``raw_times`` is the total time of ``number_per_run`` executions."""

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict[Any, Any] | None = None
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.task_spec, self.metadata = task_spec, metadata

    @property
    def times(self) -> list[float]:
        """List of the times of one execution in seconds: ``raw_times`` divided by ``number_per_run``."""
        return [each / self.number_per_run for each in self.raw_times]

    @property
    def median(self) -> float:
        """Median of ``times``, the times of one execution in seconds."""
        return float(numpy.median(self._all()))

    @property
    def mean(self) -> float:
        """Mean of ``times``, the times of one execution in seconds."""
        return float(numpy.mean(self._all()))

    @property
    def iqr(self) -> float:
        """Interquartile range of ``times``, the times of one execution in seconds."""
        low, high = self._quartiles()
        return high - low

    def _all(self) -> list[float]:
        if not self.raw_times:
            raise ValueError("cannot convert float NaN to integer: there are no measurements")
        return sorted(self.times)

    def _quartiles(self) -> tuple[float, float]:
        low, high = numpy.quantile(self._all(), (0.25, 0.75))
        return float(low), float(high)

    @property
    def significant_figures(self) -> int:
        """Number of significant digits of the median (1 to 4).

        The number is estimated from the standard deviation of the middle half of the times (between the quartiles).
        """
        times = self._all()
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * float(numpy.std(middle)) / math.sqrt(len(middle)), SMALLEST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary: the interquartile range is at least 10 % of the median."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = VARIES) -> bool:
        """Whether the interquartile range is less than ``threshold`` times the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """Title of the task: its label (or its statement, if it has no label), followed by its sub-label, if any."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """Label of the environment of the measurement, as passed to ``Timer(env=…)``."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """Name of the row of this measurement in a table of ``Compare``: the sub-label or the statement of the task."""
        return self.task_spec.sub_label or self.task_spec.stmt or "[Unknown]"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "task_spec":
            raise AttributeError(name)
        return getattr(self.task_spec, name)

    def __repr__(self) -> str:
        unit, scale = select_unit(self.median)
        count, runs = len(self.raw_times), self.number_per_run
        threads = f"{self.task_spec.num_threads} thread{'s' if self.task_spec.num_threads > 1 else ''}"
        lines = [
            f"<torch.utils.benchmark.utils.common.Measurement object at {id(self):#x}>",
            self.task_spec.summarize(),
        ]
        if count == 1:
            lines += [f"  {self.median / scale:.2f} {unit}", f"  1 measurement, {runs} runs , {threads}"]
            return "\n".join(lines)
        lines.append(f"  Median: {self.median / scale:.2f} {unit}")
        if count >= 4:
            low, high = self._quartiles()
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low / scale:.2f} to {high / scale:.2f})")
        lines.append(f"  {count} measurements, {runs} runs per measurement, {threads}")
        share = self.iqr / self.median
        if share >= VARIES:
            much = (
                "suggests significant environmental influence"
                if share >= VARIES_MUCH
                else "could indicate system fluctuation"
            )
            lines.append(f"  WARNING: Interquartile range is {100 * share:.1f}% of the median measurement.")
            lines.append(f"           This {much}.")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return a list with one measurement for each task.

        The measurements of the same task are combined into one measurement with the times of all.
        """
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            grouped.setdefault(each.task_spec, []).append(each)
        return [
            Measurement(1, [time for each in group for time in each.times], spec) for spec, group in grouped.items()
        ]


__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "trim_sigfig", "unit_to_english"]
