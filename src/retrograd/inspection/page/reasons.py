"""Sentences about gradients that are None, 0, NaN or infinite, for the nodes of a page.

Each sentence follows from recorded values. The gradients are followed from the result to the leaves: a gradient *becomes*
0 at an operation if the gradient that arrives there is not 0 and the one that it passes on is. The numbers of one such
element show how. Nothing is said where the values prove nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy

from ...dispatch.op import Op, arguments
from .formulas import numbers, shown_name
from .recorder import Entry, Event, Outgoing, Trace
from .summary import Value

MOST = 3  # causes that a sentence names


class Reasons:
    """Reasons for the gradients of a :class:`Trace`; ``place`` returns a text for an entry, such as ``relu (line 7)``.

    ``zero`` and ``broken`` have, for each entry whose gradient is 0 or not finite, the entries that caused it. ``hooked``
    has the entries whose gradient hooks have replaced, with the one before.
    """

    def __init__(self, trace: Trace, place: Callable[[int], str]) -> None:
        self.trace: Trace = trace
        self.place: Callable[[int], str] = place
        self.events: dict[int, Event] = {}
        self.arriving: dict[int, list[tuple[int, Outgoing]]] = {}
        self.zero: dict[int, list[int]] = {}
        self.broken: dict[int, list[int]] = {}
        self.hooked: dict[int, Value | None] = {}
        self.forward: dict[int, list[int]] = _forward_causes(trace)
        started: dict[int, Value | None] = {}
        for event in trace.events:
            if event.kind == "start":
                source = next((source for source, _ in trace.entries[event.node].inputs), event.node)
                started[source] = event.incoming[0]
            if event.kind == "hook" and event.after is not None and event.node not in self.events:
                self.hooked.setdefault(event.node, event.before)
            if event.kind not in ("node", "leaf"):
                continue
            self.events[event.node] = event
            self._follow(event, started.get(event.node))
            for each in event.outgoing:
                self.arriving.setdefault(each.target, []).append((event.node, each))

    def _follow(self, event: Event, started: Value | None) -> None:
        """Find the causes of the gradient of ``event``, whose sources have been followed before."""
        given = [each for each in event.incoming if each is not None]
        arriving = [
            (source, each.final) for source, each in self.arriving.get(event.node, ()) if each.final is not None
        ]
        if given and all(each.is_zero for each in given):
            self.zero[event.node] = list(
                dict.fromkeys(
                    cause for source, each in arriving if each.is_zero for cause in self.zero.get(source, [source])
                )
            ) if all(each.is_zero for _, each in arriving) else [event.node]  # fmt: skip
        if any(not each.is_finite for each in given):
            found = [
                cause for source, each in arriving if not each.is_finite for cause in self.broken.get(source, [source])
            ]  # fmt: skip
            if found or started is None or started.is_finite:
                self.broken[event.node] = list(dict.fromkeys(found)) or [event.node]

    def cause(self, index: int) -> int | None:
        """Return the entry that caused the gradient of entry ``index`` to be 0, not finite or None, None if unknown."""
        causes = self.broken.get(index) or self.zero.get(index)
        if causes:
            return next(iter(self._origins(causes[0])), causes[0]) if index in self.broken else causes[0]
        event = self.events.get(index)
        if event is None or all(each is None for each in event.incoming):
            return next((source for source, each in self.arriving.get(index, ()) if each.final is None), None)
        return None

    def sentences(self, index: int) -> Iterator[str]:
        """Yield the sentences about entry ``index``."""
        entry = self.trace.entries[index]
        if entry.kind == "constant":
            if entry.why:
                yield f"No gradient: {entry.why}."
            return
        yield from self._forward(index)
        if entry.kind == "result" or not self.trace.events:
            return
        event = self.events.get(index)
        if event is None or all(each is None for each in event.incoming):
            yield from self._not_reached(index)
            return
        if index in self.broken:
            yield from self._about(index, self.broken[index], "not finite", "NaN or infinity arises")
        elif index in self.zero:
            yield from self._about(index, self.zero[index], "0", "the gradient becomes 0")
        for each in event.outgoing:
            yield from self._passed_on(entry, event, each)
        if event.kind == "leaf" and event.before is not None and event.after is not None:
            yield "Its .grad existed before this pass; the gradient was added to it."

    def _about(self, index: int, causes: list[int], what: str, where: str) -> Iterator[str]:
        if causes == [index]:
            parts = len([None for _, each in self.arriving.get(index, ()) if each.final is not None])
            before = self.hooked.get(index)
            if before is not None and (not before.is_zero if what == "0" else before.is_finite):
                yield f"Its gradient is {what} because of a hook."
            elif parts > 1 and what == "0":
                yield f"Its gradient is 0: the {parts} gradients that meet here cancel each other."
            elif parts > 1:
                yield "Its gradient is not finite: the sum of the gradients that meet here overflows."
            elif what == "0":
                yield "Its gradient is 0: the backward pass started with 0."
            return
        shown = ", ".join(self.place(each) for each in causes[:MOST])
        more = f" and {len(causes) - MOST} more" if len(causes) > MOST else ""
        reason = ""
        if len(causes) == 1 and self._broken_by_hook(causes[0], what):
            reason = "a hook replaced it"
        elif len(causes) == 1 and what == "0":
            found = (
                self._why_zero(self.trace.entries[causes[0]], each) for each in self.events[causes[0]].outgoing
                if each.value is not None and each.value.is_zero
            )  # fmt: skip
            reason = next(filter(None, found), "")
        elif len(causes) == 1 and (origins := self._origins(causes[0])):
            reason = f"its operands were not finite in the forward pass already; {self._arose(origins)}"
        yield f"Its gradient is {what}: {where} in {shown}{more}{': ' + reason if reason else ''}."

    def _origins(self, index: int) -> list[int]:
        """Return the entries where operands of the entry ``index`` that are not finite arose in the forward pass."""
        sources = (source for source, _ in self.trace.entries[index].inputs)
        return list(dict.fromkeys(cause for source in sources for cause in self.forward.get(source, ())))

    def _broken_by_hook(self, index: int, what: str) -> bool:
        """Whether a hook after the operation ``index`` has made a gradient 0 or not finite, which the rule had not."""
        for each in self.events[index].outgoing:
            if each.hooked and each.value is not None and each.final is not None:
                if what == "0" and each.final.is_zero and not each.value.is_zero:
                    return True
                if what != "0" and each.value.is_finite and not each.final.is_finite:
                    return True
        return False

    def _passed_on(self, entry: Entry, event: Event, each: Outgoing) -> Iterator[str]:
        """Yield sentences about the gradient ``each`` that ``entry`` passes on."""
        given = [one for one in event.incoming if one is not None]
        if each.value is None:
            if given:
                how = "its backward returned None" if not isinstance(entry.operation, Op) else "the rule gives None"
                yield f"No gradient is passed on to `{each.name}`: {how}."
            return
        count = math.prod(each.raw_shape) if each.raw_shape is not None else each.value.size
        if each.broken:
            kind, example = _kinds(each.value), self._example(entry, each)
            yield f"{kind} arises here: the gradient that arrives is finite, that for `{each.name}` is not{example}."
            yield from self._saved_broken(entry)
        elif each.value.is_zero and given and not all(one.is_zero for one in given):
            if each.raw_shape is not None and not each.lost and each.numbers:
                yield f"The gradient for `{each.name}` is 0: its elements cancel in the sum over the broadcast dimensions."
                return
            reason = self._why_zero(entry, each)
            yield f"The gradient for `{each.name}` becomes 0 here{': ' + reason if reason else ''}{self._example(entry, each)}."
        elif each.hooked and each.final is not None and (each.final.is_zero or not each.final.is_finite):
            kind = "0" if each.final.is_zero else "not finite"
            yield f"The gradient for `{each.name}` is {kind} because of a hook that runs after this operation."
        elif each.lost and count > 1:
            verb = "becomes" if each.lost == 1 else "become"
            yield f"{each.lost} of {count} elements of the gradient for `{each.name}` {verb} 0 here{self._example(entry, each)}."

    def _example(self, entry: Entry, each: Outgoing) -> str:
        if not each.numbers or not isinstance(entry.operation, Op) or entry.operation.several:
            return ""
        shown = numbers(entry.operation, each.index, entry.parameters, each.numbers, each.result)
        at = f"at {list(each.element)}, " if each.element is not None else ""
        return f"; {at}{shown}" if "=" in shown else ""

    def _saved_broken(self, entry: Entry) -> Iterator[str]:
        """Yield a sentence for each operand or result of ``entry`` that was not finite in the forward pass already."""
        for source, name in entry.inputs:
            if source in self.forward:
                yield f"`{name}` was not finite in the forward pass already: {self._arose(self.forward[source])}."

    def _forward(self, index: int) -> Iterator[str]:
        causes = self.forward.get(index)
        entry = self.trace.entries[index]
        if causes is None or entry.kind != "operation":
            return
        value = next(each for each in entry.values if each is not None and not each.is_finite)
        if causes == [index]:
            yield f"{_kinds(value)} arises here in the forward pass: the operands are finite, the result is not."
        elif causes:
            yield f"The result is not finite: {self._arose(causes)}."

    def _arose(self, causes: list[int]) -> str:
        shown = ", ".join(self.place(each) for each in causes[:MOST])
        computed = any(self.trace.entries[each].kind == "operation" for each in causes)
        return (
            f"that {'arose' if computed else 'came'} {'in' if computed else 'from'} {shown}"
            if shown
            else "its origin is not recorded"
        )

    def _not_reached(self, index: int) -> Iterator[str]:
        """Yield a sentence about an operation or leaf at which no gradient has arrived."""
        arriving = self.arriving.get(index, ())
        none = [source for source, each in arriving if each.final is None]
        if none:
            shown = ", ".join(self.place(each) for each in none[:MOST])
            yield f"No gradient arrives here: {shown} passed on None."
        elif not arriving and self.trace.stopped:
            yield "No gradient arrives here: the backward pass stopped before."
        elif not arriving and self.trace.requested:
            yield "No gradient arrives here: this backward pass computes the requested gradients only."

    def _why_zero(self, entry: Entry, each: Outgoing) -> str:
        """Return the reason why the gradient that ``entry`` passes on for ``each`` is 0, "" if no value shows it."""
        operation = entry.operation
        if not isinstance(operation, Op) or operation.several or each.index >= len(operation.rules):
            return ""
        rule = operation.rules[each.index]
        result = entry.values[0] if len(entry.values) == 1 else None
        if operation.name == "relu" and result is not None and result.is_zero:
            return "no element of its input is positive"
        if operation.name in ("tanh", "sigmoid") and result is not None and _all_in(result, _LIMITS[operation.name]):
            one, other = _LIMITS[operation.name]
            return f"it is saturated, every result is rounded to {one} or {other}"
        if isinstance(rule, str):
            name = "input" if rule == "self" else "result" if rule == "out" else rule
            factor = result if rule == "out" else _operand(self.trace, entry, name)
            if factor is not None and factor.is_zero:
                return f"it is multiplied by `{name}`, whose elements are all 0"
            if factor is None and entry.parameters.get(name) == 0:
                return f"it is multiplied by {name} = 0"
        if operation.name in _PRODUCTS and callable(rule):
            for name in map(shown_name, arguments(rule)):
                factor = _operand(self.trace, entry, name)
                if factor is not None and factor.is_zero:
                    return f"it is multiplied by `{name}`, whose elements are all 0"
        return ""


#: Operations whose rules multiply the gradient by another operand.
_PRODUCTS = frozenset(
    {"mm", "mv", "dot", "bmm", "addmm", "baddbmm", "addmv", "addbmm", "outer", "div_true", "linear_block"}
)


_LIMITS = {"tanh": (-1, 1), "sigmoid": (0, 1)}


def _operand(trace: Trace, entry: Entry, name: str) -> Value | None:
    """Return the value of the operand called ``name`` of ``entry``, None if it is not known."""
    for source, each in entry.inputs:
        values = trace.entries[source].values
        if each == name and len(values) == 1:
            return values[0]
    return next((each.value for each in entry.saved if each.name == name), None)


def _all_in(value: Value, numbers: tuple[int, int]) -> bool:
    """Whether each element of ``value`` is one of the two ``numbers``; False if the elements are not kept."""
    if value.array is None:
        found = value.summary
        return found.get("min") == found.get("max") and found.get("min") in numbers and value.is_finite
    return bool(numpy.isin(value.array, numbers).all())


def _kinds(value: Value) -> str:
    """Return which elements of ``value`` are not finite, as the subject of a sentence."""
    nan, inf = value.summary.get("nan"), value.summary.get("inf")
    return "NaN and infinity" if nan and inf else "NaN" if nan else "Infinity"


def _forward_causes(trace: Trace) -> dict[int, list[int]]:
    """Return the entries whose values are not finite, with the entries where that arose; empty if it is not recorded."""
    found: dict[int, list[int]] = {}
    for index, entry in enumerate(trace.entries):
        if all(each is None or each.is_finite for each in entry.values):
            continue
        sources = [source for source, _ in entry.inputs]
        inside = [cause for source in sources if source in found for cause in found[source]]
        known = all(each is not None for source in sources for each in trace.entries[source].values)
        found[index] = list(dict.fromkeys(inside)) if inside or not known else [index]
    return found


__all__ = ["Reasons"]
