"""Intermediate representation of a compiled call: a list of steps, each an operation on values. It knows no tensors.

Every value is assigned once (an in-place operation gives its tensor a new value), so that the passes can remove, share,
move and fuse steps by looking only at which step reads which value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

#: Kinds of values: passed with each call, the same array in every call, or the result of a step.
INPUT, CONSTANT, RESULT = "input", "constant", "result"


_numbers = count(100000)


class Value:
    """One array of the program: its shape, dtype and origin.

    ``array``: the elements of a constant. ``root``: the value that owns the memory, itself if it is no view.
    ``graded``: whether it requires gradients. ``base``: the value of which it is another shape of the same elements, or
    None.
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
        """Name in the generated source."""
        if self.base is not None:
            return self.base.name
        return f"{'x' if self.kind is INPUT else 'c' if self.kind is CONSTANT else 'v'}{self.number}"

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for each in self.shape:
            count *= each
        return count

    def seen_as(self, shape: tuple[int, ...]) -> Value:
        """Return a value for the same elements read in another shape."""
        made = Value(self.number, self.kind, self, self.graded)
        made.shape, made.strides, made.base, made.array = shape, (), self.base or self, self.array
        return made

    def like(self, shape: tuple[int, ...]) -> Value:
        """Return a new C-contiguous value of this dtype."""
        made = Value(next(_numbers), RESULT, self, self.graded)
        made.shape, found = shape, [self.dtype.itemsize]
        for size in shape[:0:-1]:
            found.append(found[-1] * size)
        made.strides = tuple(found[::-1]) if shape else ()
        return made

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Step:
    """One operation of the program. Operands are values, Python numbers or None.

    ``line``: code object and instruction of the user's frame. ``effect``: the step is kept even if its results are
    unused (a random draw). ``in_place``: the result keeps the shape, dtype and stride order of the first operand.
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
        """Return an iterator over the operands that are values; a reshaped operand counts as its base."""
        return (each.base or each for each in self.operands if each.__class__ is Value)

    def __repr__(self) -> str:
        given = [each.name if each.__class__ is Value else repr(each) for each in self.operands]
        made = ", ".join(each.name for each in self.results)
        return f"{made} = {self.op.name}({', '.join([*given, *map(short_repr, self.params)])})"


def short_repr(value: Any) -> str:
    """Return a short text for a parameter, as listings show it."""
    text = repr(value)
    return text if len(text) < 40 else f"<{type(value).__name__}>"


class ExtraOp:
    """Operation that is not in the table of operations: one with any number of operands (``cat``), or a random draw.

    It has the attributes of ``Op`` that steps and derivatives read. ``gradients(F, g, step)`` returns the gradients of
    all operands.
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
    again: Any = None  # the same operation on tensors

    def __init__(self, name: str, kernel: Callable[..., Any], gradients: Callable[..., Any] | None = None) -> None:
        self.name = self.shown = name
        self.kernel, self.gradients = kernel, gradients
        self.has_rules = gradients is not None


class Tape:
    """Steps in the order in which they were recorded."""

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.count = 0

    def value(self, kind: str, array: Any, graded: bool = False) -> Value:
        """Return a new value of this tape."""
        self.count += 1
        return Value(self.count - 1, kind, array, graded)


def count_uses(steps: Iterable[Step]) -> dict[Value, int]:
    """Return the number of times that each value is read as an operand."""
    found: dict[Value, int] = {}
    for step in steps:
        for each in step.values():
            found[each] = found.get(each, 0) + 1
    return found
