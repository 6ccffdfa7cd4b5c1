"""Tables of results: on the screen, and in benchmarks/results one page for each group. This module measures nothing."""

from __future__ import annotations

import math
import os
import platform
import re
from pathlib import Path

import numpy

from . import trees
from .footprint import Footprint
from .groups import GROUPS
from .measure import Result, geometric_mean, quartiles
from .row import Group

RESULTS = trees.ROOT / "benchmarks" / "results"


def readable(seconds: float) -> str:
    """Return seconds as text with three digits and a unit."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1 or unit == "µs":
            value = seconds * factor
            return f"{value:.{max(0, 2 - int(math.log10(max(value, 1))))}f} {unit}"
    raise AssertionError


def machine() -> str:
    """Return the kind of machine and the relevant versions."""
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
    """Return a row's line on the screen."""
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


def comparison_head() -> str:
    """Return the column titles of :func:`comparison`."""
    return f"{'':58}{'ours':>10}{'other':>10}{'ratio':>8}  {'quartiles':9}{'PyTorch':>12}{'ratio':>8}"


def comparison(result: Result) -> str:
    """Return a row's line in a comparison of two trees."""
    low, middle, high = result.ratios(result.other)
    ours, other = (readable(result.seconds(each)) for each in (result.ours, result.other))
    text = f"{result.row.name:58}{ours:>10}{other:>10}{middle:8.3f}  {low:.2f}–{high:.2f}"
    if result.theirs:
        text += f"{readable(result.seconds(result.theirs)):>12}{result.ratios(result.theirs)[1]:8.2f}"
    return text + (f"  ({result.disturbed} rounds disturbed)" if result.disturbed else "")


def comparison_mean(results: list[Result]) -> str:
    """Return the line of a group in a comparison: quartiles, over the rounds, of the geometric mean of all ratios."""

    def means(times: str) -> list[float]:
        rounds = zip(*(each.by_round(getattr(each, times)) for each in results), strict=True)
        return [geometric_mean(ratios) for ratios in rounds]

    low, middle, high = quartiles(means("other"))
    text = f"{'geometric mean, by round':78}{middle:8.3f}  {low:.2f}–{high:.2f}"
    return text + (f"{quartiles(means('theirs'))[1]:20.2f}" if results[0].theirs else "")


def group_line(results: list[Result]) -> str:
    """Return the last line of a group on the screen: its geometric mean, if anything was compared."""
    if results[0].other:
        return comparison_mean(results)
    return f"{'geometric mean':58}{mean(results):28.2f}" if results[0].theirs else ""


def mean(results: list[Result]) -> float:
    """Return the geometric mean of the rows' ratios to PyTorch."""
    return geometric_mean(each.ratios(each.theirs)[1] for each in results)


def table(group: Group, results: list[Result]) -> str:
    """Return a group's table in Markdown, the worst rows first."""
    by_hand = any(each.by_hand for each in results)
    head = "| | retrograd | PyTorch | ratio | quartiles | target |" + (" ours / NumPy by hand |" if by_hand else "")
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
    target = f" (target: {group.mean:g})" if group.mean else ""
    reached = f"{len(results) - short} of {len(results)} rows reach their target."
    summary = f"Geometric mean {mean(results):.2f}{target}; {reached}"
    return f"{summary}\n\n" + "\n".join(lines)


def footprint_line(measured: Footprint) -> str:
    """Return the line on the screen of a measurement of :mod:`benchmarks.footprint`."""
    text = f"{measured.name + ', ' + measured.unit:58}{measured.of['ours']:10.4g}"
    for name in ("other", "theirs"):
        if name in measured.of:
            text += f"{measured.of[name]:10.4g}{measured.of[name] / measured.of['ours']:8.2f}"
    return text


def footprint_table(rows: list[Footprint]) -> str:
    """Return the table of import times, memory and size."""
    lines = ["| | retrograd | PyTorch | ratio |", "| --- | --- | --- | --- |"]
    for row in rows:
        ours, theirs = row.of["ours"], row.of["theirs"]
        lines.append(f"| {row.name} | {ours:.3g} {row.unit} | {theirs:.4g} {row.unit} | {theirs / ours:.2f} |")
    return "\n".join(lines)


#: Pattern of a written page: title, mean, number of rows that reach their target, number of rows.
_GROUP = re.compile(
    r"\A# (?P<title>[^\n]*)\n.*?Geometric mean (?P<mean>[\d.]+)(?: \(target: (?P<target>[\d.]+)\))?; "
    r"(?P<count>\d+ of \d+) rows reach their target\.\n\n[^\n]*\n[^\n]*\n(?P<rows>(?:\|[^\n]*\n)+)",
    re.DOTALL,
)


def overview(texts: dict[str, str]) -> str:
    """Return the page that lists the groups, given their pages by name."""
    lines = [
        "# Measurements", "",
        "One page for each group of rows, written by `python -m benchmarks` beside PyTorch. A ratio is PyTorch's time",
        "divided by retrograd's, the median of the rounds. [How to read and repeat them](../../docs/performance.md).", "",
        "| | target of a row, of the mean | rows that reach it | geometric mean |", "| --- | --- | --- | --- |",
    ]  # fmt: skip
    others = []
    for name, text in texts.items():
        found = _GROUP.search(text)
        if found is None:
            others.append(f"- [{text.partition(chr(10))[0].removeprefix('# ')}]({name}.md)")
            continue
        targets = sorted({float(row.split(" | ")[5].rstrip(" |")) for row in found["rows"].splitlines()})
        every = f"{targets[0]:g}" if len(targets) == 1 else f"{targets[0]:g} to {targets[-1]:g}"
        link = f"[{found['title']}]({name}.md)"
        lines.append(f"| {link} | {every}, {found['target'] or '–'} | {found['count']} | {found['mean']} |")
    return "\n".join([*lines, *([""] if others else []), *others]) + "\n"


def write(name: str, title: str, command: str, body: str) -> None:
    """Write a group's page, then the overview of all pages."""
    RESULTS.mkdir(exist_ok=True)
    text = f"# {title}\n\nWritten by `{command}`: {machine()}.\n\n{body}\n"
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    write_overview()


def write_overview() -> None:
    """Write the overview of the pages that exist, in the order of the groups."""
    pages = {path.stem: path.read_text(encoding="utf-8") for path in sorted(RESULTS.glob("*.md"))}
    pages.pop("README", None)
    order = [*GROUPS, *sorted(pages.keys() - GROUPS.keys())]
    text = overview({name: pages[name] for name in order if name in pages})
    (RESULTS / "README.md").write_text(text, encoding="utf-8")
