"""What a timer has found, and what it was about."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy

#: No more digits are shown than these, and no interval of confidence is taken to be smaller, in seconds.
MOST_DIGITS = 4
SMALLEST_INTERVAL = 25e-9
#: From which share of the median the middle half of the times is said to vary.
VARIES, VARIES_MUCH = 0.1, 0.25

_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1)}


def select_unit(t: float) -> tuple[str, float]:
    """The unit in which a time in seconds is best read, and how many seconds it is.

    >>> select_unit(2e-5)
    ('us', 1e-06)
    """
    found = [unit for unit, (_, scale) in _UNITS.items() if scale <= t]
    unit = found[-1] if found else ("ns" if t >= 1e-9 else "s")
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """The name of a unit: ``"us"`` is a microsecond."""
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """``x`` with ``n`` digits.

    >>> trim_sigfig(1234.5, 3)
    1230.0
    """
    if x == 0:
        return 0.0
    place = 10.0 ** (math.ceil(math.log10(x)) - n)
    return float(round(x / place) * place)


def ordered_unique(elements: Iterable[Any]) -> list[Any]:
    """The elements once each, in their order."""
    return list(dict.fromkeys(elements))


def _named(name: str, text: str) -> str:
    """A piece of a program under its name: in one line if it has one."""
    return f"{name}:\n{textwrap.indent(text, '  ')}\n" if "\n" in text else f"{name}: {text}"


@dataclass(frozen=True)
class TaskSpec:
    """What was measured: the statement, what stands before it, and how it is called in tables."""

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
        """The label, or the statement."""
        more = f": {self.sub_label}" if self.sub_label else ""
        if self.label is not None:
            return self.label + more
        return _named(f"stmt{more}", self.stmt) if "\n" in self.stmt else self.stmt + more

    def setup_str(self) -> str:
        """What stands before the statement, if anything does."""
        return "" if self.setup == "pass" or not self.setup else _named("setup", self.setup)

    def summarize(self) -> str:
        """All of it in a few lines."""
        return "\n".join(part for part in (self.title, self.description or "", self.setup_str()) if part)


class Measurement:
    """Times of a task: each is of ``number_per_run`` runs."""

    def __init__(
        self, number_per_run: int, raw_times: list[float], task_spec: TaskSpec, metadata: dict[Any, Any] | None = None
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.task_spec, self.metadata = task_spec, metadata

    @property
    def times(self) -> list[float]:
        """Seconds of one run each."""
        return [each / self.number_per_run for each in self.raw_times]

    @property
    def median(self) -> float:
        """The median time."""
        return float(numpy.median(self._all()))

    @property
    def mean(self) -> float:
        """The mean time."""
        return float(numpy.mean(self._all()))

    @property
    def iqr(self) -> float:
        """How far the quartiles lie apart."""
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
        """How many digits of the median mean something, by the middle half of the times (up to 4)."""
        times = self._all()
        middle = times[len(times) // 4 : math.ceil(3 * len(times) / 4)]
        interval = max(1.645 * float(numpy.std(middle)) / math.sqrt(len(middle)), SMALLEST_INTERVAL)
        return min(max(math.floor(math.log10(self.median / interval)), 1), MOST_DIGITS)

    @property
    def has_warnings(self) -> bool:
        """Whether the times vary much."""
        return not self.meets_confidence()

    def meets_confidence(self, threshold: float = VARIES) -> bool:
        """Whether the middle half of the times lies within this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def title(self) -> str:
        """What was measured."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """Where it was measured."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """How a table calls it."""
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
        """Measurements of the same task made one."""
        grouped: dict[TaskSpec, list[Measurement]] = {}
        for each in measurements:
            grouped.setdefault(each.task_spec, []).append(each)
        return [
            Measurement(1, [time for each in group for time in each.times], spec) for spec, group in grouped.items()
        ]


__all__ = ["Measurement", "TaskSpec", "ordered_unique", "select_unit", "trim_sigfig", "unit_to_english"]
