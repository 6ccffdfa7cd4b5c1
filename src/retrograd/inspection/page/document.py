"""Conversion of a :class:`Trace` to the document of a page: a dictionary of numbers, texts and lists for JSON.

Equal values, source files and rules are stored once, and referred to by index. Keys without information are left out.
What the page says about a gradient that is 0, NaN or None follows from the recorded values; where they prove nothing,
nothing is said.
"""

from __future__ import annotations

import json
import linecache
import os
from collections.abc import Iterator
from typing import Any

from ...autograd.function import Function
from ...core.dtypes import dtype_of
from ...dispatch.op import Op
from ...runtime import user_frame
from ..explain import format_bytes, format_count
from .formulas import formula, function_block, number_text, numbers, source_block
from .layout import Item, build_groups, group_documents
from .reasons import Reasons
from .recorder import Entry, Event, Outgoing, Trace
from .summary import Value

WHOLE = 400  # files up to this number of lines are shown as a whole
AROUND = 15  # lines around a used line of a longer file
#: Number of characters of JSON for the values of a page. Beyond it, values are shown in less detail.
BUDGET = 450_000
#: Number of nodes beyond which small values are shown as numbers only.
MANY = 1_000
#: Levels of detail: keys that are left out of the summaries.
DETAILS: tuple[tuple[str, ...], ...] = ((), ("histogram",), ("histogram", "cells"))


def document(trace: Trace, title: str = "") -> dict[str, Any]:
    """Return the document of the page of ``trace``; its keys are described in ``docs/graph-page.md``."""
    return _Writer(trace).document(title)


class _Writer:
    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.values: dict[str, int] = {}
        self.indices: dict[int, int] = {}  # by identity of the Value
        self.summaries: list[dict[str, Any]] = []
        self.lines: dict[str, set[int]] = {}
        self.files: dict[str, int] = {}
        self.rules: list[dict[str, Any]] = []
        self.rule_of: dict[Any, int | None] = {}
        self.located: dict[Any, tuple[str, int, str]] = {}
        if len(trace.entries) > MANY:
            for value in _values(trace):
                value.shorten()
        self.reasons = Reasons(trace, self._place)

    def document(self, title: str) -> dict[str, Any]:
        entries = self.trace.entries
        nodes = [self._node(index, entry) for index, entry in enumerate(entries)]
        events = [self._event(each) for each in self.trace.events]
        file, number = self._line(*self.trace.line)
        sources = {index: [source for source, _ in entry.inputs] for index, entry in enumerate(entries)}
        operations = [
            Item(index, (each.name, each.code, each.instruction, each.shape), _path(each.module), each.name)
            for index, each in enumerate(entries) if each.kind == "operation"
        ]  # fmt: skip
        groups = build_groups(operations, sources, [i for i, each in enumerate(entries) if each.kind != "operation"])
        found: dict[str, Any] = {
            "title": title or os.path.basename(file) or "graph", "summary": self._summary(len(operations)),
            "nodes": nodes, "groups": list(group_documents(groups, sources)), "rules": self.rules, "events": events,
            "values": self._bounded(), "sources": list(self._sources()), "notes": self._notes(),
        }  # fmt: skip
        if number:
            found["line"] = [self.files[file], number]
        return found

    def _summary(self, operations: int) -> str:
        leaves = sum(each.kind == "leaf" for each in self.trace.entries)
        kept = sum(each.nbytes for each in self.trace.entries)
        root = next((self.trace.entries[each] for each in self.trace.roots), None)
        name = f"{root.label}: " if root is not None and root.label else ""
        return (
            f"{name}{format_count(operations, 'operation')}, {format_count(leaves, 'leaf')}, {format_bytes(kept)} kept for the "
            "backward pass"
        )

    def _notes(self) -> list[str]:
        notes = list(self.trace.notes)
        missing = sum(
            each.kind == "operation" and any(value is None for value in each.values) for each in self.trace.entries
        )
        if missing and self.trace.replayed:
            notes.append(
                f"The results of {format_count(missing, 'operation')} were not kept by the graph and are not shown. Inside "
                "torch.autograd.graph.recording(), every result is recorded."
            )
        if self.trace.record:
            notes.append("The backward pass was recorded itself (create_graph=True).")
        names = [each for each in self.trace.unused if each]
        if names:
            shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
            text = "requires a gradient but is" if len(names) == 1 else "require gradients but are"
            notes.append(f"{shown} {text} not in this graph: this backward pass gives {_it(names)} no gradient.")
        return notes

    # -- Parts that are shared

    def value(self, value: Value | None) -> int | None:
        """Return the index of the summary of ``value`` in the document."""
        if value is None:
            return None
        if id(value) in self.indices:
            return self.indices[id(value)]
        summary = value.summary
        key = repr(summary)
        if key not in self.values:
            self.values[key] = len(self.summaries)
            self.summaries.append(summary)
        self.indices[id(value)] = self.values[key]
        return self.values[key]

    def _bounded(self) -> list[dict[str, Any]]:
        """Return the summaries, with less detail if they are too long for a page."""
        for detail in DETAILS:
            found = [{key: each for key, each in one.items() if key not in detail} for one in self.summaries]
            if sum(map(len, map(json.dumps, found))) <= BUDGET:
                return found
        keep = ("shape", "dtype", "text", "min", "max", "mean", "nan", "inf", "zeros")
        found = [{key: each for key, each in one.items() if key in keep and each != 0} for one in self.summaries]
        for one in found:
            one["text"] = one["text"].split("\n")[0][:40]
        return found

    def _line(self, code: Any, instruction: int) -> tuple[str, int]:
        """Return the file name and the number of a line of the program; the file is "" if it is not known."""
        key = code, instruction
        if key not in self.located:
            if code is None:
                self.located[key] = "", 0, ""
            else:
                file, number = user_frame.file_of(code), user_frame.line_of(code, instruction)
                self.located[key] = file, number, code.co_filename
                self.files.setdefault(file, len(self.files))
                self.lines.setdefault(file, set()).add(number)
        return self.located[key][:2]

    def _sources(self) -> Iterator[dict[str, Any]]:
        names = {file: name for file, _, name in self.located.values() if file}
        for file in self.files:
            lines = [each.rstrip("\n") for each in linecache.getlines(names[file])]
            parts = []
            if len(lines) <= WHOLE:
                parts = [{"first": 1, "lines": lines}] if lines else []
            else:
                for first, last in _ranges(sorted(self.lines[file]), len(lines)):
                    parts.append({"first": first, "lines": lines[first - 1 : last]})
            inside = os.path.relpath(file) if os.path.isabs(file) and os.path.exists(file) else file
            yield {"name": os.path.basename(file) if inside.startswith(os.pardir) else inside, "parts": parts}

    def _rule(self, entry: Entry) -> int | None:
        operation = entry.operation
        if operation is None:
            return None
        if operation not in self.rule_of:
            self.rule_of[operation] = None
            if isinstance(operation, Op):
                block = source_block(operation)
            else:
                own = operation.vjp if operation.vjp is not Function.vjp else operation.backward
                block = function_block(own, operation.__name__)
            if block is not None:
                self.rule_of[operation] = len(self.rules)
                self.rules.append(block)
        return self.rule_of[operation]

    # -- Nodes

    def _node(self, index: int, entry: Entry) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": entry.kind, "name": entry.name}
        if entry.node:
            found["node"] = entry.node
        if entry.label:
            found["label"] = entry.label
        if entry.shape is not None:
            found["shape"] = list(entry.shape)
        if entry.dtype is not None:
            found["dtype"] = dtype_of(entry.dtype).name
        file, number = self._line(entry.code, entry.instruction)
        if file:
            found["line"] = [self.files[file], number]
            if entry.code.co_name != "<module>":
                found["function"] = getattr(entry.code, "co_qualname", entry.code.co_name).replace("<locals>.", "")
        if entry.module:
            found["module"] = entry.module
        if entry.inputs:
            found["inputs"] = [{"from": source, **({"name": name} if name else {})} for source, name in entry.inputs]
        if entry.parameters:
            found["parameters"] = {name: _shown(each) for name, each in entry.parameters.items()}
        values = [self.value(each) for each in entry.values]
        if len(values) == 1 and values[0] is not None:
            found["value"] = values[0]
        elif any(each is not None for each in values):
            found["values"] = values
        elif entry.kind in ("operation", "result") or (entry.kind == "constant" and not entry.parameters):
            found["missing"] = "not kept by the graph"
        event = self.reasons.events.get(index)
        if event is not None:
            grads = [self.value(each) for each in event.incoming]
            if len(grads) == 1 and grads[0] is not None:
                found["grad"] = grads[0]
            elif len(grads) > 1:
                found["grads"] = grads
        if entry.nbytes:
            found["bytes"] = entry.nbytes
        saved = [self._saved(each) for each in entry.saved]
        if saved:
            found["saved"] = saved
        elif entry.freed:
            found["saved"] = [{"name": "saved values", "state": "freed by an earlier backward pass"}]
        rule = self._rule(entry)
        if rule is not None:
            found["rule"] = rule
        if entry.hooks:
            found["hooks"] = entry.hooks
        if entry.requires_grad:
            found["requires_grad"] = True
        sentences = list(self.reasons.sentences(index))
        if sentences:
            found["explain"] = sentences
        cause = self.reasons.cause(index)
        if cause is not None:
            found["cause"] = cause
        return found

    def _place(self, index: int) -> str:
        """Return a text for the entry ``index`` in sentences, such as ``relu (line 7)``."""
        entry = self.trace.entries[index]
        _, number = self._line(entry.code, entry.instruction)
        return f"{entry.label or entry.name if entry.kind == 'leaf' else entry.name}" + (
            f" (line {number})" if number else ""
        )

    def _saved(self, each: Any) -> dict[str, Any]:
        found: dict[str, Any] = {"name": each.name, "shape": list(each.shape), "bytes": each.nbytes}
        if each.dtype is not None:
            found["dtype"] = dtype_of(each.dtype).name
        if each.source is not None and each.source >= 0:
            found["from"] = each.source
        value = self.value(each.value)
        if value is not None:
            found["value"] = value
        if each.state:
            found["state"] = each.state
        return found

    # -- Events

    def _event(self, event: Event) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": event.kind, "node": event.node}
        incoming = [self.value(each) for each in event.incoming]
        if len(incoming) == 1:
            if incoming[0] is not None:
                found["incoming"] = incoming[0]
        elif incoming:
            found["incoming"] = incoming
        if event.parts:
            found["parts"] = [
                {"from": source, **({} if value is None else {"value": self.value(value)})}
                for source, value in event.parts
            ]
        for name, value in (("before", event.before), ("after", event.after)):
            if value is not None:
                found[name] = self.value(value)
        if event.outgoing:
            found["outgoing"] = [self._outgoing(event, each) for each in event.outgoing]
        if event.freed:
            found["freed"] = event.freed
        if event.text:
            found["text"] = event.text
        return found

    def _outgoing(self, event: Event, each: Outgoing) -> dict[str, Any]:
        entry = self.trace.entries[event.node]
        found: dict[str, Any] = {"to": each.target, "name": each.name}
        value = self.value(each.value)
        if value is not None:
            found["value"] = value
        if isinstance(entry.operation, Op) and not entry.operation.several:
            text = formula(entry.operation, each.index, entry.parameters)
            if text:
                found["formula"] = text
            if each.numbers:
                shown = shown_numbers(entry, each)
                if shown:
                    found["numbers"] = shown
                    if each.element is not None:
                        found["element"] = str(list(each.element))
        if each.raw_shape is not None:
            shape = list(each.value.summary["shape"]) if each.value is not None else []
            found["note"] = f"summed over the broadcast dimensions: {list(each.raw_shape)} → {shape}"
        return found


def _values(trace: Trace) -> Iterator[Value]:
    """Yield all values of ``trace``."""
    for entry in trace.entries:
        for one in (*entry.values, *(each.value for each in entry.saved)):
            if one is not None:
                yield one
    for event in trace.events:
        parts = (each for _, each in event.parts)
        for one in (*event.incoming, *parts, event.before, event.after, *(each.value for each in event.outgoing)):
            if one is not None:
                yield one


def shown_numbers(entry: Entry, each: Outgoing) -> str:
    """Return the formula of ``each``, a gradient that ``entry`` passes on, with the numbers of one element."""
    return numbers(entry.operation, each.index, entry.parameters, each.numbers, each.result)


def _path(module: str) -> tuple[str, ...]:
    return tuple(module.split(".")) if module else ()


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "them"


def _shown(value: Any) -> str:
    return number_text(value) if isinstance(value, (bool, int, float, complex)) else str(value)


def _ranges(numbers: list[int], last: int) -> Iterator[tuple[int, int]]:
    """Yield ranges (first, last) of lines around ``numbers``, which do not overlap."""
    begin = end = 0
    for number in numbers:
        first, until = max(number - AROUND, 1), min(number + AROUND, last)
        if begin and first <= end + 1:
            end = until
            continue
        if begin:
            yield begin, end
        begin, end = first, until
    if begin:
        yield begin, end


__all__ = ["document"]
