"""What a compiled call does, as a list: which operation makes which values of which. Knows neither tensors nor how to run it.

Every value is made once and never changed (an operation in place gives its tensor a new value), so that steps may be left
out, shared, moved and fused by looking at nothing but who uses what.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

#: What a value is: given with each call, the same array in every call, or what a step makes.
INPUT, CONSTANT, RESULT = "input", "constant", "result"


_more = count(100000)


class Value:
    """One array of the program: of what shape and dtype, and where it comes from.

    ``array``: of a constant, its numbers. ``root``: the value in whose memory it lies, itself if in its own. ``graded``:
    whether gradients flow through it. ``base``: of what only shows another value in another shape, that value.
    """

    __slots__ = ("array", "base", "dtype", "graded", "kind", "number", "root", "shape", "strides")

    def __init__(self, number: int, kind: str, array: Any, graded: bool = False) -> None:
        self.number, self.kind, self.graded = number, kind, graded
        self.shape: tuple[int, ...] = array.shape
        self.dtype, self.strides = array.dtype, array.strides
        self.root = self
        self.base: Value | None = None
        self.array = array if kind is CONSTANT else None

    @property
    def name(self) -> str:
        """Its name in what is written."""
        if self.base is not None:
            return self.base.name
        return f"{'x' if self.kind is INPUT else 'c' if self.kind is CONSTANT else 'v'}{self.number}"

    @property
    def size(self) -> int:
        """How many elements it has."""
        count = 1
        for each in self.shape:
            count *= each
        return count

    def seen_as(self, shape: tuple[int, ...]) -> Value:
        """The same elements in another shape, or as many of them as are different ones."""
        made = Value(self.number, self.kind, self, self.graded)
        made.shape, made.strides, made.base, made.array = shape, (), self.base or self, self.array
        return made

    def like(self, shape: tuple[int, ...]) -> Value:
        """A new value of this dtype, row by row in memory of its own."""
        made = Value(next(_more), RESULT, self, self.graded)
        made.shape, found = shape, [self.dtype.itemsize]
        for size in shape[:0:-1]:
            found.append(found[-1] * size)
        made.strides = tuple(found[::-1]) if shape else ()
        return made

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Step:
    """One operation of the program: operands are values, numbers or None.

    ``line``: the place in the user's program. ``effect``: it is done whoever uses its results (a random draw).
    ``in_place``: its result has shape, dtype and order of the first operand.
    """

    __slots__ = ("effect", "in_place", "line", "op", "operands", "params", "results", "several")

    def __init__(
        self, op: Any, operands: tuple[Any, ...], params: tuple[Any, ...], results: Sequence[Value], several: bool,
        line: tuple[Any, int] = (None, -1), effect: bool = False, in_place: bool = False,
    ) -> None:  # fmt: skip
        self.op, self.operands, self.params = op, operands, params
        self.results, self.several, self.line, self.effect = tuple(results), several, line, effect
        self.in_place = in_place

    def values(self) -> Iterator[Value]:
        """The operands that are values."""
        return (each.base or each for each in self.operands if each.__class__ is Value)

    def __repr__(self) -> str:
        given = [each.name if each.__class__ is Value else repr(each) for each in self.operands]
        made = ", ".join(each.name for each in self.results)
        return f"{made} = {self.op.name}({', '.join([*given, *map(shown, self.params)])})"


def shown(value: Any) -> str:
    """A parameter in what is written for readers."""
    text = repr(value)
    return text if len(text) < 40 else f"<{type(value).__name__}>"


class Written:
    """An operation that no block of the table is: of any number of operands (``cat``), or a random draw.

    It has of an operation what steps and derivatives ask for. ``gradients(F, g, step)`` gives the gradients of all
    operands, as a rule does.
    """

    kind, rules, floats, opmath, check, refuses, result, inline, several, in_order = (
        "general",
        (),
        False,
        False,
        None,
        None,
        None,
        None,
        False,
        False,
    )
    differentiable: int | None = None
    holomorphic = True
    again: Any = None  # the same on tensors

    def __init__(self, name: str, kernel: Callable[..., Any], gradients: Callable[..., Any] | None = None) -> None:
        self.name = self.shown = name
        self.kernel, self.gradients = kernel, gradients
        self.has_rules = gradients is not None


class Tape:
    """Steps in the order in which they were done."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.count = 0

    def value(self, kind: str, array: Any, graded: bool = False) -> Value:
        """A new value."""
        self.count += 1
        return Value(self.count - 1, kind, array, graded)


def users(steps: Iterable[Step]) -> dict[Value, int]:
    """How often each value is an operand."""
    found: dict[Value, int] = {}
    for step in steps:
        for each in step.values():
            found[each] = found.get(each, 0) + 1
    return found
