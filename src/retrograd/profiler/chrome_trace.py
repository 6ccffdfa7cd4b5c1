"""Export of the events of a profiler to a file for ``chrome://tracing`` and Perfetto, in PyTorch's format."""

from __future__ import annotations

import os
import time
from typing import Any

from .events import MEMORY_EVENT_NAME


def write(profiler: Any, path: str, metadata: dict[str, str]) -> None:
    """Write the events of ``profiler`` to the file ``path``, compressed by gzip if the name ends with ``.gz``.

    ``metadata`` is added to the JSON file: a dictionary from names to values, which are texts in JSON.
    """
    import json

    seen = profiler.seen
    trace = {
        "schemaVersion": 1,
        "deviceProperties": [],
        **({"trace_id": profiler.trace_id} if profiler.trace_id else {}),
        **{key: json.loads(value) for key, value in metadata.items()},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": time.time_ns() - time.perf_counter_ns(),
        "traceEvents": _events(profiler, seen.start / 1000, (seen.end - seen.start) / 1000),
        "traceName": path,
    }
    opened: Any = open
    if path.endswith(".gz"):
        from gzip import open as opened
    with opened(path, "wt", encoding="utf-8") as file:
        file.write(json.dumps(trace, indent=1))


def _events(profiler: Any, base: float, duration: float) -> list[dict[str, Any]]:
    pid = os.getpid()
    place = {"pid": pid, "tid": pid}
    trace: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "ts": base, "pid": pid, "tid": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "ts": base, **place, "args": {"name": f"thread {pid} (python)"}},
    ]
    allocated = 0
    forward: dict[int, Any] = {}  # number of a node -> the innermost operation that recorded it
    for index, event in enumerate(profiler.function_events):
        start = base + event.time_range.start
        if event.name == MEMORY_EVENT_NAME:
            allocated += event.cpu_memory_usage
            args = {"Total Allocated": allocated, "Bytes": event.cpu_memory_usage + event.device_memory_usage,
                    "Device Type": 0 if event.cpu_memory_usage else 1, "Ev Idx": index}  # fmt: skip
            trace.append(
                {
                    "ph": "i",
                    "cat": "cpu_instant_event",
                    "s": "t",
                    "name": event.name,
                    **place,
                    "ts": start,
                    "args": args,
                }
            )
            continue
        allocated += event.self_cpu_memory_usage
        category = "user_annotation" if event.is_user_annotation else "cpu_op"
        trace.append(
            {"ph": "X", "cat": category, "name": event.trace_name, **place, "ts": start,
             "dur": event.time_range.elapsed_us(), "args": _arguments(profiler, event, index)}
        )  # fmt: skip
        if event.sequence_nr >= 0 and event.fwd_thread == 0:
            forward[event.sequence_nr] = event
    trace += _arrows(profiler, base, forward, place)
    trace.append(
        {"ph": "X", "cat": "Trace", "name": "PyTorch Profiler (0)", "pid": "Spans", "tid": "PyTorch Profiler", "ts": base,
         "dur": duration, "args": {"Op count": 0}}
    )  # fmt: skip
    return trace


def _arguments(profiler: Any, event: Any, index: int) -> dict[str, Any]:
    args: dict[str, Any] = {"External id": event.id, "Record function id": 0, "Ev Idx": index}
    if event.sequence_nr >= 0:
        args |= {"Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread}
    if profiler.record_shapes and not event.is_user_annotation:
        args |= {"Input Dims": event.structured_input_shapes, "Input Strides": event.structured_input_strides,
                 "Input type": event.input_dtypes}  # fmt: skip
    if event.stack:
        args["Call stack"] = ";".join(reversed(event.stack))
    if profiler.profile_memory and (event.cpu_memory_usage or event.device_memory_usage):
        args["Bytes"] = event.cpu_memory_usage + event.device_memory_usage
    return args


def _arrows(profiler: Any, base: float, forward: dict[int, Any], place: dict[str, int]) -> list[dict[str, Any]]:
    """Return the flow events of the trace file, which a viewer draws as arrows from operations to their derivatives.

    ``forward`` is a dictionary from the numbers of graph nodes to the events of the forward operations that created
    them. ``base`` is the time in microseconds at which the trace begins. ``place`` is a dictionary with the process and
    thread identifiers.
    """
    arrows: list[dict[str, Any]] = []
    for event in profiler.function_events:
        start = forward.get(event.sequence_nr) if event.scope == 1 else None
        if start is not None:
            shared = {"id": len(arrows) // 2 + 1, **place, "cat": "fwdbwd", "name": "fwdbwd"}
            arrows.append({"ph": "s", **shared, "ts": base + start.time_range.start})
            arrows.append({"ph": "f", **shared, "ts": base + event.time_range.start, "bp": "e"})
    return arrows
