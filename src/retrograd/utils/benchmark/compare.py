"""``Compare``: prints measurements as a table."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from typing import Any

from .measurement import Measurement, ordered_unique, select_unit, trim_sigfig, unit_to_english

BEST, BAD, WORST, PLAIN = "\033[92m\033[1m", "\033[2m\033[91m", "\033[31m\033[1m", "\033[0m\033[0m"


class Colorize(enum.Enum):
    """Setting of :class:`Compare`: whether the times in a table are coloured by column, by row, or not at all."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Table of measurements, with one column for each ``description`` and one row for each ``sub_label``.

    These are arguments of :class:`Timer`. The rows are grouped by number of threads.

    >>> import retrograd as torch
    >>> spec = torch.utils.benchmark.TaskSpec("x + 1", "", label="sums", sub_label="small", description="here")
    >>> print(torch.utils.benchmark.Compare([torch.utils.benchmark.Measurement(1, [2e-6], spec)]))
    [------ sums ------]
                 |  here
    1 threads: ---------
          small  |  2.0...
    """

    def __init__(self, results: list[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trim, self._warnings, self._colors = False, False, Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Add the measurements ``results`` to the table."""
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
            self._results.append(each)

    def trim_significant_figures(self) -> None:
        """Show only the significant digits of each time."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colour the best and the worst times of each column or, if ``rowwise`` is true, of each row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Mark the measurements whose interquartile range is at least 10 % of the median."""
        self._warnings = True

    def print(self) -> None:
        """Print the table."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(each.task_spec.label for each in merged)
        return "\n".join(
            self._table(label, [each for each in merged if each.task_spec.label == label]) for label in labels
        )

    def _table(self, label: str | None, results: list[Measurement]) -> str:
        """Return the text of the table of ``results``, the measurements whose tasks have the label ``label``."""
        unit, scale = select_unit(min(each.median for each in results))
        columns = ordered_unique(each.task_spec.description for each in results)
        cells: dict[Any, Measurement] = {(*_row(each), each.task_spec.description): each for each in results}
        rows = sorted(ordered_unique(map(_row, results)), key=lambda row: row[:2])
        names = _row_names(rows)
        texts = [self._column([cells.get((*row, each)) for row in rows], scale) for each in columns]
        heads = ["" if each is None else each for each in columns]
        widths = [max(len(head), *map(len, found)) for head, found in zip(heads, texts, strict=True)]
        head = "  |  ".join(
            [" " * len(names[0]), *(text.center(width) for text, width in zip(heads, widths, strict=True))]
        )
        title = f" {label or ''} ".center(len(head) - 2, "-")
        lines = [f"[{title}]", head]
        for number, row in enumerate(rows):
            if not number or rows[number - 1][0] != row[0]:
                lines.append(f"{row[0]} threads: ".ljust(len(head), "-"))
            shown = []
            for place, (found, width) in enumerate(zip(texts, widths, strict=True)):
                cell = cells.get((*row, columns[place]))
                among = self._among(cells, columns, rows, row, columns[place])
                shown.append(_coloured(found[number].center(width), cell, among))
            lines.append("  |  ".join([names[number], *shown]))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit})."]
        if self._warnings and any(each.has_warnings for each in results):
            lines.append("(! XX%) Measurement has high variance, where XX is the IQR / median * 100.")
        return "\n".join([*lines, ""])

    def _column(self, found: list[Measurement | None], scale: float) -> list[str]:
        """Return the texts of the cells in one column, aligned at the decimal point.

        ``found`` has the measurement of each cell, or None for an empty cell, whose text is empty. ``scale`` is the
        unit of the times in the table (1e-6 for microseconds).
        """
        there = [each for each in found if each is not None]
        leading = [math.ceil(math.log10(each.median / scale)) for each in there]
        decimals = 1
        if self._trim:
            decimals = min(
                max(each.significant_figures - digits, 0) for each, digits in zip(there, leading, strict=True)
            )
        width = max(leading) + decimals + bool(decimals)
        warned = self._warnings and any(each.has_warnings for each in there)
        return ["" if each is None else self._text(each, scale, width, decimals, warned) for each in found]

    def _text(self, each: Measurement, scale: float, width: int, decimals: int, warned: bool) -> str:
        value = trim_sigfig(each.median, each.significant_figures) if self._trim else each.median
        share = f" (! {100 * each.iqr / each.median:.0f}%)" if warned and each.has_warnings else " " * 8 * warned
        return f"{value / scale:>{width}.{decimals}f}{share}"

    def _among(
        self, cells: dict[Any, Measurement], columns: list[Any], rows: list[Any], row: Any, column: Any
    ) -> list[float]:
        """Return the median times that determine the colour of the cell at ``row`` and ``column``.

        The colour depends on the ratio of the cell's time to the least of the returned times. With colours by row,
        these are the times of the same row. With colours by column, these are the times of the same column and number
        of threads. Without colours, the list is empty. ``cells`` maps ``(*row, column)`` to a measurement; ``rows`` and
        ``columns`` are all rows and columns of the table.
        """
        if self._colors is Colorize.NONE:
            return []
        if self._colors is Colorize.ROWWISE:
            places = [(*row, each) for each in columns]
        else:
            places = [(*each, column) for each in rows if each[0] == row[0]]
        return [cells[each].median for each in places if each in cells]


def _row(each: Measurement) -> tuple[int, str, str]:
    """Return the row of the measurement ``each`` in the table: the tuple (number of threads, environment, name)."""
    return each.task_spec.num_threads, each.task_spec.env or "", each.as_row_name


def _row_names(rows: list[tuple[int, str, str]]) -> list[str]:
    """Return the texts of the first column, one for each of ``rows``: the environment, followed by the name.

    Each row is a tuple (number of threads, environment, name). The environment is omitted if the row above has the same
    number of threads and the same environment.
    """
    widest = max(len(env) for _, env, _ in rows) + 4
    names = []
    for number, (threads, env, name) in enumerate(rows):
        again = number and rows[number - 1][:2] == (threads, env)
        names.append(f"  {(f'({env})' if env and not again else '').ljust(widest)}{name}")
    width = max(map(len, names))
    return [name.ljust(width) for name in names]


def _coloured(text: str, cell: Measurement | None, among: list[float]) -> str:
    if cell is None or not among:
        return text
    ratio = cell.median / min(among)
    color = BEST if ratio <= 1.1 else WORST if ratio >= 5 else BAD if ratio >= 2 else ""
    return f"{color}{text}{PLAIN}" if color else text
