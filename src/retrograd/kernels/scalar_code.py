"""``Element``, a symbolic element of an array: a kernel called with elements returns the tree of its expression.

Functions of NumPy that are called with elements return further elements. The tree has no node for a function that is in
none of the tables, and none for a decision by values: the call then raises an exception. ``compiler/scalar_code.py``
derives the expressions of fused Numba loops in this way, and ``kernels/cuda`` those of CUDA kernels.

In the expressions, ``F`` is the dtype of the loop, so that ``F(2)`` is a number of this dtype. Functions such as ``exp``
are defined in ``kernels/numba/math.py``; functions that have no vectorised polynomial there, such as ``sin``, are
missing, because NumPy is as fast.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from copy import copy
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar, NoReturn

import numpy
from numpy.lib.mixins import NDArrayOperatorsMixin

if TYPE_CHECKING:
    from ..core.typing import ArrayDType

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
#: A number that is 1 or 0, of a bool, and one of two values by a bool.
AS_NUMBER, CHOICE = "F(1) if {0} else F(0)", "{1} if {0} else {2}"


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
    #: Functions of numbers, by the names of the ufuncs.
    functions: ClassVar[dict[str, str]] = ARITHMETIC

    def __init__(self, dtype: ArrayDType, size: int, text: str | None = None, operands: Sequence[Element] = ()) -> None:
        self.dtype, self.size, self.text, self.operands = dtype, _Count(size), text, operands

    @classmethod
    def combined(cls, dtype: ArrayDType, text: str, operands: Sequence[Element]) -> Element:
        """Return the element that ``text`` computes of the elements ``operands`` of arrays, which are broadcast."""
        return cls(dtype, max(each.size + 0 for each in operands), text, operands)

    @classmethod
    def number(cls, value: object, dtype: ArrayDType) -> Element:
        """Return the number ``value`` as an element of an array of ``dtype``."""
        return cls(dtype, 1, repr(value) if dtype == BOOL else scalar_literal(value))

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
        return self.combined(numpy.dtype(dtype), AS_NUMBER, (self,))

    def copy(self) -> Element:
        """Return the element."""
        return self

    def __bool__(self) -> bool:
        raise TypeError("the kernel decides by the value of an element")

    def __array__(self, *args: object, **named: object) -> NoReturn:
        # NumPy would make an array of one object, of which as_strided reads memory that is not its own.
        raise TypeError("the kernel calls a function that is not in the tables")

    def __array_ufunc__(
        self, ufunc: numpy.ufunc, method: str, *inputs: object, out: tuple[object, ...] | None = None, **options: object
    ) -> object:
        if method != "__call__" or options or (out and not isinstance(out[0], Element)):
            return NotImplemented
        made = self.call(ufunc.__name__, inputs)
        target = out[0] if out else None
        return target.overwrite(made) if isinstance(target, Element) else made

    def overwrite(self, value: Element) -> Element:
        """Make this element that of an array into which ``value`` was written, and return it."""
        before = copy(self)
        value.operands = tuple([before if each is self else each for each in value.operands])
        self.text, self.operands = value.text, value.operands
        return self

    def __array_function__(
        self, function: object, types: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        if function is numpy.where and len(args) == 3 and not kwargs:
            condition, *values = self.elements(args)
            dtype = next((each.dtype for each in values if each.dtype != BOOL), BOOL)
            return self.combined(dtype, CHOICE, (condition, *[each.astype(dtype) for each in values]))
        if function in (numpy.zeros_like, numpy.ones_like) and len(args) == 1 and not kwargs:
            return self.combined(self.dtype, f"F({int(function is numpy.ones_like)})", (self,))
        return NotImplemented

    @classmethod
    def elements(cls, values: Sequence[object]) -> list[Element]:
        """Return ``values`` as elements; numbers must have the dtype of the loop, or be numbers of Python."""
        found = []
        loop = next((each.dtype for each in values if isinstance(each, Element) and each.dtype != BOOL), None)
        for each in values:
            if not isinstance(each, Element):
                if isinstance(each, (numpy.ndarray, numpy.generic)) and each.dtype not in (loop, BOOL):
                    raise TypeError("a number of another dtype")
                number = numpy.asarray(each).item()
                truth = number is True or number is False
                each = cls.number(number, BOOL if truth else loop or numpy.dtype(float))
            found.append(each)
        return found

    @classmethod
    def call(cls, name: str, inputs: Sequence[object]) -> Element:
        """Return the result of the ufunc ``name`` for ``inputs``, which are elements or numbers."""
        given = cls.elements(inputs)
        kinds = [each.dtype for each in given if each.dtype != BOOL]
        if name in COMPARISONS:
            return cls.combined(BOOL, COMPARISONS[name], [each.astype(kinds[0]) for each in given] if kinds else given)
        if name == "power" and given[1].text == "F(4.0)":
            return (given[0] * given[0]) * (given[0] * given[0])
        if name in DECAYS and _is_never_positive(given[0]):
            return cls.combined(kinds[0], DECAYS[name], given)
        if name in LOGIC and not kinds:
            return cls.combined(BOOL, LOGIC[name], given)
        return cls.combined(kinds[0], cls.functions[name], [each.astype(kinds[0]) for each in given])


#: Text of a number without a sign. The text of other expressions may begin in the same way: ``F(1) / {0}``.
POSITIVE_NUMBER = re.compile(r"F\([\d.]+(e[-+]?\d+)?\)")


def _is_never_positive(element: Element) -> bool:
    """Whether ``element`` is ``-abs(x)``, or a minimum with 0, perhaps multiplied by a positive number."""
    if element.text == ARITHMETIC["negative"]:
        return element.operands[0].text == ARITHMETIC["absolute"]
    if element.text == ARITHMETIC["multiply"] and POSITIVE_NUMBER.fullmatch(element.operands[1].text or ""):
        element = element.operands[0]
    return element.text == ARITHMETIC["minimum"] and element.operands[1].text in ("F(0)", "F(0.0)")


#: Functions of numbers in compiled regions of small arrays, besides those of :data:`ARITHMETIC`.
SMALL_FUNCTIONS = {
    **{name: f"{name}({{0}})" for name in (
        "sin", "cos", "tan", "sinh", "cosh", "expm1", "exp2", "log2", "log10", "floor", "ceil", "trunc", "erfc",
    )},
    "arcsin": "asin({0})", "arccos": "acos({0})", "arctan": "atan({0})", "arcsinh": "asinh({0})",
    "arccosh": "acosh({0})", "arctanh": "atanh({0})", "arctan2": "atan2({0}, {1})", "hypot": "hypot({0}, {1})",
    "power": "pow({0}, {1})", "fabs": "abs({0})", "expit": "sigmoid({0})", "copysign": "copysign({0}, {1})",
    "conjugate": "{0}",
}  # fmt: skip


class SmallElement(Element):
    """One element of an array in a region of small arrays, which may call the functions in :data:`SMALL_FUNCTIONS`."""

    functions: ClassVar[dict[str, str]] = {**ARITHMETIC, **SMALL_FUNCTIONS}
    flags = SimpleNamespace(c_contiguous=True, carray=True, f_contiguous=True, writeable=True)

    def conj(self) -> Element:
        """Return the element, which is real."""
        return self

    def fill(self, value: object) -> None:
        """Make this element that of an array that was filled with ``value``."""
        self.overwrite(self.number(value, self.dtype))

    def __array_function__(
        self, function: object, types: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        if function is numpy.empty_like and len(args) == 1 and not kwargs:
            return self.combined(self.dtype, "F(0)", (self,))
        return super().__array_function__(function, types, args, kwargs)


class ArrayModule:
    """NumPy, with a function ``asarray`` that accepts elements."""

    def __getattr__(self, name: str) -> object:
        return getattr(numpy, name)

    __name__ = "numpy"

    def asarray(self, value: object, dtype: ArrayDType | None = None) -> object:
        """Return ``numpy.asarray(value, dtype)``, or ``value`` itself if it is an :class:`Element`.

        An :class:`Element` represents one element of an array in the expression of a loop.
        """
        return value if isinstance(value, Element) else numpy.asarray(value, dtype)


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
