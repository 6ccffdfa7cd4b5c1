"""Formatting of the events of a profiler as a table, with PyTorch's columns, widths and wording."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

WIDTH = 12
GAP = "  "
_FLOPS = ("FLOPs", "KFLOPs", "MFLOPs", "GFLOPs", "TFLOPs", "PFLOPs")
_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}


@dataclass
class Column:
    """Column of a table: ``head`` is its title, ``width`` is in characters, and ``cell`` formats an event's value.

    If ``left`` is true, the column is aligned to the left.
    """

    head: str
    cell: Callable[[Any], Any]
    width: int = WIDTH
    left: bool = False

    def padded(self, value: Any) -> str:
        return f"{value!s: <{self.width}}" if self.left else f"{value!s: >{self.width}}"


def format_time(microseconds: float, unit: str | None = None) -> str:
    """Return a duration as text in ``unit``, by default in the largest unit in which the number is at least 1.

    >>> format_time(2.5), format_time(1250), format_time(3e6), format_time(1250, "s")
    ('2.500us', '1.250ms', '3.000s', '0.001s')
    """
    if unit not in _UNITS:
        unit = "s" if microseconds >= 1e6 else "ms" if microseconds >= 1e3 else "us"
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def format_memory(count: float) -> str:
    """Return the number of bytes ``count`` as text with a unit.

    >>> format_memory(-512), format_memory(1536), format_memory(3 * 2**20)
    ('-512 B', '1.50 KB', '3.00 MB')
    """
    for power, unit in ((30, "GB"), (20, "MB"), (10, "KB")):
        if abs(count) >= 2**power:
            return f"{count / 2**power:.2f} {unit}"
    return f"{count} B"


def format_percentage(part: float, whole: float) -> str:
    """Return ``part`` as a percentage of ``whole``, as text."""
    return f"{part * 100.0 / whole:.2f}%" if whole else "NaN"


def table(
    events: Sequence[Any],
    sort_by: str | None,
    row_limit: int,
    widest: tuple[int | None, int | None, int | None],
    header: str | None,
    profile_memory: bool,
    with_flops: bool,
    top_level_events_only: bool,
    time_unit: str | None,
) -> str:
    """Return ``events`` as a table in text form.

    ``widest`` are the maximum widths in characters of the columns for source lines, names and shapes. If
    ``profile_memory`` or ``with_flops`` is true, there are columns for memory or floating-point operations. The other
    parameters have the same meaning as for :meth:`EventList.table`.
    """
    if not events:
        return ""
    if sort_by is not None:
        key = sort_by.replace("cuda", "device").replace("xpu", "device").replace("privateuse1", "device")
        events = sorted(events, key=lambda event: getattr(event, key), reverse=True)
    columns = _columns(events, widest, profile_memory, with_flops, time_unit)
    rule = "".join("-" * each.width + GAP for each in columns)
    double = "=" * (len(rule) - len(GAP))
    lines = [] if header is None else [double, header]
    if top_level_events_only:
        lines += [double, "This report only display top-level ops statistics"]
    lines += [rule, "".join(each.padded(each.head) + GAP for each in columns), rule]
    count = 0
    for event in events:
        if count == row_limit:
            break
        if top_level_events_only and event.cpu_parent is not None:
            continue
        count += 1
        lines += _rows(event, columns)
    lines += [rule, f"Self CPU time total: {format_time(_total(events), time_unit)}"]
    if any(event.self_device_time_total > 0 for event in events):
        lines.append(f"Self {_device(events)} time total: {format_time(_device_total(events), time_unit)}")
    return "\n".join(lines) + "\n"


def _total(events: Sequence[Any]) -> float:
    return sum(event.self_cpu_time_total for event in events)


def _device_total(events: Sequence[Any]) -> float:
    return sum(event.self_device_time_total for event in events)


def _device(events: Sequence[Any]) -> str:
    return str(events[0].use_device).upper() if events[0].use_device is not None else "None"


def _columns(
    events: Sequence[Any],
    widest: tuple[int | None, int | None, int | None],
    memory: bool,
    flops: bool,
    unit: str | None,
) -> list[Column]:
    """Return the columns of the table: those for which some of ``events`` have values.

    ``widest`` is as for :func:`table`. If ``memory`` or ``flops`` is true, there are columns for memory or
    floating-point operations. ``unit`` is the unit of times; None means a suitable unit for each.
    """
    source, name, shapes = widest
    whole, device = _total(events), _device(events)

    def time(attribute: str) -> Callable[[Any], str]:
        return lambda event: format_time(getattr(event, attribute), unit)

    def bytes_in(attribute: str) -> Callable[[Any], str]:
        return lambda event: format_memory(getattr(event, attribute))

    def share(attribute: str, of: str, whole: float) -> Callable[[Any], str]:
        return lambda event: _set_share(event, attribute, getattr(event, of), whole)

    columns = [
        Column("Name", lambda event: _cut(event.key, name), _width((event.key for event in events), name)),
        Column("Self CPU %", share("self_cpu_percent", "self_cpu_time_total", whole)),
        Column("Self CPU", time("self_cpu_time_total")),
        Column("CPU total %", share("total_cpu_percent", "cpu_time_total", whole)),
        Column("CPU total", time("cpu_time_total")),
        Column("CPU time avg", time("cpu_time")),
    ]
    if any(event.overload_name for event in events):
        columns.insert(1, Column("Overload Name", lambda event: _cut(event.overload_name, name), columns[0].width))
    if any(event.self_device_time_total > 0 for event in events):
        columns += [
            Column(f"Self {device}", time("self_device_time_total")),
            Column(f"Self {device} %", share("total_device_percent", "self_device_time_total", _device_total(events))),
            Column(f"{device} total", time("device_time_total")),
            Column(f"{device} time avg", time("device_time")),
        ]
    if memory:
        kinds = [("CPU", "cpu")]
        if device != "None" and any(event.self_device_memory_usage > 0 for event in events):
            kinds.append((device, "device"))
        for shown, kind in kinds:
            columns.append(Column(f"{shown} Mem", bytes_in(f"{kind}_memory_usage")))
            columns.append(Column(f"Self {shown} Mem", bytes_in(f"self_{kind}_memory_usage")))
    columns.append(Column("# of Calls", lambda event: event.count))
    if any(event.node_id != -1 for event in events):
        columns.append(Column("Node ID", lambda event: event.node_id))
    if any(event.input_shapes for event in events):
        wide = _width((str(event.input_shapes) for event in events), shapes)
        columns.append(Column("Input Shapes", lambda event: str(event.input_shapes)[:wide], wide))
    if flops:
        columns += _flops(events)
    entries = [entry for event in events for entry in event.stack or ()]
    if entries:
        columns.append(Column("Source Location", lambda event: event.stack, _width(entries, source), left=True))
    return columns


def _width(texts: Any, widest: int | None) -> int:
    width: int = max(map(len, texts)) + 4
    return width if widest is None else min(width, widest)


def _cut(name: str, widest: int | None) -> str:
    return name if widest is None or len(name) < widest - 3 else name[: widest - 3] + "..."


def _set_share(event: Any, attribute: str, part: float, whole: float) -> str:
    """Return ``part`` as a percentage of ``whole``, as text, and store the text in ``event``.

    ``attribute`` is the name of the attribute in which the text is stored. PyTorch's table sets the same attribute.
    """
    share = format_percentage(part, whole)
    setattr(event, attribute, share)
    return share


def _flops(events: Sequence[Any]) -> list[Column]:
    """Return a list with the column for floating-point operations, or an empty list if ``events`` have none.

    The unit of the column, such as MFLOPs, is the largest unit in which the smallest number is at least 1.
    """
    counts = [event.flops for event in events if event.flops]
    if not counts:
        return []
    step = max(0, min(math.floor(math.log10(min(counts)) / 3), len(_FLOPS) - 1))
    scale = 10.0 ** (-3 * step)
    return [Column(f"Total {_FLOPS[step]}", lambda event: f"{event.flops * scale:8.3f}" if event.flops else "--")]


def _rows(event: Any, columns: list[Column]) -> list[str]:
    """Return the lines of the table for ``event``.

    If the last column shows source lines, there is one line for each source line and an empty line at the end;
    otherwise there is one line.
    """
    last = columns[-1]
    if not last.left:
        return ["".join(each.padded(each.cell(event)) + GAP for each in columns)]
    entries = [_end_of(entry, last.width) for entry in event.stack or ()] or [""]
    front = "".join(each.padded(each.cell(event)) + GAP for each in columns[:-1])
    blank = "".join(each.padded("") + GAP for each in columns[:-1])
    return [
        line + last.padded(entry) + GAP
        for line, entry in zip([front, *[blank] * len(entries)], [*entries, ""], strict=True)
    ]


def _end_of(path: str, width: int) -> str:
    return path if len(path) <= width else "..." + path[len(path) - width + 3 :]
