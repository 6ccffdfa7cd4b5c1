"""Intermediate representation of a recorded call: a list of steps, each of which applies an operation to values.

A value describes an array and is the result of at most one step: after an in-place operation, a new value describes the
modified array (static single assignment). Therefore a pass, which removes, merges, moves or fuses steps, needs to know
only the values that each step reads. This module does not use tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.typing import Function, Location
    from .typing import Described, Operand, Operation, Params

#: Kinds of values: passed with each call, the same array in every call, or the result of a step.
INPUT, CONSTANT, RESULT = "input", "constant", "result"


_numbers = count(100000)


class Value:
    """Description of one array in a recorded call: its shape, dtype, strides and origin.

    ``array`` is the array itself for a constant, and None for all other values. ``graded`` is true if gradients with
    respect to the array are required. ``root`` is the value whose array owns the memory: for a view that of the viewed
    array, otherwise this value. ``base`` is set only in fused loops: if it is not None, the loop reads the array of
    ``base`` in the shape of this value, and this value has no array.
    """

    __slots__ = ("array", "base", "dtype", "graded", "kind", "number", "root", "shape", "strides")
    graded: bool
    kind: str
    number: int
    dtype: Described
    strides: Described

    def __init__(self, number: int, kind: str, array: Described, graded: bool = False) -> None:
        self.number, self.kind, self.graded = number, kind, graded
        self.shape: tuple[int, ...] = array.shape
        self.dtype, self.strides = array.dtype, array.strides
        self.root = self
        self.base: Value | None = None
        self.array: Described | None = array if kind is CONSTANT else None

    @property
    def name(self) -> str:
        """Name of the variable for this value in the generated source text."""
        if self.base is not None:
            return self.base.name
        return f"{'x' if self.kind is INPUT else 'c' if self.kind is CONSTANT else 'v'}{self.number}"

    @property
    def size(self) -> int:
        """Number of elements of the array."""
        count = 1
        for each in self.shape:
            count *= each
        return count

    def seen_as(self, shape: tuple[int, ...]) -> Value:
        """Return a new :class:`Value`, which describes the same elements in the shape ``shape``.

        The ``base`` of the new value is this value, or the ``base`` of this value if it has one.
        """
        made = Value(self.number, self.kind, self, self.graded)
        made.shape, made.strides, made.base, made.array = shape, (), self.base or self, self.array
        return made

    def like(self, shape: tuple[int, ...]) -> Value:
        """Return the :class:`Value` of a new C-contiguous array with the shape ``shape`` and this value's dtype."""
        made = Value(next(_numbers), RESULT, self, self.graded)
        made.shape, found = shape, [self.dtype.itemsize]
        for size in shape[:0:-1]:
            found.append(found[-1] * size)
        made.strides = tuple(found[::-1]) if shape else ()
        return made

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}{list(self.shape)}"


class Step:
    """Recorded operation with its operands and results.

    An operand is a :class:`Value` (description of an array), a Python number or None; a result is a :class:`Value`.
    ``line`` is a pair that locates the line of the user's program: its code object and the offset of the instruction in
    it.
    """

    __slots__ = ("line", "op", "operands", "params", "results", "several")
    op: Operation
    operands: tuple[Operand, ...]
    params: Params
    line: Location
    results: tuple[Value, ...]
    several: bool

    def __init__(
        self, op: Operation, operands: tuple[Operand, ...], params: Params, results: Sequence[Value], several: bool,
        line: Location = (None, -1),
    ) -> None:  # fmt: skip
        self.op, self.operands, self.params = op, operands, params
        self.results, self.several, self.line = tuple(results), several, line

    def values(self) -> Iterator[Value]:
        """Return an iterator over the operands that are :class:`Value` objects (descriptions of arrays).

        If an operand has a ``base``, whose array is read in another shape, the iterator returns the ``base`` instead.
        """
        return (each.base or each for each in self.operands if each.__class__ is Value)

    def __repr__(self) -> str:
        given = [each.name if each.__class__ is Value else repr(each) for each in self.operands]
        made = ", ".join(each.name for each in self.results)
        return f"{made} = {self.op.name}({', '.join([*given, *map(short_repr, self.params)])})"


def short_repr(value: object) -> str:
    """Return ``repr(value)``, or the name of the type in angle brackets if the repr has 40 characters or more."""
    text = repr(value)
    return text if len(text) < 40 else f"<{type(value).__name__}>"


class ExtraOp:
    """Operation that exists only in recordings, such as ``cat`` of several tensors or a random draw.

    It has those attributes of ``Op``, the class that describes all other operations, by which a step is run and
    differentiated. ``kernel`` computes the result. ``gradients(F, g, step)`` returns the gradients of all operands,
    where ``g`` is the incoming gradient and ``F`` the namespace of operations.
    """

    kind: str
    rules: tuple[()]
    shown: str
    gradients: Function | None
    kernel: Function

    kind, rules = "general", ()
    floats = opmath = several = in_order = False
    check = refuses = result = inline = vmap = scalar = None
    differentiable: int | None = None
    holomorphic = True
    again: Function | None = None  # the same operation on tensors

    def __init__(self, name: str, kernel: Function, gradients: Function | None = None) -> None:
        self.name = self.shown = name
        self.kernel, self.gradients = kernel, gradients
        self.has_rules: bool = gradients is not None


class Tape:
    """Recording of one call of a compiled function: the list ``steps``, in the order in which the steps ran."""

    count: int

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.count = 0

    def value(self, kind: str, array: Described, graded: bool = False) -> Value:
        """Return a new :class:`Value`, which describes the shape, dtype and strides of ``array``.

        ``kind`` is the origin of the array: ``INPUT``, ``CONSTANT`` or ``RESULT`` (of a recorded step). ``graded`` is
        true if gradients with respect to the array are required.
        """
        self.count += 1
        return Value(self.count - 1, kind, array, graded)


def count_uses(steps: Iterable[Step]) -> dict[Value, int]:
    """Return a dict from each recorded array to the number of times that it is an operand of one of ``steps``."""
    found: dict[Value, int] = {}
    for step in steps:
        for each in step.values():
            found[each] = found.get(each, 0) + 1
    return found
