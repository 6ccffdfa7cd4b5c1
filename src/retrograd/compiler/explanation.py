"""``explain``: which operations of a compiled function are deferred, what ends its segments, and the programs, as text."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import compiled_function
from .cursor import name_of
from .entries import Entry
from .segments import Segment


class Explanation:
    """Result of :func:`explain`; printing it shows the segments and their programs.

    ``graph_count`` is the number of segments that were compiled, ``op_count`` the number of their steps, and ``loops``
    the number of fused loops in their programs. ``graph_break_count`` is the number of places where a segment ended
    before the end of the call, and ``break_reasons`` are the reasons, with the lines. ``eager_reasons`` are the reasons
    why operations or calls run in eager mode.
    """

    graph_break_count: int
    graph_count: int

    def __init__(self, held: compiled_function.Compiled) -> None:
        self.name: str = str(getattr(held.function, "__name__", type(held.function).__name__))
        programs = {each: each.program for each in held.segments() if each.program is not None}
        self.segments: list[Segment] = list(programs)
        self.break_reasons: list[str] = list(held.ends)
        self.eager_reasons: list[str] = list(dict.fromkeys(_eager_reasons(held)))
        self.graph_count, self.graph_break_count = len(self.segments), len(self.break_reasons)
        self.ops_per_graph: list[list[str]] = [[step.op.name for step in each.steps] for each in programs.values()]
        self.op_count: int = sum(map(len, self.ops_per_graph))
        self.loops: int = sum(len(one.loops) for each in programs.values() for one in each.programs)

    def __str__(self) -> str:
        lines = [f"{self.name}: {_count(self.graph_count, 'segment')}, {_count(self.op_count, 'step')}, "
                 f"{_count(self.loops, 'fused loop')}"]  # fmt: skip
        lines += [f"a segment ends: {each}" for each in self.break_reasons]
        lines += [f"in eager mode: {each}" for each in self.eager_reasons]
        for number, each in enumerate(self.segments, 1):
            lines += ["", *_described(number, each)]
        return "\n".join(lines)

    __repr__ = __str__


def _described(number: int, segment: Segment) -> list[str]:
    """Return lines that describe a segment: what ended it, its public calls, and its programs."""
    calls = [name_of(each.called) for each in segment.entries if each.called is not None]
    lines = [f"# Segment {number}: {', '.join(calls)}", f"# It ended because {segment.cause}."]
    return [*lines, "", "" if segment.program is None else segment.program.describe()]


def _eager_reasons(held: compiled_function.Compiled) -> list[str]:
    """Return the reasons why operations or calls of the function run in eager mode."""
    found = []
    if held.full():
        found.append("the function has too many different calls or shapes")
    for root in held.roots.values():
        if root.small:
            found.append(f"calls with few steps on few elements ({_count(_length(root), 'step')} in a row at most)")
    if not all(root.small for root in held.roots.values()):
        brief = dict.fromkeys(name_of(entry.called) for entry in held.entries() if entry.brief)
        found += [f"segments of few steps on few elements that begin with {name}()" for name in brief]
    found += [f"{name_of(entry.called)}(): {entry.reason}" for entry in held.entries() if entry.reason is not None]
    found += [f"{name}(): {reason}" if reason else name for name, reason in held.eager.items()]
    found += [each.reason for each in held.segments() if each.reason]
    if not found and not held.ends and not held.segments():
        if not held.roots:
            found.append("calls within another compiled function, which defers their operations")
        else:
            found.append("calls with no result that is used" if held.entries() else "calls with no operation to defer")
    return found


def _length(entry: Entry) -> int:
    """Return the number of entries on the longest path below ``entry``."""
    return max([1 + _length(each) for each in entry.children], default=0)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def explain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:  # Note [Any in public signatures]
    """Compile ``function``, call it twice with ``args`` and ``kwargs``, and return an :class:`Explanation`.

    ``explain(f)(x)`` is equivalent to ``explain(f, x)``. If ``function`` is already compiled, the explanation includes
    the segments of its earlier calls.

    >>> import retrograd as torch
    >>> found = torch.compiler.explain(lambda x: (x * 2).exp())(torch.ones(100_000))
    >>> found.op_count, found.break_reasons
    (2, [])
    """

    def explained(*args: object, **kwargs: object) -> Explanation:
        held = getattr(function, "_compiled", None)
        called: Any = function
        if held is None and hasattr(function, "_call"):
            held = getattr(function._call, "_compiled", None)
        if held is None:
            called = compiled_function.compiled_form(function, False)
            held = called._compiled
        for _ in range(2):  # the first call records the operations
            called(*args, **kwargs)
        return Explanation(held)

    return explained(*args, **kwargs) if args or kwargs else explained
