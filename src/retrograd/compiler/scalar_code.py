"""Expressions by which a fused loop computes one element of an operation's result, derived from its kernel.

The kernel is called once with an :class:`Element` in place of each array. Functions of NumPy return further elements,
so that the result is the tree of the expression. An operation has no expression if its kernel calls a function that is
in none of the tables, or decides by values.

In the expressions, ``F`` is the dtype of the loop, so that ``F(2)`` is a number of this dtype. Functions such as ``exp``
are defined in ``kernels/numba/math.py``; functions that have no vectorised polynomial there, such as ``sin``, are
missing, because NumPy is as fast.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from ..core.typing import ArrayDType
    from .ir import Step
    from .typing import Operation, Params

BOOL = numpy.dtype(bool)
#: Functions of numbers, by the names of the ufuncs.
ARITHMETIC = {
    "add": "{0} + {1}", "subtract": "{0} - {1}", "multiply": "{0} * {1}", "divide": "{0} / {1}", "negative": "-{0}",
    "positive": "{0}", "absolute": "abs({0})", "square": "{0} * {0}", "reciprocal": "F(1) / {0}",
    "maximum": "{0} if {0} >= {1} or {0} != {0} else {1}", "minimum": "{0} if {0} <= {1} or {0} != {0} else {1}",
    "sign": "F(1) if {0} > F(0) else F(-1) if {0} < F(0) else {0} - {0}",
    "ndtr": "normal_cdf({0})",
    **{name: f"{name}({{0}})" for name in ("sqrt", "exp", "log", "log1p", "tanh", "erf")},
}  # fmt: skip
#: Faster functions of numbers that are never positive.
DECAYS = {"exp": "decay({0})", "expm1": "decay_less_one({0})"}
#: Functions of numbers with bool results.
COMPARISONS = {
    "equal": "{0} == {1}", "not_equal": "{0} != {1}", "less": "{0} < {1}", "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}", "greater_equal": "{0} >= {1}", "isnan": "{0} != {0}",
}  # fmt: skip
#: Functions of bools.
LOGIC = {
    "logical_not": "not {0}", "invert": "not {0}", "logical_and": "{0} and {1}", "bitwise_and": "{0} and {1}",
    "logical_or": "{0} or {1}", "bitwise_or": "{0} or {1}",
}  # fmt: skip


def scalar_literal(value: object) -> str:
    """Return the number ``value`` as source text in the dtype of the loop, ``F``: ``F(2)`` for 2."""
    if isinstance(value, float) and not math.isfinite(value):
        return f"F({'nan' if value != value else 'inf' if value > 0 else '-inf'})"
    return f"F({value!r})"


class _Count(int):
    """Number of elements, for which no variant of a kernel for small or large arrays is chosen."""

    def __le__(self, other: int) -> bool:
        return False

    __ge__ = __lt__ = __gt__ = __le__


class Element(NDArrayOperatorsMixin):
    """One element of an array, in the expression of a loop.

    ``text`` is a format string for ``operands``, which are elements too; an operand of the operation is ``text=None``.
    """

    ndim = 1
    __hash__ = object.__hash__

    def __init__(self, dtype: ArrayDType, size: int, text: str | None = None, operands: Sequence[Element] = ()) -> None:
        self.dtype, self.size, self.text, self.operands = dtype, _Count(size), text, operands

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array: one dimension, because only elementwise functions are supported."""
        return (self.size,)

    def astype(self, dtype: ArrayDType, copy: bool = True) -> Element:
        """Return the element converted to ``dtype``; only bool can be converted."""
        if dtype == self.dtype:
            return self
        if self.dtype != BOOL:
            raise TypeError("a conversion between floating dtypes")
        return Element(numpy.dtype(dtype), self.size, "F(1) if {0} else F(0)", (self,))

    def copy(self) -> Element:
        """Return the element."""
        return self

    def __bool__(self) -> bool:
        raise TypeError("the kernel decides by the value of an element")

    def __array_ufunc__(
        self, ufunc: numpy.ufunc, method: str, *inputs: object, out: tuple[object, ...] | None = None, **options: object
    ) -> object:
        if method != "__call__" or options or (out and not isinstance(out[0], Element)):
            return NotImplemented
        made = _call(ufunc.__name__, inputs)
        target = out[0] if out else None
        if not isinstance(target, Element):
            return made
        before = Element(target.dtype, target.size, target.text, target.operands)
        made.operands = tuple([before if each is target else each for each in made.operands])
        target.text, target.operands = made.text, made.operands  # the array is overwritten
        return target

    def __array_function__(
        self, function: object, types: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        if function is numpy.where and len(args) == 3 and not kwargs:
            condition, *values = _elements(args)
            dtype = next((each.dtype for each in values if each.dtype != BOOL), BOOL)
            size = max(each.size + 0 for each in (condition, *values))
            return Element(dtype, size, "{1} if {0} else {2}", (condition, *[each.astype(dtype) for each in values]))
        if function in (numpy.zeros_like, numpy.ones_like) and len(args) == 1 and not kwargs:
            return Element(self.dtype, self.size, f"F({int(function is numpy.ones_like)})")
        return NotImplemented


def _elements(values: Sequence[object]) -> list[Element]:
    """Return ``values`` as elements; numbers must have the dtype of the loop, or be numbers of Python."""
    found = []
    loop = next((each.dtype for each in values if each.__class__ is Element and each.dtype != BOOL), None)
    for each in values:
        if each.__class__ is not Element:
            if isinstance(each, (numpy.ndarray, numpy.generic)) and each.dtype not in (loop, BOOL):
                raise TypeError("a number of another dtype")
            number = numpy.asarray(each).item()
            kind = BOOL if number is True or number is False else loop or numpy.dtype(float)
            each = Element(kind, 1, repr(number) if kind == BOOL else scalar_literal(number))
        found.append(each)
    return found


def _call(name: str, inputs: Sequence[object]) -> Element:
    given = _elements(inputs)
    size = max(each.size + 0 for each in given)
    kinds = [each.dtype for each in given if each.dtype != BOOL]
    if name in COMPARISONS:
        return Element(BOOL, size, COMPARISONS[name], [each.astype(kinds[0]) for each in given] if kinds else given)
    if name == "power" and given[1].text == "F(4.0)":
        return (given[0] * given[0]) * (given[0] * given[0])
    if name in DECAYS and _is_never_positive(given[0]):
        return Element(kinds[0], size, DECAYS[name], given)
    if name in LOGIC and not kinds:
        return Element(BOOL, size, LOGIC[name], given)
    return Element(kinds[0], size, ARITHMETIC[name], [each.astype(kinds[0]) for each in given])


def _is_never_positive(element: Element) -> bool:
    """Whether ``element`` is ``-abs(x)``, or a minimum with 0, perhaps multiplied by a positive number."""
    if element.text == ARITHMETIC["negative"]:
        return element.operands[0].text == ARITHMETIC["absolute"]
    if element.text == ARITHMETIC["multiply"] and (element.operands[1].text or "-")[:3] in ("F(0", "F(1", "F(2"):
        element = element.operands[0]
    return element.text == ARITHMETIC["minimum"] and element.operands[1].text in ("F(0)", "F(0.0)")


class _ArrayModule:
    """NumPy, with a function ``asarray`` that accepts elements."""

    def __getattr__(self, name: str) -> object:
        return getattr(numpy, name)

    __name__ = "numpy"

    def asarray(self, value: object, dtype: ArrayDType | None = None) -> object:
        """Return ``numpy.asarray(value, dtype)``, or ``value`` itself if it is an :class:`Element`.

        An :class:`Element` represents one element of an array in the expression of a loop.
        """
        return value if value.__class__ is Element else numpy.asarray(value, dtype)


def expression_of(step: Step, dtype: ArrayDType) -> tuple[Element, tuple[Element, ...]] | None:
    """Return the expression of ``step``, a recorded operation in a loop of ``dtype``, and the elements of its operands.

    The result is None if the operation is not elementwise, or if no expression can be derived.
    """
    op = step.op
    if op.kind != "pointwise" and op.vmap not in ("elementwise", "loss") and op.scalar is None:
        return None
    operands = tuple([(each.dtype, each.size) if hasattr(each, "dtype") else (dtype, 1) for each in step.operands])
    try:
        return _derived(op, step.params, operands, repr(step.params))
    except TypeError:  # unhashable parameters
        return None


@lru_cache(1024)
def _derived(
    op: Operation, params: Params, operands: tuple[tuple[ArrayDType, int], ...], text: str
) -> tuple[Element, tuple[Element, ...]] | None:
    """Return the expression of ``op`` and the elements of its operands, or None.

    ``text`` is the text of ``params``. It is part of the key of the cache because -0.0 equals 0.0, and True equals 1.
    """
    given = tuple([Element(*each) for each in operands])
    try:
        if op.scalar is not None:
            found = op.scalar(*given, *params)
        else:
            named = dict(zip(op.params[op.positional :], params[op.positional :], strict=True))
            found = op.kernel(_ArrayModule(), *given, *params[: op.positional], **named)
    except Exception:  # the kernel is more than functions of the tables
        return None
    return (found, given) if found.__class__ is Element else None


def element_text(found: tuple[Element, Sequence[Element]], operands: Sequence[str], name: Callable[[str], str]) -> str:
    """Return the text of an expression that :func:`expression_of` returned, for ``operands``, the texts of its operands.

    ``name`` assigns the text of a part that is used more than once to a local variable, and returns its name.
    """
    root, given = found
    texts = {id(each): text for each, text in zip(given, operands, strict=True)}
    uses: Counter[int] = Counter()

    def count(node: Element) -> None:
        for place, each in enumerate(node.operands):
            seen = id(each) in uses
            uses[id(each)] += node.text.count(f"{{{place}}}")  # type: ignore[union-attr]
            if not seen:
                count(each)

    def text(node: Element) -> str:
        if id(node) not in texts:
            made = node.text.format(*map(text, node.operands))  # type: ignore[union-attr]
            if not node.operands or node is root:
                return made
            texts[id(node)] = name(made) if uses[id(node)] > 1 else f"({made})"
        return texts[id(node)]

    count(root)
    return text(root)
