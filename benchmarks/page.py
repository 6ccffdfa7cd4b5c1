"""The tables: on the screen, and in docs/performance.md between the marks of each group. Measures nothing."""

from __future__ import annotations

import math
import os
import platform
import re
from pathlib import Path

import numpy

from .measure import Result
from .row import Group

PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def readable(seconds: float) -> str:
    """Seconds with a unit, three digits."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            value = seconds * factor
            return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"
    raise AssertionError


def machine() -> str:
    """The machine by its kind, and the versions that matter."""
    flags, model = set[str](), platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        text = cpuinfo.read_text()
        found = re.search(r"^flags\s*: (.*)$", text, re.MULTILINE)
        flags = set(found[1].split()) if found else flags
        named = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
        model = named[1] if named else model
    sets = [name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"), ("neon", "NEON")) if flag in flags]
    kind = f"{os.cpu_count()} cores ({model}{', ' + sets[0] if sets else ''})"
    return f"{kind}, Python {platform.python_version()}, NumPy {numpy.__version__}"


def line(result: Result) -> str:
    """A row on the screen."""
    row = result.row
    text = f"{row.name:58}{readable(result.seconds(result.ours)):>10}"
    if result.theirs:
        low, middle, high = result.ratios(result.theirs)
        text += f"{readable(result.seconds(result.theirs)):>10}{middle:8.2f}  {low:.2f}–{high:.2f}"
        text += f"  best {min(result.theirs) / min(result.ours):.2f}"
        text += f"{row.asked:7.2f}{'' if middle >= row.asked else '  under'}"
    if result.disturbed:
        text += f"  ({result.disturbed} rounds disturbed)"
    if result.by_hand:
        text += f"   {1 / result.ratios(result.by_hand)[1]:.2f} × NumPy by hand"
    return text


def mean(results: list[Result]) -> float:
    """The geometric mean of the ratios."""
    return math.exp(sum(math.log(each.ratios(each.theirs)[1]) for each in results) / len(results))


def table(group: Group, results: list[Result]) -> str:
    """A group's table in Markdown, the worst rows first."""
    by_hand = any(each.by_hand for each in results)
    head = "| | retrograd | PyTorch | ratio | quartiles | asked |" + (" ours / NumPy by hand |" if by_hand else "")
    lines = [head, "| --- | --- | --- | --- | --- | --- |" + (" --- |" if by_hand else "")]
    for each in sorted(results, key=lambda each: each.ratios(each.theirs)[1] / each.row.asked):
        low, middle, high = each.ratios(each.theirs)
        bold = "" if middle >= each.row.asked else "**"
        cells = [
            each.row.name.replace("|", "\\|"), readable(each.seconds(each.ours)), readable(each.seconds(each.theirs)),
            f"{bold}{middle:.2f}{bold}", f"{low:.2f}–{high:.2f}", f"{each.row.asked:g}",
        ]  # fmt: skip
        if by_hand:
            cells.append(f"{1 / each.ratios(each.by_hand)[1]:.2f}" if each.by_hand else "")
        lines.append("| " + " | ".join(cells) + " |")
    short = sum(each.ratios(each.theirs)[1] < each.row.asked for each in results)
    asked = f" (asked: {group.mean:g})" if group.mean else ""
    summary = f"Geometric mean {mean(results):.2f}{asked}; {len(results) - short} of {len(results)} rows as asked."
    return f"{summary}\n\n" + "\n".join(lines)


def footprint_table(rows: list[tuple[str, str, float, float | None]]) -> str:
    """The table of what is no work."""
    lines = ["| | retrograd | PyTorch | ratio |", "| --- | --- | --- | --- |"]
    for name, unit, ours, theirs in rows:
        assert theirs is not None
        lines.append(f"| {name} | {ours:.3g} {unit} | {theirs:.4g} {unit} | {theirs / ours:.2f} |")
    return "\n".join(lines)


#: A group on the page: its heading, what is said before its table, and the rows.
_GROUP = re.compile(
    r"^###? (?P<title>[^\n]*)\n(?:(?!^##).)*?Geometric mean (?P<mean>[\d.]+)(?: \(asked: (?P<asked>[\d.]+)\))?; "
    r"(?P<count>\d+ of \d+) rows as asked\.\n\n[^\n]*\n[^\n]*\n(?P<rows>(?:\|[^\n]*\n)+)",
    re.MULTILINE | re.DOTALL,
)


def overview(text: str) -> str:
    """A line for each of the page's groups."""
    lines = ["| | asked of every row, of the mean | rows as asked | geometric mean |", "| --- | --- | --- | --- |"]
    for each in _GROUP.finditer(text):
        asked = sorted({float(row.split(" | ")[5].rstrip(" |")) for row in each["rows"].splitlines()})
        every = f"{asked[0]:g}" if len(asked) == 1 else f"{asked[0]:g} to {asked[-1]:g}"
        lines.append(f"| {each['title']} | {every}, {each['asked'] or '–'} | {each['count']} | {each['mean']} |")
    return "\n".join(lines)


def _put(text: str, name: str, new: str) -> str:
    """``text`` with ``new`` between the marks of ``name``."""
    marks = (f"<!-- {name}: written by python -m benchmarks -->", f"<!-- end of {name} -->")
    before, _, rest = text.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not end:
        raise SystemExit(f"{PAGE.name} has no place for {name}")
    return f"{before}{marks[0]}\n{new}\n{marks[1]}{after}"


def write(tables: dict[str, str], threads: int) -> None:
    """Put tables into the page, each between its marks; the machine and the overview too."""
    text = PAGE.read_text(encoding="utf-8")
    how = "One thread each, processor time." if threads == 1 else f"{threads} threads each."
    for name, new in {"machine": f"{machine()}.", **tables}.items():
        text = _put(text, name, new if name in ("machine", "footprint") else f"{how} {new}")
    PAGE.write_text(_put(text, "overview", overview(text)), encoding="utf-8")
